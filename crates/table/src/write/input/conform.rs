//! Conforms data to the table's schema: finds columns by name in any order, casts values without loss, checks nulls.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeListArray, ListArray, MapArray, OffsetSizeTrait, RecordBatch,
    RecordBatchOptions, StructArray, new_empty_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, SchemaRef};

use icefield_format::nearest::hint;
use icefield_format::types::arrow::{BOOL8, meaning_lost, named};
use icefield_format::types::{Field, ListType, MapType, PrimitiveType, Schema, Type};
use icefield_format::value::Value;

use super::cast::{self, Cast};
use super::fault::{Fault, Wrong};
use crate::arrow::constant;
use crate::error::{Error, Result};
use crate::file::is_stored;

/// How columns of the data may differ from the table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matching {
    /// Optional columns may be missing: they get their write default, otherwise null.
    pub allow_missing: bool,
    /// Columns missing from the table are dropped instead of refused.
    pub ignore_extra: bool,
}

impl Default for Matching {
    fn default() -> Self {
        Self { allow_missing: true, ignore_extra: false }
    }
}

/// Converts batches of one schema to their stored form.
#[derive(Debug)]
pub struct Conform {
    columns: Vec<ConformedColumn>,
    schema: SchemaRef,
}

/// The source of a stored column.
#[derive(Debug)]
struct ConformedColumn {
    /// Full name, for errors.
    path: String,
    field: FieldRef,
    /// Index among the columns of the data, if present.
    source: Option<usize>,
    /// The type to unpack the data to first: plain lists instead of list views, plain values instead of run-end
    /// encoded ones.
    unpacked: Option<DataType>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Leaf(Cast, PrimitiveType),
    Struct(Vec<ConformedColumn>),
    List(Box<ConformedColumn>),
    Map(Box<ConformedColumn>, Box<ConformedColumn>),
    /// One value for every row: the write default, or null.
    Constant(Option<Value>, Type),
}

impl Conform {
    /// Matches the columns of `data` with those of the table; one error lists all problems.
    pub fn new(table: &Schema, data: &ArrowSchema, matching: Matching) -> Result<Self> {
        let mut plan = Plan { matching, faults: Vec::new() };
        let columns = plan.columns(table.fields(), data.fields(), "");
        match plan.faults.len() {
            0 => {}
            1 => return Err(plan.faults.remove(0)),
            _ => {
                let all: Vec<String> = plan.faults.iter().map(ToString::to_string).collect();
                return Err(Error::Columns(all));
            }
        }
        let fields: Fields = columns.iter().map(|column| column.field.clone()).collect();
        Ok(Self { columns, schema: Arc::new(ArrowSchema::new(fields)) })
    }

    /// The schema of stored batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Converts a batch; a fault refers to one of its rows.
    pub(super) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, Fault> {
        let rows = batch.num_rows();
        let arrays = self.columns.iter().map(|column| column.apply(batch.columns(), rows, None));
        let arrays = arrays.collect::<Result<Vec<_>, Fault>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map_err(|error| Error::Internal(format!("a stored batch: {error}")).into())
    }
}

struct Plan {
    matching: Matching,
    faults: Vec<Error>,
}

impl Plan {
    fn columns(&mut self, fields: &[Field], data: &Fields, parent: &str) -> Vec<ConformedColumn> {
        for given in data {
            let path = join(parent, given.name());
            let of_this_name = || data.iter().filter(|other| other.name() == given.name());
            if of_this_name().count() > 1 && of_this_name().next().is_some_and(|first| std::ptr::eq(first, given)) {
                self.fault(&path, "the data have more than one column of this name");
            }
            let extra = !fields.iter().any(|field| field.name == *given.name());
            let unwanted = extra && !(parent.is_empty() && is_nameless_index(given.name()));
            if !self.matching.ignore_extra && unwanted {
                self.fault(&path, extra_column(given.name(), fields));
            }
        }
        let stored = fields.iter().filter(|field| is_stored(field));
        stored.filter_map(|field| self.column(field, data, parent)).collect()
    }

