//! Streams with columns of the type null whose arrays have a buffer, as those of Polars have.
//!
//! By the C data interface an array of nulls has none, and arrow refuses one that has; Arrow's own format gave it one before
//! 0.15. A stream that has such columns is put into another one, which takes the buffer away.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field};

/// `struct ArrowArray` of the C data interface: arrow keeps its fields to itself.
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

struct Inner {
    stream: FFI_ArrowArrayStream,
    ty: DataType,
}

/// The stream, or one around it if it has columns of nulls.
pub fn mended(mut stream: FFI_ArrowArrayStream) -> FFI_ArrowArrayStream {
    let Some(get_schema) = stream.get_schema() else { return stream };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is not released, and `schema` is room for one that releases itself.
    let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
    // What is wrong with a schema is told by the one who reads the stream.
    let Some(field) = (code == 0).then(|| Field::try_from(&schema).ok()).flatten() else { return stream };
    if !has_nulls(field.data_type()) {
        return stream;
    }
    let inner = Box::new(Inner { stream, ty: field.data_type().clone() });
    // SAFETY: the callbacks below take `private_data` for the box that it is, until `release` frees it, once.
    unsafe {
        FFI_ArrowArrayStream::new_unchecked(
            Some(schema_of),
            Some(next_of),
            Some(last_error_of),
            Some(release),
            Box::into_raw(inner).cast(),
        )
    }
}

fn has_nulls(ty: &DataType) -> bool {
    *ty == DataType::Null || children(ty).iter().any(|child| has_nulls(child.data_type()))
}

/// The children of an array of this type, in the order of the C data interface.
fn children(ty: &DataType) -> Vec<&Field> {
    match ty {
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::FixedSizeList(child, _)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::Map(child, _) => vec![child],
        _ => Vec::new(),
    }
}

/// Takes the buffers from arrays of nulls.
///
/// # Safety
///
/// `array` is an array of type `ty` by the C data interface, or null.
unsafe fn mend(array: *mut RawArray, ty: &DataType) {
    // SAFETY: by the contract; nobody else has the array yet.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    if *ty == DataType::Null {
        array.n_buffers = 0;
        return;
    }
    let children = children(ty);
    if array.children.is_null() || usize::try_from(array.n_children) != Ok(children.len()) {
        return;
    }
    for (place, child) in children.into_iter().enumerate() {
        // SAFETY: there are as many children as the type has, which was just checked.
        unsafe { mend(*array.children.add(place), child.data_type()) };
    }
}

/// # Safety
///
/// `stream` is one that [`mended`] made, and not released.
unsafe fn inner<'a>(stream: *mut FFI_ArrowArrayStream) -> Option<&'a mut Inner> {
    // SAFETY: its private data are the box, or null after the release.
    unsafe { stream.as_ref().and_then(|stream| stream.private_data().cast::<Inner>().as_mut()) }
}

const INVALID: c_int = 22; // EINVAL

unsafe extern "C" fn schema_of(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: called with the stream that these callbacks belong to.
    let Some(inner) = (unsafe { inner(stream) }) else { return INVALID };
    let Some(get_schema) = inner.stream.get_schema() else { return INVALID };
    // SAFETY: the stream inside is not released before this one is.
    unsafe { get_schema(&raw mut inner.stream, out) }
}

unsafe extern "C" fn next_of(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: as above.
    let Some(inner) = (unsafe { inner(stream) }) else { return INVALID };
    let Some(get_next) = inner.stream.get_next() else { return INVALID };
    // SAFETY: as above.
    let code = unsafe { get_next(&raw mut inner.stream, out) };
    // SAFETY: `out` was filled by the stream, or is empty at its end.
    if code == 0 && unsafe { out.as_ref() }.is_some_and(|array| !array.is_released()) {
        // SAFETY: both structs are the `ArrowArray` of the C data interface, and the array has the type of the stream.
        unsafe { mend(out.cast(), &inner.ty) };
    }
    code
}

unsafe extern "C" fn last_error_of(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: as above.
    let Some(inner) = (unsafe { inner(stream) }) else { return ptr::null() };
    let Some(last_error) = inner.stream.get_last_error() else { return ptr::null() };
    // SAFETY: as above.
    unsafe { last_error(&raw mut inner.stream) }
}

unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: as above; both are taken away, so that no second call finds them.
    unsafe {
        let Some(stream) = stream.as_mut() else { return };
        let inner = stream.set_private_data(ptr::null_mut()).cast::<Inner>();
        stream.set_release(None);
        if !inner.is_null() {
            drop(Box::from_raw(inner));
        }
    }
}
