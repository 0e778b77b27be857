//! Macros that declare messages, one line per field, and generate the code that reads, writes and shows them.
//!
//! Fields with an unknown number are skipped. Repeated numbers are accepted in packed and unpacked form, whatever the
//! definition says (docs/orc-pitfalls.md, "Repeated fields").

use std::borrow::Cow;
use std::fmt::Debug;

use super::wire::{Value, WireReader, put_bytes, put_tag, put_varint};
use crate::error::{Error, Result};
use crate::limits::{Budget, Limits};

/// A field value to be shown to people and tools.
#[derive(Debug)]
pub enum Shown<'a> {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A floating-point number.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// Text; bytes that are not UTF-8 are replaced.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An enumeration's value, by name.
    Name(&'static str),
    /// A message.
    Message(&'a dyn Message),
    /// A repeated field.
    List(Vec<Shown<'a>>),
}

/// A protobuf message.
pub trait Message: Debug {
    /// Merges one field from the wire into the message; an unknown field number is skipped.
    fn merge(&mut self, number: u32, value: Value<'_>, budget: &mut Budget) -> Result<()>;
    /// Encodes all fields that are set, in the order of the definition.
    fn encode_into(&self, out: &mut Vec<u8>);
    /// The fields that are set, by name.
    fn fields(&self) -> Vec<(&'static str, Shown<'_>)>;

    /// Decodes a message within the memory budget of a section of its length.
    fn decode(bytes: &[u8]) -> Result<Self>
    where
        Self: Sized + Default,
    {
        Self::decode_within(bytes, &mut Limits::default().budget(bytes.len()))
    }

    /// Decodes a message and charges its memory to a budget, because even an empty message takes hundreds of bytes.
    fn decode_within(bytes: &[u8], budget: &mut Budget) -> Result<Self>
    where
        Self: Sized + Default,
    {
        let mut message = Self::default();
        let mut reader = WireReader::new(bytes);
        while !reader.is_empty() {
            let (number, value) = reader.field()?;
            message.merge(number, value, budget)?;
        }
        Ok(message)
    }

    /// Encodes the message.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }
}

fn wrong_type() -> Error {
    Error::corrupt("", "a field has the wrong wire type")
}

/// How one value of a field is encoded on the wire.
pub trait Codec {
    /// The Rust type of the value.
    type Rust: Debug + Clone + PartialEq;
    /// The wire type of a single value.
    const WIRE: u8;
    /// Converts a value from the wire.
    fn read(value: Value<'_>) -> Result<Self::Rust>;
    /// Reads one value of a packed list.
    fn unpack(reader: &mut WireReader<'_>) -> Result<Self::Rust> {
        Self::read(Value::Varint(reader.varint()?))
    }
    /// Encodes the value without its tag.
    fn put(value: &Self::Rust, out: &mut Vec<u8>);
    /// The value for display.
    fn show(value: &Self::Rust) -> Shown<'_>;
}

macro_rules! varint_codec {
    ($(#[$meta:meta])* $name:ident, $rust:ty, $shown:ident, $wide:ty, |$raw:ident| $read:expr, |$value:ident| $write:expr) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}
        impl Codec for $name {
            type Rust = $rust;
            const WIRE: u8 = 0;
            fn read(value: Value<'_>) -> Result<$rust> {
                let Value::Varint($raw) = value else { return Err(wrong_type()) };
                Ok($read)
            }
            fn put(value: &$rust, out: &mut Vec<u8>) {
                let $value = *value;
                put_varint(out, $write);
            }
            fn show(value: &$rust) -> Shown<'_> {
                Shown::$shown(<$wide>::from(*value))
            }
        }
    };
}

varint_codec!(/// `uint64`
    U64, u64, Unsigned, u64, |raw| raw, |value| value);
varint_codec!(/// `uint32`; wider values are cut, as protobuf does.
    U32, u32, Unsigned, u64, |raw| raw as u32, |value| u64::from(value));
varint_codec!(/// `int32`
    I32, i32, Signed, i64, |raw| raw as i32, |value| i64::from(value) as u64);
varint_codec!(/// `sint64`
    S64, i64, Signed, i64, |raw| (raw >> 1) as i64 ^ -((raw & 1) as i64), |value| ((value << 1) ^ (value >> 63)) as u64);
varint_codec!(/// `sint32`
    S32, i32, Signed, i64, |raw| (raw as u32 >> 1) as i32 ^ -((raw & 1) as i32),
    |value| u64::from(((value << 1) ^ (value >> 31)) as u32));
varint_codec!(/// `bool`
    Flag, bool, Bool, bool, |raw| raw != 0, |value| u64::from(value));

/// `double`
#[derive(Debug)]
pub enum F64 {}
impl Codec for F64 {
    type Rust = f64;
    const WIRE: u8 = 1;
    fn read(value: Value<'_>) -> Result<f64> {
        let Value::Fixed64(bits) = value else { return Err(wrong_type()) };
        Ok(f64::from_bits(bits))
    }
    fn unpack(reader: &mut WireReader<'_>) -> Result<f64> {
        Ok(f64::from_bits(reader.fixed64()?))
    }
    fn put(value: &f64, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.to_bits().to_le_bytes());
    }
    fn show(value: &f64) -> Shown<'_> {
        Shown::Double(*value)
    }
}

/// `fixed64`
#[derive(Debug)]
pub enum Word {}
impl Codec for Word {
    type Rust = u64;
    const WIRE: u8 = 1;
    fn read(value: Value<'_>) -> Result<u64> {
        let Value::Fixed64(bits) = value else { return Err(wrong_type()) };
        Ok(bits)
    }
    fn unpack(reader: &mut WireReader<'_>) -> Result<u64> {
        reader.fixed64()
    }
    fn put(value: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.to_le_bytes());
    }
    fn show(value: &u64) -> Shown<'_> {
        Shown::Unsigned(*value)
    }
}

