//! Shares the column buffers that many manifests have in common.
//!
//! Most columns of a manifest have the same value for every file, or none: status, sequence number, row ids in version
//! 2, offsets of lists with one item, ids of columns with bounds. Such a buffer is determined by a few bytes. It is
//! created once for all manifests in the cache, and each column is a prefix of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

/// Minimum size of a shared buffer; below it, sharing does not pay.
const LEAST_BYTES: usize = 256;
/// Maximum number of list items that may repeat in every row.
const MOST_ITEMS: usize = 64;
/// Maximum size in bytes of a repeated unit.
const MOST_UNIT: usize = 1024;

/// The rule that determines the bytes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Form {
    /// The same bytes repeated.
    Repeat(Box<[u8]>),
    /// 32-bit numbers with a constant step.
    Steps(i32, i32),
    /// 64-bit numbers with a constant step.
    LongSteps(i64, i64),
}

/// The key of a shared buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    form: Form,
    /// Length in bytes, a power of two, so that columns of similar length share a buffer.
    length: usize,
}

/// The shared buffers by pattern.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Each buffer, and the number of cached columns that use it.
    buffers: HashMap<Arc<Pattern>, (Buffer, usize)>,
    bytes: usize,
}

/// The shared buffers of a manifest's columns.
#[derive(Debug, Default)]
pub(super) struct SharedBuffers {
    /// The pattern of each shared buffer.
    patterns: Vec<Arc<Pattern>>,
    /// Total size of those buffers in bytes, counted at each use.
    pub bytes: usize,
}

impl SharedBuffers {
    /// Size of this list itself in bytes.
    pub(super) fn memory(&self) -> usize {
        self.patterns.capacity() * size_of::<Arc<Pattern>>()
    }
}

impl Form {
    fn fill(&self, length: usize) -> Buffer {
        let mut buffer = MutableBuffer::with_capacity(length);
        match self {
            Self::Repeat(unit) => {
                while buffer.len() < length {
                    buffer.extend_from_slice(unit.get(..length - buffer.len()).unwrap_or(unit));
                }
            }
            Self::Steps(first, step) => {
                let mut next = *first;
                while buffer.len() < length {
                    buffer.push(next);
                    next = next.wrapping_add(*step);
                }
            }
            Self::LongSteps(first, step) => {
                let mut next = *first;
                while buffer.len() < length {
                    buffer.push(next);
                    next = next.wrapping_add(*step);
                }
            }
        }
        buffer.into()
    }

    /// The form of bytes that repeat with this period.
    fn repeat(bytes: &[u8], period: usize) -> Option<Self> {
        if period == 0 || period > MOST_UNIT || bytes.len() < 2 * period {
            return None;
        }
        let (unit, rest) = bytes.split_at_checked(period)?;
        // Compares the second unit first: if it differs, the rest need not be compared.
        let again = rest.starts_with(unit) && bytes.get(..rest.len()) == Some(rest);
        again.then(|| Self::Repeat(unit.into()))
    }

    fn steps(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<4>() else { return None };
        let (first, step) = match numbers {
            [first, second, ..] => {
                (i32::from_ne_bytes(*first), i32::from_ne_bytes(*second).wrapping_sub(i32::from_ne_bytes(*first)))
            }
            _ => return None,
        };
        let pairs = numbers.iter().zip(numbers.get(1..)?);
        let regular =
            pairs.fold(true, |all, (a, b)| all & (i32::from_ne_bytes(*b).wrapping_sub(i32::from_ne_bytes(*a)) == step));
        regular.then_some(Self::Steps(first, step))
    }

    fn long_steps(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let (first, step) = match numbers {
            [first, second, ..] => {
                (i64::from_ne_bytes(*first), i64::from_ne_bytes(*second).wrapping_sub(i64::from_ne_bytes(*first)))
            }
            _ => return None,
        };
        let mut pairs = numbers.iter().zip(numbers.get(1..)?);
        let regular = pairs.all(|(a, b)| i64::from_ne_bytes(*b).wrapping_sub(i64::from_ne_bytes(*a)) == step);
        regular.then_some(Self::LongSteps(first, step))
    }
}

