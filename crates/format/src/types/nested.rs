//! Types and their fields ("Nested Types", "Semi-structured Types").

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::primitive::PrimitiveType;
use crate::value::Value;

/// Any type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A primitive type.
    Primitive(PrimitiveType),
    /// v3: semi-structured value, neither primitive nor nested.
    Variant,
    /// Named fields.
    Struct(Arc<StructType>),
    /// Elements of one type.
    List(Arc<ListType>),
    /// Key-value pairs.
    Map(Arc<MapType>),
}

/// A field of a struct, the element of a list, or the key or value of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Unique within the schema.
    pub id: i32,
    /// Name; in lists and maps `element`, `key` or `value`.
    pub name: String,
    /// Whether nulls are excluded.
    pub required: bool,
    /// The type.
    pub ty: Type,
    /// A comment.
    pub doc: Option<String>,
    /// v3: value in rows of files that were written without the column.
    pub initial_default: Option<Value>,
    /// v3: value that a writer uses if it gets none.
    pub write_default: Option<Value>,
}

/// A struct type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StructType {
    /// The fields, in order.
    pub fields: Vec<Field>,
}

/// A list type; `element.name` is `element`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListType {
    /// The element.
    pub element: Field,
}

/// A map type; the names are `key` and `value`, and the key is required.
#[derive(Debug, Clone, PartialEq)]
pub struct MapType {
    /// The key.
    pub key: Field,
    /// The value.
    pub value: Field,
}

impl Field {
    /// Default of a struct, `{}` in JSON: the defaults of its fields apply.
    pub(crate) const OF_FIELDS: Value = Value::Struct(Vec::new());

    /// A required field without doc or defaults.
    pub fn required(id: i32, name: impl Into<String>, ty: impl Into<Type>) -> Self {
        Self { required: true, ..Self::optional(id, name, ty) }
    }

    /// An optional field without doc or defaults.
    pub fn optional(id: i32, name: impl Into<String>, ty: impl Into<Type>) -> Self {
        Self {
            id,
            name: name.into(),
            required: false,
            ty: ty.into(),
            doc: None,
            initial_default: None,
            write_default: None,
        }
    }

    /// Adds a comment to the field.
    #[must_use]
    pub fn with_doc(self, doc: impl Into<String>) -> Self {
        Self { doc: Some(doc.into()), ..self }
    }
}

impl StructType {
    /// A struct with these fields.
    pub fn new(fields: Vec<Field>) -> Self {
        Self { fields }
    }

    /// The direct field with this id.
    pub fn field(&self, id: i32) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// The direct field with exactly this name.
    pub fn field_named(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Index of a struct's direct fields by name.
#[derive(Debug)]
pub(crate) struct FieldsByName<'a> {
    case_sensitive: bool,
    /// `None` for ambiguous names.
    fields: HashMap<Cow<'a, str>, Option<&'a Field>>,
}

impl<'a> FieldsByName<'a> {
    pub(crate) fn new(ty: &'a StructType, case_sensitive: bool) -> Self {
        let mut by_name = Self { case_sensitive, fields: HashMap::with_capacity(ty.fields.len()) };
        for field in &ty.fields {
            let name = by_name.cased(&field.name);
            by_name.fields.entry(name).and_modify(|one| *one = None).or_insert(Some(field));
        }
        by_name
    }

    /// Returns the field with this name; an error if the name is ambiguous.
    pub(crate) fn get(&self, name: &str) -> Result<Option<&'a Field>> {
        match self.fields.get(&self.cased(name)) {
            None => Ok(None),
            Some(Some(field)) => Ok(Some(field)),
            Some(None) => Err(Error::invalid(format!("more than one field is named {name:?}"))),
        }
    }

    fn cased<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.case_sensitive { Cow::Borrowed(name) } else { Cow::Owned(name.to_lowercase()) }
    }
}

impl ListType {
    /// A list whose elements may be null.
    pub fn optional(id: i32, ty: impl Into<Type>) -> Self {
        Self { element: Field::optional(id, "element", ty) }
    }

    /// A list without null elements.
    pub fn required(id: i32, ty: impl Into<Type>) -> Self {
        Self { element: Field::required(id, "element", ty) }
    }
}

impl MapType {
    /// A map whose values may be null.
    pub fn optional(key_id: i32, key: impl Into<Type>, value_id: i32, value: impl Into<Type>) -> Self {
        Self { key: Field::required(key_id, "key", key), value: Field::optional(value_id, "value", value) }
    }

    /// A map without null values.
    pub fn required(key_id: i32, key: impl Into<Type>, value_id: i32, value: impl Into<Type>) -> Self {
        Self { key: Field::required(key_id, "key", key), value: Field::required(value_id, "value", value) }
    }
}

impl From<PrimitiveType> for Type {
    fn from(ty: PrimitiveType) -> Self {
        Self::Primitive(ty)
    }
}

impl From<StructType> for Type {
    fn from(ty: StructType) -> Self {
        Self::Struct(Arc::new(ty))
    }
}

impl From<ListType> for Type {
    fn from(ty: ListType) -> Self {
        Self::List(Arc::new(ty))
    }
}

