//! Decides where the values of each selected column come from ("Column Projection").
//!
//! A file is planned once: every selected field gets a [`Source`], found by field id, at any depth. [`Rules::absent`]
//! holds the specification's rules for ids that the file lacks, in the specification's order; new rules belong there
//! only.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields};
use icefield_format::expr::Extract;
use icefield_format::types::arrow::{field_id, named};
use icefield_format::types::reserved::{LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID};
use icefield_format::types::{Field, PrimitiveType, StructType, Type};
use icefield_format::value::Value;

use super::promote::{self, Promotion};
use crate::error::{Error, Result};
use crate::file::parquet::decimals;
use crate::file::parquet::variant::value::{Parts, ValueLayout};
use crate::file::parquet::variant::{Layout, Misfit};
use crate::plan::projection::variant_paths::VariantPath;

/// The source of a field's values.
#[derive(Debug, Clone)]
pub enum Source {
    /// A column (or child) of the file, by its index among its siblings.
    File {
        /// Index in the batch or struct that the file reader returns.
        position: usize,
        /// How it is converted to the wanted type.
        shape: Shape,
    },
    /// One value for every row; `None` is null.
    Constant(Option<Value>),
    /// A struct that the file lacks, built from its fields in every row.
    Struct(Vec<Planned>),
    /// A value inside the variants of a column.
    Inside {
        /// The column that contains only the variant, with the value in its place.
        column: Box<Planned>,
    },
    /// The stored column, with an inherited number for rows where it is null or missing.
    Inherited {
        /// Index and shape of the stored column.
        stored: Option<(usize, Shape)>,
        /// The inherited number.
        number: Inherited,
    },
}

/// A number that rows inherit from their file ("Row Lineage").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherited {
    /// The same for all rows.
    Same(i64),
    /// Counted from the first row of the file.
    Counted {
        /// The number of the first row.
        first: i64,
        /// Index of the column of row positions.
        position: usize,
    },
}

/// How an array of the file is converted to the wanted type.
#[derive(Debug, Clone)]
pub enum Shape {
    /// No conversion.
    Keep,
    /// A legal promotion, or another layout of the same values.
    Promote(Promotion),
    /// Each selected child from its own source.
    Struct(Vec<Planned>),
    /// Converts the elements.
    List(Box<Planned>),
    /// Converts keys and values.
    Map(Box<Planned>, Box<Planned>),
    /// A variant, shredded or not, and the path of its column.
    Variant(Arc<str>, Layout),
    /// One value of each variant, with the path of its column and the parts to read.
    VariantValue(Arc<str>, Box<ValueLayout>, Box<Shape>),
    /// Several parts of one column, each with its own shape; not an array itself.
    Parts(Vec<(usize, Self)>),
}

/// A selected field and its source.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The field that the reader returns.
    pub target: FieldRef,
    /// The Iceberg type.
    pub ty: Type,
    /// The source of its values.
    pub source: Source,
}

/// What the rules need to know about a data file besides its columns.
pub trait Constants {
    /// The partition value of the identity field on this source column: `Some(None)` is null.
    fn identity(&self, source_id: i32) -> Option<Option<Value>>;

    /// The value of a metadata column in all rows; `None` for other columns.
    fn metadata(&self, _: &Field) -> Option<Option<Value>> {
        None
    }

    /// All fields of a table struct, including those the scan does not select.
    fn whole_struct(&self, _: i32) -> Option<&StructType> {
        None
    }

    /// The path inside variants, if the scan column is one.
    fn variant_path(&self, _: i32) -> Option<&VariantPath> {
        None
    }

    /// Row id of the first row of the file.
    fn first_row_id(&self) -> Option<i64> {
        None
    }

    /// Data sequence number of the file.
    fn sequence_number(&self) -> Option<i64> {
        None
    }
}

/// The rules for one file.
pub struct Rules<'a> {
    /// Path of the file, for errors.
    pub path: &'a str,
    /// Partition values of the file.
    pub constants: &'a dyn Constants,
}