    fn column(&mut self, field: &Field, data: &Fields, parent: &str) -> Option<ConformedColumn> {
        let path = join(parent, &field.name);
        match data.iter().position(|given| *given.name() == field.name) {
            Some(position) => self.given(field, data.get(position)?, Some(position), path),
            None => self.missing(field, path),
        }
    }

    fn missing(&mut self, field: &Field, path: String) -> Option<ConformedColumn> {
        if field.required && field.write_default.is_none() {
            self.fault(&path, "required, but missing in the data");
            return None;
        }
        if !self.matching.allow_missing {
            self.fault(&path, "missing in the data");
            return None;
        }
        let data_type = match stored_type(&field.ty) {
            Ok(data_type) => data_type,
            Err(error) => {
                self.faults.push(error);
                return None;
            }
        };
        let step = Step::Constant(field.write_default.clone(), field.ty.clone());
        Some(ConformedColumn { path, field: arrow_field(field, data_type), source: None, unpacked: None, step })
    }

    fn given(
        &mut self,
        field: &Field,
        given: &ArrowField,
        source: Option<usize>,
        path: String,
    ) -> Option<ConformedColumn> {
        if let Some((name, lost)) = given.extension_type_name().and_then(|name| Some((name, meaning_lost(name)?))) {
            self.fault(&path, format!("{name} {lost}"));
            return None;
        }
        if let Some(unpacked) = unpacked(given.data_type()) {
            let plain = match given.data_type() {
                // The child field describes the values.
                DataType::RunEndEncoded(_, values) => given.clone().with_metadata(values.metadata().clone()),
                _ => given.clone(),
            };
            let column = self.given(field, &plain.with_data_type(unpacked.clone()), source, path)?;
            // For nested layouts, the cast to the inner one removes both.
            return Some(ConformedColumn { unpacked: column.unpacked.or(Some(unpacked)), ..column });
        }
        let (data_type, step) = match (&field.ty, given.data_type()) {
            (_, DataType::Null) => match stored_type(&field.ty) {
                Ok(data_type) => (data_type, Step::Constant(None, field.ty.clone())),
                Err(error) => {
                    self.faults.push(error);
                    return None;
                }
            },
            (Type::Primitive(PrimitiveType::Boolean), DataType::Int8) if is_bool8(given) => {
                (DataType::Boolean, Step::Leaf(Cast::Truth, PrimitiveType::Boolean))
            }
            (Type::Primitive(ty), _) if is_bool8(given) => {
                self.fault(&path, format!("the table's type is {ty}, the data's {BOOL8}: take its int8 storage"));
                return None;
            }
            (Type::Primitive(ty), source) => match cast::rule(ty, source) {
                Ok((data_type, cast)) => (data_type, Step::Leaf(cast, ty.clone())),
                Err(mend) => return self.misfit(field, given, &path, mend),
            },
            (Type::Struct(inner), DataType::Struct(children)) => self.parts(&inner.fields, children, &path),
            (Type::Variant, DataType::Struct(children)) => {
                if children.iter().any(|child| child.name() == "typed_value") {
                    self.faults.push(Error::unsupported(format!("column {path}: writing shredded variants")));
                    return None;
                }
                let part = |id, name: &str| Field::required(id, name, PrimitiveType::Binary);
                self.parts(&[part(0, "metadata"), part(0, "value")], children, &path)
            }
            (Type::List(list), DataType::List(element) | DataType::LargeList(element)) => {
                self.list(list, element, given.data_type(), &path)?
            }
            (Type::Map(map), DataType::Map(entries, _)) => self.map(map, entries, &path)?,
            _ => return self.misfit(field, given, &path, "cast it first, or change the type of the table's column"),
        };
        Some(ConformedColumn { path, field: arrow_field(field, data_type), source, unpacked: None, step })
    }

