//! Transforms of whole columns: the kernels of `format`, on all processors if a column is long.
//!
//! A column is cut into chunks that fit into the L2 cache. Fixed-width results are written to their final place as
//! soon as they are computed, so that all processors share the page faults of the new buffer; strings are
//! concatenated at the end. The result does not depend on the number of threads.

use std::mem::MaybeUninit;
use std::ops::BitOr;
use std::sync::Arc;

use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, GenericByteArray, GenericByteViewArray, cast::AsArray, make_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use icefield_format::transform::{SHORT_HEAD, Transform, truncate_equally, truncate_unchecked};
use rayon::prelude::*;

use crate::arrow::{places, text};
use crate::error::{Error, Result};
use crate::memory;
use crate::runtime;

/// Values per chunk; few under Miri, which takes a second for some thousands.
const CHUNK: usize = if cfg!(miri) { 1 << 6 } else { 1 << 15 };
/// Shorter columns are processed at once.
const LONG: usize = 4 * CHUNK;

/// Number of values to sample before trying [`equal_texts`].
const FEW: usize = 1 << 10;

/// Applies a transform to a column; the result is that of [`Transform::kernel`].
pub fn apply(transform: &Transform, array: &ArrayRef) -> Result<ArrayRef> {
    match (Work { transform, checks: false }).all(array) {
        Ok(results) => Ok(results),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Unsound) => Err(Error::Internal(format!("transform {transform}: a check that was not asked for"))),
    }
}

/// As [`apply`], for an array whose offsets, views and strings are unchecked; `None` if values are outside their
/// data, or a string in the results is not UTF-8. Each chunk is checked just before the kernel uses it: on all
/// processors, and the kernel finds it in the cache.
pub fn apply_checked(transform: &Transform, array: &ArrayRef) -> Result<Option<ArrayRef>> {
    match (Work { transform, checks: true }).all(array) {
        Ok(results) => Ok(Some(results)),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Unsound) => Ok(None),
    }
}

