//! Values of the columns of equality deletes, as keys that are equal where the rows are ("Equality Delete Files").
//!
//! Null equals null. Values are equal where Java's comparators say so: NaN equals any other NaN, and -0.0 is not 0.0.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::{Error, Result};

/// A set of keys, each with a number that is its caller's.
pub(super) enum Keys {
    /// One column of integers, dates, times.
    Integers(Integers),
    /// One column of texts or bytes, or several columns as rows.
    Bytes(Bytes),
}

/// Keys that are numbers.
#[derive(Default)]
pub(super) struct Integers {
    hasher: DefaultHashBuilder,
    table: HashTable<(i64, u32)>,
    null: Option<u32>,
    /// The least and the greatest key: most rows of a file may lie elsewhere.
    bounds: Option<(i64, i64)>,
    /// A bit for each number from the least key on, set for keys, where they lie close. It is made when rows are first held
    /// against the keys, which do not change any more then: most rows are no key, and to find that out by a bit takes a
    /// tenth of the time that the table takes, which is in no cache.
    bits: OnceLock<Option<Vec<u64>>>,
}

/// Keys that are bytes, one after the other.
pub(super) struct Bytes {
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    bytes: Vec<u8>,
    keys: Vec<Stored>,
    null: Option<u32>,
    /// Makes bytes of several columns, or of one that is not bytes.
    rows: Option<RowConverter>,
}

/// Keys of which one in so many numbers is one, at the least, lie close.
const CLOSE: u64 = 64;

struct Stored {
    start: usize,
    length: u32,
    number: u32,
}

impl Keys {
    /// No keys of columns of some types.
    pub(super) fn new(types: &[DataType]) -> Result<Self> {
        let rows = match types {
            [ty] if is_integer(ty) => return Ok(Self::Integers(Integers::default())),
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

    /// Adds the key of every row. `number` gets the number of a key that is known, and returns that to be stored.
    pub(super) fn add(
        &mut self,
        columns: &[ArrayRef],
        mut number: impl FnMut(Option<u32>) -> Result<u32>,
    ) -> Result<()> {
        match self {
            Self::Integers(own) => {
                own.bits.take();
                let values = integers(columns)?;
                for (row, value) in values.values().iter().enumerate() {
                    if values.is_null(row) {
                        own.null = Some(number(own.null)?);
                    } else {
                        own.add(*value, &mut number)?;
                    }
                }
                Ok(())
            }
            Self::Bytes(own) => {
                let mut failed = Ok(());
                let texts = Texts::new(columns, own.rows.as_ref())?;
                texts.each(|text| {
                    if failed.is_ok() {
                        failed = own.add(text, &mut number);
                    }
                });
                failed
            }
        }
    }

    /// For every row whether its key is none of the set, or has a number that `applies` says no to.
    pub(super) fn absent(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        applies: impl Fn(u32) -> bool,
    ) -> Result<BooleanArray> {
        let absent = match self {
            Self::Integers(own) => own.absent(&integers(columns)?, applies),
            Self::Bytes(own) => {
                let mut absent = Vec::with_capacity(rows);
                Texts::new(columns, own.rows.as_ref())?.each(|text| absent.push(!own.find(text).is_some_and(&applies)));
                BooleanBuffer::from(absent)
            }
        };
        Ok(BooleanArray::new(absent, None))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Integers(own) => own.table.len() + usize::from(own.null.is_some()),
            Self::Bytes(own) => own.table.len() + usize::from(own.null.is_some()),
        }
    }

    /// Bytes that they take.
    pub(super) fn memory(&self) -> usize {
        match self {
            // A word for each key has all bits of keys that lie close.
            Self::Integers(own) => own.table.allocation_size() + own.table.len() * size_of::<u64>(),
            Self::Bytes(own) => {
                own.table.allocation_size() + own.bytes.capacity() + own.keys.capacity() * size_of::<Stored>()
            }
        }
    }
}

impl Integers {
    fn add(&mut self, value: i64, number: &mut impl FnMut(Option<u32>) -> Result<u32>) -> Result<()> {
        let Self { hasher, table, bounds, .. } = self;
        match table.entry(hasher.hash_one(value), |(known, _)| *known == value, |(known, _)| hasher.hash_one(*known)) {
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().1;
                *known = number(Some(*known))?;
            }
            Entry::Vacant(room) => {
                room.insert((value, number(None)?));
                let (least, greatest) = bounds.unwrap_or((value, value));
                *bounds = Some((least.min(value), greatest.max(value)));
            }
        }
        Ok(())
    }

    /// The bits of keys that lie close.
    fn close(&self) -> Option<Vec<u64>> {
        let (least, greatest) = self.bounds?;
        let words = greatest.abs_diff(least) / 64 + 1;
        if words > self.table.len() as u64 * CLOSE / 64 {
            return None;
        }
        let mut bits = vec![0; usize::try_from(words).ok()?];
        for (key, _) in &self.table {
            let place = key.abs_diff(least);
            *bits.get_mut(usize::try_from(place / 64).ok()?)? |= 1 << (place % 64);
        }
        Some(bits)
    }

    fn absent(&self, values: &PrimitiveArray<Int64Type>, applies: impl Fn(u32) -> bool) -> BooleanBuffer {
        let (least, greatest) = self.bounds.unwrap_or((1, 0));
        let bits = self.bits.get_or_init(|| self.close()).as_deref();
        let is_absent = |value: i64| {
            if value < least || value > greatest {
                return true;
            }
            let place = value.abs_diff(least);
            let is_no_key =
                |bits: &[u64]| bits.get((place / 64) as usize).is_some_and(|word| word >> (place % 64) & 1 == 0);
            if bits.is_some_and(is_no_key) {
                return true;
            }
            let found = self.table.find(self.hasher.hash_one(value), |(known, _)| *known == value);
            !found.is_some_and(|(_, number)| applies(*number))
        };
        let numbers = values.values();
        let of_row = |row: usize| numbers.get(row).is_none_or(|value| is_absent(*value));
        match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => BooleanBuffer::collect_bool(values.len(), of_row),
            Some(nulls) => {
                let of_null = !self.null.is_some_and(&applies);
                BooleanBuffer::collect_bool(values.len(), |row| if nulls.is_null(row) { of_null } else { of_row(row) })
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
enum Texts<'a> {
    Text(&'a ArrayRef),
    Rows(arrow_row::Rows),
}

impl<'a> Texts<'a> {
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

/// The column with the same bits for every NaN.
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

/// A column inside of structs: null where one of them is.
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

        /// Keys that lie close and keys that do not, at both ends of the numbers too.
        #[test]
        fn rows_whose_number_is_no_key_are_absent(
            offset in prop::sample::select(vec![0, i64::MIN, i64::MAX - 2000, -1000]),
            step in prop::sample::select(vec![1, 3, 100, 1_000_000_000]),
            keys in prop::collection::vec(0..2000i64, 0..200),
            rows in prop::collection::vec(prop::option::of(0..2000i64), 0..300),
            has_null in any::<bool>(),
        ) {
            let number = |place: &i64| offset.saturating_add(place.saturating_mul(step));
            let known: HashSet<Option<i64>> =
                keys.iter().map(|key| Some(number(key))).chain(has_null.then_some(None)).collect();
            let mut set = Keys::new(&[DataType::Int64]).unwrap();
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