    fn parts(&mut self, fields: &[Field], children: &Fields, path: &str) -> (DataType, Step) {
        let parts = self.columns(fields, children, path);
        (DataType::Struct(parts.iter().map(|part| part.field.clone()).collect()), Step::Struct(parts))
    }

    fn list(&mut self, list: &ListType, element: &FieldRef, given: &DataType, path: &str) -> Option<(DataType, Step)> {
        let element = self.given(&list.element, element, None, join(path, "element"))?;
        let field = element.field.clone();
        let data_type =
            if matches!(given, DataType::LargeList(_)) { DataType::LargeList(field) } else { DataType::List(field) };
        Some((data_type, Step::List(Box::new(element))))
    }

    fn map(&mut self, map: &MapType, entries: &ArrowField, path: &str) -> Option<(DataType, Step)> {
        let DataType::Struct(pair) = entries.data_type() else { return None };
        let [given_key, given_value] = pair.iter().as_slice() else { return None };
        let key = self.given(&map.key, given_key, None, join(path, "key"));
        let value = self.given(&map.value, given_value, None, join(path, "value"));
        let (key, value) = (key?, value?);
        let pair = Fields::from(vec![key.field.clone(), value.field.clone()]);
        let entries = Arc::new(ArrowField::new("key_value", DataType::Struct(pair), false));
        Some((DataType::Map(entries, false), Step::Map(Box::new(key), Box::new(value))))
    }

    fn misfit(&mut self, field: &Field, given: &ArrowField, path: &str, mend: &str) -> Option<ConformedColumn> {
        let floats = matches!(given.data_type(), DataType::Float32 | DataType::Float64);
        let whole = matches!(field.ty, Type::Primitive(PrimitiveType::Int | PrimitiveType::Long));
        // pandas converts integers with missing values to floats.
        let nullable = match floats && whole {
            true => {
                "convert it with .astype(\"Int64\") if it comes from pandas (whole numbers with missing values), or "
            }
            false => "",
        };
        let found = named(given.data_type());
        self.fault(path, format!("the table's type is {}, the data's {found}: {nullable}{mend}", field.ty));
        None
    }

    fn fault(&mut self, path: &str, message: impl Into<String>) {
        self.faults.push(Error::column(path, message));
    }
}

/// The message for a column of the data that the table lacks.
pub(crate) fn extra_column(name: &str, fields: &[Field]) -> String {
    let names = || fields.iter().map(|field| field.name.as_str());
    let lower = name.to_lowercase();
    if let Some(other) = names().find(|known| known.to_lowercase() == lower) {
        return format!(
            "not in the table, which has {other:?}: the names differ in letter case only, rename the column"
        );
    }
    let mend = "leave it out, or add it to the table with schema_mode=\"evolve\"";
    format!("not in the table: {mend}{}", hint(name, names()))
}

/// The columns without those that pandas creates from an unnamed index; for the schema of a table created from a
/// frame.
pub fn without_nameless_index(data: &ArrowSchema) -> ArrowSchema {
    let wanted = data.fields().iter().filter(|field| !is_nameless_index(field.name()));
    ArrowSchema::new_with_metadata(wanted.cloned().collect::<Fields>(), data.metadata().clone())
}

/// Whether pandas created this column from an unnamed index: row numbers that were not requested.
pub(crate) fn is_nameless_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The plain layout of a type with several layouts; `None` if it is plain. Children stay unchanged.
fn unpacked(ty: &DataType) -> Option<DataType> {
    match ty {
        DataType::FixedSizeList(element, _) | DataType::ListView(element) => Some(DataType::List(element.clone())),
        DataType::LargeListView(element) => Some(DataType::LargeList(element.clone())),
        DataType::RunEndEncoded(_, values) => Some(values.data_type().clone()),
        _ => None,
    }
}

