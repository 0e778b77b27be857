//! Data masks ("Data Masks"): the values that readers without keys see in place of encrypted columns.

mod leaf;
mod redact;

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray, UnionArray, new_null_array,
};
use arrow_schema::{DataType, Field, FieldRef, UnionFields};
use sha2::{Digest, Sha256};

pub(crate) use redact::Redact;

use leaf::{bytes, unexpected};

use crate::error::{Error, Result};
use crate::types::{Kind, TypeDescription};

/// How the values of an encrypted column are hidden from readers without its key ("Data Masks").
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Mask {
    /// All values are null.
    #[default]
    Nullify,
    /// Characters and digits are replaced by others of their class, and parts of dates and times by fixed values.
    Redact(Box<Redact>),
    /// Text is replaced by its SHA-256 digest in upper-case hex, binary values by the 32 bytes of the digest; all other
    /// values are null.
    Sha256,
}

impl Mask {
    /// The mask with this name, with parameters as in the footer.
    ///
    /// # Errors
    ///
    /// Unknown names, parameters that the mask does not have.
    pub fn named(name: &str, parameters: &[String]) -> Result<Self> {
        match name {
            "nullify" if parameters.is_empty() => Ok(Self::Nullify),
            "sha256" if parameters.is_empty() => Ok(Self::Sha256),
            "redact" => Ok(Self::Redact(Box::new(Redact::new(parameters)?))),
            "nullify" | "sha256" => Err(Error::invalid(format!("the mask {name} has no parameters"))),
            _ => Err(Error::unsupported(format!("unknown mask {name}"))),
        }
    }

    /// The name in the footer.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nullify => "nullify",
            Self::Redact(_) => "redact",
            Self::Sha256 => "sha256",
        }
    }

    /// The parameters in the footer.
    pub fn parameters(&self) -> &[String] {
        match self {
            Self::Redact(redact) => redact.parameters(),
            Self::Nullify | Self::Sha256 => &[],
        }
    }

    /// Masks the values of a column. The Arrow type of leaves may change, but not their ORC type.
    pub fn apply(&self, node: &TypeDescription, array: &ArrayRef) -> Result<ArrayRef> {
        if *self == Self::Nullify {
            // `new_null_array` would make nulls of the union's first variant instead of null unions.
            let whole = if node.kind == Kind::Union { &DataType::Null } else { array.data_type() };
            return Ok(new_null_array(whole, array.len()));
        }
        let child = |index: usize, array: &ArrayRef| match node.children.get(index) {
            Some(child) => self.apply(child, array),
            None => Err(unexpected(node, array)),
        };
        match node.kind {
            Kind::Struct => {
                let own = array.as_struct_opt().ok_or_else(|| unexpected(node, array))?;
                let columns: Vec<_> =
                    own.columns().iter().enumerate().map(|(at, column)| child(at, column)).collect::<Result<_>>()?;
                let fields: Vec<_> =
                    own.fields().iter().zip(&columns).map(|(field, column)| retyped(field, column)).collect();
                let nulls = own.nulls().cloned();
                Ok(Arc::new(StructArray::try_new_with_length(fields.into(), columns, nulls, own.len())?))
            }
            Kind::List => lists(node, array, |values| child(0, values)),
            Kind::Map => {
                let own = array.as_map_opt().ok_or_else(|| unexpected(node, array))?;
                let (keys, values) = (child(0, own.keys())?, child(1, own.values())?);
                if keys.null_count() > 0 {
                    let message = format!("the mask {} would make keys of column {} null", self.name(), node.column);
                    return Err(Error::invalid(message));
                }
                let (field, offsets, entries, nulls, ordered) = own.clone().into_parts();
                let fields: Vec<_> = entries
                    .fields()
                    .iter()
                    .zip([&keys, &values])
                    .zip([false, true])
                    .map(|((field, column), nullable)| {
                        Arc::new(
                            field.as_ref().clone().with_data_type(column.data_type().clone()).with_nullable(nullable),
                        )
                    })
                    .collect();
                let entries = StructArray::try_new(fields.into(), vec![keys, values], None)?;
                let field = Arc::new(field.as_ref().clone().with_data_type(entries.data_type().clone()));
                Ok(Arc::new(MapArray::try_new(field, offsets, entries, nulls, ordered)?))
            }
            Kind::Union => {
                let own = array.as_union_opt().ok_or_else(|| unexpected(node, array))?;
                let (fields, ids, offsets, columns) = own.clone().into_parts();
                // The variant of null unions is not a child of the ORC type.
                let mut at = 0;
                let each = |column: &ArrayRef| {
                    let is_null = *column.data_type() == DataType::Null;
                    at += usize::from(!is_null);
                    if is_null { Ok(Arc::clone(column)) } else { child(at - 1, column) }
                };
                let columns: Vec<_> = columns.iter().map(each).collect::<Result<_>>()?;
                let fields: UnionFields =
                    fields.iter().zip(&columns).map(|((id, field), column)| (id, retyped(field, column))).collect();
                Ok(Arc::new(UnionArray::try_new(fields, ids, offsets, columns)?))
            }
            _ => {
                let plain = match array.as_any_dictionary_opt() {
                    Some(dictionary) => arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?,
                    None => Arc::clone(array),
                };
                match self {
                    Self::Redact(redact) => redact.leaf(node, &plain),
                    Self::Sha256 | Self::Nullify => sha256(node, &plain),
                }
            }
        }
    }
}

/// The field of a masked child: nullable, with the type of the masked values.
fn retyped(field: &Field, array: &ArrayRef) -> FieldRef {
    Arc::new(field.clone().with_data_type(array.data_type().clone()).with_nullable(true))
}

/// Masks the elements of lists of any Arrow list type.
fn lists(node: &TypeDescription, array: &ArrayRef, mask: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => {
            let (field, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = mask(&values)?;
            Ok(Arc::new(ListArray::try_new(retyped(&field, &values), offsets, values, nulls)?))
        }
        DataType::LargeList(_) => {
            let (field, offsets, values, nulls) = array.as_list::<i64>().clone().into_parts();
            let values = mask(&values)?;
            Ok(Arc::new(LargeListArray::try_new(retyped(&field, &values), offsets, values, nulls)?))
        }
        DataType::FixedSizeList(..) => {
            let (field, size, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            let values = mask(&values)?;
            Ok(Arc::new(FixedSizeListArray::try_new(retyped(&field, &values), size, values, nulls)?))
        }
        _ => Err(unexpected(node, array)),
    }
}

/// The digests of text, in hex, or of binary values. The column's writer truncates or pads the hex for `char` and
/// `varchar`.
fn sha256(node: &TypeDescription, array: &ArrayRef) -> Result<ArrayRef> {
    match node.kind {
        Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => {
            let mut out = StringBuilder::with_capacity(array.len(), array.len() * 64);
            for value in bytes(node, array)? {
                out.append_option(value.map(|value| {
                    Sha256::digest(value)
                        .iter()
                        .fold(String::with_capacity(64), |text, byte| format!("{text}{byte:02X}"))
                }));
            }
            Ok(Arc::new(out.finish()))
        }
        Kind::Binary => {
            let mut out = BinaryBuilder::with_capacity(array.len(), array.len() * 32);
            for value in bytes(node, array)? {
                out.append_option(value.map(Sha256::digest));
            }
            Ok(Arc::new(out.finish()))
        }
        _ => Ok(new_null_array(array.data_type(), array.len())),
    }
}