impl Rules<'_> {
    /// Plans the selected columns against the columns of a file.
    pub fn plan(&self, wanted: &[(Field, FieldRef)], file: &Fields) -> Result<Vec<Planned>> {
        wanted.iter().map(|(field, target)| self.field(field, target, file, &field.name)).collect()
    }

    fn field(&self, field: &Field, target: &FieldRef, siblings: &Fields, path: &str) -> Result<Planned> {
        if let Some(inside) = self.constants.variant_path(field.id) {
            let column = Box::new(self.variant_value(inside, target, siblings)?);
            return Ok(Planned { target: target.clone(), ty: field.ty.clone(), source: Source::Inside { column } });
        }
        let is_field = |sibling: &FieldRef| field_id(sibling) == Some(field.id);
        let position = match field.id == POS.id {
            // A file may store a column with that id; the column of row positions comes after it.
            true => siblings.iter().rposition(is_field),
            false => siblings.iter().position(is_field),
        };
        // The value of an identity field takes precedence over a stored column: planning has pruned by it and
        // removed its predicates from the residual, so rows with another value would contradict the filter that found
        // them.
        let constant = self.constants.identity(field.id).or_else(|| self.constants.metadata(field));
        let found = position.and_then(|at| siblings.get(at).map(|found| (at, found)));
        let source = match (constant, found) {
            (Some(value), _) => Source::Constant(value),
            (None, found) if [ROW_ID.id, LAST_UPDATED_SEQUENCE_NUMBER.id].contains(&field.id) => {
                self.lineage(field, target, siblings, found)?
            }
            (None, Some((position, found))) => {
                Source::File { position, shape: self.shape(field, target, found, path)? }
            }
            (None, None) => self.absent(field, target, path)?,
        };
        Ok(Planned { target: target.clone(), ty: field.ty.clone(), source })
    }

    /// The column of a variant with the value at a path in its place.
    fn variant_value(&self, inside: &VariantPath, target: &FieldRef, siblings: &Fields) -> Result<Planned> {
        let root = &inside.root;
        let mut planned = self.field(root, &in_place(root, target.data_type()), siblings, &root.name)?;
        self.narrow(&mut planned, &inside.extract)?;
        Ok(planned)
    }

    /// Replaces the variant that a column contains by the value at a path.
    fn narrow(&self, planned: &mut Planned, extract: &Extract) -> Result<()> {
        match &mut planned.source {
            Source::File { shape: Shape::Struct(inner), .. } | Source::Struct(inner) => {
                inner.iter_mut().try_for_each(|inner| self.narrow(inner, extract))
            }
            Source::File { shape, .. } => {
                let Shape::Variant(path, layout) = shape else { return Ok(()) };
                let layout = ValueLayout::plan(layout.parts(), extract).map_err(|misfit| match misfit {
                    Misfit::Missing => {
                        Error::corrupt_file(self.path, format!("column {path} is not stored as variants"))
                    }
                    Misfit::Unsupported(what) => self.unsupported(path, &what),
                })?;
                let read = Shape::of_parts(layout.parts());
                *shape = Shape::VariantValue(path.clone(), Box::new(layout), Box::new(read));
                Ok(())
            }
            // A constant here is null, and so is everything inside it.
            _ => Ok(()),
        }
    }

    /// Row ids and sequence numbers: stored if rows were moved from another file, otherwise inherited.
    fn lineage(
        &self,
        field: &Field,
        target: &FieldRef,
        siblings: &Fields,
        found: Option<(usize, &FieldRef)>,
    ) -> Result<Source> {
        let lost = || Error::Internal(format!("{}: nothing tells {} of its rows", self.path, field.name));
        let stored = match found {
            Some((position, found)) => Some((position, self.shape(field, target, found, &field.name)?)),
            None => None,
        };
        if field.id == LAST_UPDATED_SEQUENCE_NUMBER.id {
            // Files of version 1 tables have no number.
            let number = self.constants.sequence_number();
            return Ok(match (number, stored) {
                (None, _) => Source::Constant(None),
                (Some(number), None) => Source::Constant(Some(Value::Long(number))),
                (Some(number), stored) => Source::Inherited { stored, number: Inherited::Same(number) },
            });
        }
        let first = self.constants.first_row_id().ok_or_else(lost)?;
        let position = siblings.iter().rposition(|sibling| field_id(sibling) == Some(POS.id));
        let number = Inherited::Counted { first, position: position.ok_or_else(lost)? };
        Ok(Source::Inherited { stored, number })
    }

    /// The value of a field that neither the file nor its partition has.
    fn absent(&self, field: &Field, target: &FieldRef, path: &str) -> Result<Source> {
        if let (Type::Struct(ty), DataType::Struct(targets)) = (&field.ty, target.data_type())
            && (field.initial_default.is_some()
                || self.has_identities(self.constants.whole_struct(field.id).unwrap_or(ty)))
        {
            // In a struct that exists, or whose default is that of its fields, each field follows its own rules.
            let fields = ty.fields.iter().zip(targets);
            let fields = fields
                .map(|(child, target)| self.field(child, target, &Fields::empty(), &format!("{path}.{}", child.name)));
            return Ok(Source::Struct(fields.collect::<Result<_>>()?));
        }
        if let Some(default) = &field.initial_default {
            return Ok(Source::Constant(Some(default.clone())));
        }
        if field.required {
            return Err(Error::corrupt_file(
                self.path,
                format!("column {path} (id {}) is required and has no default, but the file lacks it", field.id),
            ));
        }
        Ok(Source::Constant(None))
    }

    /// Whether the partition has a value for some field of a struct.
    fn has_identities(&self, ty: &StructType) -> bool {
        ty.fields.iter().any(|field| match &field.ty {
            Type::Struct(inner) => self.has_identities(inner),
            _ => matches!(self.constants.identity(field.id), Some(Some(_))),
        })
    }

    fn shape(&self, field: &Field, target: &FieldRef, found: &FieldRef, path: &str) -> Result<Shape> {
        match (&field.ty, target.data_type(), found.data_type()) {
            (Type::Struct(ty), DataType::Struct(targets), DataType::Struct(children)) => {
                let pairs = ty.fields.iter().zip(targets);
                let planned =
                    pairs.map(|(child, target)| self.field(child, target, children, &format!("{path}.{}", child.name)));
                Ok(Shape::Struct(planned.collect::<Result<_>>()?))
            }
            (Type::List(ty), DataType::List(target), DataType::List(element)) => {
                Ok(Shape::List(Box::new(self.inner(&ty.element, target, element, &format!("{path}.element"))?)))
            }
            (Type::Map(ty), DataType::Map(target, _), DataType::Map(entries, _)) => {
                let (DataType::Struct(target), DataType::Struct(entries)) = (target.data_type(), entries.data_type())
                else {
                    return Err(self.mismatch(path, field, found));
                };
                let ([key_target, value_target], [key, value]) = (&target[..], &entries[..]) else {
                    return Err(self.mismatch(path, field, found));
                };
                let key = self.inner(&ty.key, key_target, key, &format!("{path}.key"))?;
                let value = self.inner(&ty.value, value_target, value, &format!("{path}.value"))?;
                Ok(Shape::Map(Box::new(key), Box::new(value)))
            }
            (Type::Variant, target, DataType::Struct(parts)) => {
                let is_whole = target.is_nested();
                if let DataType::Struct(targets) = target
                    && !targets.iter().map(|target| target.name().as_str()).eq(["metadata", "value"])
                {
                    return Err(self.mismatch(path, field, found));
                }
                match Layout::plan(parts) {
                    Ok(layout) if layout.is_whole() || !is_whole => Ok(Shape::Variant(path.into(), layout)),
                    Ok(_) | Err(Misfit::Missing) => Err(self.mismatch(path, field, found)),
                    Err(Misfit::Unsupported(what)) => Err(self.unsupported(path, &what)),
                }
            }
            (Type::Primitive(_), wanted, found_type) if wanted == found_type => Ok(Shape::Keep),
            (Type::Primitive(_), wanted, _) => match promote::of_field(found, wanted) {
                Some(promotion) => Ok(Shape::Promote(promotion)),
                None => Err(self.mismatch(path, field, found)),
            },
            _ => Err(self.mismatch(path, field, found)),
        }
    }

    /// The element of a list, or the key or value of a map. There is only one, so it is found by position, not by id.
    fn inner(&self, field: &Field, target: &FieldRef, found: &FieldRef, path: &str) -> Result<Planned> {
        let shape = self.shape(field, target, found, path)?;
        Ok(Planned { target: target.clone(), ty: field.ty.clone(), source: Source::File { position: 0, shape } })
    }

    fn unsupported(&self, path: &str, what: &str) -> Error {
        Error::unsupported(format!("{}: column {path}: {what} in a variant", self.path))
    }

    fn mismatch(&self, path: &str, field: &Field, found: &FieldRef) -> Error {
        if matches!(found.data_type(), DataType::Union(..)) {
            let id = field.id;
            return Error::unsupported(format!(
                "{}: column {path} (id {id}) is a union of several types; only null and one type can be read",
                self.path
            ));
        }
        let stored = match decimals::declared(found) {
            Some((precision, scale)) => format!("decimal({precision}, {scale})"),
            None => named(found.data_type()),
        };
        let hint = if is_number(found.data_type()) && is_moment(&field.ty) {
            ": nothing says what its numbers count; to go on, read the file without the table and append its rows as this type"
        } else {
            ""
        };
        let id = field.id;
        let message = format!("column {path} (id {id}) is stored as {stored}, which cannot be read as its type{hint}");
        Error::corrupt_file(self.path, message)
    }
}