macro_rules! bytes_codec {
    ($(#[$meta:meta])* $name:ident, $rust:ty, |$bytes:ident| $read:expr, |$value:ident| $show:expr) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}
        impl Codec for $name {
            type Rust = $rust;
            const WIRE: u8 = 2;
            fn read(value: Value<'_>) -> Result<$rust> {
                let Value::Bytes($bytes) = value else { return Err(wrong_type()) };
                Ok($read)
            }
            fn unpack(_: &mut WireReader<'_>) -> Result<$rust> {
                Err(wrong_type())
            }
            fn put(value: &$rust, out: &mut Vec<u8>) {
                put_varint(out, value.len() as u64);
                out.extend_from_slice(value.as_ref());
            }
            fn show($value: &$rust) -> Shown<'_> {
                $show
            }
        }
    };
}

bytes_codec!(/// `string`
    Text, String, |bytes| String::from_utf8_lossy(bytes).into_owned(), |value| Shown::Text(Cow::Borrowed(value)));
bytes_codec!(/// `bytes`
    Blob, Vec<u8>, |bytes| bytes.to_vec(), |value| Shown::Bytes(value));
bytes_codec!(/// `string` that may contain other bytes (bounds of columns that are not UTF-8), which are kept unchanged.
    RawText, Vec<u8>, |bytes| bytes.to_vec(), |value| Shown::Text(String::from_utf8_lossy(value)));

