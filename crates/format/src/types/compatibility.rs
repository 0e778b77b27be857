//! Checks schemas against a format version ("Schemas and Data Types"), and against the schema of a reader or writer.

use std::collections::{BTreeMap, HashMap};

use super::promotion::is_promotion_allowed;
use super::{Field, PrimitiveType, Schema, StructType, Type};
use crate::error::{Error, Result};

/// First format version with initial defaults.
const DEFAULTS_FROM: u8 = 3;

/// Type promotions of written data: only those that every format version has.
const WRITE_PROMOTIONS: u8 = 1;

impl Type {
    /// First format version that has this type with all nested types; `None` if no known version has it.
    pub fn first_format_version(&self) -> Option<u8> {
        use PrimitiveType as P;
        match self {
            Self::Primitive(P::Unrecognized(_)) => None,
            Self::Variant
            | Self::Primitive(
                P::TimestampNs | P::TimestamptzNs | P::Unknown | P::Geometry { .. } | P::Geography { .. },
            ) => Some(3),
            _ => Some(1),
        }
    }
}

impl Schema {
    /// Checks that a table of this format version can have this schema. The error lists every field of a type that the
    /// version does not have, and every initial default before version 3.
    pub fn check_compatibility(&self, format_version: u8) -> Result<()> {
        let mut problems = BTreeMap::new();
        for id in self.ids() {
            let (Some(field), Some(name)) = (self.find_field(*id), self.column_name(*id)) else { continue };
            if let Some(problem) = problem(field, name, format_version) {
                problems.insert(*id, problem);
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = problems.into_values().collect();
        Err(Error::invalid(format!("invalid schema for v{format_version}:\n- {}", list.join("\n- "))))
    }
}

fn problem(field: &Field, name: &str, format_version: u8) -> Option<String> {
    match field.ty.first_format_version() {
        None => Some(format!("invalid type for {name}: {} is an unknown type", field.ty)),
        Some(first) if first > format_version => {
            Some(format!("invalid type for {name}: {} is not supported until v{first}", field.ty))
        }
        Some(_) if field.initial_default.is_some() && format_version < DEFAULTS_FROM => {
            Some(format!("invalid initial default for {name}: defaults are not supported until v{DEFAULTS_FROM}"))
        }
        Some(_) => None,
    }
}

/// What to compare when data of one schema is read as, or written to, another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Fields must be in the table's order.
    pub ordering: bool,
    /// A required field must not receive optional values. For elements and map values this is always checked.
    pub nullability: bool,
}

impl Checks {
    /// Writing with columns in the table's order.
    pub const WRITE: Self = Self { ordering: true, nullability: true };
    /// Writing with columns matched by id.
    pub const WRITE_UNORDERED: Self = Self { ordering: false, nullability: true };
    /// Types only: the data shows whether there are nulls.
    pub const TYPES: Self = Self { ordering: true, nullability: false };
    /// Reading.
    pub const READ: Self = Self { ordering: false, nullability: true };
}

impl Schema {
    /// Lists why data of the schema `given` cannot be read as, or written to, this schema; fields are matched by id.
    /// Each problem begins with the path of the field.
    pub fn compatibility_errors(&self, given: &Self, checks: Checks) -> Vec<String> {
        let mut problems = Problems { checks, list: Vec::new() };
        problems.structure(self.as_struct(), given.as_struct(), "");
        problems.list
    }
}

struct Problems {
    checks: Checks,
    list: Vec<String>,
}

impl Problems {
    fn add(&mut self, path: &str, problem: impl AsRef<str>) {
        self.list.push(format!("{path}{}", problem.as_ref()));
    }

    fn structure(&mut self, wanted: &StructType, given: &StructType, path: &str) {
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let places: HashMap<_, _> = given.fields.iter().enumerate().map(|(at, field)| (field.id, at)).collect();
        for field in &wanted.fields {
            match places.get(&field.id).and_then(|at| given.fields.get(*at)) {
                Some(found) => self.field(field, found, &inside(&field.name)),
                None if field.required => self.add(&inside(&field.name), " is required, but is missing"),
                None => {}
            }
        }
        if self.checks.ordering {
            self.order(wanted, given, &places, inside);
        }
    }

    fn order(
        &mut self,
        wanted: &StructType,
        given: &StructType,
        places: &HashMap<i32, usize>,
        inside: impl Fn(&str) -> String,
    ) {
        let mut last: Option<usize> = None;
        for field in &wanted.fields {
            let Some(position) = places.get(&field.id).copied() else { continue };
            if let Some(before) = last.filter(|last| *last >= position).and_then(|last| given.fields.get(last)) {
                self.add(&inside(&field.name), format!(" is out of order, before {}", before.name));
            }
            last = Some(position);
        }
    }

    fn field(&mut self, wanted: &Field, given: &Field, path: &str) {
        if self.checks.nullability && wanted.required && !given.required {
            self.add(path, " should be required, but is optional");
        }
        self.ty(&wanted.ty, &given.ty, path);
    }

    fn ty(&mut self, wanted: &Type, given: &Type, path: &str) {
        match (wanted, given) {
            (Type::Struct(wanted), Type::Struct(given)) => self.structure(wanted, given, path),
            (Type::List(wanted), Type::List(given)) => {
                if wanted.element.required && !given.element.required {
                    self.add(path, ": elements should be required, but are optional");
                }
                self.ty(&wanted.element.ty, &given.element.ty, path);
            }
            (Type::Map(wanted), Type::Map(given)) => {
                if wanted.value.required && !given.value.required {
                    self.add(path, ": values should be required, but are optional");
                }
                self.ty(&wanted.key.ty, &given.key.ty, path);
                self.ty(&wanted.value.ty, &given.value.ty, path);
            }
            (Type::Variant, Type::Variant) => {}
            (Type::Primitive(wanted), Type::Primitive(from)) => {
                if !is_promotion_allowed(given, wanted, WRITE_PROMOTIONS) {
                    self.add(path, format!(": {from} cannot be promoted to {wanted}"));
                }
            }
            (Type::Primitive(wanted), given) => {
                self.add(path, format!(": {} cannot be read as a {wanted}", kind(given)))
            }
            (wanted, given) => self.add(path, format!(": {given} cannot be read as a {}", kind(wanted))),
        }
    }
}

fn kind(ty: &Type) -> &'static str {
    match ty {
        Type::Primitive(_) => "primitive",
        Type::Variant => "variant",
        Type::Struct(_) => "struct",
        Type::List(_) => "list",
        Type::Map(_) => "map",
    }
}
