//! Keys of equality deletes: values of the equality columns, equal if the rows are ("Equality Delete Files").
//!
//! Null equals null. Other values are compared as by Java's comparators: NaN equals any NaN, and -0.0 does not equal
//! 0.0.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::integers::{Alike, Numbered};
use crate::error::{Error, Result};

/// A set of keys, each with a number that belongs to the caller.
pub(super) enum Keys {
    /// One column of integers, dates or times.
    Integers(Numbered),
    /// The same, for callers that need no number: the deletes of one file, which apply to a row all or not at all.
    Alike(Alike),
    /// One string or binary column, or several columns as rows.
    Bytes(Bytes),
}

/// Keys as concatenated bytes.
pub(super) struct Bytes {
    hasher: DefaultHashBuilder,
    /// Places in `keys`. The keys themselves share one buffer, because an allocation for each would take more memory
    /// than most keys.
    table: HashTable<u32>,
    bytes: Vec<u8>,
    keys: Vec<Stored>,
    /// The number of the key null of a single column, which has no bytes. Rows encode their nulls.
    null: Option<u32>,
    /// Converts several columns, or one that is not binary, to bytes.
    rows: Option<RowConverter>,
}

struct Stored {
    start: usize,
    length: u32,
    number: u32,
}

impl Keys {
    /// An empty set for columns of these types. If `are_alike`, every key has the number 0.
    pub(super) fn new(types: &[DataType], are_alike: bool) -> Result<Self> {
        let rows = match types {
            [ty] if is_integer(ty) && are_alike => return Ok(Self::Alike(Alike::default())),
            [ty] if is_integer(ty) => return Ok(Self::Integers(Numbered::default())),
            [DataType::Utf8 | DataType::Binary | DataType::FixedSizeBinary(_)] => None,
            types => {
                let fields = types.iter().cloned().map(SortField::new).collect();
                Some(RowConverter::new(fields).map_err(internal)?)
            }
        };
        Ok(Self::Bytes(Bytes {
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
            bytes: Vec::new(),
            keys: Vec::new(),
            null: None,
            rows,
        }))
    }

    /// Adds the key of each row. `number` receives the number of an existing key and returns the number to store.
    pub(super) fn add(
        &mut self,
        columns: &[ArrayRef],
        mut number: impl FnMut(Option<u32>) -> Result<u32>,
    ) -> Result<()> {
        match self {
            Self::Integers(own) => own.add(&integers(columns)?, number),
            Self::Alike(own) => {
                own.add(&integers(columns)?);
                Ok(())
            }
            Self::Bytes(own) => {
                let mut failed = Ok(());
                let texts = KeyBytes::new(columns, own.rows.as_ref())?;
                texts.each(|text| {
                    if failed.is_ok() {
                        failed = own.add(text, &mut number);
                    }
                });
                failed
            }
        }
    }

    /// For each row, true if the key is not in the set or `applies` rejects its number.
    pub(super) fn absent(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        applies: impl Fn(u32) -> bool,
    ) -> Result<BooleanArray> {
        let absent = match self {
            Self::Integers(own) => own.absent(&integers(columns)?, applies),
            Self::Alike(own) if applies(0) => own.absent(&integers(columns)?),
            Self::Alike(_) => BooleanBuffer::new_set(rows),
            Self::Bytes(own) => {
                let mut absent = Vec::with_capacity(rows);
                KeyBytes::new(columns, own.rows.as_ref())?
                    .each(|text| absent.push(!own.find(text).is_some_and(&applies)));
                BooleanBuffer::from(absent)
            }
        };
        Ok(BooleanArray::new(absent, None))
    }

    /// Upper bound of the number of keys.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Integers(own) => own.len(),
            Self::Alike(own) => own.len(),
            Self::Bytes(own) => own.table.len() + usize::from(own.null.is_some()),
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Integers(own) => own.memory(),
            Self::Alike(own) => own.memory(),
            Self::Bytes(own) => {
                own.table.allocation_size() + own.bytes.capacity() + own.keys.capacity() * size_of::<Stored>()
            }
        }
    }
}

impl Bytes {
    fn add(&mut self, text: Option<&[u8]>, number: &mut impl FnMut(Option<u32>) -> Result<u32>) -> Result<()> {
        let Some(text) = text else {
            self.null = Some(number(self.null)?);
            return Ok(());
        };
        let Self { hasher, table, bytes, keys, .. } = self;
        let is_equal = |place: &u32| stored(bytes, keys, *place) == Some(text);
        let hash = hasher.hash_one(text);
        match table.entry(hash, is_equal, |place| hasher.hash_one(stored(bytes, keys, *place).unwrap_or_default())) {
            Entry::Occupied(place) => {
                if let Some(known) = keys.get_mut(*place.get() as usize) {
                    known.number = number(Some(known.number))?;
                }
            }
            Entry::Vacant(room) => {
                let many = |_| Error::unsupported("equality deletes of 2^32 and more values");
                let place = u32::try_from(keys.len()).map_err(many)?;
                let length = u32::try_from(text.len()).map_err(many)?;
                let number = number(None)?;
                room.insert(place);
                keys.push(Stored { start: bytes.len(), length, number });
                bytes.extend_from_slice(text);
            }
        }
        Ok(())
    }