fn is_number(ty: &DataType) -> bool {
    ty.is_integer() || ty.is_floating()
}

fn is_moment(ty: &Type) -> bool {
    use PrimitiveType as P;
    let Type::Primitive(ty) = ty else { return false };
    matches!(ty, P::Date | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs)
}

/// The column of a variant as read, with values of this type in place of the variants.
fn in_place(column: &Field, wanted: &DataType) -> FieldRef {
    let ty = match &column.ty {
        Type::Struct(ty) => DataType::Struct(ty.fields.iter().map(|field| in_place(field, wanted)).collect()),
        _ => wanted.clone(),
    };
    Arc::new(ArrowField::new(&*column.name, ty, true))
}

impl Shape {
    fn of_parts(parts: &Parts) -> Self {
        match parts {
            Parts::Whole => Self::Keep,
            Parts::Some(parts) => {
                Self::Parts(parts.iter().map(|(place, parts)| (*place, Self::of_parts(parts))).collect())
            }
        }
    }
}

/// Marks the leaves that the plan reads, in depth-first order; `file` are the columns it was planned against.
pub fn leaves(planned: &[Planned], file: &Fields) -> Vec<usize> {
    let mut marks = Vec::new();
    let mut next = 0;
    for (position, field) in file.iter().enumerate() {
        let wanted: Vec<_> = planned.iter().filter_map(|one| shape_at(one, position)).collect();
        mark(&wanted, field, &mut next, &mut marks);
    }
    marks
}

