//! The type tree ("Type Information"): ids in pre-order, names, attributes; its forms as text and in Arrow.

mod arrow;
mod text;

pub use arrow::{ArrowOptions, OutOfRange, StringForm, TYPE_KEY, TimeUnit};

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::proto::{self, EdgeAlgorithm, TypeKind};

/// The precision of decimals that have none (files of Hive 0.11 and 0.12).
const DEFAULT_PRECISION: u8 = 38;
/// The scale of decimals that have no precision.
const DEFAULT_SCALE: u8 = 10;
/// Decimal digits that fit into 128 bits.
pub(crate) const MAX_PRECISION: u8 = 38;
/// Decimal digits that fit into 64 bits. In file version 2, decimals with up to this precision are plain integers.
pub(crate) const MAX_SHORT_PRECISION: u8 = 18;

/// The kind of a type, with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    String,
    Binary,
    Timestamp,
    TimestampInstant,
    List,
    Map,
    Struct,
    Union,
    Decimal { precision: u8, scale: u8 },
    Date,
    Varchar { length: u32 },
    Char { length: u32 },
    Geometry { crs: Option<String> },
    Geography { crs: Option<String>, algorithm: Option<EdgeAlgorithm> },
}

/// A type and its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDescription {
    /// The column id: the position in a pre-order walk of the tree, from 0.
    pub column: u32,
    /// The last id of the subtree plus one.
    pub end: u32,
    /// The kind of type, with its parameters.
    pub kind: Kind,
    /// Names of a struct's fields, as many as children; empty for other kinds.
    pub names: Vec<String>,
    /// Children: the fields of a struct, the element of a list, the key and value of a map, the variants of a union.
    pub children: Vec<TypeDescription>,
    /// Attributes in the order of the file, for example `iceberg.id`.
    pub attributes: Vec<(String, String)>,
}

impl TypeDescription {
    /// A type without children; [`TypeDescription::number`] assigns the ids.
    pub fn leaf(kind: Kind) -> Self {
        Self { column: 0, end: 1, kind, names: Vec::new(), children: Vec::new(), attributes: Vec::new() }
    }

    /// A struct of named fields.
    pub fn structure(fields: impl IntoIterator<Item = (String, TypeDescription)>) -> Self {
        let (names, children) = fields.into_iter().unzip();
        let mut this = Self { names, children, ..Self::leaf(Kind::Struct) };
        this.number();
        this
    }

    /// A list, map or union of `children`.
    pub fn nested(kind: Kind, children: Vec<TypeDescription>) -> Self {
        let mut this = Self { children, ..Self::leaf(kind) };
        this.number();
        this
    }

    /// Assigns column ids to all types of the tree, starting with 0 for this one.
    pub fn number(&mut self) {
        self.number_from(0);
    }

    fn number_from(&mut self, column: u32) -> u32 {
        self.column = column;
        let mut next = column + 1;
        for child in &mut self.children {
            next = child.number_from(next);
        }
        self.end = next;
        next
    }

    /// The types of a footer as a tree.
    ///
    /// Children must have exactly the next ids in pre-order, so cycles and shared types are errors. So is a tree deeper
    /// than [`Limits::depth`].
    pub fn from_proto(types: &[proto::Type], limits: &Limits) -> Result<Self> {
        if types.len() > limits.columns {
            return Err(Error::limit(format!("the file has {} columns, the limit is {}", types.len(), limits.columns)));
        }
        let mut next = 0;
        let root = Self::read_node(types, &mut next, 0, limits)?;
        if (next as usize) < types.len() {
            let message = format!("{} types, but the tree ends at {next}", types.len());
            return Err(Error::corrupt("footer types", message));
        }
        Ok(root)
    }

