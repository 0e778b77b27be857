//! Space-filling curves: one sort key for several columns, so that files have narrow bounds in each of them.
//!
//! A column becomes bytes whose order is that of its values, as in Java's `ZOrderByteUtils`: 8 bytes for numbers, the
//! first bytes of texts, zeros for null. The Z-order interleaves the bits of all columns. The Hilbert curve first
//! changes the bits so that neighbours on the curve are neighbours in every column, and then interleaves them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::DataType;
use icefield_format::types::{PrimitiveType, Schema, Type};

use crate::arrow::cells::StoredColumn;
use crate::error::{Error, Result};

/// Bytes of a number.
const NUMBER: usize = 8;

/// The kind of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurveKind {
    /// Z-order: interleaved bits.
    ZOrder,
    /// The Hilbert curve.
    Hilbert,
}

/// A curve through the values of some columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// The kind.
    pub kind: CurveKind,
    /// Field ids of the columns.
    pub columns: Vec<i32>,
    /// Bytes that a text or binary value contributes.
    pub text_bytes: usize,
    /// Maximum bytes of a key.
    pub key_bytes: usize,
}

/// Computes the keys of a curve.
#[derive(Debug)]
pub(super) struct CurveKeys {
    kind: CurveKind,
    columns: Vec<(StoredColumn, usize)>,
    key_bytes: usize,
}

impl CurveKeys {
    /// # Errors
    /// Columns that the schema lacks, or whose type has no order of bytes.
    pub(super) fn new(curve: &Curve, schema: &Schema) -> Result<Self> {
        let columns = curve.columns.iter().map(|id| {
            let name = schema.column_name(*id).unwrap_or("?");
            let ty = schema.find_type(*id).and_then(Type::as_primitive);
            let width = match ty {
                Some(PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_) | PrimitiveType::Uuid) => {
                    curve.text_bytes
                }
                Some(PrimitiveType::Decimal { .. }) => 2 * NUMBER,
                Some(
                    PrimitiveType::Boolean
                    | PrimitiveType::Int
                    | PrimitiveType::Long
                    | PrimitiveType::Float
                    | PrimitiveType::Double
                    | PrimitiveType::Date
                    | PrimitiveType::Time
                    | PrimitiveType::Timestamp
                    | PrimitiveType::Timestamptz
                    | PrimitiveType::TimestampNs
                    | PrimitiveType::TimestamptzNs,
                ) => NUMBER,
                _ => {
                    let ty = schema.find_type(*id).map(ToString::to_string).unwrap_or_default();
                    return Err(Error::column(name, format!("values of the type {ty} have no place on a curve")));
                }
            };
            Ok((StoredColumn::find(schema, *id)?, width))
        });
        Ok(Self { kind: curve.kind, columns: columns.collect::<Result<_>>()?, key_bytes: curve.key_bytes })
    }

    /// The keys of the rows of a batch.
    pub(super) fn of(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(_, width)| *width).collect();
        let columns = self.columns.iter().map(|(column, width)| bytes_of(&column.of(batch)?, *width));
        let mut columns = columns.collect::<Result<Vec<_>>>()?;
        if self.kind == CurveKind::Hilbert {
            // All dimensions need the same number of bits.
            let width = widths.iter().copied().max().unwrap_or(0);
            for (column, own) in columns.iter_mut().zip(&widths) {
                *column = widened(column, *own, width);
            }
            widths.fill(width);
            hilbert(&mut columns, width, batch.num_rows());
        }
        let length = widths.iter().sum::<usize>().min(self.key_bytes);
        let mut keys = vec![0_u8; length.saturating_mul(batch.num_rows())];
        let mut row_columns: Vec<&[u8]> = Vec::with_capacity(columns.len());
        for (row, key) in keys.chunks_exact_mut(length.max(1)).enumerate() {
            row_columns.clear();
            let cells = columns.iter().zip(&widths);
            row_columns.extend(cells.map(|(column, width)| column.get(row * width..(row + 1) * width).unwrap_or(&[])));
            interleave(&row_columns, key);
        }
        let offsets = (0..=batch.num_rows()).map(|row| i32::try_from(row.saturating_mul(length)));
        let offsets = offsets.collect::<std::result::Result<Vec<i32>, _>>();
        let offsets = offsets.map_err(|_| Error::unsupported("keys of a curve of more than 2 GiB"))?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let keys = BinaryArray::try_new(offsets, Buffer::from_vec(keys), None);
        Ok(std::sync::Arc::new(keys.map_err(|error| Error::Internal(error.to_string()))?))
    }
}

