//! The columns of compared rows, and the identifier of a row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, SchemaRef};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID, ROW_ID};
use icefield_format::types::{Field, Schema};
use icefield_format::value::Value;

use super::ledger::internal;
use crate::error::{Error, Result};
use crate::plan::changes::{Change, ChangeType};
use crate::plan::projection::variant_paths::{VariantPath, VariantPaths};
use crate::plan::projection::wanted::Wanted;
use crate::read::columns::{Constants, Rules};
use crate::read::reshape::Reshape;

/// The identifier of rows.
#[derive(Debug, Clone)]
pub(super) enum Identifier {
    RowId,
    Columns(Vec<Field>),
}

/// Values inside the variants of compared rows.
struct OfRows<'a>(&'a VariantPaths);

impl Constants for OfRows<'_> {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }

    fn variant_path(&self, id: i32) -> Option<&VariantPath> {
        self.0.get(&id)
    }
}

/// Where the columns of compared rows are.
pub(super) struct Layout {
    pub(super) columns: Arc<Schema>,
    pub(super) schema: SchemaRef,
    /// The table columns.
    pub(super) values: Vec<usize>,
    pub(super) row_id: Option<usize>,
    pub(super) change_type: usize,
    pub(super) ordinal: usize,
    pub(super) snapshot_id: usize,
}

impl Layout {
    pub(super) fn new(wanted: &Wanted) -> Result<Self> {
        let columns = wanted.projection.clone();
        let place = |id: i32| columns.fields().iter().position(|field| field.id == id);
        let lost = || Error::Internal("a changelog without its columns".to_owned());
        let (change_type, ordinal) =
            (place(CHANGE_TYPE.id).ok_or_else(lost)?, place(CHANGE_ORDINAL.id).ok_or_else(lost)?);
        let (snapshot_id, row_id) = (place(COMMIT_SNAPSHOT_ID.id).ok_or_else(lost)?, place(ROW_ID.id));
        let others = [Some(change_type), Some(ordinal), Some(snapshot_id), row_id];
        let values = (0..columns.fields().len()).filter(|at| !others.contains(&Some(*at))).collect();
        Ok(Self { schema: wanted.arrow()?, columns, values, row_id, change_type, ordinal, snapshot_id })
    }

    /// The columns that rows are compared by.
    pub(super) fn keys(&self) -> Vec<usize> {
        self.values.iter().copied().chain(self.row_id).collect()
    }

    pub(super) fn types_of(&self, places: &[usize]) -> impl Iterator<Item = DataType> {
        places.iter().filter_map(|place| self.schema.fields().get(*place)).map(|field| field.data_type().clone())
    }

    pub(super) fn pick(places: &[usize], batch: &RecordBatch) -> Vec<ArrayRef> {
        places.iter().filter_map(|place| batch.columns().get(*place)).cloned().collect()
    }

    pub(super) fn values_of(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        Self::pick(&self.values, batch)
    }

    /// How some of the columns are computed from all of them.
    pub(super) fn reshape(&self, some: &Schema, paths: &VariantPaths) -> Result<(Reshape, SchemaRef)> {
        let schema = Arc::new(some.to_arrow(&ToArrow::default())?);
        let pairs: Vec<_> = some.fields().iter().cloned().zip(schema.fields().iter().cloned()).collect();
        let rules = Rules { path: "a changelog", constants: &OfRows(paths) };
        let planned = rules.plan(&pairs, self.schema.fields())?;
        Ok((Reshape::new("a changelog", schema.clone(), planned), schema))
    }

    pub(super) fn select(&self, fields: &[Field]) -> Result<(Reshape, SchemaRef)> {
        let some = self.columns.select_ids(&fields.iter().map(|field| field.id).collect())?;
        self.reshape(&some, &VariantPaths::new())
    }

    /// How the output rows are computed.
    pub(super) fn project(&self, output: &Wanted) -> Result<Reshape> {
        Ok(self.reshape(&output.projection, &output.variant_paths)?.0)
    }

    /// Remaining rows.
    pub(super) fn batch(&self, columns: Vec<ArrayRef>, changes: &[Change]) -> Result<RecordBatch> {
        let change_types = changes.iter().map(|change| change.change_type.as_str());
        let mut placed: Vec<(usize, ArrayRef)> = self.keys().into_iter().zip(columns).collect();
        placed.push((self.change_type, Arc::new(StringArray::from_iter_values(change_types))));
        let ordinals = changes.iter().map(|change| change.ordinal);
        placed.push((self.ordinal, Arc::new(Int32Array::from_iter_values(ordinals))));
        let ids = changes.iter().map(|change| change.snapshot_id);
        placed.push((self.snapshot_id, Arc::new(Int64Array::from_iter_values(ids))));
        placed.sort_by_key(|(place, _)| *place);
        let columns = placed.into_iter().map(|(_, column)| column).collect();
        RecordBatch::try_new(self.schema.clone(), columns).map_err(internal)
    }

    /// The batch with other change types.
    pub(super) fn with_change_types(&self, batch: &RecordBatch, types: ArrayRef) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        if let Some(slot) = columns.get_mut(self.change_type) {
            *slot = types;
        }
        RecordBatch::try_new(self.schema.clone(), columns).map_err(internal)
    }

    /// The change of all rows in a batch.
    pub(super) fn change(&self, batch: &RecordBatch) -> Result<Change> {
        let lost = || Error::Internal("rows without their change".to_owned());
        let column = |place: usize| batch.columns().get(place).filter(|column| !column.is_empty()).ok_or_else(lost);
        let change_type = column(self.change_type)?.as_string_opt::<i32>().ok_or_else(lost)?.value(0);
        Ok(Change {
            change_type: ChangeType::parse(change_type)?,
            ordinal: column(self.ordinal)?.as_primitive_opt::<Int32Type>().ok_or_else(lost)?.value(0),
            snapshot_id: column(self.snapshot_id)?.as_primitive_opt::<Int64Type>().ok_or_else(lost)?.value(0),
        })
    }
}
