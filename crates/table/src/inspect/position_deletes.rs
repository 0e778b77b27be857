//! `position_deletes`: every deleted position of a snapshot, from position delete files and deletion vectors.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::Fields;
use arrow_select::take::take;
use icefield_format::FormatVersion;
use icefield_format::manifest::{Entries, FileContent, ManifestContent, ManifestFile, Metrics};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{
    CONTENT_OFFSET_ID, CONTENT_SIZE_IN_BYTES_ID, DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW, FILE, PARTITION,
    SPEC_ID,
};
use icefield_format::types::{Field, PrimitiveType as P, Schema, StructType, Type};

use super::batch::{build, internal, missing};
use super::{Read, manifests};
use crate::error::Result;
use crate::file::{self, BATCH_ROWS, Request};
use crate::plan::deletes::DeleteKind;
use crate::plan::tasks::part::DeletePart;
use crate::read::columns::Rules;
use crate::read::deletes::vectors;
use crate::read::file_columns::plan_columns;
use crate::read::reshape::Reshape;
use crate::stream::{OpenTask, TaskBatches};

pub(super) fn schema(metadata: &TableMetadata, partition: &StructType) -> Result<Schema> {
    let mut fields = vec![
        DELETE_FILE_PATH.to_field(),
        DELETE_FILE_POS.to_field(),
        DELETE_FILE_ROW.to_field(Type::Struct(metadata.current_schema().as_struct().clone())),
    ];
    if !partition.fields.is_empty() {
        let partition = with_free_ids(partition, metadata);
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

/// The partition fields with the smallest ids that no column of any schema has.
fn with_free_ids(partition: &StructType, metadata: &TableMetadata) -> StructType {
    let taken = |id: i32| metadata.schemas().iter().any(|schema| schema.find_field(id).is_some());
    let mut free = (1..).filter(|id| !taken(*id));
    let fields = partition.fields.iter().filter_map(|field| Some(Field { id: free.next()?, ..field.clone() }));
    StructType::new(fields.collect())
}

/// One task per delete manifest.
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
    part: DeletePart,
    spec_id: i32,
    /// One tuple.
    partition: ArrayRef,
}

impl DeleteFile {
    fn new(read: &Read, entries: &Entries, row: u32, spec_id: i32) -> Result<Self> {
        let one = entries.take(&UInt32Array::from(vec![row]))?;
        let part = DeletePart::of_entry(&one, 0)?;
        Ok(Self { part, spec_id, partition: Arc::new(read.partition.coerce(&one.partition)?) })
    }

    fn batches(self, read: &Arc<Read>) -> Result<TaskBatches> {
        match self.part.kind {
            DeleteKind::Vector => self.vector(read),
            _ => self.rows(read),
        }
    }

    /// The positions of a deletion vector.
    fn vector(self, read: &Arc<Read>) -> Result<TaskBatches> {
        let vector =
            vectors::load(&read.inspect.storage, &self.part, &vectors::Named::default(), &read.inspect.limits)?;
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
                "file_path" => Some(text(self.part.referenced_data_file.as_deref().unwrap_or_default(), rows)),
                _ => None,
            }))
        })))
    }

    /// The rows of a position delete file.
    fn rows(self, read: &Arc<Read>) -> Result<TaskBatches> {
        let stored = [DELETE_FILE_PATH.id, DELETE_FILE_POS.id, DELETE_FILE_ROW.id];
        let wanted = read.made.fields().iter().filter(|field| stored.contains(&field.id));
        let wanted = Arc::new(Schema::new(0, wanted.cloned().collect())?);
        let output = Arc::new(wanted.to_arrow(&ToArrow::default())?);
        let DeletePart { path, format, .. } = &self.part;
        let content = FileContent::PositionDeletes;
        let mut file = file::open(&read.inspect.storage, &self.part.file_ref(), format, content)?;
        let fields = file.bind(&Fields::clone, &wanted);
        let rules = Rules { path, constants: &() };
        let (leaves, planned) = plan_columns(&rules, &wanted, &output, &fields)?;
        let reshape = Reshape::new(path, output, planned);
        let batches = file.batches(Request::all(leaves))?.into_batches();
        let read = Arc::clone(read);
        Ok(Box::new(batches.map(move |batch| {
            let batch = reshape.apply(&batch?)?;
            self.batch(&read, batch.num_rows(), |name| batch.column_by_name(name).cloned())
        })))
    }

    /// A batch of the table: columns from `stored`, and constants of the file.
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
                "delete_file_path" => text(&self.part.path, rows),
                "content_offset" => long(self.part.blob.map(|(offset, _)| offset)),
                "content_size_in_bytes" => long(self.part.blob.map(|(_, size)| size)),
                other => return Err(missing(other)),
            })
        })?;
        read.finish(&batch)
    }
}

fn text(value: &str, rows: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)))
}
