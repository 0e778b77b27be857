//! The key that joins rows of a table and a source: the values of both sides in one comparable form.
//!
//! Values are compared in the types of the table, in Arrow's row format. As in SQL, NaN equals NaN, -0.0 equals 0.0,
//! and null equals nothing; for an upsert, null equals null.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_cast::display::array_value_to_string;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use hashbrown::DefaultHashBuilder;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, Schema, Type};

use crate::arrow::cells::StoredColumn;
use crate::arrow::conform::conform;
use crate::error::{Error, Result};
use crate::write::Matching;
use crate::write::conform::Conform;
use crate::write::intake::Intake;

/// How keys are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Equality {
    /// As SQL's `=`: null matches nothing.
    Sql,
    /// Null matches null.
    Exact,
}

/// A column of the key, on both sides.
#[derive(Debug)]
pub(crate) struct KeyColumn {
    /// The column of the table.
    pub(crate) id: i32,
    target: StoredColumn,
    source: StoredColumn,
}

/// The columns of a key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) columns: Vec<KeyColumn>,
    equality: Equality,
    converter: RowConverter,
    types: Vec<DataType>,
    given: SchemaRef,
    intake: Intake,
    hasher: DefaultHashBuilder,
}

/// The keys of a batch.
#[derive(Debug)]
pub(crate) struct Keys {
    rows: Rows,
    /// Rows with a null in the key, if that matches nothing.
    nulls: Option<NullBuffer>,
}

impl Keys {
    /// The key of a row; `None` if it matches nothing.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!is_null).then(|| self.rows.row(row).data())
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Memory used by the keys, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.size()
    }
}

impl Key {
    /// A key from pairs of column names, of the table and of the source.
    ///
    /// # Errors
    /// A column that does not exist on its side, or whose values cannot be compared.
    pub(crate) fn new(
        table: &Schema,
        source: &ArrowSchema,
        on: &[(String, String)],
        equality: Equality,
        case_sensitive: bool,
    ) -> Result<Self> {
        let (mut columns, mut fields, mut given) = (Vec::new(), Vec::new(), Vec::new());
        for (ours, theirs) in on {
            let field = table.named(ours, case_sensitive)?;
            let name = table.column_name(field.id).unwrap_or(ours).to_owned();
            if !matches!(field.ty, Type::Primitive(_)) || table.accessor(field.id).is_none() {
                return Err(Error::column(
                    name,
                    "cannot be a column of the key: its values are not primitive, or are in lists or maps",
                ));
            }
            let (path, found) = find(source, theirs, case_sensitive).ok_or_else(|| match ours == theirs {
                true => Error::column(&name, "is a column of the key, and the data lack it"),
                false => Error::column(&name, format!("is joined with the column {theirs}, and the data lack that")),
            })?;
            given.push(found.with_name(&name).with_nullable(true));
            fields.push(Field { name, required: false, ..field.clone() });
            let target = StoredColumn::find(table, field.id)?;
            columns.push(KeyColumn { id: field.id, target, source: StoredColumn::named(path) });
        }
        let given: SchemaRef = Arc::new(ArrowSchema::new(given));
        let schema = Schema::new(0, fields)?;
        let types: Vec<DataType> =
            schema.to_arrow(&ToArrow::default())?.fields().iter().map(|field| field.data_type().clone()).collect();
        let intake = Intake::new(Conform::new(&schema, &given, Matching::default())?, None, None);
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())
            .map_err(|error| Error::unsupported(format!("the key: {error}")))?;
        Ok(Self { columns, equality, converter, types, given, intake, hasher: DefaultHashBuilder::default() })
    }

    /// The key columns of source rows, in the types of the table.
    pub(crate) fn source_columns(&mut self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let columns = self.columns.iter().map(|column| column.source.of(batch)).collect::<Result<Vec<_>>>()?;
        let given = RecordBatch::try_new(self.given.clone(), columns).map_err(internal)?;
        let stored = self.intake.prepare(&given)?.chunk;
        stored.columns().iter().zip(&self.types).map(|(column, ty)| conform(column, ty)).collect()
    }

    /// The keys of columns returned by [`Key::source_columns`].
    pub(crate) fn of_columns(&self, columns: Vec<ArrayRef>) -> Result<Keys> {
        let columns: Vec<ArrayRef> = columns.into_iter().map(normalized).collect();
        let nulls = match self.equality {
            Equality::Sql => columns
                .iter()
                .fold(None, |all, column| NullBuffer::union(all.as_ref(), column.logical_nulls().as_ref())),
            Equality::Exact => None,
        };
        Ok(Keys { rows: self.converter.convert_columns(&columns).map_err(internal)?, nulls })
    }

    /// The keys of table rows.
    pub(crate) fn of_target(&self, batch: &RecordBatch) -> Result<Keys> {
        let columns = self.columns.iter().zip(&self.types);
        self.of_columns(columns.map(|(column, ty)| conform(&column.target.of(batch)?, ty)).collect::<Result<Vec<_>>>()?)
    }

    /// The hash of a key.
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The key of a table row as text: `id = 5, day = null`.
    pub(crate) fn shown(&self, batch: &RecordBatch, row: usize) -> Result<String> {
        let columns = self.columns.iter().map(|column| Ok((&column.target, column.target.of(batch)?)));
        self.text(&columns.collect::<Result<Vec<_>>>()?, row)
    }

    /// The key of a source row as text.
    pub(crate) fn shown_of_source(&mut self, batch: &RecordBatch, row: usize) -> Result<String> {
        let values = self.source_columns(&batch.slice(row, 1))?;
        self.text(&self.columns.iter().map(|column| &column.target).zip(values).collect::<Vec<_>>(), 0)
    }

    fn text(&self, columns: &[(&StoredColumn, ArrayRef)], row: usize) -> Result<String> {
        let shown = columns.iter().map(|(name, column)| match column.is_null(row) {
            true => Ok(format!("{name} = null")),
            false => Ok(format!("{name} = {}", array_value_to_string(column, row).map_err(internal)?)),
        });
        Ok(shown.collect::<Result<Vec<_>>>()?.join(", "))
    }
}

/// Finds a column by its name, with dots between the levels of structs; returns its path and its field.
pub(crate) fn find(schema: &ArrowSchema, name: &str, case_sensitive: bool) -> Option<(Vec<String>, ArrowField)> {
    let same = |a: &str, b: &str| if case_sensitive { a == b } else { a.eq_ignore_ascii_case(b) };
    let mut fields = schema.fields();
    let (mut path, mut rest) = (Vec::new(), name);
    'levels: loop {
        if let Some(field) = fields.iter().find(|field| same(field.name(), rest)) {
            path.push(field.name().clone());
            return Some((path, field.as_ref().clone()));
        }
        for field in fields {
            let DataType::Struct(inner) = field.data_type() else { continue };
            let front = rest.get(..field.name().len()).filter(|front| same(front, field.name()));
            if let (Some(_), Some(behind)) =
                (front, rest.get(field.name().len()..).and_then(|rest| rest.strip_prefix('.')))
            {
                path.push(field.name().clone());
                (fields, rest) = (inner, behind);
                continue 'levels;
            }
        }
        return None;
    }
}

/// Maps floating-point numbers that are equal in SQL to one representation.
fn normalized(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| match value {
                value if value.is_nan() => f32::NAN,
                value => value + 0.0,
            }))
        }
        DataType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| match value {
                value if value.is_nan() => f64::NAN,
                value => value + 0.0,
            }))
        }
        _ => array,
    }
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("the key of a merge: {error}"))
}
