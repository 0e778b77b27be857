//! Partition specs, and their checks against a schema ("Partitioning").

use std::collections::HashSet;
use std::fmt;

use super::{FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec};
use crate::transform::Transform;
use crate::types::{Field, PrimitiveType, Schema, StructType, Type};
use crate::{Error, Result};

/// How strictly to check a spec ([`PartitionSpec::check`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecUse {
    /// For new files: every source must exist and fit its transform.
    Default,
    /// Read from a manifest or a file: sources may have been dropped since.
    Kept,
    /// An older spec of the table: names and transforms must be valid, but sources may have been dropped.
    Historical,
}

impl PartitionSpec {
    /// The spec of unpartitioned tables.
    pub fn unpartitioned() -> Self {
        Self::default()
    }

    /// Whether there are no fields other than `void`.
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(|field| field.transform == Transform::Void)
    }

    /// The highest field id; 999 without fields.
    pub fn last_assigned_field_id(&self) -> i32 {
        self.fields.iter().map(|field| field.field_id).fold(FIRST_PARTITION_FIELD_ID - 1, i32::max)
    }

    /// Whether the field ids are consecutive from 1000, as v1 requires.
    pub fn has_sequential_ids(&self) -> bool {
        (FIRST_PARTITION_FIELD_ID..).zip(&self.fields).all(|(id, field)| field.field_id == id)
    }

    /// Whether both are equal except for their ids.
    pub fn compatible_with(&self, other: &Self) -> bool {
        self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(|(a, b)| a.name == b.name && a.same_value(b))
    }

    /// The fields with this source column.
    pub fn fields_of_source(&self, source_id: i32) -> impl Iterator<Item = &PartitionField> {
        self.fields.iter().filter(move |field| field.source_ids.contains(&source_id))
    }

    /// Type of the partition tuple.
    ///
    /// A field whose source was dropped has type `unknown`, unless its transform determines the type alone.
    pub fn partition_type(&self, schema: &Schema) -> StructType {
        StructType { fields: self.fields.iter().map(|field| field.partition_column(schema)).collect() }
    }

    /// Type of the partition tuple for reading manifests: like [`Self::partition_type`], except for fields whose type
    /// is not known, because their transform is unknown or takes several columns in an unknown way. These are read as
    /// text with their stored type ([`untyped`](super::untyped)).
    pub fn tuple_type(&self, schema: &Schema) -> StructType {
        let mut tuple = self.partition_type(schema);
        for (field, column) in self.fields.iter().zip(&mut tuple.fields) {
            if field.has_unknown_values() {
                column.ty = PrimitiveType::Unrecognized(field.transform.to_string().into()).into();
            }
        }
        tuple
    }

    /// Checks names, sources and transforms of the spec against a schema.
    pub fn check(&self, schema: &Schema, usage: SpecUse) -> Result<()> {
        let mut names = HashSet::new();
        for field in &self.fields {
            field.check_name(schema)?;
            if !names.insert(field.name.as_str()) {
                return Err(Error::unfit(format!("partition field name {:?} is used more than once", field.name)));
            }
        }
        self.fields.iter().try_for_each(|field| field.check_source(schema, usage))
    }
}

impl PartitionField {
    /// Whether source columns and transform are the same.
    pub fn same_value(&self, other: &Self) -> bool {
        self.source_ids == other.source_ids && self.transform == other.transform
    }

    /// The source column of a transform with one argument.
    pub fn source_id(&self) -> Option<i32> {
        match self.source_ids.as_slice() {
            [id] => Some(*id),
            _ => None,
        }
    }

    /// Whether the type of its values is unknown: its transform is unknown, or takes several columns and is not
    /// `bucket`.
    pub fn has_unknown_values(&self) -> bool {
        match self.transform {
            Transform::Unknown(_) => true,
            Transform::Bucket(_) | Transform::Void => false,
            _ => self.source_ids.len() > 1,
        }
    }

    /// What replaces a removed field in v1; `taken` if another field has its name.
    pub(crate) fn voided(&self, taken: bool) -> Self {
        let name = if taken { self.name_aside() } else { self.name.clone() };
        Self { name, transform: Transform::Void, ..self.clone() }
    }

    /// New name of a removed field whose name another field takes.
    pub(crate) fn name_aside(&self) -> String {
        format!("{}_{}", self.name, self.field_id)
    }