/// Why a computation stopped without results.
enum Stop {
    /// A check failed.
    Unsound,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<icefield_format::Error> for Stop {
    fn from(error: icefield_format::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A transform, and whether to check the array during the computation.
struct Work<'a> {
    transform: &'a Transform,
    checks: bool,
}

impl Work<'_> {
    fn all(&self, array: &ArrayRef) -> Result<ArrayRef, Stop> {
        let is_dictionary = matches!(array.data_type(), DataType::Dictionary(..));
        if array.len() < LONG || is_dictionary || runtime::threads() == 1 {
            return self.chunk(array);
        }
        if matches!(self.transform, Transform::Identity | Transform::Void | Transform::Unknown(_)) {
            return self.identical(array, self.transform.kernel(array)?);
        }
        // One value gives the result type and refuses unsupported input types.
        let first = self.chunk(&array.slice(0, 1))?;
        if first.data_type() == array.data_type() && first.data_type() == &DataType::Date32 {
            return Ok(self.transform.kernel(array)?); // the days of dates are the dates
        }
        match first.data_type() {
            DataType::Utf8 => texts::<Utf8Type>(self, array),
            DataType::LargeUtf8 => texts::<LargeUtf8Type>(self, array),
            DataType::Binary => texts::<BinaryType>(self, array),
            DataType::LargeBinary => texts::<LargeBinaryType>(self, array),
            DataType::Utf8View => views::<StringViewType>(self, array),
            DataType::BinaryView => views::<BinaryViewType>(self, array),
            other => match other.primitive_width() {
                Some(width) => numbers(self, array, other, width),
                None => self.chunk(array),
            },
        }
    }

    /// The results for a part of the array.
    fn chunk(&self, array: &ArrayRef) -> Result<ArrayRef, Stop> {
        if let (true, true, Transform::Truncate(width)) = (self.checks, has_offsets(array), self.transform) {
            // Separate passes over offsets and strings took a tenth of the kernel's time.
            let truncated = truncate_unchecked(array, *width)?.ok_or(Stop::Unsound)?;
            let is_sound = truncated.is_ascii || self.gives(&truncated.results);
            return if is_sound { Ok(truncated.results) } else { Err(Stop::Unsound) };
        }
        if !self.takes(array) {
            return Err(Stop::Unsound);
        }
        let results = self.transform.kernel(array)?;
        if !self.gives(&results) {
            return Err(Stop::Unsound);
        }
        Ok(results)
    }

    /// Whether the array is safe for the kernel.
    fn takes(&self, array: &ArrayRef) -> bool {
        !self.checks || places::are_sound(array)
    }

    /// Whether the results are safe to return. Kernels read bytes, and buckets accept any bytes; only strings that
    /// remain in the results must be valid.
    fn gives(&self, results: &ArrayRef) -> bool {
        let texts = results.as_any_dictionary_opt().map_or(results, |dictionary| dictionary.values());
        !self.checks || text::fault_of(texts).is_none()
    }

    /// Results that are the input array itself, once it has been checked.
    fn identical(&self, array: &ArrayRef, results: ArrayRef) -> Result<ArrayRef, Stop> {
        let sound = !self.checks
            || runtime::pool()?.install(|| {
                let chunks = (0..array.len().div_ceil(CHUNK)).into_par_iter();
                chunks.all(|number| self.takes(&chunk(array, number)) && self.gives(&chunk(&results, number)))
            });
        if sound { Ok(results) } else { Err(Stop::Unsound) }
    }
}

/// Whether values are strings or binaries with offsets.
fn has_offsets(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
}

fn numbers(work: &Work<'_>, array: &ArrayRef, ty: &DataType, width: usize) -> Result<ArrayRef, Stop> {
    let values = filled(work, array, width)?;
    let data = ArrayData::builder(ty.clone()).len(array.len()).nulls(array.nulls().cloned()).add_buffer(values).build();
    let whole = data.map(make_array);
    Ok(whole.map_err(|error| Error::Internal(format!("transform {}: {error}", work.transform)))?)
}

/// Views: only the views are new, the buffers are shared. If no value is longer than the width, everything is shared.
fn views<T: ByteViewType>(work: &Work<'_>, array: &ArrayRef) -> Result<ArrayRef, Stop> {
    let whole = array.as_byte_view::<T>();
    if let Transform::Truncate(length) = work.transform {
        let is_long = |view: &u128| *view as u32 > *length;
        if !runtime::pool()?.install(|| whole.views().par_chunks(CHUNK).any(|views| views.iter().any(is_long))) {
            return work.identical(array, array.clone());
        }
    }
    let views = filled(work, array, size_of::<u128>())?;
    let views = ScalarBuffer::new(views, 0, array.len());
    // SAFETY: the kernel made each view from a value of the array, over the array's own buffers.
    let results = unsafe {
        GenericByteViewArray::<T>::new_unchecked(views, Arc::clone(whole.data_buffers()), array.nulls().cloned())
    };
    Ok(Arc::new(results))
}

/// The first buffer of the results, with `width` bytes per value.
fn filled(work: &Work<'_>, array: &ArrayRef, width: usize) -> Result<Buffer, Stop> {
    let mut out: Vec<u128> = memory::reserved((array.len() * width).div_ceil(size_of::<u128>()));
    let bytes = bytes_of(out.spare_capacity_mut());
    runtime::pool()?.install(|| {
        bytes.par_chunks_mut(CHUNK * width).take(array.len().div_ceil(CHUNK)).enumerate().try_for_each(
            |(number, place)| {
                let chunk = chunk(array, number);
                let results = work.chunk(&chunk).map_err(|stop| in_chunk(work, array, stop))?;
                let data = results.to_data();
                let from = data.offset() * width;
                let values = data.buffers().first().and_then(|values| values.get(from..from + chunk.len() * width));
                let place = place.get_mut(..chunk.len() * width);
                let (Some(values), Some(place)) = (values, place) else {
                    let message = format!("transform {}: a chunk of another length", work.transform);
                    return Err(Stop::Failed(Error::Internal(message)));
                };
                place.write_copy_of_slice(values);
                Ok(())
            },
        )
    })?;
    let words = array.len() * width / size_of::<u128>();
    let tail = array.len() * width % size_of::<u128>();
    if tail != 0
        && let Some(rest) = out.spare_capacity_mut().get_mut(words)
    {
        let rest = bytes_of(std::slice::from_mut(rest));
        rest.iter_mut().skip(tail).for_each(|byte| {
            byte.write(0);
        });
    }
    // SAFETY: every chunk has filled its place, and the rest of the last word was filled with zeros above.
    unsafe { out.set_len(words + usize::from(tail != 0)) };
    Ok(Buffer::from_vec(out))
}

/// Computes the whole column again, for an error that names the right row.
fn in_chunk(work: &Work<'_>, array: &ArrayRef, stop: Stop) -> Stop {
    match stop {
        Stop::Unsound => Stop::Unsound,
        Stop::Failed(error) => work.transform.kernel(array).err().map_or(error, Error::from).into(),
    }
}

fn chunk(array: &ArrayRef, number: usize) -> ArrayRef {
    let start = number * CHUNK;
    array.slice(start, CHUNK.min(array.len() - start))
}

fn bytes_of(words: &mut [MaybeUninit<u128>]) -> &mut [MaybeUninit<u8>] {
    let length = std::mem::size_of_val(words);
    // SAFETY: the same memory; the type does not claim that it is initialized.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), length) }
}

fn texts<T>(work: &Work<'_>, array: &ArrayRef) -> Result<ArrayRef, Stop>
where
    T: ByteArrayType<Offset: ArrowNativeTypeOp + BitOr<Output = T::Offset>>,
{
    if let Transform::Truncate(length) = work.transform
        && let Some(whole) = equal_texts::<T>(array, *length as usize)?
    {
        return Ok(whole);
    }
    let pool = runtime::pool()?;
    let parts: Vec<ArrayRef> = pool.install(|| {
        let chunks = (0..array.len().div_ceil(CHUNK)).into_par_iter();
        chunks.map(|number| work.chunk(&chunk(array, number))).collect::<Result<_, Stop>>()
    })?;
    let spans: Vec<(&GenericByteArray<T>, usize, usize)> = (parts.iter().map(|part| part.as_bytes::<T>()))
        .map(|part| {
            let offsets = part.value_offsets();
            let ends = offsets.first().zip(offsets.last());
            ends.map_or((part, 0, 0), |(start, end)| (part, start.as_usize(), end.as_usize()))
        })
        .collect();
    let total = spans.iter().map(|(_, start, end)| end - start).sum();
    let mut data = memory::reserved::<u8>(total);
    let mut offsets = memory::reserved::<T::Offset>(array.len() + 1);
    offsets.push(T::Offset::usize_as(0));
    let mut free_data = data.spare_capacity_mut();
    let mut free_offsets = offsets.spare_capacity_mut();
    let mut places = Vec::with_capacity(spans.len());
    let mut base = 0;
    for (part, start, end) in spans {
        let split = free_data.split_at_mut_checked(end - start).zip(free_offsets.split_at_mut_checked(part.len()));
        let Some(((bytes, more_data), (ends, more_offsets))) = split else {
            let message = format!("transform {}: parts of another length", work.transform);
            return Err(Stop::Failed(Error::Internal(message)));
        };
        places.push((part, start, end, base, bytes, ends));
        (free_data, free_offsets, base) = (more_data, more_offsets, base + end - start);
    }
    pool.install(|| {
        places.into_par_iter().for_each(|(part, start, end, base, bytes, ends)| {
            if let Some(values) = part.value_data().get(start..end) {
                bytes.write_copy_of_slice(values);
            }
            for (place, end) in ends.iter_mut().zip(part.value_offsets().iter().skip(1)) {
                place.write(T::Offset::usize_as(base + end.as_usize() - start));
            }
        });
    });
    // SAFETY: the parts have filled every byte and every offset: their lengths were added up above, and together they
    // have as many values as the column. Offsets ascend, and each value is one of a part, so strings are valid.
    let whole = unsafe {
        data.set_len(total);
        offsets.set_len(array.len() + 1);
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
        GenericByteArray::<T>::new_unchecked(offsets, Buffer::from_vec(data), array.nulls().cloned())
    };
    Ok(Arc::new(whole))
}

/// Values truncated to `length`, none shorter: their positions are known in advance, so they are written in place.
/// `None` if one is shorter, or not as simple as [`truncate_equally`] requires.
fn equal_texts<T>(whole: &ArrayRef, length: usize) -> Result<Option<ArrayRef>>
where
    T: ByteArrayType<Offset: ArrowNativeTypeOp + BitOr<Output = T::Offset>>,
{
    let array = whole.as_bytes::<T>();
    let few = whole.slice(0, FEW.min(whole.len()));
    let mut place = [MaybeUninit::uninit(); FEW * SHORT_HEAD];
    let place = place.get_mut(..few.len().saturating_mul(length));
    let is_within = array.value_offsets().last().is_some_and(|end| end.as_usize() <= array.value_data().len());
    if !is_within || !place.is_some_and(|place| truncate_equally(few.as_bytes::<T>(), length, place)) {
        return Ok(None);
    }
    let total = array.len() * length;
    let mut data = memory::reserved::<u8>(total);
    let mut offsets = memory::reserved::<T::Offset>(array.len() + 1);
    offsets.push(T::Offset::usize_as(0));
    let places = data.spare_capacity_mut().get_mut(..total).zip(offsets.spare_capacity_mut().get_mut(..array.len()));
    let Some((heads, ends)) = places else { return Ok(None) };
    let equal = runtime::pool()?.install(|| {
        let places = heads.par_chunks_mut(CHUNK * length).zip(ends.par_chunks_mut(CHUNK));
        places.enumerate().all(|(number, (heads, ends))| {
            let start = number * CHUNK;
            for (end, number) in ends.iter_mut().zip(start + 1..) {
                end.write(T::Offset::usize_as(number * length));
            }
            // Offsets that do not ascend are not equal lengths; their upper bound was checked above.
            truncate_equally(&array.slice(start, ends.len()), length, heads)
        })
    });
    if !equal {
        return Ok(None);
    }
    // SAFETY: every chunk has filled its heads and its ends. Ends ascend, up to at most the input's length; each value
    // is a prefix of an input value that ends at a code point.
    let whole = unsafe {
        data.set_len(total);
        offsets.set_len(array.len() + 1);
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
        GenericByteArray::<T>::new_unchecked(offsets, Buffer::from_vec(data), array.nulls().cloned())
    };
    Ok(Some(Arc::new(whole)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BinaryArray, BinaryViewArray, Date32Array, Decimal128Array, Int32Array, Int64Array, LargeBinaryArray,
        LargeStringArray, StringArray, StringViewArray, TimestampMicrosecondArray, TimestampSecondArray,
    };

    use super::*;

    /// Number of rows of an array that is split into chunks, the last one shorter.
    const ROWS: i64 = (LONG + CHUNK / 3 + 1) as i64;

    fn mixed(row: i64) -> i64 {
        row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 7
    }

    #[test]
    fn long_columns_are_what_the_kernel_says() {
        let text =
            |row: i64| ["", "plain ascii text", "é", "日本語テキスト", "a"][row as usize % 5].repeat(row as usize % 3);
        let some = |row: i64| row % 7 != 0;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(mixed))),
            Arc::new((0..ROWS).map(|row| some(row).then(|| mixed(row) as i32)).collect::<Int32Array>()),
            Arc::new((0..ROWS).map(|row| some(row).then(|| mixed(row) as i32)).collect::<Date32Array>()),
            Arc::new(TimestampMicrosecondArray::from_iter_values((0..ROWS).map(mixed)).with_timezone("UTC")),
            Arc::new(
                Decimal128Array::from_iter_values((0..ROWS).map(|row| i128::from(mixed(row))))
                    .with_precision_and_scale(20, 3)
                    .unwrap(),
            ),
            Arc::new((0..ROWS).map(|row| some(row).then(|| text(row))).collect::<StringArray>()),
            Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(text))),
            Arc::new((0..ROWS).map(|row| some(row).then(|| text(row))).collect::<StringViewArray>()),
            Arc::new(BinaryViewArray::from_iter_values((0..ROWS).map(text))),
            Arc::new(BinaryArray::from_iter_values((0..ROWS).map(text))),
        ];
        let names = ["bucket[16]", "truncate[3]", "truncate[100]", "year", "month", "day", "hour", "identity", "void"];
        for array in arrays.iter().flat_map(|array| [array.clone(), array.slice(5, array.len() - 7)]) {
            for transform in names.map(|name| Transform::parse(name).unwrap()) {
                let (expected, found) = (transform.kernel(&array), apply(&transform, &array));
                match expected {
                    Ok(expected) => {
                        assert_eq!(apply_checked(&transform, &array).unwrap().as_ref(), Some(&expected));
                        let found = found.unwrap();
                        found.to_data().validate_full().unwrap();
                        assert_eq!(&found, &expected, "{transform} of {}", array.data_type());
                    }
                    Err(error) => assert_eq!(found.unwrap_err().to_string(), Error::from(error).to_string()),
                }
            }
        }
    }

    /// Columns without short values have a fast path, which is abandoned if a later value is short or not ASCII.
    #[test]
    fn long_columns_of_long_values_are_what_the_kernel_says() {
        let late = (LONG + CHUNK / 32) as i64;
        let plain = |row: i64| format!("{:017}", mixed(row)).repeat(1 + row as usize % 5);
        let one_is = move |odd: &'static str| move |row: i64| if row == late { odd.to_owned() } else { plain(row) };
        let first_is_odd = |row: i64| if row == 0 { String::new() } else { plain(row) };
        let columns: [(ArrayRef, &str); 9] = [
            (Arc::new(StringArray::from_iter_values((0..ROWS).map(plain))), "texts"),
            (Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(plain))), "large texts"),
            (Arc::new(BinaryArray::from_iter_values((0..ROWS).map(plain))), "bytes"),
            (Arc::new(LargeBinaryArray::from_iter_values((0..ROWS).map(plain))), "large bytes"),
            (
                Arc::new(StringArray::from_iter_values((0..ROWS).map(one_is("日本語のテキスト")))),
                "one that is not ASCII",
            ),
            (Arc::new(BinaryArray::from_iter_values((0..ROWS).map(one_is("日本語のテキスト")))), "bytes of any kind"),
            (Arc::new(StringArray::from_iter_values((0..ROWS).map(one_is("ab")))), "one short"),
            (Arc::new((0..ROWS).map(|row| (row != late).then(|| plain(row))).collect::<StringArray>()), "one null"),
            (Arc::new(StringArray::from_iter_values((0..ROWS).map(first_is_odd))), "the first one empty"),
        ];
        for (column, kind) in columns {
            for array in [column.slice(5, column.len() - 7), column] {
                for width in [1, 3, 4, 7, 8, 16, 17, i32::MAX as u32] {
                    let transform = Transform::Truncate(width);
                    let found = apply(&transform, &array).unwrap();
                    found.to_data().validate_full().unwrap();
                    assert_eq!(&found, &transform.kernel(&array).unwrap(), "{transform} of {kind}");
                    assert_eq!(apply_checked(&transform, &array).unwrap(), Some(found), "{transform} of {kind}");
                }
            }
        }
    }

    /// Arrays with one fault, in any chunk, that no transform may accept.
    fn faulty() -> Vec<(ArrayRef, String)> {
        let rows = ROWS as usize;
        let (mut made, text) = (Vec::<(ArrayRef, String)>::new(), "é: a text that is not short");
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![text; rows]));
        // Kernels have separate paths for long values, for short ASCII values, and for all others.
        let some = [CHUNK + 1, rows];
        let kinds = [
            (text, text, &[1, CHUNK, CHUNK + 1, rows][..]),
            ("of ASCII and not short", "short", &some),
            ("a", "", &some),
        ];
        for (long, short, places) in kinds {
            let plain = StringArray::from_iter_values((0..rows).map(|row| if row % 2 == 0 { long } else { short }));
            let sound: Vec<i64> = plain.value_offsets().iter().map(|offset| i64::from(*offset)).collect();
            for &place in places {
                for wrong in [-1, sound[place - 1] - 1, sound[rows] + 1] {
                    let mut offsets = sound.clone();
                    offsets[place] = wrong;
                    let short: Vec<i32> = offsets.iter().map(|offset| *offset as i32).collect();
                    let types = [(DataType::Utf8, false), (DataType::Binary, false), (DataType::LargeUtf8, true)];
                    for (ty, is_large) in types.into_iter().chain([(DataType::LargeBinary, true)]) {
                        let offsets =
                            if is_large { Buffer::from_slice_ref(&offsets) } else { Buffer::from_slice_ref(&short) };
                        let what = format!("{ty} as {long:?} with {wrong} at {place}");
                        let data = ArrayData::builder(ty).len(rows).add_buffer(offsets);
                        let data = data.add_buffer(plain.values().clone());
                        // SAFETY: only the check looks at the offsets.
                        made.push((make_array(unsafe { data.build_unchecked() }), what));
                    }
                }
            }
        }
        for place in [1, CHUNK, CHUNK + 1, rows] {
            for bit in [31, 33, 95, 96, 127] {
                let (row, data) = (place - 1, views.to_data());
                let mut wrong = data.buffers()[0].typed_data::<u128>().to_vec();
                wrong[row] ^= 1 << bit;
                for ty in [DataType::Utf8View, DataType::BinaryView] {
                    let what = format!("{ty} with another bit {bit} in row {row}");
                    let mut buffers = data.buffers().to_vec();
                    buffers[0] = Buffer::from_slice_ref(&wrong);
                    let data = ArrayData::builder(ty).len(rows).buffers(buffers);
                    // SAFETY: as above.
                    made.push((make_array(unsafe { data.build_unchecked() }), what));
                }
            }
        }
        made
    }

    #[test]
    fn values_that_lie_elsewhere_are_found() {
        let names = ["bucket[16]", "truncate[2]", "truncate[14]", "truncate[100]", "identity", "void"];
        for (array, what) in faulty() {
            for name in names {
                let found = apply_checked(&Transform::parse(name).unwrap(), &array);
                assert!(matches!(found, Ok(None)), "{name} of {what}: {found:?}");
            }
        }
    }

    #[test]
    fn results_that_are_no_text_are_found() {
        let rows = ROWS as usize;
        let one_is = |place: usize, odd: &'static [u8]| {
            let value = move |row| if row == place { odd } else { "é: a text".as_bytes() };
            BinaryArray::from_iter_values((0..rows).map(value))
        };
        for place in [0, CHUNK - 1, CHUNK, rows - 1] {
            for odd in [&b"\xff a text"[..], b"a text, but for \xff", b"\xc3"] {
                let bytes = one_is(place, odd);
                let views: BinaryViewArray = bytes.iter().collect();
                let as_text = |data: ArrayData, ty| {
                    // SAFETY: only the check reads it as a string.
                    make_array(unsafe { data.into_builder().data_type(ty).build_unchecked() })
                };
                for array in
                    [as_text(bytes.into_data(), DataType::Utf8), as_text(views.into_data(), DataType::Utf8View)]
                {
                    let found = |name| apply_checked(&Transform::parse(name).unwrap(), &array).unwrap();
                    let what = format!("{odd:?} in row {place} of {}", array.data_type());
                    assert!(found("identity").is_none() && found("truncate[100]").is_none(), "{what}");
                    assert_eq!(found("truncate[1]").is_none(), odd[0] != b'a', "{what}");
                    assert_eq!(found("truncate[8]").is_none(), odd[0] != b'a', "{what}");
                    assert!(found("bucket[16]").is_some(), "{what}");
                }
            }
        }
    }

    #[test]
    fn errors_name_the_row() {
        let mut values = vec![0; ROWS as usize];
        values[LONG + 3] = i64::MAX;
        let array: ArrayRef = Arc::new(TimestampSecondArray::from(values));
        let error = apply(&Transform::Hour, &array).unwrap_err().to_string();
        assert!(error.contains(&format!("row {}", LONG + 3)), "{error}");
    }
}