fn is_bool8(given: &ArrowField) -> bool {
    given.extension_type_name() == Some(BOOL8) && *given.data_type() == DataType::Int8
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn arrow_field(field: &Field, data_type: DataType) -> FieldRef {
    Arc::new(ArrowField::new(field.name.as_str(), data_type, !field.required))
}

/// The Arrow type of a column missing from the data.
fn stored_type(ty: &Type) -> Result<DataType> {
    let struct_of = |fields: &[Field]| {
        let stored = fields.iter().filter(|field| is_stored(field));
        let fields = stored.map(|field| Ok(arrow_field(field, stored_type(&field.ty)?))).collect::<Result<Vec<_>>>()?;
        Ok(DataType::Struct(fields.into()))
    };
    match ty {
        Type::Primitive(ty) => primitive_type(ty),
        Type::Variant => {
            let part = |name| ArrowField::new(name, DataType::Binary, false);
            Ok(DataType::Struct(Fields::from(vec![part("metadata"), part("value")])))
        }
        Type::Struct(inner) => struct_of(&inner.fields),
        Type::List(list) => Ok(DataType::List(arrow_field(&list.element, stored_type(&list.element.ty)?))),
        Type::Map(map) => {
            let pair = struct_of(&[map.key.clone(), map.value.clone()])?;
            Ok(DataType::Map(Arc::new(ArrowField::new("key_value", pair, false)), false))
        }
    }
}

fn primitive_type(ty: &PrimitiveType) -> Result<DataType> {
    let candidates = [
        DataType::Boolean,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Date32,
        DataType::Time64(arrow_schema::TimeUnit::Microsecond),
        DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, None),
        DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, None),
        DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Decimal128(1, 0),
        DataType::Utf8,
        DataType::Binary,
    ];
    let exact = |source: &DataType| match cast::rule(ty, source) {
        Ok((target, Cast::Keep)) => Some(target),
        Ok((target, Cast::CheckText)) => Some(target),
        Ok((target @ (DataType::FixedSizeBinary(_) | DataType::Decimal128(..) | DataType::Time64(_)), _)) => {
            Some(target)
        }
        _ => None,
    };
    let found = candidates.iter().find_map(exact);
    found.ok_or_else(|| Error::unsupported(format!("writing a column of the type {ty}")))
}

impl ConformedColumn {
    /// Converts an array; `around` says which rows have a parent at all.
    fn apply(&self, columns: &[ArrayRef], rows: usize, around: Option<&NullBuffer>) -> Result<ArrayRef, Fault> {
        match self.source.and_then(|position| columns.get(position)) {
            Some(array) => self.convert(array, around),
            None => self.constant(rows, around),
        }
    }

    fn constant(&self, rows: usize, around: Option<&NullBuffer>) -> Result<ArrayRef, Fault> {
        let Step::Constant(value, ty) = &self.step else {
            return Err(Error::Internal(format!("column {}: no data", self.path)).into());
        };
        if value.is_none()
            && !self.field.is_nullable()
            && let Some(row) = (0..rows).find(|row| around.is_none_or(|nulls| nulls.is_valid(*row)))
        {
            return Err(self.null(row));
        }
        Ok(constant::array(&vec![value.as_ref(); rows], ty, self.field.data_type())?)
    }

