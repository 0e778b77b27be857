//! Writes data and delete files for several tests: the format by its number, each batch as a group.

use std::sync::Arc;

use arrow_array::RecordBatch;
use icefield_format::metadata::StringMap;
use icefield_format::types::Schema;
use icefield_format::types::arrow::ToArrow;
use icefield_table::file::avro::AvroOptions;
use icefield_table::file::modes::Modes;
use icefield_table::file::orc::OrcOptions;
use icefield_table::file::parquet::ParquetOptions;
use icefield_table::file::{FileLayout, FormatOptions};
use icefield_table::storage::Storage;

/// Names of the formats, which are also their file extensions.
pub const FORMATS: [&str; 3] = ["parquet", "orc", "avro"];

/// Writes batches with field ids, each as its own row group, stripe or block; returns the size of the file.
pub fn write_file(storage: &Storage, path: &str, schema: &Arc<Schema>, groups: &[RecordBatch], format: usize) -> u64 {
    let none = StringMap::default();
    let options = match FORMATS[format] {
        "parquet" => FormatOptions::Parquet(ParquetOptions::new(&none).unwrap()),
        "orc" => FormatOptions::Orc(OrcOptions::new(&none).unwrap()),
        _ => FormatOptions::Avro(AvroOptions::new(&none).unwrap()),
    };
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let modes = Modes::new(&none, schema, None).unwrap();
    let layout = FileLayout::new(schema, arrow, &options, modes).unwrap();
    let mut writer = layout.create(storage, path.to_owned(), groups).unwrap();
    for group in groups {
        writer.write(std::slice::from_ref(group), false).unwrap();
        writer.close_group().unwrap();
    }
    writer.finish().unwrap().bytes
}
