//! Writes the values of an entry's fields by their type.

use crate::avro::Encoder;
use crate::manifest::fields::EntryField;
use crate::manifest::{FileContent, Status};
use crate::types::{Field, ListType, MapType, PrimitiveType as P, Type};

/// Writes a field with this type of value.
pub(super) trait WriteField {
    /// Whether the written schema requires the field.
    const REQUIRED: bool;

    /// The type in the written schema, with the ids of its elements, or of its keys and values.
    fn written_type(nested_ids: &[i32]) -> Type;

    fn write(&self, out: &mut Encoder);
}

/// Implements a value that is never null.
macro_rules! required {
    ($value:ty, $ty:expr, |$out:ident, $written:ident| $write:expr) => {
        impl WriteField for $value {
            const REQUIRED: bool = true;

            fn written_type(_: &[i32]) -> Type {
                $ty.into()
            }

            fn write(&self, $out: &mut Encoder) {
                let $written = self;
                $write
            }
        }
    };
}

/// Implements a value that may be null.
macro_rules! optional {
    ($value:ty, |$nested:ident| $ty:expr, |$out:ident, $written:ident| $write:expr) => {
        impl WriteField for Option<$value> {
            const REQUIRED: bool = false;

            fn written_type($nested: &[i32]) -> Type {
                $ty.into()
            }

            fn write(&self, $out: &mut Encoder) {
                $out.some(self.is_some());
                if let Some($written) = self {
                    $write
                }
            }
        }
    };
}

required!(Status, P::Int, |out, status| out.int(status.id()));
required!(FileContent, P::Int, |out, content| out.int(content.id()));
required!(i64, P::Long, |out, number| out.long(*number));
required!(String, P::String, |out, text| out.bytes(text.as_bytes()));

optional!(i64, |_ids| P::Long, |out, number| out.long(*number));
optional!(i32, |_ids| P::Int, |out, number| out.int(*number));
optional!(String, |_ids| P::String, |out, text| out.bytes(text.as_bytes()));
optional!(Vec<u8>, |_ids| P::Binary, |out, bytes| out.bytes(bytes));
optional!(Vec<i64>, |ids| list(ids, P::Long), |out, list| write_items(out, list, |out, item| out.long(*item)));
optional!(Vec<i32>, |ids| list(ids, P::Int), |out, list| write_items(out, list, |out, item| out.int(*item)));
optional!(Vec<(i32, i64)>, |ids| map(ids, P::Long), |out, map| write_items(out, map, |out, (key, count)| {
    out.int(*key);
    out.long(*count);
}));
optional!(Vec<(i32, Vec<u8>)>, |ids| map(ids, P::Binary), |out, map| write_items(out, map, |out, (key, bound)| {
    out.int(*key);
    out.bytes(bound);
}));

fn list(ids: &[i32], element: P) -> ListType {
    ListType::required(ids.first().copied().unwrap_or_default(), element)
}

fn map(ids: &[i32], value: P) -> MapType {
    let id = |at: usize| ids.get(at).copied().unwrap_or_default();
    MapType::required(id(0), P::Int, id(1), value)
}

fn write_items<T>(out: &mut Encoder, items: &[T], write: impl Fn(&mut Encoder, &T)) {
    if !items.is_empty() {
        out.length(items.len());
        items.iter().for_each(|item| write(out, item));
    }
    out.length(0);
}

macro_rules! declared {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        impl EntryField {
            /// Whether the written schema requires the field.
            pub(in crate::manifest) fn is_written_always(self) -> bool {
                match self { $(Self::$name => <$value as WriteField>::REQUIRED,)* }
            }

            /// The field in the written schema.
            pub(in crate::manifest) fn written(self) -> Field {
                let ty = match self { $(Self::$name => <$value as WriteField>::written_type(self.nested_ids()),)* };
                let field = Field { required: self.is_written_always(), ..Field::required(self.id(), self.name(), ty) };
                if self.text().is_empty() { field } else { field.with_doc(self.text()) }
            }
        }
    };
}

entry_fields!(all, declared);