    fn convert(&self, array: &ArrayRef, around: Option<&NullBuffer>) -> Result<ArrayRef, Fault> {
        if array.is_empty() {
            // Build a new one: Spark 4.0 leaves the single offset of empty strings, lists and maps unset.
            return Ok(new_empty_array(self.field.data_type()));
        }
        let plain = self.unpacked.as_ref().map(|ty| arrow_cast::cast(array, ty)).transpose();
        let plain = plain.map_err(|error| Error::column(&self.path, error.to_string()))?;
        let array = plain.as_ref().unwrap_or(array);
        if !self.field.is_nullable() {
            self.check_nulls(array, around)?;
        }
        match &self.step {
            Step::Constant(..) => self.constant(array.len(), around),
            Step::Leaf(cast, ty) => cast.apply(array, ty).map_err(|misfit| Fault::of_column(&self.path, misfit)),
            Step::Struct(parts) => {
                let given = array.as_struct();
                let inside = NullBuffer::union(given.nulls(), around);
                let children = parts.iter().map(|part| part.apply(given.columns(), given.len(), inside.as_ref()));
                let children = children.collect::<Result<Vec<_>, Fault>>()?;
                let fields = parts.iter().map(|part| part.field.clone()).collect();
                // A required struct is null where the struct around it is: its required fields may be null there.
                self.made(StructArray::try_new_with_length(fields, children, inside, given.len()))
            }
            Step::List(element) => self.list(array, element),
            Step::Map(key, value) => {
                let given = array.as_map();
                let (offsets, pairs) = self.used(given.offsets(), given.entries(), given.nulls())?;
                let keys = inside(key, pairs.column(0), &offsets)?;
                let values = inside(value, pairs.column(1), &offsets)?;
                let pair = Fields::from(vec![key.field.clone(), value.field.clone()]);
                let pairs = StructArray::try_new(pair.clone(), vec![keys, values], None);
                let entries = Arc::new(ArrowField::new("key_value", DataType::Struct(pair), false));
                let nulls = given.nulls().cloned();
                self.made(pairs.and_then(|pairs| MapArray::try_new(entries, offsets, pairs, nulls, false)))
            }
        }
    }

    fn list(&self, array: &ArrayRef, element: &ConformedColumn) -> Result<ArrayRef, Fault> {
        let (field, nulls) = (element.field.clone(), array.nulls().cloned());
        if let Some(given) = array.as_list_opt::<i64>() {
            let (offsets, values) = self.used(given.offsets(), given.values(), given.nulls())?;
            let values = inside(element, &values, &offsets)?;
            return self.made(LargeListArray::try_new(field, offsets, values, nulls));
        }
        let given = array.as_list::<i32>();
        let (offsets, values) = self.used(given.offsets(), given.values(), given.nulls())?;
        let values = inside(element, &values, &offsets)?;
        self.made(ListArray::try_new(field, offsets, values, nulls))
    }

    /// The values that a (sliced) list or map uses, and offsets into them; null rows use none.
    fn used<O: OffsetSizeTrait, V: Cut>(
        &self,
        offsets: &OffsetBuffer<O>,
        values: &V,
        nulls: Option<&NullBuffer>,
    ) -> Result<(OffsetBuffer<O>, V), Fault> {
        let (first, last) = (offsets.first(), offsets.last());
        if first == last {
            // Nothing is used, whatever the offsets are.
            return Ok((OffsetBuffer::new_zeroed(offsets.len() - 1), values.cut(0, 0)));
        }
        if last.as_usize() > values.count() {
            return Err(Error::column(&self.path, "its offsets go beyond its values").into());
        }
        let values = values.cut(first.as_usize(), (last - first).as_usize());
        let length = |row: usize| {
            offsets.get(row).zip(offsets.get(row + 1)).map_or(0, |(start, end)| (*end - *start).as_usize())
        };
        let nulls = nulls.filter(|nulls| (0..nulls.len()).any(|row| nulls.is_null(row) && length(row) > 0));
        if let Some(nulls) = nulls {
            // Null rows of fixed-size lists have values, which must be dropped without reporting faults in them.
            let lengths = || (0..nulls.len()).map(|row| (nulls.is_valid(row), length(row)));
            let live: BooleanArray = lengths().flat_map(|(valid, length)| vec![Some(valid); length]).collect();
            let values = values.keep(&live).map_err(|error| Error::column(&self.path, error.to_string()))?;
            return Ok((
                OffsetBuffer::from_lengths(lengths().map(|(valid, length)| if valid { length } else { 0 })),
                values,
            ));
        }
        if first == O::zero() {
            return Ok((offsets.clone(), values));
        }
        Ok((OffsetBuffer::new(offsets.iter().map(|offset| *offset - first).collect()), values))
    }

