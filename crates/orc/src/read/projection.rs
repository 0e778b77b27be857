//! The columns to read: all, or some at any depth, found by id, by name or by attribute.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::types::{Kind, TypeDescription};

/// The columns to read; a column includes everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Projection {
    /// All columns.
    #[default]
    All,
    /// The columns with these ids, in the order of the file.
    Columns(Vec<u32>),
}

/// A column as named by a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnRef {
    /// By its position among the top-level columns, from 0.
    Index(i64),
    /// By its dotted name; see [`Projection::names`].
    Name(String),
}

impl ColumnRef {
    /// The id of the column.
    ///
    /// # Errors
    ///
    /// A column that the schema lacks.
    pub fn find(&self, schema: &TypeDescription) -> Result<u32> {
        match self {
            Self::Index(index) => {
                let child = usize::try_from(*index).ok().and_then(|index| schema.children.get(index));
                child.map(|child| child.column).ok_or_else(|| {
                    Error::invalid(format!("column {index} does not exist, the file has {}", schema.children.len()))
                })
            }
            Self::Name(name) => {
                let found = schema.find_path(name).map(|node| node.column);
                found.ok_or_else(|| Error::invalid(format!("column {name:?} does not exist in {schema}")))
            }
        }
    }
}

impl Projection {
    /// Columns by their positions or names.
    ///
    /// # Errors
    ///
    /// A column that the schema lacks.
    pub fn columns(schema: &TypeDescription, columns: impl IntoIterator<Item = ColumnRef>) -> Result<Self> {
        Ok(Self::Columns(columns.into_iter().map(|column| column.find(schema)).collect::<Result<_>>()?))
    }

    /// Columns by dotted names. Below lists, maps and unions, the names are `element`, `key` and `value`, and the
    /// number of the variant.
    ///
    /// # Errors
    ///
    /// A name that the schema lacks.
    pub fn names<S: AsRef<str>>(schema: &TypeDescription, names: impl IntoIterator<Item = S>) -> Result<Self> {
        Self::columns(schema, names.into_iter().map(|name| ColumnRef::Name(name.as_ref().to_owned())))
    }

    /// Columns by the values of an attribute, such as `iceberg.id`.
    ///
    /// # Errors
    ///
    /// A value that no column has.
    pub fn attribute<S: AsRef<str>>(
        schema: &TypeDescription,
        key: &str,
        values: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let find = |value: S| {
            let found = schema.find_attribute(key, value.as_ref()).map(|node| node.column);
            found.ok_or_else(|| Error::invalid(format!("no column has {key} {:?}", value.as_ref())))
        };
        Ok(Self::Columns(values.into_iter().map(find).collect::<Result<_>>()?))
    }

    /// The schema of the projected columns, which keep their ids.
    ///
    /// # Errors
    ///
    /// A column id that the schema lacks.
    pub fn apply(&self, schema: &TypeDescription) -> Result<TypeDescription> {
        let Self::Columns(columns) = self else { return Ok(schema.clone()) };
        let wanted: HashSet<u32> = columns.iter().copied().collect();
        if let Some(unknown) = columns.iter().find(|column| schema.find(**column).is_none()) {
            return Err(Error::invalid(format!("column {unknown} does not exist")));
        }
        let empty = TypeDescription { names: Vec::new(), children: Vec::new(), ..schema.clone() };
        Ok(prune(schema, &wanted).unwrap_or(if schema.kind == Kind::Struct { empty } else { schema.clone() }))
    }
}

fn prune(node: &TypeDescription, wanted: &HashSet<u32>) -> Option<TypeDescription> {
    if wanted.contains(&node.column) {
        return Some(node.clone());
    }
    let pruned: Vec<_> = node.children.iter().map(|child| prune(child, wanted)).collect();
    if pruned.iter().all(Option::is_none) {
        return None;
    }
    if node.kind == Kind::Struct {
        let named = node.names.iter().cloned().zip(pruned);
        let (names, children) = named.filter_map(|(name, child)| Some((name, child?))).unzip();
        return Some(TypeDescription { names, children, ..node.clone() });
    }
    // Lists, maps and unions keep all their children, those wanted in part only in part.
    let children = pruned.into_iter().zip(&node.children).map(|(part, whole)| part.unwrap_or_else(|| whole.clone()));
    Some(TypeDescription { children: children.collect(), ..node.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_at_any_depth() {
        let leaf = || TypeDescription::leaf(Kind::Int);
        let inner = TypeDescription::structure([("x".to_owned(), leaf()), ("y".to_owned(), leaf())]);
        let list = TypeDescription::nested(Kind::List, vec![inner.clone()]);
        let map = TypeDescription::nested(Kind::Map, vec![leaf(), inner]);
        let schema =
            TypeDescription::structure([("a".to_owned(), leaf()), ("l".to_owned(), list), ("m.n".to_owned(), map)]);
        for (names, expected) in [
            (vec!["a"], "struct<a:int>"),
            (vec!["l.element.y"], "struct<l:array<struct<y:int>>>"),
            (vec!["m.n.value.x", "a"], "struct<a:int,`m.n`:map<int,struct<x:int>>>"),
            (vec!["m.n.key"], "struct<`m.n`:map<int,struct<x:int,y:int>>>"),
            (vec![], "struct<>"),
        ] {
            let projection = Projection::names(&schema, &names).unwrap();
            assert_eq!(projection.apply(&schema).unwrap().to_string(), expected, "{names:?}");
        }
        assert!(Projection::names(&schema, ["l.y"]).is_err());
        let both = [ColumnRef::Index(1), ColumnRef::Name("a".to_owned())];
        let projection = Projection::columns(&schema, both).unwrap();
        assert_eq!(projection.apply(&schema).unwrap().to_string(), "struct<a:int,l:array<struct<x:int,y:int>>>");
        for index in [-1, 3] {
            let error = Projection::columns(&schema, [ColumnRef::Index(index)]).unwrap_err();
            assert_eq!(error.to_string(), format!("column {index} does not exist, the file has 3"));
        }
    }
}
