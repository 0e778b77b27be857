//! Checks that an array matches its type before the arrow crates import it: they trust the pointers, counts and offsets
//! of the C data interface, and one wrong number would crash the process.
//!
//! [`layout`] checks the structs before the import, and [`values`] the data after it: offsets, text, dictionary
//! indices. The interface does not contain the lengths of buffers, so for these the producer must be trusted.

use std::ffi::c_void;
use std::ops::BitOr;

use arrow_array::ArrowNativeTypeOp;
use arrow_array::ffi::FFI_ArrowArray;
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, UnionMode};
use icefield_table::arrow::places;

/// `struct ArrowArray` of the C data interface; its fields are private in the arrow crate.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut RawArray,
    dictionary: *mut RawArray,
    release: Option<unsafe extern "C" fn(*mut RawArray)>,
    private_data: *mut c_void,
}

/// Maximum elements of one array. More do not fit into memory for any type, and up to this number no product with a
/// width overflows.
const MOST: i64 = 1 << 48;

type Result<T, E = ArrowError> = std::result::Result<T, E>;

fn refused(path: &str, message: &str) -> ArrowError {
    let column = if path.is_empty() { String::new() } else { format!("column {path}: ") };
    ArrowError::CDataInterface(format!("{column}the Arrow data do not match their schema: {message}"))
}

/// Checks the structs of an array, and adapts it to what the arrow crate expects: arrays of type null have no buffers
/// (Polars gives them one), and the nulls of a bitmap are to be counted.
///
/// # Safety
///
/// `array` is a valid array of the C data interface that is not released and has no other user.
pub(super) unsafe fn layout(array: &mut FFI_ArrowArray, ty: &DataType) -> Result<()> {
    // SAFETY: both structs are the `ArrowArray` of the C data interface.
    unsafe { node(std::ptr::from_mut(array).cast(), ty, "") }
}

/// The number of buffers of an array of a type; for views, the minimum.
fn buffers_of(ty: &DataType) -> i64 {
    match ty {
        DataType::Null | DataType::RunEndEncoded(..) => 0,
        DataType::Struct(_) | DataType::FixedSizeList(..) | DataType::Union(_, UnionMode::Sparse) => 1,
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_) => 3,
        _ => 2,
    }
}

/// Names and types of the arrays inside an array of this type, in the order of the C data interface.
fn children(ty: &DataType) -> Vec<(&str, &DataType)> {
    match ty {
        DataType::Struct(fields) => fields.iter().map(|field| (field.name().as_str(), field.data_type())).collect(),
        DataType::Union(fields, _) => {
            fields.iter().map(|(_, field)| (field.name().as_str(), field.data_type())).collect()
        }
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::FixedSizeList(child, _)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::Map(child, _) => vec![(child.name().as_str(), child.data_type())],
        DataType::RunEndEncoded(ends, values) => vec![("run_ends", ends.data_type()), ("values", values.data_type())],
        _ => Vec::new(),
    }
}

/// # Safety
///
/// `array` is null or a valid array of the C data interface without another user.
unsafe fn node(array: *mut RawArray, ty: &DataType, path: &str) -> Result<()> {
    // SAFETY: by the contract.
    let Some(array) = (unsafe { array.as_mut() }) else { return Err(refused(path, "an array is missing")) };
    if array.release.is_none() {
        return Err(refused(path, "an array was released already"));
    }
    if !(0..MOST).contains(&array.length) || !(0..MOST).contains(&array.offset) {
        return Err(refused(path, &format!("length {}, offset {}", array.length, array.offset)));
    }
    if array.null_count < -1 || array.null_count > array.length {
        return Err(refused(path, &format!("{} nulls in {} values", array.null_count, array.length)));
    }
    if *ty == DataType::Null {
        array.n_buffers = 0;
        return Ok(());
    }
    // SAFETY: by the contract, `array` is valid.
    unsafe { check_buffers(array, ty, path)? };
    let children = children(ty);
    if array.n_children != i64::try_from(children.len()).unwrap_or(-1) {
        let found = format!("{} children of {ty}, where the type has {}", array.n_children, children.len());
        return Err(refused(path, &found));
    }
    if !children.is_empty() && array.children.is_null() {
        return Err(refused(path, "its children are missing"));
    }
    for (place, (name, child)) in children.into_iter().enumerate() {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        // SAFETY: the number of children was just checked.
        unsafe { node(*array.children.add(place), child, &path)? };
    }
    match ty {
        // SAFETY: by the contract.
        DataType::Dictionary(_, values) => unsafe { node(array.dictionary, values, path) },
        _ => Ok(()),
    }
}