    fn made<A: Array + 'static>(&self, made: Result<A, ArrowError>) -> Result<ArrayRef, Fault> {
        let failed = |error: ArrowError| Error::column(&self.path, error.to_string()).into();
        made.map(|array| Arc::new(array) as ArrayRef).map_err(failed)
    }

    fn null(&self, row: usize) -> Fault {
        Fault::Row { column: self.path.clone(), row, wrong: Wrong::Null }
    }

    fn check_nulls(&self, array: &ArrayRef, around: Option<&NullBuffer>) -> Result<(), Fault> {
        let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(()) };
        let row = (0..array.len()).find(|&row| nulls.is_null(row) && around.is_none_or(|around| around.is_valid(row)));
        row.map_or(Ok(()), |row| Err(self.null(row)))
    }
}

/// The values of lists or maps that start at `offsets`; a fault refers to the row that contains the value.
fn inside<O: OffsetSizeTrait>(
    column: &ConformedColumn,
    values: &ArrayRef,
    offsets: &OffsetBuffer<O>,
) -> Result<ArrayRef, Fault> {
    let row = |place: usize| offsets.partition_point(|offset| offset.as_usize() <= place).saturating_sub(1);
    column.convert(values, None).map_err(|fault| fault.around(row))
}

/// Slicing of an array of values.
trait Cut {
    fn count(&self) -> usize;
    fn cut(&self, start: usize, length: usize) -> Self;
    fn keep(&self, live: &BooleanArray) -> Result<Self, ArrowError>
    where
        Self: Sized;
}

impl Cut for ArrayRef {
    fn keep(&self, live: &BooleanArray) -> Result<Self, ArrowError> {
        arrow_select::filter::filter(self, live)
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn cut(&self, start: usize, length: usize) -> Self {
        self.slice(start, length)
    }
}

impl Cut for StructArray {
    fn keep(&self, live: &BooleanArray) -> Result<Self, ArrowError> {
        Ok(arrow_select::filter::filter(self, live)?.as_struct().clone())
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn cut(&self, start: usize, length: usize) -> Self {
        self.slice(start, length)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, make_array};
    use arrow_buffer::Buffer;
    use arrow_data::ArrayData;

    use super::super::fault::RowCount;
    use super::*;

    #[test]
    fn lists_without_rows_whose_offset_was_never_set() {
        let schema = Schema::new(
            0,
            vec![Field::optional(
                1,
                "l",
                Type::List(ListType { element: Field::optional(2, "element", PrimitiveType::Int) }.into()),
            )],
        );
        let element = Arc::new(ArrowField::new("element", DataType::Int32, true));
        let list = |length, offsets: Vec<i32>| {
            let data = ArrayData::builder(DataType::List(element.clone())).len(length);
            let data =
                data.add_buffer(Buffer::from_vec(offsets)).add_child_data(Int32Array::from(vec![1, 2]).to_data());
            // SAFETY: what a producer gives by the C data interface is not validated either; the offsets are only compared.
            make_array(unsafe { data.build_unchecked() })
        };
        let write = |array: ArrayRef| {
            let batch = RecordBatch::try_from_iter_with_nullable([("l", array, true)]).unwrap();
            let conform = Conform::new(schema.as_ref().unwrap(), &batch.schema(), Matching::default()).unwrap();
            conform.apply(&batch)
        };
        assert_eq!(write(list(0, vec![1 << 30])).unwrap().num_rows(), 0);
        assert_eq!(write(list(2, vec![7, 7, 7])).unwrap().column(0).as_list::<i32>().value_length(1), 0);
        let error = RowCount::default().error(write(list(1, vec![0, 3])).unwrap_err()).to_string();
        assert!(error.contains("column l") && error.contains("beyond its values"), "{error}");
    }
}
