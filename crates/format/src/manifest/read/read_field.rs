//! Reads the values of an entry's fields by their type: from the bytes to a cell or directly to a builder, from the
//! builder to a column, and from the column to a value on demand.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type};
use arrow_array::{Array, BinaryArray, ListArray, PrimitiveArray, StringArray};

use crate::Result;
use crate::avro::{Cursor, Fault, Schema, Skip};

use crate::manifest::builders::{BytesBuilder, ListBuilder, NumberBuilder, item};
use crate::manifest::metrics::{MetricBuilder, MetricMap, PairOrder, pair_order};
use crate::manifest::presence::{Presence, reduce};
use crate::manifest::{FileContent, Status};

/// How the writer encoded a field.
#[derive(Debug)]
pub(in crate::manifest) struct Encoding {
    presence: Presence,
    /// How to skip the field.
    skip: Skip,
    /// Order of key and value in the pairs of a map.
    pairs: PairOrder,
}

impl Encoding {
    fn new(presence: Presence, schema: &Schema) -> Self {
        Self { presence, skip: Skip::of(schema), pairs: PairOrder::KeyValue }
    }

    /// The encoding of an Avro `int` or `long`.
    fn of_number(schema: &Schema) -> Option<Self> {
        match reduce(schema)? {
            (presence, Schema::Int(_) | Schema::Long(_)) => Some(Self::new(presence, schema)),
            _ => None,
        }
    }

    /// The encoding of Avro `bytes` or a `string`.
    fn of_bytes(schema: &Schema) -> Option<Self> {
        match reduce(schema)? {
            (presence, Schema::String(_) | Schema::Bytes(_)) => Some(Self::new(presence, schema)),
            _ => None,
        }
    }
}

/// Whether to read the lists and the maps of an entry; numbers and texts are always read.
#[derive(Debug, Clone, Copy)]
pub(in crate::manifest) struct Extent {
    pub(super) lists: bool,
    pub(super) metrics: bool,
    /// Limit of elements per list and of pairs per map.
    pub(super) max_items: u64,
}

/// Reads a field with this type of value.
pub(in crate::manifest) trait ReadField: Sized {
    /// Holds the value until the entry ends, since the entry may still be excluded. For lists and maps, which are read
    /// directly to the builder, it only says whether there is one.
    type Cell<'b>: Default;
    type Builder: Default;
    /// The column of [`Entries`](crate::manifest::Entries).
    type Column;
    /// Whether a manifest without the field is refused.
    const REQUIRED: bool = false;
    /// What the writer's schema must have, for errors.
    const EXPECTED: &'static str;

    /// Determines how the field is encoded; `None` if the writer's schema does not fit.
    fn encoding(schema: &Schema, nested_ids: &[i32]) -> Option<Encoding>;

    /// Reads the value of the unfinished row.
    fn read<'b>(
        cell: &mut Self::Cell<'b>,
        builder: &mut Self::Builder,
        cursor: &mut Cursor<'b>,
        encoding: &Encoding,
        extent: Extent,
    ) -> Result<(), Fault>;

    /// Ends the row.
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>);

    /// Discards the unfinished row.
    fn discard_row(_: &mut Self::Builder) {}

    /// Memory of the lists and maps read so far.
    fn nested_bytes(_: &Self::Builder) -> usize {
        0
    }

    fn finish(builder: Self::Builder, field: &str) -> Result<Self::Column>;

    /// Returns the value at a row of the column, which the caller has checked.
    fn value(column: &Self::Column, row: usize) -> Result<Self>;
}

/// A number or a text.
pub(in crate::manifest) trait Scalar: Sized {
    type Cell<'b>: Default;
    type Builder: Default;
    type Column;
    const REQUIRED: bool = false;
    const EXPECTED: &'static str;

    fn encoding(schema: &Schema) -> Option<Encoding>;
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault>;
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>);
    fn finish(builder: Self::Builder, field: &str) -> Result<Self::Column>;
    fn value(column: &Self::Column, row: usize) -> Result<Self>;
}

impl<T: Scalar> ReadField for T {
    type Cell<'b> = T::Cell<'b>;
    type Builder = T::Builder;
    type Column = T::Column;
    const REQUIRED: bool = T::REQUIRED;
    const EXPECTED: &'static str = T::EXPECTED;

    fn encoding(schema: &Schema, _: &[i32]) -> Option<Encoding> {
        T::encoding(schema)
    }