fn shape_at(planned: &Planned, at: usize) -> Option<&Shape> {
    match &planned.source {
        Source::File { position, shape } => (*position == at).then_some(shape),
        Source::Inside { column } => shape_at(column, at),
        Source::Inherited { stored: Some((position, shape)), .. } if *position == at => Some(shape),
        Source::Inherited { number: Inherited::Counted { position, .. }, .. } => {
            (*position == at).then_some(&Shape::Keep)
        }
        Source::Inherited { .. } | Source::Constant(_) | Source::Struct(_) => None,
    }
}

/// Visits a field's leaves; `wanted` are the shapes that read it (empty: it is skipped).
fn mark(wanted: &[&Shape], field: &FieldRef, next: &mut usize, marks: &mut Vec<usize>) {
    let before = marks.len();
    let first = *next;
    match field.data_type() {
        DataType::Struct(children) if !children.is_empty() => {
            for (position, child) in children.iter().enumerate() {
                let inner: Vec<_> = wanted.iter().flat_map(|shape| inside(shape, position)).collect();
                mark(&inner, child, next, marks);
            }
        }
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) => {
            let inner: Vec<_> = wanted.iter().flat_map(|shape| inside(shape, 0)).collect();
            mark(&inner, child, next, marks);
        }
        DataType::Map(entries, _) => {
            if let DataType::Struct(pair) = entries.data_type() {
                for (position, child) in pair.iter().enumerate() {
                    let inner: Vec<_> = wanted.iter().flat_map(|shape| inside(shape, position)).collect();
                    mark(&inner, child, next, marks);
                }
            }
        }
        _ => {
            if !wanted.is_empty() {
                marks.push(*next);
            }
            *next += 1;
        }
    }
    // If no leaf of a nested column is selected, read one leaf for the column's nulls.
    if !wanted.is_empty() && marks.len() == before {
        marks.extend(few_leaves(field.data_type(), first).1);
    }
}

/// The number of leaves of a type whose first leaf is `first`, and the few of them from which a reader can build an
/// array: a map is read by key and value or not at all.
fn few_leaves(ty: &DataType, first: usize) -> (usize, Vec<usize>) {
    match ty {
        DataType::Struct(children) if !children.is_empty() => {
            let mut count = 0;
            let mut few: Option<Vec<usize>> = None;
            for child in children {
                let (leaves, of_child) = few_leaves(child.data_type(), first + count);
                count += leaves;
                let fewer = few.as_ref().is_none_or(|few| of_child.len() < few.len());
                if fewer && !of_child.is_empty() {
                    few = Some(of_child);
                }
            }
            (count, few.unwrap_or_default())
        }
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) => {
            few_leaves(child.data_type(), first)
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return (0, Vec::new()) };
            pair.iter().fold((0, Vec::new()), |(count, mut few), part| {
                let (leaves, of_part) = few_leaves(part.data_type(), first + count);
                few.extend(of_part);
                (count + leaves, few)
            })
        }
        _ => (1, vec![first]),
    }
}

/// The shapes with which a shape reads the child at an index.
fn inside(shape: &Shape, position: usize) -> Vec<&Shape> {
    match shape {
        Shape::Keep | Shape::Promote(_) | Shape::Variant(..) => vec![shape],
        Shape::VariantValue(.., read) => inside(read, position),
        Shape::Parts(parts) => parts.iter().filter(|(place, _)| *place == position).map(|(_, shape)| shape).collect(),
        Shape::Struct(children) => children.iter().filter_map(|child| shape_at(child, position)).collect(),
        Shape::List(element) => shape_at(element, 0).into_iter().collect(),
        Shape::Map(key, value) => shape_at(if position == 0 { key } else { value }, 0).into_iter().collect(),
    }
}
