//! `position_deletes`: every deleted position of a snapshot, from position delete files and deletion vectors.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{Fields, SchemaRef};
use arrow_select::take::take;
use icefield_format::FormatVersion;
use icefield_format::manifest::{Entries, FileContent, FileFormat, ManifestContent, ManifestFile, Metrics};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::puffin::DeletionVector;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{
    CONTENT_OFFSET_ID, CONTENT_SIZE_IN_BYTES_ID, DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW, FILE, PARTITION,
    SPEC_ID,
};
use icefield_format::types::{Field, PrimitiveType as P, Schema, StructType, Type};

use super::batch::{build, internal, missing};
use super::{Read, manifests};
use crate::error::{Error, Result};
use crate::read::columns::{Planned, Rules, leaves};
use crate::read::orc::{OrcFile, OrcRequest};
use crate::read::parquet::{ParquetFile, Request, projected};
use crate::read::reshape::Reshape;
use crate::read::stream::{OpenTask, TaskBatches};

/// Rows of a batch, at the most.
const BATCH_ROWS: usize = 64 << 10;

pub(super) fn schema(metadata: &TableMetadata, partition: &StructType) -> Result<Schema> {
    let mut fields = vec![
        DELETE_FILE_PATH.to_field(),
        DELETE_FILE_POS.to_field(),
        DELETE_FILE_ROW.to_field(Type::Struct(metadata.current_schema().as_struct().clone())),
    ];
    if !partition.fields.is_empty() {
        let partition = apart(partition, metadata);
        fields.push(
            Field::required(PARTITION.id, "partition", partition)
                .with_doc("Partition that position delete row belongs to"),
        );
    }
    fields.extend([
        Field::required(SPEC_ID.id, "spec_id", P::Int).with_doc(SPEC_ID.doc),
        Field::required(FILE.id, "delete_file_path", P::String).with_doc(FILE.doc),
    ]);
    if metadata.format_version() >= FormatVersion::V3 {
        fields.extend([
            Field::optional(CONTENT_OFFSET_ID, "content_offset", P::Long)
                .with_doc("The offset in the DV where the content starts"),
            Field::optional(CONTENT_SIZE_IN_BYTES_ID, "content_size_in_bytes", P::Long)
                .with_doc("The length in bytes of the DV blob"),
        ]);
    }
    Ok(Schema::new(0, fields)?)
}

/// The partition fields under the smallest ids that no column of any schema has.
fn apart(partition: &StructType, metadata: &TableMetadata) -> StructType {
    let taken = |id: i32| metadata.schemas().iter().any(|schema| schema.find_field(id).is_some());
    let mut free = (1..).filter(|id| !taken(*id));
    let fields = partition.fields.iter().filter_map(|field| Some(Field { id: free.next()?, ..field.clone() }));
    StructType::new(fields.collect())
}

/// A task a delete manifest.
pub(super) fn tasks(read: &Arc<Read>, snapshot: Option<&Snapshot>) -> Result<Vec<OpenTask>> {
    let all = manifests::of(read, snapshot)?.into_iter();
    let deletes = all.filter(|one| one.content == ManifestContent::Deletes && one.has_live_files());
    let task = |manifest: ManifestFile| -> OpenTask {
        let read = Arc::clone(read);
        Box::new(move || {
            let entries = read.entries(&manifest, &Metrics::none(), true)?;
            let rows: Vec<u32> = (0u32..)
                .zip(entries.content.values())
                .filter(|(_, content)| **content == 1)
                .map(|(row, _)| row)
                .collect();
            let spec_id = manifest.partition_spec_id;
            Ok(Box::new(rows.into_iter().flat_map(move |row| {
                let opened = DeleteFile::new(&read, &entries, row, spec_id).and_then(|file| file.batches(&read));
                opened.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
            })) as TaskBatches)
        })
    };
    Ok(deletes.map(task).collect())
}

/// A position delete file or a deletion vector.
struct DeleteFile {
    path: String,
    format: String,
    size: u64,
    record_count: i64,
    spec_id: i32,
    /// One tuple.
    partition: ArrayRef,
    referenced: Option<String>,
    /// First byte and bytes of a deletion vector.
    blob: Option<(i64, i64)>,
}

impl DeleteFile {
    fn new(read: &Read, entries: &Entries, row: u32, spec_id: i32) -> Result<Self> {
        let one = entries.take(&UInt32Array::from(vec![row]))?;
        let file = one.file(0, spec_id)?;
        debug_assert_eq!(file.content, FileContent::PositionDeletes);
        let size = u64::try_from(file.file_size_in_bytes);
        Ok(Self {
            size: size.map_err(|_| Error::corrupt_file(&file.file_path, "negative size"))?,
            format: file.file_format,
            record_count: file.record_count,
            spec_id,
            partition: Arc::new(read.partition.coerce(&one.partition)?),
            referenced: file.referenced_data_file,
            blob: file.content_offset.zip(file.content_size_in_bytes),
            path: file.file_path,
        })
    }

    fn batches(self, read: &Arc<Read>) -> Result<TaskBatches> {
        match FileFormat::from_name(&self.format) {
            Some(FileFormat::Puffin) => self.vector(read),
            Some(FileFormat::Parquet) => self.parquet(read),
            Some(FileFormat::Orc) => self.orc(read),
            _ => {
                let (path, format) = (&self.path, self.format.to_lowercase());
                Err(Error::unsupported(format!("{path}: reading {format} delete files is not built yet")))
            }
        }
    }