    fn find(&self, text: Option<&[u8]>) -> Option<u32> {
        let Some(text) = text else { return self.null };
        let is_equal = |place: &u32| stored(&self.bytes, &self.keys, *place) == Some(text);
        let place = self.table.find(self.hasher.hash_one(text), is_equal)?;
        self.keys.get(*place as usize).map(|known| known.number)
    }
}

fn stored<'b>(bytes: &'b [u8], keys: &[Stored], place: u32) -> Option<&'b [u8]> {
    let key = keys.get(place as usize)?;
    bytes.get(key.start..key.start + key.length as usize)
}

/// The keys of some rows as bytes.
enum KeyBytes<'a> {
    Text(&'a ArrayRef),
    Rows(arrow_row::Rows),
}

impl<'a> KeyBytes<'a> {
    fn new(columns: &'a [ArrayRef], rows: Option<&RowConverter>) -> Result<Self> {
        match (rows, columns) {
            (Some(rows), _) => {
                let columns: Vec<ArrayRef> = columns.iter().map(with_one_nan).collect();
                Ok(Self::Rows(rows.convert_columns(&columns).map_err(internal)?))
            }
            (None, [column]) => Ok(Self::Text(column)),
            (None, _) => Err(Error::Internal("a key of several columns that are not rows".to_owned())),
        }
    }

    fn each<'s>(&'s self, mut take: impl FnMut(Option<&'s [u8]>)) {
        match self {
            Self::Rows(rows) => rows.iter().for_each(|row| take(Some(row.data()))),
            Self::Text(column) => match column.data_type() {
                DataType::Utf8 => column.as_string::<i32>().iter().for_each(|text| take(text.map(str::as_bytes))),
                DataType::FixedSizeBinary(_) => column.as_fixed_size_binary().iter().for_each(take),
                _ => column.as_binary::<i32>().iter().for_each(take),
            },
        }
    }
}

fn is_integer(ty: &DataType) -> bool {
    use DataType::{Date32, Int32, Int64, Time64, Timestamp};
    matches!(ty, Int32 | Int64 | Date32 | Time64(_) | Timestamp(..))
}

fn integers(columns: &[ArrayRef]) -> Result<PrimitiveArray<Int64Type>> {
    let [column] = columns else { return Err(Error::Internal("a key of one column that is none".to_owned())) };
    Ok(cast(column, &DataType::Int64).map_err(internal)?.as_primitive::<Int64Type>().clone())
}

/// The column with one bit pattern for all NaNs: rows are compared as bytes, and NaN equals any NaN.
fn with_one_nan(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => {
            let floats = column.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(|value| if value.is_nan() { f32::NAN } else { value }))
        }
        DataType::Float64 => {
            let floats = column.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value }))
        }
        _ => column.clone(),
    }
}

/// A column inside structs: null where a parent is null. Arrow allows any value below a null parent.
pub(super) fn below(column: &ArrayRef, parents: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(parents) = parents.filter(|nulls| nulls.null_count() > 0) else { return Ok(column.clone()) };
    let nulls = BooleanArray::new(!parents.inner(), None);
    arrow_select::nullif::nullif(column, &nulls).map_err(internal)
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("a key of equality deletes: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use arrow_array::Int64Array;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Dense and sparse keys, also at both ends of the integer range.
        #[test]
        fn rows_whose_number_is_no_key_are_absent(
            offset in prop::sample::select(vec![0, i64::MIN, i64::MAX - 2000, -1000]),
            step in prop::sample::select(vec![1, 3, 100, 1_000_000_000]),
            keys in prop::collection::vec(0..2000i64, 0..200),
            rows in prop::collection::vec(prop::option::of(0..2000i64), 0..300),
            has_null in any::<bool>(),
            are_alike in any::<bool>(),
        ) {
            let number = |place: &i64| offset.saturating_add(place.saturating_mul(step));
            let known: HashSet<Option<i64>> =
                keys.iter().map(|key| Some(number(key))).chain(has_null.then_some(None)).collect();
            let mut set = Keys::new(&[DataType::Int64], are_alike).unwrap();
            let array: ArrayRef = Arc::new(known.iter().copied().collect::<Int64Array>());
            set.add(&[array], |_| Ok(0)).unwrap();
            let rows: Vec<Option<i64>> = rows.iter().map(|row| row.as_ref().map(number)).collect();
            let array: ArrayRef = Arc::new(rows.iter().copied().collect::<Int64Array>());
            let absent = set.absent(std::slice::from_ref(&array), rows.len(), |_| true).unwrap();
            let expected: BooleanArray = rows.iter().map(|row| Some(!known.contains(row))).collect();
            prop_assert_eq!(&absent, &expected);
            // Keys that do not apply delete nothing.
            prop_assert_eq!(set.absent(&[array], rows.len(), |_| false).unwrap().true_count(), rows.len());
        }
    }
}
