//! Writes Avro data files, as the Java library does.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use icefield_format::avro::from_type::record_schema;
use icefield_format::avro::{Compression, ContainerWriter};
use icefield_format::types::Schema;

use super::options::AvroOptions;
use super::rows::{Missing, columns};
use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::file::sink::Sink;
use crate::file::{FileWriter, WrittenFile};
use crate::interrupt;
use crate::storage::Storage;

/// Shared by all Avro files of one writer.
#[derive(Debug)]
pub struct AvroLayout {
    table: Arc<Schema>,
    /// The writer's schema.
    avro: String,
    /// The table's schema, for the header.
    iceberg: String,
    compression: Compression,
}

impl AvroLayout {
    /// The layout of files with a table schema.
    pub fn new(schema: &Arc<Schema>, options: &AvroOptions) -> Result<Self> {
        Ok(Self {
            avro: record_schema("table", schema.as_struct())?.to_string(),
            iceberg: schema.to_json().to_string(),
            table: schema.clone(),
            compression: options.compression,
        })
    }
}

/// An Avro file being written.
#[derive(Debug)]
pub struct AvroWriter {
    path: String,
    layout: Arc<AvroLayout>,
    container: ContainerWriter,
    sink: Sink,
    rows: i64,
}

impl AvroWriter {
    /// Starts a file.
    pub fn create(storage: &Storage, path: String, layout: Arc<AvroLayout>) -> Result<Self> {
        let sync = uuid::Uuid::new_v4().into_bytes();
        let metadata = [("iceberg.schema", layout.iceberg.as_str())];
        let container = ContainerWriter::new(&layout.avro, &metadata, layout.compression, sync)?;
        let sink = Sink::new(storage.output(&path)?);
        Ok(Self { path, layout, container, sink, rows: 0 })
    }

    /// Passes finished bytes to the store.
    fn push(&mut self) -> Result<()> {
        let bytes = self.container.take();
        self.sink.write_all(&bytes).map_err(|error| {
            let other = || Error::column("(data)", format!("cannot be written to {}: {error}", self.path));
            self.sink.failure().unwrap_or_else(other)
        })
    }
}

impl FileWriter for AvroWriter {
    fn write(&mut self, batches: &[RecordBatch], _: bool) -> Result<()> {
        for batch in batches {
            interrupt::check()?;
            let fields = self.layout.table.fields();
            let columns = columns(fields, batch.columns())?;
            for row in 0..batch.num_rows() {
                let mut missing = None;
                self.container.record(|out| {
                    for (place, column) in columns.iter().enumerate() {
                        if let Err(Missing) = column.write(row, out) {
                            missing = Some(place);
                            break;
                        }
                    }
                    Ok(())
                })?;
                if let Some(field) = missing.and_then(|place| fields.get(place)) {
                    return Err(Error::column(&field.name, format!("row {row} has a null where a value is required")));
                }
            }
            self.rows += i64::try_from(batch.num_rows()).unwrap_or(i64::MAX);
            self.push()?;
        }
        Ok(())
    }

    fn close_group(&mut self) -> Result<()> {
        self.container.end_block()?;
        self.push()
    }

    fn memory(&self) -> usize {
        self.container.waiting()
    }

    fn size(&self) -> u64 {
        self.container.length() as u64
    }

    fn finish(mut self: Box<Self>) -> Result<WrittenFile> {
        self.close_group()?;
        let bytes = self.sink.finish()?;
        // Like the Java library, collect no other metrics of Avro files.
        let metrics = FileMetrics { record_count: self.rows, ..FileMetrics::default() };
        Ok(WrittenFile { path: self.path, bytes, metrics, key_metadata: None })
    }

    fn abort(self: Box<Self>) {
        self.sink.abort();
    }
}