    #[inline]
    fn read<'b>(
        cell: &mut Self::Cell<'b>,
        _: &mut Self::Builder,
        cursor: &mut Cursor<'b>,
        encoding: &Encoding,
        _: Extent,
    ) -> Result<(), Fault> {
        if encoding.presence.is_some(cursor)? {
            *cell = T::decode(cursor)?;
        } else if T::REQUIRED {
            return Err(Fault::Branch);
        }
        Ok(())
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        T::push(builder, cell);
    }

    fn finish(builder: Self::Builder, field: &str) -> Result<Self::Column> {
        T::finish(builder, field)
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        T::value(column, row)
    }
}

/// Implements the parts that scalars with the same builder share.
macro_rules! built {
    (numbers of $arrow:ty) => {
        type Builder = NumberBuilder<$arrow>;
        type Column = PrimitiveArray<$arrow>;
        const EXPECTED: &'static str = "a number";

        fn encoding(schema: &Schema) -> Option<Encoding> {
            Encoding::of_number(schema)
        }

        fn finish(builder: Self::Builder, _: &str) -> Result<Self::Column> {
            Ok(builder.finish())
        }
    };
    (text) => {
        built!(bytes as StringArray, BytesBuilder::finish_text);
    };
    (bytes) => {
        built!(bytes as BinaryArray, |builder: BytesBuilder, _: &str| Ok(builder.finish_binary()));
    };
    (bytes as $column:ty, $finish:expr) => {
        type Builder = BytesBuilder;
        type Column = $column;
        const EXPECTED: &'static str = "text or bytes";

        fn encoding(schema: &Schema) -> Option<Encoding> {
            Encoding::of_bytes(schema)
        }

        fn finish(builder: Self::Builder, field: &str) -> Result<Self::Column> {
            $finish(builder, field)
        }
    };
}

impl Scalar for Status {
    type Cell<'b> = Option<Self>;
    const REQUIRED: bool = true;
    built!(numbers of Int32Type);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        Self::from_id(cursor.int()?).map(Some).map_err(|_| Fault::Range)
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(cell.map(Self::id));
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Self::from_id(column.value(row))
    }
}

impl Scalar for FileContent {
    /// Data if the field is missing, as in v1.
    type Cell<'b> = Self;
    built!(numbers of Int32Type);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        Self::from_id(cursor.int()?).map_err(|_| Fault::Range)
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(Some(cell.id()));
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Self::from_id(column.value(row))
    }
}

impl Scalar for i64 {
    type Cell<'b> = Self;
    const REQUIRED: bool = true;
    built!(numbers of Int64Type);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        cursor.long()
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(Some(cell));
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Ok(column.value(row))
    }
}

impl Scalar for Option<i64> {
    type Cell<'b> = Self;
    built!(numbers of Int64Type);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        cursor.long().map(Some)
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(cell);
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Ok(column.is_valid(row).then(|| column.value(row)))
    }
}

impl Scalar for Option<i32> {
    type Cell<'b> = Self;
    built!(numbers of Int32Type);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        cursor.int().map(Some)
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(cell);
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Ok(column.is_valid(row).then(|| column.value(row)))
    }
}

impl Scalar for String {
    type Cell<'b> = &'b [u8];
    const REQUIRED: bool = true;
    built!(text);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        cursor.bytes()
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(Some(cell));
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Ok(column.value(row).to_owned())
    }
}

impl Scalar for Option<String> {
    type Cell<'b> = Option<&'b [u8]>;
    built!(text);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        cursor.bytes().map(Some)
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(cell);
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Ok(column.is_valid(row).then(|| column.value(row).to_owned()))
    }
}

impl Scalar for Option<Vec<u8>> {
    type Cell<'b> = Option<&'b [u8]>;
    built!(bytes);

    #[inline]
    fn decode<'b>(cursor: &mut Cursor<'b>) -> Result<Self::Cell<'b>, Fault> {
        cursor.bytes().map(Some)
    }

    #[inline]
    fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
        builder.push(cell);
    }

    fn value(column: &Self::Column, row: usize) -> Result<Self> {
        Ok(column.is_valid(row).then(|| column.value(row).to_vec()))
    }
}