/// How often a field can occur in its message.
pub trait Slot {
    /// The Rust type of the field.
    type Field: Debug + Clone + PartialEq + Default;
    /// Merges one value from the wire into the field.
    fn merge(field: &mut Self::Field, value: Value<'_>, budget: &mut Budget) -> Result<()>;
    /// Encodes the field if it is set.
    fn put(field: &Self::Field, number: u32, out: &mut Vec<u8>);
    /// The field for display, if it is set.
    fn show(field: &Self::Field) -> Option<Shown<'_>>;
}

/// `optional`; the last occurrence counts.
#[derive(Debug)]
pub struct Opt<C>(std::marker::PhantomData<C>);
impl<C: Codec> Slot for Opt<C> {
    type Field = Option<C::Rust>;
    fn merge(field: &mut Self::Field, value: Value<'_>, budget: &mut Budget) -> Result<()> {
        charge_bytes(value, budget)?;
        *field = Some(C::read(value)?);
        Ok(())
    }
    fn put(field: &Self::Field, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = field {
            put_tag(out, number, C::WIRE);
            C::put(value, out);
        }
    }
    fn show(field: &Self::Field) -> Option<Shown<'_>> {
        field.as_ref().map(C::show)
    }
}

/// Charges the bytes of texts and blobs, which are copied out of the input.
fn charge_bytes(value: Value<'_>, budget: &mut Budget) -> Result<()> {
    match value {
        Value::Bytes(bytes) => budget.charge(bytes.len()),
        _ => Ok(()),
    }
}

fn merge_list<C: Codec>(field: &mut Vec<C::Rust>, value: Value<'_>, budget: &mut Budget) -> Result<()> {
    match value {
        Value::Bytes(bytes) if C::WIRE != 2 => {
            let mut reader = WireReader::new(bytes);
            while !reader.is_empty() {
                budget.charge(size_of::<C::Rust>())?;
                field.push(C::unpack(&mut reader)?);
            }
        }
        value => {
            charge_bytes(value, budget)?;
            budget.charge(size_of::<C::Rust>())?;
            field.push(C::read(value)?);
        }
    }
    Ok(())
}

fn show_list<C: Codec>(field: &[C::Rust]) -> Option<Shown<'_>> {
    (!field.is_empty()).then(|| Shown::List(field.iter().map(C::show).collect()))
}

/// `repeated`, written unpacked.
#[derive(Debug)]
pub struct Rep<C>(std::marker::PhantomData<C>);
impl<C: Codec> Slot for Rep<C> {
    type Field = Vec<C::Rust>;
    fn merge(field: &mut Self::Field, value: Value<'_>, budget: &mut Budget) -> Result<()> {
        merge_list::<C>(field, value, budget)
    }
    fn put(field: &Self::Field, number: u32, out: &mut Vec<u8>) {
        for value in field {
            put_tag(out, number, C::WIRE);
            C::put(value, out);
        }
    }
    fn show(field: &Self::Field) -> Option<Shown<'_>> {
        show_list::<C>(field)
    }
}

/// `repeated`, written packed.
#[derive(Debug)]
pub struct Packed<C>(std::marker::PhantomData<C>);
impl<C: Codec> Slot for Packed<C> {
    type Field = Vec<C::Rust>;
    fn merge(field: &mut Self::Field, value: Value<'_>, budget: &mut Budget) -> Result<()> {
        merge_list::<C>(field, value, budget)
    }
    fn put(field: &Self::Field, number: u32, out: &mut Vec<u8>) {
        if !field.is_empty() {
            let mut packed = Vec::new();
            field.iter().for_each(|value| C::put(value, &mut packed));
            put_bytes(out, number, &packed);
        }
    }
    fn show(field: &Self::Field) -> Option<Shown<'_>> {
        show_list::<C>(field)
    }
}

/// An optional message. It is boxed, because most are absent and hostile input can list many.
#[derive(Debug)]
pub struct Sub<M>(std::marker::PhantomData<M>);
impl<M: Message + Default + Clone + PartialEq> Slot for Sub<M> {
    type Field = Option<Box<M>>;
    fn merge(field: &mut Self::Field, value: Value<'_>, budget: &mut Budget) -> Result<()> {
        let Value::Bytes(bytes) = value else { return Err(wrong_type()) };
        budget.charge(size_of::<M>())?;
        *field = Some(Box::new(M::decode_within(bytes, budget)?));
        Ok(())
    }
    fn put(field: &Self::Field, number: u32, out: &mut Vec<u8>) {
        if let Some(message) = field {
            put_bytes(out, number, &message.encode());
        }
    }
    fn show(field: &Self::Field) -> Option<Shown<'_>> {
        field.as_deref().map(|message| Shown::Message(message))
    }
}