/// The values of a column as bytes of one width, one after the other; null is zeros.
fn bytes_of(column: &ArrayRef, width: usize) -> Result<Vec<u8>> {
    let mut out = vec![0_u8; width.saturating_mul(column.len())];
    let mut slots = out.chunks_exact_mut(width.max(1)).enumerate();
    let to = |ty: &DataType| cast(column, ty).map_err(|error| Error::unsupported(format!("keys of a curve: {error}")));
    match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean();
            for (row, slot) in slots.filter(|(row, _)| column.is_valid(*row)) {
                if let Some(first) = slot.first_mut() {
                    // The byte that Java uses for true.
                    *first = if values.value(row) { 0x81 } else { 0 };
                }
            }
        }
        DataType::Float32 | DataType::Float64 => {
            let doubles = to(&DataType::Float64)?;
            let values = doubles.as_primitive::<Float64Type>().values();
            for (row, slot) in slots.filter(|(row, _)| column.is_valid(*row)) {
                let bits = values.get(row).copied().map_or(0, ordered_double);
                slot.copy_from_slice(&bits.to_be_bytes());
            }
        }
        DataType::Decimal128(..) => {
            let values = column.as_primitive::<Decimal128Type>().values();
            for (row, slot) in slots.filter(|(row, _)| column.is_valid(*row)) {
                let value = values.get(row).copied().unwrap_or(0);
                slot.copy_from_slice(&(value ^ i128::MIN).to_be_bytes());
            }
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = to(&DataType::Utf8View)?;
            let values = texts.as_string_view();
            slots.by_ref().filter(|(row, _)| column.is_valid(*row)).for_each(|(row, slot)| {
                fill(slot, values.value(row).as_bytes());
            });
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let binary = to(&DataType::BinaryView)?;
            let values = binary.as_binary_view();
            slots.by_ref().filter(|(row, _)| column.is_valid(*row)).for_each(|(row, slot)| {
                fill(slot, values.value(row));
            });
        }
        _ => {
            let longs = to(&DataType::Int64)?;
            let values = longs.as_primitive::<Int64Type>().values();
            for (row, slot) in slots.filter(|(row, _)| column.is_valid(*row)) {
                let value = values.get(row).copied().unwrap_or(0);
                slot.copy_from_slice(&(value ^ i64::MIN).to_be_bytes());
            }
        }
    }
    Ok(out)
}

/// A double as bits in its order: sign and magnitude become an unsigned number. All NaNs are one.
fn ordered_double(value: f64) -> u64 {
    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000_u64 } else { value.to_bits() }.cast_signed();
    (bits ^ ((bits >> 63) | i64::MIN)).cast_unsigned()
}

/// Copies the first bytes; the rest stays zero.
fn fill(slot: &mut [u8], value: &[u8]) {
    let length = slot.len().min(value.len());
    if let (Some(slot), Some(value)) = (slot.get_mut(..length), value.get(..length)) {
        slot.copy_from_slice(value);
    }
}

/// Values of `own` bytes as values of `width` bytes, with zeros at their ends.
fn widened(column: &[u8], own: usize, width: usize) -> Vec<u8> {
    if own == width {
        return column.to_vec();
    }
    let mut out = Vec::with_capacity(column.len() / own.max(1) * width);
    for value in column.chunks_exact(own.max(1)) {
        out.extend_from_slice(value);
        out.resize(out.len() + width - own, 0);
    }
    out
}

/// Interleaves the bits of columns, most significant first; a column without further bits is skipped. `out` may be
/// shorter than the columns together.
fn interleave(columns: &[&[u8]], out: &mut [u8]) {
    let width = columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let (mut at, end) = (0_usize, out.len() * 8);
    for byte in 0..width {
        let present = columns.iter().filter_map(|column| column.get(byte));
        // Runs of equal leading bytes are frequent, and zero bits need no work.
        for bit in (0..8).rev() {
            for source in present.clone() {
                if at == end {
                    return;
                }
                if (source >> bit) & 1 == 1
                    && let Some(target) = out.get_mut(at / 8)
                {
                    *target |= 0x80 >> (at % 8);
                }
                at += 1;
            }
        }
    }
}

/// Turns coordinates into the transposed index on the Hilbert curve (J. Skilling, "Programming the Hilbert curve",
/// 2004). Coordinates have `width` bytes; those beyond 16 bytes stay as they are.
fn hilbert(columns: &mut [Vec<u8>], width: usize, rows: usize) {
    let used = width.min(16);
    let bits = used * 8;
    let mut point = vec![0_u128; columns.len()];
    for row in 0..rows {
        let start = row * width;
        for (coordinate, column) in point.iter_mut().zip(columns.iter()) {
            let bytes = column.get(start..start + used).unwrap_or(&[]);
            *coordinate = bytes.iter().fold(0, |number, byte| (number << 8) | u128::from(*byte));
        }
        transpose(&mut point, bits);
        for (coordinate, column) in point.iter().zip(columns.iter_mut()) {
            let bytes = coordinate.to_be_bytes();
            if let (Some(slot), Some(bytes)) = (column.get_mut(start..start + used), bytes.get(16 - used..)) {
                slot.copy_from_slice(bytes);
            }
        }
    }
}

