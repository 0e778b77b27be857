//! Computes the new values of rows that an action of a merge assigns, in the types of the table.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, Schema};

use super::clause::RowFunction;
use super::joined::Joined;
use crate::arrow::conform::conform;
use crate::error::{Error, Result};
use crate::write::Matching;
use crate::write::conform::Conform;
use crate::write::intake::Intake;

/// New values for some columns of a table.
pub(crate) struct Assigned {
    /// Columns copied from joined rows, with their paths there.
    taken: Vec<(String, Vec<String>)>,
    /// Computed columns with their types.
    computed: SchemaRef,
    function: Option<RowFunction>,
    /// The columns as the table stores them.
    schema: Schema,
    intake: Option<(SchemaRef, Intake)>,
}

impl std::fmt::Debug for Assigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assigned").field("taken", &self.taken).field("computed", &self.computed).finish_non_exhaustive()
    }
}

impl Assigned {
    /// Values for these columns of a table. For `new` rows, all other columns get their defaults.
    ///
    /// # Errors
    /// A column that the table lacks, or a required column without a value for new rows.
    pub(crate) fn new(
        table: &Schema,
        taken: Vec<(String, Vec<String>)>,
        computed: &[String],
        function: Option<RowFunction>,
        new: bool,
    ) -> Result<Self> {
        let names: Vec<&String> = taken.iter().map(|(name, _)| name).chain(computed).collect();
        for name in &names {
            if !table.fields().iter().any(|field| field.name == **name) {
                return Err(table.missing(name, true).into());
            }
        }
        let is_given = |field: &&Field| names.contains(&&field.name);
        let fields = table.fields().iter();
        let fields = match new {
            true => {
                let lacks = |field: &&Field| field.required && field.write_default.is_none() && !is_given(field);
                if let Some(field) = fields.clone().find(lacks) {
                    return Err(Error::column(&field.name, "required, but new rows get no value of it"));
                }
                fields.cloned().collect()
            }
            // Nulls in required columns are checked when rows are written.
            false => fields.filter(is_given).map(|field| Field { required: false, ..field.clone() }).collect(),
        };
        let field = |name: &String| {
            let field = table.named(name, true)?;
            Ok(ToArrow::default().field(field)?.with_nullable(true))
        };
        let computed = computed.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Schema::new(0, fields)?;
        Ok(Self { taken, computed: Arc::new(ArrowSchema::new(computed)), function, schema, intake: None })
    }

    /// Computes the values of rows in the types of the table.
    pub(crate) fn values(&mut self, rows: &Joined) -> Result<RecordBatch> {
        let count = rows.rows().num_rows();
        let mut columns: Vec<(String, ArrayRef)> = Vec::with_capacity(self.schema.fields().len());
        for (name, path) in &self.taken {
            columns.push((name.clone(), rows.column(path)?));
        }
        if let Some(function) = &self.function {
            let answer = function(rows.rows().clone(), Some(&self.computed))?;
            let values = answer.as_struct_opt().filter(|values| values.len() == count);
            let values = values.filter(|values| values.num_columns() == self.computed.fields().len());
            let values = values.ok_or_else(|| {
                Error::invalid(format!(
                    "expected {count} rows of {} columns as new values",
                    self.computed.fields().len()
                ))
            })?;
            let names = self.computed.fields().iter().map(|field| field.name().clone());
            columns.extend(names.zip(values.columns().iter().cloned()));
        }
        let field = |(name, array): &(String, ArrayRef)| ArrowField::new(name, array.data_type().clone(), true);
        let given: SchemaRef = Arc::new(ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let intake = match &mut self.intake {
            Some((schema, intake)) if *schema == given => intake,
            slot => {
                let conform = Conform::new(&self.schema, &given, Matching::default())?;
                &mut slot.insert((given.clone(), Intake::new(conform, None, None))).1
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new_with_options(given, arrays, &options);
        Ok(intake.prepare(&batch.map_err(internal)?)?.chunk)
    }
}

/// Assembles the rows to write: each column from the new values if it has one, otherwise from the old rows, otherwise
/// null.
pub(crate) fn rows_of(values: &RecordBatch, old: Option<&RecordBatch>, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = values.num_rows();
    let column = |field: &Arc<ArrowField>| {
        let given = values.column_by_name(field.name());
        let found = given.or_else(|| old.and_then(|old| old.column_by_name(field.name())));
        match found {
            Some(column) => conform(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), rows)),
        }
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(internal)
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("new values of a merge: {error}"))
}