    /// The positions of a deletion vector.
    fn vector(self, read: &Arc<Read>) -> Result<TaskBatches> {
        let corrupt = |message: &str| Error::corrupt_file(&self.path, message);
        let (offset, size) = self.blob.ok_or_else(|| corrupt("a deletion vector whose place is not known"))?;
        if self.referenced.is_none() {
            return Err(corrupt("a deletion vector that references no data file"));
        }
        let start = u64::try_from(offset).map_err(|_| corrupt("its deletion vector begins before the file"))?;
        let end = u64::try_from(size).ok().and_then(|size| start.checked_add(size)).filter(|end| *end <= self.size);
        let end = end.ok_or_else(|| corrupt("its deletion vector ends behind the file"))?;
        let blob = read.inspect.storage.range(&self.path, start..end)?;
        let vector =
            DeletionVector::from_bytes(&blob, &read.inspect.limits).map_err(|error| error.in_file(&self.path))?;
        vector.check_cardinality(self.record_count).map_err(|error| error.in_file(&self.path))?;
        let mut positions = vector.as_bitmap().clone().into_iter();
        let read = Arc::clone(read);
        Ok(Box::new(std::iter::from_fn(move || {
            let some: Vec<i64> = positions.by_ref().take(BATCH_ROWS).map(u64::cast_signed).collect();
            if some.is_empty() {
                return None;
            }
            let rows = some.len();
            let pos: ArrayRef = Arc::new(Int64Array::from(some));
            Some(self.batch(&read, rows, |name| match name {
                "pos" => Some(pos.clone()),
                "file_path" => Some(text(self.referenced.as_deref().unwrap_or_default(), rows)),
                _ => None,
            }))
        })))
    }

    /// The rows of a position delete file in Parquet.
    fn parquet(self, read: &Arc<Read>) -> Result<TaskBatches> {
        let (wanted, output) = stored(read)?;
        let file = ParquetFile::open(&read.inspect.storage, &self.path, Some(self.size))?;
        let (leaves, planned) = self.plan(&wanted, &output, file.fields())?;
        let row_groups = (0..file.metadata().num_row_groups()).collect();
        let request = Request { leaves, row_groups, batch_rows: BATCH_ROWS, ..Request::default() };
        let reshape = Reshape::new(&self.path, output, planned);
        let batches = file.batches(request)?.map(move |batch| reshape.apply(&batch?));
        Ok(self.rows(read, batches))
    }

    /// The rows of a position delete file in ORC.
    fn orc(self, read: &Arc<Read>) -> Result<TaskBatches> {
        let (wanted, output) = stored(read)?;
        let mut file = OrcFile::open(&read.inspect.storage, &self.path, self.size)?;
        file.take_units(&file.fields(), &wanted);
        let (leaves, planned) = self.plan(&wanted, &output, &file.fields())?;
        let reshape = Reshape::new(&self.path, output, planned);
        let range = (0, self.size);
        let request =
            OrcRequest { leaves, rows: None, range, batch_rows: BATCH_ROWS, predicate: None, filter: None, threads: 1 };
        let batches = file.batches(request)?.map(move |batch| reshape.apply(&batch?));
        Ok(self.rows(read, batches))
    }

    fn rows(
        self,
        read: &Arc<Read>,
        batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    ) -> TaskBatches {
        let read = Arc::clone(read);
        Box::new(batches.map(move |batch| {
            let batch = batch?;
            self.batch(&read, batch.num_rows(), |name| batch.column_by_name(name).cloned())
        }))
    }

    fn plan(&self, wanted: &Schema, output: &SchemaRef, file: &Fields) -> Result<(Vec<usize>, Vec<Planned>)> {
        let rules = Rules { path: &self.path, constants: &() };
        let pairs: Vec<_> = wanted.fields().iter().cloned().zip(output.fields().iter().cloned()).collect();
        let marks = leaves(&rules.plan(&pairs, file)?, file);
        let planned = rules.plan(&pairs, &projected(file, &marks))?;
        Ok((marks, planned))
    }

    /// A batch of the table: columns that `stored` has, and what is the same for all rows of the file.
    fn batch(&self, read: &Read, rows: usize, stored: impl Fn(&str) -> Option<ArrayRef>) -> Result<RecordBatch> {
        let long = |value: Option<i64>| Arc::new(std::iter::repeat_n(value, rows).collect::<Int64Array>());
        let batch = build(&read.arrow, rows, |field| {
            if let Some(column) = stored(field.name()) {
                return Ok(column);
            }
            Ok(match field.name().as_str() {
                "row" => arrow_array::new_null_array(field.data_type(), rows),
                "partition" => take(&self.partition, &UInt64Array::from_value(0, rows), None).map_err(internal)?,
                "spec_id" => Arc::new(Int32Array::from_value(self.spec_id, rows)),
                "delete_file_path" => text(&self.path, rows),
                "content_offset" => long(self.blob.map(|(offset, _)| offset)),
                "content_size_in_bytes" => long(self.blob.map(|(_, size)| size)),
                other => return Err(missing(other)),
            })
        })?;
        read.finish(&batch)
    }
}

/// The columns of the table that files of position deletes have.
fn stored(read: &Read) -> Result<(Schema, SchemaRef)> {
    let ids = [DELETE_FILE_PATH.id, DELETE_FILE_POS.id, DELETE_FILE_ROW.id];
    let wanted = read.made.fields().iter().filter(|field| ids.contains(&field.id));
    let wanted = Schema::new(0, wanted.cloned().collect())?;
    let output = Arc::new(wanted.to_arrow(&ToArrow::default())?);
    Ok((wanted, output))
}

fn text(value: &str, rows: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)))
}