/// # Safety
///
/// `array` is a valid array of the C data interface.
unsafe fn check_buffers(array: &mut RawArray, ty: &DataType, path: &str) -> Result<()> {
    let expected = buffers_of(ty);
    let variadic = matches!(ty, DataType::Utf8View | DataType::BinaryView);
    let fits = if variadic { (expected..1 << 32).contains(&array.n_buffers) } else { array.n_buffers == expected };
    if !fits || (expected > 0 && array.buffers.is_null()) {
        return Err(refused(path, &format!("{} buffers, where {ty} has {expected}", array.n_buffers)));
    }
    // SAFETY: the array has more buffers than any `place` used here.
    let buffer = |place: usize| unsafe { *array.buffers.add(place) };
    let validity = expected > 0 && !matches!(ty, DataType::Union(..));
    if validity && buffer(0).is_null() && array.null_count > 0 {
        return Err(refused(path, &format!("{} nulls, but no validity bitmap", array.null_count)));
    }
    let end = usize::try_from(array.length + array.offset).unwrap_or_default();
    let wide = matches!(ty, DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_));
    let offsets = wide || matches!(ty, DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..));
    if offsets && !buffer(1).is_null() && end > 0 {
        let begin = end - usize::try_from(array.length).unwrap_or_default();
        // SAFETY: an array has one more offset than values.
        let offset = |place: usize| unsafe {
            match wide {
                true => buffer(1).cast::<i64>().add(place).read_unaligned(),
                false => i64::from(buffer(1).cast::<i32>().add(place).read_unaligned()),
            }
        };
        let width = if wide { align_of::<i64>() } else { align_of::<i32>() };
        if buffer(1).addr() % width != 0 {
            return Err(refused(path, "its offsets are not aligned"));
        }
        let last = offset(end);
        if offset(begin) < 0 || last < offset(begin) || last > MOST {
            return Err(refused(path, &format!("offsets from {} to {last}", offset(begin))));
        }
        // Only arrays of more than 4 GiB reach this, and 32-bit offsets that are read in pairs as 64-bit ones.
        let half = |number: i64| (number & i64::from(u32::MAX), number >> 32);
        if last > i64::from(u32::MAX) && (begin..end).all(|place| half(offset(place)).0 <= half(offset(place)).1) {
            return Err(refused(path, &format!("the offsets are those of a type of 32 bits, not of {ty}")));
        }
    } else if (offsets || (expected > 1 && !variadic)) && buffer(1).is_null() && end > 0 && !is_empty_width(ty) {
        return Err(refused(path, "a buffer is missing"));
    }
    if validity && !buffer(0).is_null() {
        // A wrong count would turn nulls into values, so let the nulls be counted.
        array.null_count = -1;
    }
    Ok(())
}

/// Whether the values of a type take no bytes.
fn is_empty_width(ty: &DataType) -> bool {
    matches!(ty, DataType::FixedSizeBinary(0))
}

/// Checks the values of an imported array and of all arrays inside it.
pub(super) fn values(data: &ArrayData) -> Result<()> {
    data.validate()?;
    values_of(data)
}

/// Like [`values`], except for the offsets and views of top-level strings and binaries. Code that reads these anyway
/// checks them at the same time, with `icefield_table::arrow::places`.
pub(super) fn values_but_places(data: &ArrayData) -> Result<()> {
    data.validate()?;
    if has_places(data.data_type()) { Ok(()) } else { values_of(data) }
}

fn has_places(ty: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(ty, Utf8 | LargeUtf8 | Binary | LargeBinary | Utf8View | BinaryView)
}

fn values_of(data: &ArrayData) -> Result<()> {
    if !are_quickly_sound(data) {
        // The arrow crate says what is wrong. UTF-8 is checked by `texts`, or by the writer, which names the row in the
        // whole input.
        match data.data_type() {
            DataType::Utf8 => retyped(data, DataType::Binary)?,
            DataType::LargeUtf8 => retyped(data, DataType::LargeBinary)?,
            DataType::Utf8View => retyped(data, DataType::BinaryView)?,
            _ => data.validate_values()?,
        }
    }
    data.child_data().iter().try_for_each(values_of)
}

fn retyped(data: &ArrayData, ty: DataType) -> Result<()> {
    data.clone().into_builder().data_type(ty).build()?.validate_values()
}

/// Whether the offsets or views of an array pass the quick checks, which do not say what is wrong. Only those that the
/// array uses are checked, because the slices of a large array arrive one by one.
fn are_quickly_sound(data: &ArrayData) -> bool {
    let length_of = |place: usize| data.buffers().get(place).map(Buffer::len);
    let child = || data.child_data().first().map(ArrayData::len);
    match data.data_type() {
        _ if data.is_empty() => false,
        DataType::Utf8 | DataType::Binary => offsets::<i32>(data, length_of(1)),
        DataType::LargeUtf8 | DataType::LargeBinary => offsets::<i64>(data, length_of(1)),
        DataType::List(_) | DataType::Map(..) => offsets::<i32>(data, child()),
        DataType::LargeList(_) => offsets::<i64>(data, child()),
        DataType::Utf8View | DataType::BinaryView => {
            let Some((views, buffers)) = data.buffers().split_first() else { return false };
            let views = views.typed_data::<u128>().get(data.offset()..data.offset() + data.len());
            views.is_some_and(|views| places::views_fit(views, buffers))
        }
        _ => false,
    }
}

fn offsets<O: ArrowNativeTypeOp + BitOr<Output = O>>(data: &ArrayData, end: Option<usize>) -> bool {
    let offsets = data.buffers().first().map(Buffer::typed_data::<O>);
    let used = offsets.and_then(|offsets| offsets.get(data.offset()..=data.offset() + data.len()));
    used.zip(end).is_some_and(|(used, end)| places::offsets_ascend(used, end))
}