impl Patterns {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Total size of the shared buffers in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.held().bytes
    }

    /// Returns the column with shared buffers where its own are regular.
    pub(super) fn share(&self, array: &dyn Array, shared: &mut SharedBuffers) -> Result<ArrayRef, ArrowError> {
        match self.data(array.to_data(), 1, shared)? {
            Some(data) => Ok(make_array(data)),
            None => Ok(make_array(array.to_data())),
        }
    }

    /// Releases the shared buffers of a manifest.
    pub(super) fn release(&self, shared: &SharedBuffers) {
        let mut held = self.held();
        for pattern in &shared.patterns {
            if let Some((_, users)) = held.buffers.get_mut(pattern) {
                *users -= 1;
                if *users == 0
                    && let Some((buffer, _)) = held.buffers.remove(pattern)
                {
                    held.bytes -= buffer.capacity();
                }
            }
        }
    }

    /// The data with shared buffers; `None` if nothing can be shared. Each row of the column has `items` values.
    fn data(&self, data: ArrayData, items: usize, shared: &mut SharedBuffers) -> Result<Option<ArrayData>, ArrowError> {
        if data.offset() != 0 || data.is_empty() {
            return Ok(None);
        }
        let nulls = self.nulls(&data, shared);
        let (mut buffers, mut children) = (data.buffers().to_vec(), data.child_data().to_vec());
        let mut changed = nulls.is_some();
        match data.data_type() {
            DataType::Utf8 | DataType::Binary => {
                let [offsets, values] = buffers.as_mut_slice() else { return Ok(None) };
                let step = equal_lengths(offsets, data.len());
                let again = step.and_then(|step| self.repeat(values, values.len(), &[step, step * items], shared));
                // Changed arrays are checked for UTF-8 again, so of string columns only those with one repeated value
                // are shared.
                let is_text = *data.data_type() == DataType::Utf8;
                if (again.is_some() || values.is_empty() || !is_text)
                    && let Some(made) = self.offsets(offsets, data.len(), shared)
                {
                    *offsets = made;
                    changed = true;
                }
                if let Some(made) = again {
                    *values = made;
                    changed = true;
                }
            }
            DataType::List(_) | DataType::Map(..) => {
                let ([offsets], [child]) = (buffers.as_mut_slice(), children.as_mut_slice()) else { return Ok(None) };
                if let Some(made) = self.offsets(offsets, data.len(), shared) {
                    let items = equal_lengths(offsets, data.len()).unwrap_or(1);
                    *offsets = made;
                    changed = true;
                    self.child(child, items, shared)?;
                }
            }
            DataType::Struct(_) => {
                for child in &mut children {
                    changed |= self.child(child, items, shared)?;
                }
            }
            other => {
                if let (Some(width), [values]) = (other.primitive_width(), buffers.as_mut_slice())
                    && let Some(made) = self.numbers(values, data.len(), width, items, shared)
                {
                    *values = made;
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok(None);
        }
        let nulls = nulls.or_else(|| data.nulls().cloned());
        data.into_builder().nulls(nulls).buffers(buffers).child_data(children).build().map(Some)
    }

    fn child(&self, child: &mut ArrayData, items: usize, shared: &mut SharedBuffers) -> Result<bool, ArrowError> {
        let made = self.data(child.clone(), items.clamp(1, MOST_ITEMS), shared)?;
        let changed = made.is_some();
        made.into_iter().for_each(|made| *child = made);
        Ok(changed)
    }

    /// The validity buffer of a column in which all values are null.
    fn nulls(&self, data: &ArrayData, shared: &mut SharedBuffers) -> Option<NullBuffer> {
        let nulls = data.nulls().filter(|nulls| nulls.null_count() == nulls.len())?;
        let length = nulls.len().div_ceil(8);
        let buffer = self.buffer(Form::Repeat([0].into()), length, shared)?;
        Some(NullBuffer::new(BooleanBuffer::new(buffer, 0, nulls.len())))
    }

    /// The offsets of rows that all have the same length.
    fn offsets(&self, offsets: &Buffer, rows: usize, shared: &mut SharedBuffers) -> Option<Buffer> {
        let bytes = offset_bytes(offsets, rows)?;
        self.buffer(Form::steps(bytes)?, bytes.len(), shared)
    }

    fn numbers(
        &self,
        values: &Buffer,
        len: usize,
        width: usize,
        items: usize,
        shared: &mut SharedBuffers,
    ) -> Option<Buffer> {
        let length = len.checked_mul(width)?;
        let bytes = values.as_slice().get(..length)?;
        self.repeat(values, length, &[width, width.saturating_mul(items)], shared).or_else(|| {
            let form = match width {
                4 => Form::steps(bytes)?,
                8 => Form::long_steps(bytes)?,
                _ => return None,
            };
            self.buffer(form, length, shared)
        })
    }

    fn repeat(&self, values: &Buffer, length: usize, periods: &[usize], shared: &mut SharedBuffers) -> Option<Buffer> {
        let bytes = values.as_slice().get(..length)?;
        let form = periods.iter().find_map(|period| Form::repeat(bytes, *period))?;
        self.buffer(form, length, shared)
    }

    /// The first `length` bytes of a shared buffer with this form.
    fn buffer(&self, form: Form, length: usize, shared: &mut SharedBuffers) -> Option<Buffer> {
        if length < LEAST_BYTES {
            return None;
        }
        let pattern = Pattern { form, length: length.checked_next_power_of_two()? };
        let mut guard = self.held();
        let held = &mut *guard;
        let (pattern, buffer) = match held.buffers.get_key_value(&pattern) {
            Some((known, (buffer, _))) => (known.clone(), buffer.clone()),
            None => {
                let buffer = pattern.form.fill(pattern.length);
                let pattern = Arc::new(pattern);
                held.bytes += buffer.capacity();
                held.buffers.insert(pattern.clone(), (buffer.clone(), 0));
                (pattern, buffer)
            }
        };
        held.buffers.get_mut(&pattern).into_iter().for_each(|(_, users)| *users += 1);
        shared.bytes += buffer.capacity();
        shared.patterns.push(pattern);
        Some(buffer.slice_with_length(0, length))
    }
}

fn offset_bytes(offsets: &Buffer, rows: usize) -> Option<&[u8]> {
    offsets.as_slice().get(..rows.checked_add(1)?.checked_mul(size_of::<i32>())?)
}

/// The length of the rows, if all have the same.
fn equal_lengths(offsets: &Buffer, rows: usize) -> Option<usize> {
    match Form::steps(offset_bytes(offsets, rows)?)? {
        Form::Steps(_, step) => usize::try_from(step).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
    use arrow_array::types::{Date32Type, Int32Type, Int64Type};
    use arrow_array::{BinaryArray, Int32Array, Int64Array, PrimitiveArray, StringArray, StructArray, new_null_array};
    use arrow_schema::Field;
    use proptest::prelude::*;

    use super::*;

    /// The column with shared buffers, and the number of these.
    fn shared(patterns: &Patterns, column: &dyn Array) -> (ArrayRef, SharedBuffers) {
        let mut shared = SharedBuffers::default();
        let made = patterns.share(column, &mut shared).unwrap();
        made.to_data().validate_full().unwrap();
        assert_eq!(made.to_data(), column.to_data());
        assert_eq!(made.data_type(), column.data_type());
        (made, shared)
    }

    fn column(kind: usize, rows: usize, n: i64, texts: &[String]) -> ArrayRef {
        let rows_i64 = 0..i64::try_from(rows).unwrap();
        let text = |row: usize| texts[row % texts.len()].as_str();
        match kind {
            0 => Arc::new(Int64Array::from_iter_values(rows_i64.map(|row| row.wrapping_mul(n)))),
            1 => Arc::new(Int32Array::from_value(n as i32, rows)),
            2 => Arc::new(Int64Array::from_iter(rows_i64.map(|row| (row % 3 != n % 3).then_some(row)))),
            3 => new_null_array(&DataType::Int64, rows),
            4 => new_null_array(&DataType::Utf8, rows),
            5 => Arc::new(StringArray::from_iter_values((0..rows).map(text))),
            6 => Arc::new(BinaryArray::from_iter_values((0..rows).map(|row| text(row).as_bytes()))),
            7 => {
                let mut lists = ListBuilder::new(Int64Builder::new());
                for row in rows_i64 {
                    (0..n.rem_euclid(4)).for_each(|item| lists.values().append_value(item * 7 + row % 2));
                    lists.append(n % 5 != 0);
                }
                Arc::new(lists.finish())
            }
            8 => {
                let mut maps = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
                for row in 0..rows {
                    for key in 0..n.rem_euclid(3) {
                        maps.keys().append_value(key);
                        maps.values().append_value(text(row));
                    }
                    maps.append(true).unwrap();
                }
                Arc::new(maps.finish())
            }
            _ => {
                let days: PrimitiveArray<Date32Type> = (0..rows).map(|row| (row % 5 > 0).then_some(n as i32)).collect();
                let field = |name, ty| Field::new(name, ty, true);
                let fields = vec![field("day", DataType::Date32), field("none", DataType::Null)];
                let nothing = new_null_array(&DataType::Null, rows);
                Arc::new(StructArray::new(fields.into(), vec![Arc::new(days), nothing], None))
            }
        }
    }

    proptest! {
        #[test]
        fn columns_stay_what_they_are(
            kind in 0usize..10,
            rows in prop_oneof![0usize..4, 60usize..600],
            n in prop_oneof![Just(0i64), Just(1), Just(-1), Just(i64::MAX), any::<i64>(), 0i64..8],
            texts in prop::collection::vec("[a-zé]{0,4}", 1..3),
            start in 0usize..3,
        ) {
            let patterns = Patterns::default();
            let whole = column(kind, rows, n, &texts);
            let part = whole.slice(start.min(rows), rows - start.min(rows));
            let all = [shared(&patterns, &whole).1, shared(&patterns, &part).1, shared(&patterns, &whole).1];
            all.iter().for_each(|shared| patterns.release(shared));
            prop_assert_eq!(patterns.bytes(), 0);
        }
    }

    #[test]
    fn what_is_regular_is_held_once() {
        let texts = ["parquet".to_owned()];
        let patterns = Patterns::default();
        // Shared buffers: values; values; values and nulls; offsets and nulls; offsets and strings; both of a list; keys,
        // strings and offsets.
        for (kind, n, buffers) in [(0, 1, 1), (1, 9, 1), (3, 0, 2), (4, 0, 2), (5, 0, 2), (7, 2, 1), (8, 1, 4)] {
            let one = column(kind, 4000, n, &texts);
            let other = column(kind, 3990, n, &texts);
            let (_, first) = shared(&patterns, &one);
            let held = patterns.bytes();
            let (_, second) = shared(&patterns, &other);
            assert_eq!((first.patterns.len(), second.patterns.len()), (buffers, buffers), "kind {kind}");
            assert_eq!(patterns.bytes(), held, "kind {kind}: the second takes nothing");
            patterns.release(&first);
            assert_eq!(patterns.bytes(), held);
            patterns.release(&second);
            assert_eq!(patterns.bytes(), 0);
        }
    }

    #[test]
    fn what_is_not_regular_stays_alone() {
        let patterns = Patterns::default();
        let mut numbers: Vec<i64> = (0..1000).collect();
        numbers[999] = 0;
        let paths = (0..1000).map(|n| format!("{n:04}.parquet"));
        let columns: [ArrayRef; 3] = [
            Arc::new(PrimitiveArray::<Int64Type>::from(numbers)),
            Arc::new(StringArray::from_iter_values(paths)),
            Arc::new(PrimitiveArray::<Int32Type>::from_value(1, 10)),
        ];
        for column in columns {
            assert_eq!(shared(&patterns, &column).1.patterns.len(), 0);
        }
        assert_eq!(patterns.bytes(), 0);
    }
}