    fn read_node(types: &[proto::Type], next: &mut u32, depth: usize, limits: &Limits) -> Result<Self> {
        let column = *next;
        let place = || format!("footer type {column}");
        if depth > limits.depth {
            return Err(Error::limit(format!("types are nested deeper than the limit of {}", limits.depth)));
        }
        let node = types.get(column as usize).ok_or_else(|| Error::corrupt(place(), "missing"))?;
        let kind = Kind::from_proto(node).map_err(|error| error.within(&place()))?;
        let wanted = match kind {
            Kind::List => 1,
            Kind::Map => 2,
            Kind::Struct | Kind::Union => node.subtypes.len(),
            _ => 0,
        };
        if node.subtypes.len() != wanted {
            let message = format!("{} has {} children", kind.name(), node.subtypes.len());
            return Err(Error::corrupt(place(), message));
        }
        if kind == Kind::Struct && node.field_names.len() != wanted {
            let message = format!("{wanted} fields, {} names", node.field_names.len());
            return Err(Error::corrupt(place(), message));
        }
        *next += 1;
        let mut children = Vec::with_capacity(wanted);
        for &subtype in &node.subtypes {
            if subtype != *next {
                return Err(Error::corrupt(place(), format!("expected child {next}, got {subtype}")));
            }
            children.push(Self::read_node(types, next, depth + 1, limits)?);
        }
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let attributes = node.attributes.iter().map(|pair| (text(&pair.key), text(&pair.value))).collect();
        let names = if kind == Kind::Struct { node.field_names.clone() } else { Vec::new() };
        Ok(Self { column, end: *next, kind, names, children, attributes })
    }

    /// The types in the form of a footer's list.
    pub fn to_proto(&self) -> Vec<proto::Type> {
        self.walk().into_iter().map(Self::node_to_proto).collect()
    }

    fn node_to_proto(&self) -> proto::Type {
        let pair =
            |(key, value): &(String, String)| proto::StringPair { key: Some(key.clone()), value: Some(value.clone()) };
        let mut node = proto::Type {
            kind: Some(self.kind.to_proto()),
            subtypes: self.children.iter().map(|child| child.column).collect(),
            field_names: self.names.clone(),
            attributes: self.attributes.iter().map(pair).collect(),
            ..proto::Type::default()
        };
        match &self.kind {
            Kind::Decimal { precision, scale } => {
                (node.precision, node.scale) = (Some(u32::from(*precision)), Some(u32::from(*scale)));
            }
            Kind::Char { length } | Kind::Varchar { length } => node.maximum_length = Some(*length),
            Kind::Geometry { crs } => node.crs.clone_from(crs),
            Kind::Geography { crs, algorithm } => {
                node.crs.clone_from(crs);
                node.algorithm = *algorithm;
            }
            _ => {}
        }
        node
    }

    /// All types of the tree, in the order of their ids.
    pub fn walk(&self) -> Vec<&TypeDescription> {
        let mut found = Vec::new();
        let mut stack = vec![self];
        while let Some(node) = stack.pop() {
            found.push(node);
            stack.extend(node.children.iter().rev());
        }
        found
    }

    /// The type with a column id.
    pub fn find(&self, column: u32) -> Option<&TypeDescription> {
        let mut node = self;
        while node.column != column {
            node = node.children.iter().find(|child| (child.column..child.end).contains(&column))?;
        }
        Some(node)
    }

    /// The type at a dotted path of names (`a.b`). Below lists, maps and unions, the names are `element`, `key` and
    /// `value`, and the number of the variant. Fields whose names contain dots are found too.
    pub fn find_path(&self, path: &str) -> Option<&TypeDescription> {
        if path.is_empty() {
            return Some(self);
        }
        self.children.iter().enumerate().find_map(|(index, child)| {
            let rest = path.strip_prefix(self.child_name(index).as_ref())?;
            match rest.strip_prefix('.') {
                Some(rest) => child.find_path(rest),
                None if rest.is_empty() => Some(child),
                None => None,
            }
        })
    }

    /// The name of a child: the name of the field, or one determined by its position.
    pub fn child_name(&self, index: usize) -> std::borrow::Cow<'_, str> {
        match (&self.kind, index) {
            (Kind::Struct, _) => self.names.get(index).map_or("", String::as_str).into(),
            (Kind::List, _) => "element".into(),
            (Kind::Map, 0) => "key".into(),
            (Kind::Map, _) => "value".into(),
            _ => index.to_string().into(),
        }
    }

    /// The value of an attribute.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The first type whose attribute `key` has this value.
    pub fn find_attribute(&self, key: &str, value: &str) -> Option<&TypeDescription> {
        self.walk().into_iter().find(|node| node.attribute(key) == Some(value))
    }
}

