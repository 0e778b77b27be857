//! Reads and writes partition statistics files ("Partition Statistics File").

use arrow_array::RecordBatch;
use arrow_schema::Fields;
use arrow_select::concat::concat_batches;
use icefield_format::manifest::{FileContent, FileFormat};
use icefield_format::metadata::{PartitionStatisticsFile, StringMap};
use icefield_format::types::NameMapping;
use icefield_format::types::arrow::{has_ids, with_mapped_ids};

use super::layout::Layout;
use crate::error::{Error, Result};
use crate::file::modes::Modes;
use crate::file::{self, FileLayout, FormatOptions, Request, WrittenFile};
use crate::interrupt;
use crate::read::columns::Rules;
use crate::read::file_columns::plan_columns;
use crate::read::reshape::Reshape;
use crate::storage::{FileRef, Storage};

/// Rows of an encoded batch.
const BATCH_ROWS: usize = 1 << 15;

/// Writes a file under a name without extension.
pub(super) fn write(
    storage: &Storage,
    layout: &Layout,
    format: &FormatOptions,
    name: &str,
    rows: &RecordBatch,
) -> Result<WrittenFile> {
    let modes = Modes::new(&StringMap::default(), &layout.schema, None)?;
    let files = FileLayout::new(&layout.schema, layout.arrow.clone(), format, modes)?;
    let mut file = files.create(storage, format!("{name}.{}", files.format().extension()), &[])?;
    for start in (0..rows.num_rows()).step_by(BATCH_ROWS) {
        let some = rows.slice(start, BATCH_ROWS.min(rows.num_rows() - start));
        if let Err(error) = interrupt::check().and_then(|()| file.write(&[some], false)) {
            file.abort();
            return Err(error);
        }
    }
    file.finish()
}

/// Reads a file of any format version; columns that it lacks have their defaults.
pub(super) fn read(storage: &Storage, layout: &Layout, of: &PartitionStatisticsFile) -> Result<RecordBatch> {
    let path = of.statistics_path.as_str();
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let format = FileFormat::from_name(extension)
        .ok_or_else(|| Error::corrupt_file(path, "the name of a partition statistics file must end with its format"))?;
    let size = u64::try_from(of.file_size_in_bytes)
        .map_err(|_| Error::corrupt_file(path, format!("its size is {} bytes", of.file_size_in_bytes)))?;
    let names = NameMapping::of_schema(&layout.schema)?;
    let with_ids = |fields: &Fields| match has_ids(fields) {
        true => fields.clone(),
        false => with_mapped_ids(fields, &names),
    };
    let mut opened = file::open(storage, &FileRef::plain(path, size), format.name(), FileContent::Data)?;
    let stored = opened.bind(&with_ids, &layout.schema);
    let rules = Rules { path, constants: &() };
    let (leaves, planned) = plan_columns(&rules, &layout.schema, &layout.arrow, &stored)?;
    let reshape = Reshape::new(path, layout.arrow.clone(), planned);
    let mut batches = Vec::new();
    for batch in opened.batches(Request { batch_rows: BATCH_ROWS, ..Request::all(leaves) })?.into_batches() {
        interrupt::check()?;
        batches.push(reshape.apply(&batch?)?);
    }
    concat_batches(&layout.arrow, &batches).map_err(|error| Error::corrupt_file(path, error))
}