/// A list of messages.
#[derive(Debug)]
pub struct Subs<M>(std::marker::PhantomData<M>);
impl<M: Message + Default + Clone + PartialEq> Slot for Subs<M> {
    type Field = Vec<M>;
    fn merge(field: &mut Self::Field, value: Value<'_>, budget: &mut Budget) -> Result<()> {
        let Value::Bytes(bytes) = value else { return Err(wrong_type()) };
        budget.charge(size_of::<M>())?;
        field.push(M::decode_within(bytes, budget)?);
        Ok(())
    }
    fn put(field: &Self::Field, number: u32, out: &mut Vec<u8>) {
        for message in field {
            put_bytes(out, number, &message.encode());
        }
    }
    fn show(field: &Self::Field) -> Option<Shown<'_>> {
        (!field.is_empty()).then(|| Shown::List(field.iter().map(|message| Shown::Message(message)).collect()))
    }
}

/// Declares messages: `NUMBER name: Slot<Codec>`, in the order of the definition.
macro_rules! messages {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $number:literal $field:ident: $slot:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name { $($(#[$field_meta])* pub $field: <$slot as $crate::proto::message::Slot>::Field,)* }

        impl $crate::proto::Message for $name {
            fn merge(
                &mut self,
                number: u32,
                value: $crate::proto::wire::Value<'_>,
                budget: &mut $crate::limits::Budget,
            ) -> $crate::error::Result<()> {
                use $crate::proto::message::Slot;
                match number {
                    $($number => <$slot>::merge(&mut self.$field, value, budget)
                        .map_err(|error| error.within(concat!(stringify!($name), ".", stringify!($field)))),)*
                    _ => Ok(()),
                }
            }
            fn encode_into(&self, out: &mut Vec<u8>) {
                use $crate::proto::message::Slot;
                $(<$slot>::put(&self.$field, $number, out);)*
            }
            fn fields(&self) -> Vec<(&'static str, $crate::proto::Shown<'_>)> {
                use $crate::proto::message::Slot;
                let mut shown = Vec::new();
                $(if let Some(value) = <$slot>::show(&self.$field) { shown.push((stringify!($field), value)); })*
                shown
            }
        }
    )*};
}

/// Declares open enumerations: a number without a name is kept, and rejected only where the value is needed.
macro_rules! enumerations {
    ($($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $number:literal $value:ident $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$value_meta])* $value,)*
            /// A number that this version of the format does not name.
            Unknown(u32),
        }

        impl $name {
            /// The value of a number.
            pub fn from_number(number: u32) -> Self {
                match number { $($number => Self::$value,)* other => Self::Unknown(other) }
            }
            /// The number of the value.
            pub fn number(self) -> u32 {
                match self { $(Self::$value => $number,)* Self::Unknown(number) => number }
            }
            /// The name in the definition.
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $text,)* Self::Unknown(_) => "UNKNOWN" }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_number(0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { Self::Unknown(number) => write!(f, "{} {number}", stringify!($name)), known => f.write_str(known.name()) }
            }
        }

        impl $crate::proto::message::Codec for $name {
            type Rust = $name;
            const WIRE: u8 = 0;
            fn read(value: $crate::proto::wire::Value<'_>) -> $crate::error::Result<$name> {
                Ok(Self::from_number($crate::proto::message::U32::read(value)?))
            }
            fn put(value: &$name, out: &mut Vec<u8>) {
                $crate::proto::wire::put_varint(out, u64::from(value.number()));
            }
            fn show(value: &$name) -> $crate::proto::Shown<'_> {
                $crate::proto::Shown::Name(value.name())
            }
        }
    )*};
}

pub(super) use {enumerations, messages};