impl Kind {
    fn from_proto(node: &proto::Type) -> Result<Self> {
        Ok(match node.kind.unwrap_or_default() {
            TypeKind::Boolean => Self::Boolean,
            TypeKind::Byte => Self::Byte,
            TypeKind::Short => Self::Short,
            TypeKind::Int => Self::Int,
            TypeKind::Long => Self::Long,
            TypeKind::Float => Self::Float,
            TypeKind::Double => Self::Double,
            TypeKind::String => Self::String,
            TypeKind::Binary => Self::Binary,
            TypeKind::Timestamp => Self::Timestamp,
            TypeKind::TimestampInstant => Self::TimestampInstant,
            TypeKind::List => Self::List,
            TypeKind::Map => Self::Map,
            TypeKind::Struct => Self::Struct,
            TypeKind::Union => Self::Union,
            TypeKind::Date => Self::Date,
            TypeKind::Decimal => Self::decimal(node)?,
            TypeKind::Varchar => Self::Varchar { length: node.maximum_length.unwrap_or(u32::MAX) },
            TypeKind::Char => Self::Char { length: node.maximum_length.unwrap_or(u32::MAX) },
            TypeKind::Geometry => Self::Geometry { crs: node.crs.clone() },
            TypeKind::Geography => Self::Geography { crs: node.crs.clone(), algorithm: node.algorithm },
            TypeKind::Unknown(number) => return Err(Error::unsupported(format!("unknown type kind {number}"))),
        })
    }

    fn decimal(node: &proto::Type) -> Result<Self> {
        let (precision, scale) = match (node.precision, node.scale) {
            (None, None) => (u32::from(DEFAULT_PRECISION), u32::from(DEFAULT_SCALE)),
            (precision, scale) => (precision.unwrap_or(u32::from(DEFAULT_PRECISION)), scale.unwrap_or(0)),
        };
        let fits = precision >= 1 && precision <= u32::from(MAX_PRECISION) && scale <= precision;
        let refused = || Error::corrupt("", format!("invalid type decimal({precision},{scale})"));
        let digits = |count: u32| u8::try_from(count).ok().filter(|_| fits).ok_or_else(refused);
        Ok(Self::Decimal { precision: digits(precision)?, scale: digits(scale)? })
    }

    /// The kind without its parameters.
    pub fn to_proto(&self) -> TypeKind {
        match self {
            Self::Boolean => TypeKind::Boolean,
            Self::Byte => TypeKind::Byte,
            Self::Short => TypeKind::Short,
            Self::Int => TypeKind::Int,
            Self::Long => TypeKind::Long,
            Self::Float => TypeKind::Float,
            Self::Double => TypeKind::Double,
            Self::String => TypeKind::String,
            Self::Binary => TypeKind::Binary,
            Self::Timestamp => TypeKind::Timestamp,
            Self::TimestampInstant => TypeKind::TimestampInstant,
            Self::List => TypeKind::List,
            Self::Map => TypeKind::Map,
            Self::Struct => TypeKind::Struct,
            Self::Union => TypeKind::Union,
            Self::Date => TypeKind::Date,
            Self::Decimal { .. } => TypeKind::Decimal,
            Self::Varchar { .. } => TypeKind::Varchar,
            Self::Char { .. } => TypeKind::Char,
            Self::Geometry { .. } => TypeKind::Geometry,
            Self::Geography { .. } => TypeKind::Geography,
        }
    }

    /// The name in the text form of a schema.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Byte => "tinyint",
            Self::Short => "smallint",
            Self::Int => "int",
            Self::Long => "bigint",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
            Self::Binary => "binary",
            Self::Timestamp => "timestamp",
            Self::TimestampInstant => "timestamp with local time zone",
            Self::List => "array",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Union => "uniontype",
            Self::Date => "date",
            Self::Decimal { .. } => "decimal",
            Self::Varchar { .. } => "varchar",
            Self::Char { .. } => "char",
            Self::Geometry { .. } => "geometry",
            Self::Geography { .. } => "geography",
        }
    }
}