/// Lists of numbers.
macro_rules! list {
    ($number:ty, $arrow:ty, $decode:expr) => {
        impl ReadField for Option<Vec<$number>> {
            type Cell<'b> = bool;
            type Builder = ListBuilder<$arrow>;
            type Column = ListArray;
            const EXPECTED: &'static str = "a list of numbers";

            fn encoding(schema: &Schema, _: &[i32]) -> Option<Encoding> {
                match reduce(schema)? {
                    (presence, Schema::Array(array)) if matches!(array.items, Schema::Int(_) | Schema::Long(_)) => {
                        Some(Encoding::new(presence, schema))
                    }
                    _ => None,
                }
            }

            fn read<'b>(
                cell: &mut Self::Cell<'b>,
                builder: &mut Self::Builder,
                cursor: &mut Cursor<'b>,
                encoding: &Encoding,
                extent: Extent,
            ) -> Result<(), Fault> {
                if !extent.lists {
                    return encoding.skip.run(cursor);
                }
                *cell = encoding.presence.is_some(cursor)?;
                let mut room = if *cell { extent.max_items } else { return Ok(()) };
                loop {
                    let (count, _) = cursor.items()?;
                    room = room.checked_sub(count).ok_or(Fault::TooLong)?;
                    if count == 0 {
                        return Ok(());
                    }
                    (0..count).try_for_each(|_| $decode(cursor).map(|value| builder.add(value)))?;
                }
            }

            fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
                builder.end(cell);
            }

            fn discard_row(builder: &mut Self::Builder) {
                builder.discard_row();
            }

            fn nested_bytes(builder: &Self::Builder) -> usize {
                builder.bytes()
            }

            fn finish(builder: Self::Builder, _: &str) -> Result<Self::Column> {
                Ok(builder.finish(item(<$arrow>::DATA_TYPE)))
            }

            fn value(column: &Self::Column, row: usize) -> Result<Self> {
                let list = column.is_valid(row).then(|| column.value(row));
                Ok(list.map(|list| list.as_primitive::<$arrow>().values().to_vec()))
            }
        }
    };
}

list!(i64, Int64Type, Cursor::long);
list!(i32, Int32Type, Cursor::int);

/// Metrics maps.
macro_rules! metrics_map {
    ($value:ty, $is_bound:literal, $of_row:ident) => {
        impl ReadField for Option<Vec<(i32, $value)>> {
            type Cell<'b> = bool;
            type Builder = Option<MetricBuilder>;
            type Column = Option<MetricMap>;
            const EXPECTED: &'static str = "an array of keys and values";

            fn encoding(schema: &Schema, nested_ids: &[i32]) -> Option<Encoding> {
                let (presence, Schema::Array(array)) = reduce(schema)? else { return None };
                let (Schema::Record(record), &[key, value]) = (&array.items, nested_ids) else { return None };
                Some(Encoding { pairs: pair_order(record, key, value, $is_bound)?, ..Encoding::new(presence, schema) })
            }

            fn read<'b>(
                cell: &mut Self::Cell<'b>,
                builder: &mut Self::Builder,
                cursor: &mut Cursor<'b>,
                encoding: &Encoding,
                extent: Extent,
            ) -> Result<(), Fault> {
                if !extent.metrics {
                    return encoding.skip.run(cursor);
                }
                *cell = encoding.presence.is_some(cursor)?;
                match builder {
                    Some(builder) if *cell => builder.read(cursor, &encoding.pairs, extent.max_items),
                    _ => Ok(()),
                }
            }

            fn push(builder: &mut Self::Builder, cell: Self::Cell<'_>) {
                builder.iter_mut().for_each(|builder| builder.end(cell));
            }

            fn discard_row(builder: &mut Self::Builder) {
                builder.iter_mut().for_each(MetricBuilder::discard_row);
            }

            fn nested_bytes(builder: &Self::Builder) -> usize {
                builder.as_ref().map_or(0, MetricBuilder::bytes)
            }

            fn finish(builder: Self::Builder, _: &str) -> Result<Self::Column> {
                Ok(builder.map(MetricBuilder::finish))
            }

            fn value(column: &Self::Column, row: usize) -> Result<Self> {
                Ok(column.as_ref().and_then(|map| map.$of_row(row)))
            }
        }

        impl MetricField for Option<Vec<(i32, $value)>> {
            const IS_BOUND: bool = $is_bound;
        }
    };
}

/// A metrics map.
pub(super) trait MetricField: ReadField {
    /// Whether the values are bounds; else they are counts.
    const IS_BOUND: bool;
}

metrics_map!(i64, false, counts_of);
metrics_map!(Vec<u8>, true, bounds_of);