    /// The field as part of the partition tuple's type.
    fn partition_column(&self, schema: &Schema) -> Field {
        let source = self.source_id().and_then(|id| schema.find_type(id)).cloned();
        let source = source.unwrap_or(Type::Primitive(PrimitiveType::Unknown));
        let result = match self.transform.result_type(&source) {
            // A bucket is an `int`, whatever its number of source columns.
            None if matches!(self.transform, Transform::Bucket(_)) && self.source_ids.len() > 1 => {
                PrimitiveType::Int.into()
            }
            Some(ty) if ty.as_primitive().is_some() => ty,
            // The result of `void` is "source type or `int`": fields inside a nested source type would have ids that
            // manifests use themselves.
            Some(_) => PrimitiveType::Int.into(),
            None => PrimitiveType::Unknown.into(),
        };
        Field::optional(self.field_id, self.name.as_str(), result)
    }

    /// Checks the name: it may be that of its own source column, but not of another one.
    fn check_name(&self, schema: &Schema) -> Result<()> {
        if self.name.is_empty() {
            return Err(Error::invalid(format!("partition field {} has an empty name", self.field_id)));
        }
        let source_is_there = self.source_ids.iter().any(|id| schema.find_field(*id).is_some());
        match schema.find_by_name(&self.name, true)? {
            Some(column) if source_is_there && !self.source_ids.contains(&column.id) => Err(Error::unfit(format!(
                "partition field {:?} has the name of column {}, but its source is column {}",
                self.name,
                column.id,
                Sources(&self.source_ids)
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses `void` of a column that is not primitive in new specs. The Java library accepts it in a spec, but then
    /// can neither write nor read a manifest.
    pub(crate) fn check_new(&self, schema: &Schema) -> Result<()> {
        let nested = |id: &&i32| schema.find_type(**id).is_some_and(|ty| ty.as_primitive().is_none());
        match self.source_ids.iter().find(nested) {
            Some(id) => Err(self.no_primitive(schema, *id)),
            None => Ok(()),
        }
    }

    fn no_primitive(&self, schema: &Schema, id: i32) -> Error {
        let ty = schema.find_type(id).map(|ty| format!(": {ty}")).unwrap_or_default();
        let name = schema.column_name(id).map(|name| format!(" {name:?}")).unwrap_or_default();
        Error::unfit(format!("partition field {self}: column {id}{name} is not of a primitive type{ty}"))
    }

    fn check_source(&self, schema: &Schema, usage: SpecUse) -> Result<()> {
        if matches!(self.transform, Transform::Void) {
            return Ok(());
        }
        for id in &self.source_ids {
            match schema.find_type(*id) {
                Some(ty) => self.check_source_type(schema, *id, ty, usage)?,
                None if usage == SpecUse::Default => {
                    return Err(Error::unfit(format!("partition field {self}: there is no column {id}")));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn check_source_type(&self, schema: &Schema, id: i32, ty: &Type, usage: SpecUse) -> Result<()> {
        if usage == SpecUse::Historical && ty.is_nested() {
            return Ok(());
        }
        check_transform(&self.transform, ty, &format_args!("partition field {self}"))?;
        if usage == SpecUse::Historical {
            return Ok(());
        }
        if ty.as_primitive().is_none() {
            return Err(self.no_primitive(schema, id));
        }
        let mut outer = schema.parent(id);
        while let Some(parent) = outer {
            if !matches!(schema.find_type(parent), Some(Type::Struct(_))) {
                return Err(Error::unfit(format!("partition field {self}: column {id} is inside a list or map")));
            }
            outer = schema.parent(parent);
        }
        Ok(())
    }
}

/// Refuses a transform that does not accept the type. An unknown type or transform, of a later specification, is not
/// refused here; it only cannot be used.
pub(super) fn check_transform(transform: &Transform, ty: &Type, whose: &dyn fmt::Display) -> Result<()> {
    let unrecognized = matches!(ty, Type::Primitive(PrimitiveType::Unrecognized(_)));
    let unknown = matches!(transform, Transform::Unknown(_) | Transform::Void);
    if unrecognized || unknown || transform.result_type(ty).is_some() {
        return Ok(());
    }
    Err(Error::unfit(format!("{whose}: {transform} does not take {ty}")))
}

/// Source ids as printed in specs.
pub(super) struct Sources<'a>(pub(super) &'a [i32]);

impl fmt::Display for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if position == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for PartitionField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}({})", self.field_id, self.name, self.transform, Sources(&self.source_ids))
    }
}

impl fmt::Display for PartitionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_fields(f, &self.fields)
    }
}
