//! Declares messages: each member once, with its type and name, from which reading and writing are generated.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::json::{self, Object, StringMap, Writer, write_strings};
use crate::limits::Limits;
use crate::manifest::FileFormat;
use crate::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement};
use crate::spec::{PartitionSpec, SortOrder};
use crate::types::Schema;
use crate::{Error, Result};

/// The JSON form of a value in a message.
pub(super) trait Form: Sized {
    /// Reads the JSON form.
    fn read(json: &Json) -> Result<Self>;

    /// Writes the JSON form.
    fn write(&self) -> Json;
}

/// A member of a message. It is required, unless its type is an `Option`; for an `Option`, `null` means missing.
pub(super) trait Member: Sized {
    /// Reads the member from an object.
    fn read_member(object: Object<'_>, name: &str) -> Result<Self>;

    /// Writes the member to an object.
    fn write_member(&self, object: &mut Writer, name: &str);
}

impl<T: Form> Member for T {
    fn read_member(object: Object<'_>, name: &str) -> Result<Self> {
        object.field(name, T::read)
    }

    fn write_member(&self, object: &mut Writer, name: &str) {
        object.put(name, self.write());
    }
}

impl<T: Form> Member for Option<T> {
    fn read_member(object: Object<'_>, name: &str) -> Result<Self> {
        object.nullable(name, T::read)
    }

    fn write_member(&self, object: &mut Writer, name: &str) {
        object.put_some(name, self.as_ref().map(T::write));
    }
}

/// Declares messages. `or` gives the value of a member that is missing or `null`; such members are always written.
macro_rules! messages {
    ($(
        $(#[$about:meta])*
        $name:ident, $what:literal {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $member:literal $(or $default:expr)?;)*
        }
    )+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $name {
            /// Reads the JSON form. Unknown members are ignored.
            ///
            /// # Errors
            /// A missing required member, or a value of another kind, with its place.
            pub fn from_json(json: &serde_json::Value) -> $crate::Result<Self> {
                $crate::rest::form::Form::read(json)
            }

            /// Writes the JSON form.
            pub fn to_json(&self) -> serde_json::Value {
                $crate::rest::form::Form::write(self)
            }
        }

        impl $crate::rest::form::Form for $name {
            fn read(json: &serde_json::Value) -> $crate::Result<Self> {
                let object = $crate::json::Object::new(json, $what)?;
                Ok(Self { $($field: $crate::rest::form::read_member!(object, $member $(, $default)?),)* })
            }

            fn write(&self) -> serde_json::Value {
                let mut object = $crate::json::Writer::default();
                $($crate::rest::form::Member::write_member(&self.$field, &mut object, $member);)*
                object.finish()
            }
        }
    )+};
}

macro_rules! read_member {
    ($object:ident, $member:literal) => {
        $crate::rest::form::Member::read_member($object, $member)?
    };
    ($object:ident, $member:literal, $default:expr) => {{
        let read: Option<_> = $crate::rest::form::Member::read_member($object, $member)?;
        read.unwrap_or_else(|| $default)
    }};
}

/// Declares an enumeration with the words that it is written as. They are read in any case.
macro_rules! words {
    ($(#[$about:meta])* $name:ident, $what:literal { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// The word for the value.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::rest::form::Form for $name {
            fn read(json: &serde_json::Value) -> $crate::Result<Self> {
                let word = $crate::json::string(json)?;
                $(if word.eq_ignore_ascii_case($word) {
                    return Ok(Self::$variant);
                })+
                Err($crate::Error::corrupt("", format!("invalid {}: {word:?}", $what)))
            }

            fn write(&self) -> serde_json::Value {
                self.name().into()
            }
        }
    };
}

pub(super) use {messages, read_member, words};

impl Form for String {
    fn read(json: &Json) -> Result<Self> {
        json::string(json)
    }

    fn write(&self) -> Json {
        self.as_str().into()
    }
}

impl Form for i32 {
    fn read(json: &Json) -> Result<Self> {
        json::int(json)
    }

    fn write(&self) -> Json {
        (*self).into()
    }
}

impl Form for i64 {
    fn read(json: &Json) -> Result<Self> {
        json::long(json)
    }

    fn write(&self) -> Json {
        (*self).into()
    }
}

impl Form for bool {
    fn read(json: &Json) -> Result<Self> {
        let expected = || Error::corrupt("", format!("expected true or false, found {}", json::brief(json)));
        json.as_bool().ok_or_else(expected)
    }

    fn write(&self) -> Json {
        (*self).into()
    }
}

/// JSON that only the caller can interpret.
impl Form for Json {
    fn read(json: &Json) -> Result<Self> {
        Ok(json.clone())
    }

    fn write(&self) -> Json {
        self.clone()
    }
}

impl Form for StringMap {
    fn read(json: &Json) -> Result<Self> {
        json::string_map(json)
    }

    fn write(&self) -> Json {
        write_strings(self)
    }
}

impl<T: Form> Form for Vec<T> {
    fn read(json: &Json) -> Result<Self> {
        json::list(json, T::read)
    }

    fn write(&self) -> Json {
        self.iter().map(T::write).collect()
    }
}

impl<T: Form> Form for Arc<T> {
    fn read(json: &Json) -> Result<Self> {
        T::read(json).map(Self::new)
    }

    fn write(&self) -> Json {
        T::write(self)
    }
}

impl Form for TableMetadata {
    fn read(json: &Json) -> Result<Self> {
        Self::from_json_value(json, &Limits::default())
    }

    fn write(&self) -> Json {
        self.to_json_value()
    }
}

impl Form for FileFormat {
    fn read(json: &Json) -> Result<Self> {
        let name = json::string(json)?;
        Self::from_name(&name).ok_or_else(|| Error::corrupt("", format!("invalid file format: {name:?}")))
    }

    fn write(&self) -> Json {
        self.extension().into()
    }
}

/// Implements [`Form`] for types that already have a JSON form.
macro_rules! forms {
    ($($type:ty)+) => {$(
        impl Form for $type {
            fn read(json: &Json) -> Result<Self> {
                Self::from_json(json)
            }

            fn write(&self) -> Json {
                self.to_json()
            }
        }
    )+};
}

/// Requests may omit the spec id, since the server assigns it.
impl Form for PartitionSpec {
    fn read(json: &Json) -> Result<Self> {
        let object = Object::new(json, "a partition spec")?;
        match object.get("spec-id") {
            Some(_) => Self::from_json(json),
            None => object.field("fields", |fields| Self::from_json_fields(0, fields)),
        }
    }

    fn write(&self) -> Json {
        self.to_json()
    }
}

forms! { Schema SortOrder MetadataUpdate UpdateRequirement }