fn transpose(point: &mut [u128], bits: usize) {
    let Some(last) = point.len().checked_sub(1) else { return };
    let top = 1_u128 << (bits - 1);
    let first = |point: &[u128]| point.first().copied().unwrap_or(0);
    let mut bit = top;
    while bit > 1 {
        let below = bit - 1;
        for place in 0..point.len() {
            let value = point.get(place).copied().unwrap_or(0);
            if value & bit != 0 {
                // Invert the lower bits of the first coordinate.
                point.iter_mut().take(1).for_each(|first| *first ^= below);
            } else {
                // Exchange the lower bits of both.
                let exchanged = (first(point) ^ value) & below;
                point.iter_mut().take(1).for_each(|first| *first ^= exchanged);
                if let Some(own) = point.get_mut(place) {
                    *own ^= exchanged;
                }
            }
        }
        bit >>= 1;
    }
    // Gray encoding.
    for place in 1..point.len() {
        let before = point.get(place - 1).copied().unwrap_or(0);
        if let Some(own) = point.get_mut(place) {
            *own ^= before;
        }
    }
    let (mut flips, mut bit) = (0, top);
    while bit > 1 {
        if point.get(last).is_some_and(|value| value & bit != 0) {
            flips ^= bit - 1;
        }
        bit >>= 1;
    }
    point.iter_mut().for_each(|value| *value ^= flips);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn bytes_have_the_order_of_values() {
        let doubles = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![i64::MIN, -2, -1, 0, 1, i64::MAX])),
            Arc::new(Int32Array::from(vec![i32::MIN, -1, 0, 7])),
            Arc::new(Float64Array::from(doubles.to_vec())),
            Arc::new(Float32Array::from(vec![-1.5, 0.0, 2.5])),
            Arc::new(BooleanArray::from(vec![false, true])),
            Arc::new(StringArray::from(vec![Some(""), Some("a"), Some("ab"), Some("b"), Some("ba")])),
        ];
        for array in arrays {
            let bytes = bytes_of(&array, 8).unwrap();
            let values: Vec<&[u8]> = bytes.chunks(8).collect();
            assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{array:?}: {values:?}");
        }
        let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(i64::MIN)]));
        assert_eq!(bytes_of(&nulls, 8).unwrap(), [0; 16]);
    }

    #[test]
    fn bits_are_interleaved_as_in_java() {
        // The cases of Java's `TestZOrderByteUtil`.
        for (columns, expected) in [
            (&[&[0b1010_1010_u8][..], &[0b0101_0101]][..], &[0b1001_1001_u8, 0b1001_1001][..]),
            (&[&[0xff, 0xff], &[0x00]], &[0b1010_1010, 0b1010_1010, 0xff]),
            (&[&[0xff], &[0x00], &[0xff]], &[0b1011_0110, 0b1101_1011, 0b0110_1101]),
            (&[&[0x0f, 0xf0]], &[0x0f, 0xf0]),
        ] {
            let mut out = vec![0; expected.len()];
            interleave(columns, &mut out);
            assert_eq!(out, expected, "{columns:?}");
            let mut short = vec![0; 1];
            interleave(columns, &mut short);
            assert_eq!(short, expected[..1]);
        }
    }

    #[test]
    fn steps_on_the_hilbert_curve_change_one_column_by_one() {
        for (dimensions, side) in [(2_usize, 16_u8), (3, 8)] {
            let count = usize::from(side).pow(dimensions as u32);
            let mut columns = vec![Vec::new(); dimensions];
            for number in 0..count {
                for (place, column) in columns.iter_mut().enumerate() {
                    column.push((number / usize::from(side).pow(place as u32) % usize::from(side)) as u8);
                }
            }
            let mut indexes = columns.clone();
            hilbert(&mut indexes, 1, count);
            let mut points: Vec<(Vec<u8>, Vec<u8>)> = (0..count)
                .map(|row| {
                    let cells: Vec<&[u8]> = indexes.iter().map(|column| &column[row..=row]).collect();
                    let mut key = vec![0; dimensions];
                    interleave(&cells, &mut key);
                    (key, columns.iter().map(|column| column[row]).collect())
                })
                .collect();
            points.sort();
            for pair in points.windows(2) {
                let steps: u32 = pair[0].1.iter().zip(&pair[1].1).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
                assert_eq!(steps, 1, "{pair:?}");
            }
        }
    }
}