impl From<MapType> for Type {
    fn from(ty: MapType) -> Self {
        Self::Map(Arc::new(ty))
    }
}

impl Type {
    /// Parses the name of a type that is not nested: `long`, `decimal(9, 2)`, `variant`, …
    pub fn parse(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("variant") {
            return Ok(Self::Variant);
        }
        PrimitiveType::parse(text).map(Self::Primitive)
    }

    /// Like [`Type::parse`], but keeps an unknown name, of a later specification, as [`PrimitiveType::Unrecognized`].
    pub fn parse_lenient(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("variant") {
            return Ok(Self::Variant);
        }
        PrimitiveType::parse_lenient(text).map(Self::Primitive)
    }

    /// The primitive type, if it is one.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(ty) => Some(ty),
            _ => None,
        }
    }

    /// The struct type, if it is one.
    pub fn as_struct(&self) -> Option<&Arc<StructType>> {
        match self {
            Self::Struct(ty) => Some(ty),
            _ => None,
        }
    }

    /// Whether it is a struct, a list or a map.
    pub fn is_nested(&self) -> bool {
        matches!(self, Self::Struct(_) | Self::List(_) | Self::Map(_))
    }

    /// Returns the same kind of type with other nested fields; for a list or map, as many as [`Type::children`].
    pub(crate) fn with_children(&self, fields: Vec<Field>) -> Self {
        let mut children = fields.into_iter();
        match self {
            Self::Primitive(_) | Self::Variant => self.clone(),
            Self::Struct(_) => StructType { fields: children.collect() }.into(),
            Self::List(ty) => ListType { element: children.next().unwrap_or_else(|| ty.element.clone()) }.into(),
            Self::Map(ty) => MapType {
                key: children.next().unwrap_or_else(|| ty.key.clone()),
                value: children.next().unwrap_or_else(|| ty.value.clone()),
            }
            .into(),
        }
    }

    /// The direct children: the fields of a struct, the element of a list, the key and value of a map; empty for other
    /// types.
    pub(crate) fn children(&self) -> Children<'_> {
        match self {
            Self::Primitive(_) | Self::Variant => Children { first: &[], second: None },
            Self::Struct(ty) => Children::of_struct(ty),
            Self::List(ty) => Children { first: std::slice::from_ref(&ty.element), second: None },
            Self::Map(ty) => Children { first: std::slice::from_ref(&ty.key), second: Some(&ty.value) },
        }
    }
}

/// The direct children of a type, in order.
#[derive(Debug, Clone)]
pub(crate) struct Children<'a> {
    first: &'a [Field],
    second: Option<&'a Field>,
}

impl<'a> Children<'a> {
    /// The fields of a struct.
    pub(crate) fn of_struct(ty: &'a StructType) -> Self {
        Self { first: &ty.fields, second: None }
    }

    /// Returns the child at an index.
    pub(crate) fn get(&self, position: usize) -> Option<&'a Field> {
        self.first.get(position).or_else(|| self.second.filter(|_| position == self.first.len()))
    }
}

impl<'a> IntoIterator for Children<'a> {
    type Item = &'a Field;
    type IntoIter = std::iter::Chain<std::slice::Iter<'a, Field>, std::option::IntoIter<&'a Field>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.iter().chain(self.second)
    }
}

/// Refuses fields without a name, at any depth, in a new definition. The Java library accepts them in a schema, but
/// then can neither write nor read data files. `outer` is the full name of the parent.
pub(crate) fn check_named(fields: Children<'_>, outer: Option<&str>) -> Result<()> {
    for (position, field) in fields.into_iter().enumerate() {
        if field.name.is_empty() {
            return Err(Error::invalid(match outer {
                None => format!("the column at position {position} has an empty name"),
                Some(outer) => format!("the field at position {position} of {outer:?} has an empty name"),
            }));
        }
        check_text_of_name(&field.name)?;
        let full = outer.map_or_else(|| field.name.clone(), |outer| format!("{outer}.{}", field.name));
        check_named(field.ty.children(), Some(&full))?;
    }
    Ok(())
}

/// Refuses a name that Arrow's C data interface cannot pass, because the name would end at its first NUL.
pub(crate) fn check_text_of_name(name: &str) -> Result<()> {
    match name.contains('\0') {
        true => Err(Error::invalid(format!("the name {name:?} of a column holds a NUL, which Arrow cannot carry"))),
        false => Ok(()),
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let presence = if self.required { "required" } else { "optional" };
        write!(f, "{}: {}: {presence} {}", self.id, self.name, self.ty)?;
        match &self.doc {
            Some(doc) => write!(f, " ({doc})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for StructType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct<")?;
        for (position, field) in self.fields.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{field}")?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(ty) => ty.fmt(f),
            Self::Variant => f.write_str("variant"),
            Self::Struct(ty) => ty.fmt(f),
            Self::List(ty) => write!(f, "list<{}>", ty.element.ty),
            Self::Map(ty) => write!(f, "map<{}, {}>", ty.key.ty, ty.value.ty),
        }
    }
}

pub(super) fn too_deep(limits: &Limits) -> Error {
    Error::unsupported(format!("types that are nested deeper than {} levels are not supported", limits.type_depth))
}
