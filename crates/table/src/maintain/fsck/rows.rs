//! Checks the rows of a file against its entry in a manifest: their number and their partition. `columns.rs` checks what
//! the entry says about columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use icefield_format::encryption::HiddenBytes;
use icefield_format::expr::Expression;
use icefield_format::manifest::{DataFile, FileContent, ManifestEntry};
use icefield_format::spec::PartitionField;
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use icefield_format::types::{Field, NAME_MAPPING_PROPERTY, NameMapping, PrimitiveType, Schema, Type};

use super::columns::{CheckedColumn, SeenValues};
use super::context::{At, Check};
use super::metrics::{has_other_types, is_truncated, same};
use crate::arrow::cells::value_at;
use crate::error::Result;
use crate::plan::deletes::delete_parts::DeleteParts;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::{FilePart, FilePartition, PlannedSpec};
use crate::read::task;

/// Reads all rows of a data or delete file.
pub(super) fn check(check: &Check<'_>, at: At<'_>, entry: &ManifestEntry) -> Result<()> {
    let file = &entry.file;
    let Some(spec) = check.metadata.partition_spec(file.partition_spec_id) else { return Ok(()) };
    let schema = match file.content {
        FileContent::Data => readable(check)?,
        FileContent::PositionDeletes => position_deletes()?,
        FileContent::EqualityDeletes => match equality_columns(check, file)? {
            Some(schema) => schema,
            None => return Ok(()),
        },
    };
    let schema = &schema;
    let columns = CheckedColumn::all(schema.fields(), file);
    let mapping = check.metadata.property(NAME_MAPPING_PROPERTY).and_then(|text| NameMapping::parse(text).ok());
    let wanted = Wanted { name_mapping: mapping.map(Arc::new), ..Wanted::new(schema.clone(), schema.clone()) };
    let planned = PlannedSpec { partition_type: spec.partition_type(schema), spec: spec.clone() };
    let part = FilePart {
        path: file.file_path.clone(),
        format: file.file_format.to_lowercase(),
        size: u64::try_from(file.file_size_in_bytes).unwrap_or(0),
        key_metadata: file.key_metadata.clone().map(HiddenBytes),
        start: 0,
        length: u64::try_from(file.file_size_in_bytes).unwrap_or(0),
        record_count: file.record_count,
        partition: FilePartition { spec: Arc::new(planned), tuple: file.partition.clone() },
        sequence_number: entry.sequence_number,
        first_row_id: file.first_row_id,
        deletes: DeleteParts::default(),
        residual: Expression::True,
        change: None,
        deleted_by: DeleteParts::default(),
    };
    let mut seen: BTreeMap<i32, SeenValues> = BTreeMap::new();
    let mut rows = 0i64;
    for batch in task::rows(ReadTask { wanted: Arc::new(wanted), parts: vec![part] }, check.storage, None)? {
        let batch = batch?;
        rows = rows.saturating_add(i64::try_from(batch.num_rows()).unwrap_or(i64::MAX));
        for column in &columns {
            if let Some((values, without)) = column.values(&batch)? {
                seen.entry(column.field.id).or_default().add(column, &values, without)?;
            }
        }
        if file.content == FileContent::Data {
            check_partition(check, at, file, schema, &batch)?;
        }
        if !check.goes_on() {
            return Ok(());
        }
    }
    check.count(|report| report.rows += u64::try_from(rows).unwrap_or(0));
    if file.record_count >= 0 {
        at.same("rows-record-count", "record_count", rows, file.record_count);
    }
    for column in &columns {
        if let Some(seen) = seen.get(&column.field.id) {
            column.compare(check, at, file, seen);
        }
    }
    Ok(())
}

/// The current columns, without those that files may have with another type, because the table was replaced.
fn readable(check: &Check<'_>) -> Result<Arc<Schema>> {
    let current = check.metadata.current_schema();
    let changed = |field: &Field| {
        let schema = Schema::new(0, vec![field.clone()]);
        schema.is_ok_and(|schema| {
            schema.ids().iter().any(|id| schema.find_type(*id).is_some_and(|ty| has_other_types(check, *id, ty)))
        })
    };
    if !current.fields().iter().any(changed) {
        return Ok(current.clone());
    }
    let fields = current.fields().iter().filter(|field| !changed(field)).cloned().collect();
    Ok(Arc::new(Schema::new(current.schema_id(), fields)?))
}

/// The columns of position delete files.
fn position_deletes() -> Result<Arc<Schema>> {
    let path = DELETE_FILE_PATH.to_field();
    let position = DELETE_FILE_POS.to_field();
    Ok(Arc::new(Schema::new(0, vec![path, position])?))
}

/// The columns that an equality delete file compares; `None` if they are within structs, or have had other types.
fn equality_columns(check: &Check<'_>, file: &DataFile) -> Result<Option<Arc<Schema>>> {
    let mut fields = Vec::new();
    for id in file.equality_ids.iter().flatten() {
        let mut schemas = std::iter::once(check.metadata.current_schema()).chain(check.metadata.schemas().iter().rev());
        let found = schemas.find_map(|schema| schema.fields().iter().find(|field| field.id == *id));
        match found.filter(|field| !has_other_types(check, *id, &field.ty)) {
            Some(field) => fields.push(field.clone()),
            None => return Ok(None),
        }
    }
    Ok(Some(Arc::new(Schema::new(0, fields)?)))
}

/// All rows must belong to the partition of their file.
fn check_partition(check: &Check<'_>, at: At<'_>, file: &DataFile, schema: &Schema, batch: &RecordBatch) -> Result<()> {
    let Some(spec) = check.metadata.partition_spec(file.partition_spec_id) else { return Ok(()) };
    // Values of unknown transforms cannot be computed.
    for (field, value) in spec.fields.iter().zip(&file.partition).filter(|(field, _)| !field.has_unknown_values()) {
        let Some((values, ty)) = results(field, schema, batch)? else { continue };
        for row in 0..values.len() {
            let found = value_at(&values, &ty, row)?;
            let is_same = match (&found, value) {
                (Some(found), Some(value)) => same(found, value),
                (found, value) => found == value,
            };
            let is_cut = is_truncated(&ty) && value.is_none();
            if !is_same && !is_cut {
                let name = format!("partition.{}", field.name);
                at.error("rows-partition", &name, format!("{found:?}, as of a row"), format!("{value:?}"));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The results of a transform for each row, unless its source is an identity that the reader takes from the manifest.
fn results(field: &PartitionField, schema: &Schema, batch: &RecordBatch) -> Result<Option<(ArrayRef, PrimitiveType)>> {
    let Some(id) = field.source_id().filter(|_| !field.transform.is_void()) else { return Ok(None) };
    if matches!(field.transform, icefield_format::transform::Transform::Identity) {
        return Ok(None);
    }
    let Some(at) = schema.fields().iter().position(|column| column.id == id) else { return Ok(None) };
    let (Some(values), Some(source)) = (batch.columns().get(at), schema.find_type(id)) else { return Ok(None) };
    let Some(Type::Primitive(result)) = field.transform.result_type(source) else { return Ok(None) };
    Ok(Some((field.transform.kernel(values)?, result)))
}
