//! Decides which files of a plan an engine may read with its own Parquet reader, and why not the others.
//!
//! An engine such as Spark reads Parquet faster than it takes rows from elsewhere, and finds columns by field id. It
//! does not know delete files, defaults, name mappings and partition values, and cannot apply every promotion.
//! [`EngineRead`] lists the obstacles in the columns of a scan, and [`Plan::obstacles`] those of each file.
//!
//! Readers match columns by id but test pushed filters by name. If a filtered column has the name of another column
//! in an old file, the reader would drop row groups it should not. So a column keeps its name only if name, id and
//! type belonged together in every schema of the table; other columns get a generated name that occurs in no file
//! ([`EngineColumn`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, Int64Array};
use icefield_format::manifest::MetricMap;
use icefield_format::metadata::TableMetadata;
use icefield_format::transform::Transform;
use icefield_format::types::{Field, NAME_MAPPING_PROPERTY, PrimitiveType, Schema, Type};

use crate::error::Result;
use crate::plan::deletes::links::{Linked, Sums};
use crate::plan::deletes::{DeleteKind, Deletes};
use crate::plan::projection::metadata_columns::is_metadata_column;
use crate::plan::{Plan, PlannedManifest, Scan};

/// Why an engine cannot read a file, or a whole scan, itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// Changelog rows carry their kind of change.
    Changelog,
    /// A column that is not stored in files.
    MetadataColumn(String),
    /// A value inside a variant column.
    VariantPath(String),
    /// A schema that files may have been written with was removed from the metadata.
    Schemas,
    /// The table has a name mapping, so files may lack field ids.
    FieldIds,
    /// A column has a type that engines read differently, or not at all.
    Type(String, String),
    /// A column has a default for files that lack it.
    Default(String),
    /// A column was promoted in a way that engines do not support.
    Promotion(String, String),
    /// The file is not Parquet.
    Format(String),
    /// The file is encrypted: engines would need its key.
    Encrypted,
    /// Deletes apply to the file.
    Deletes(&'static str),
    /// The value of a column is the partition value, and the metrics do not show that the file stores it.
    PartitionValue(String),
}

impl Obstacle {
    /// A word or two, the same for all obstacles of a kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Changelog => "changelog",
            Self::MetadataColumn(_) => "metadata column",
            Self::VariantPath(_) => "variant path",
            Self::Schemas => "missing schema",
            Self::FieldIds => "missing field ids",
            Self::Type(..) => "type",
            Self::Default(_) => "default",
            Self::Promotion(..) => "promotion",
            Self::Format(_) => "format",
            Self::Encrypted => "encrypted",
            Self::Deletes(_) => "deletes",
            Self::PartitionValue(_) => "partition value",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Changelog | Self::Encrypted => write!(f, "{kind}"),
            Self::MetadataColumn(name) | Self::VariantPath(name) => write!(f, "{kind}: {name}"),
            Self::Schemas => write!(f, "{kind}: older schemas were removed from the metadata"),
            Self::FieldIds => write!(f, "{kind}: the table has {NAME_MAPPING_PROPERTY}"),
            Self::Type(column, ty) => write!(f, "{kind}: column {column} is {ty}"),
            Self::Default(column) => write!(f, "{kind}: column {column} has an initial default"),
            Self::Promotion(column, from) => write!(f, "{kind}: column {column} was {from}"),
            Self::Format(format) => write!(f, "{kind}: {format}"),
            Self::Deletes(what) => write!(f, "{kind}: {what}"),
            Self::PartitionValue(column) => write!(f, "{kind}: the file may lack column {column}"),
        }
    }
}

/// A top-level column as an engine requests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineColumn {
    /// Its name in the table.
    pub name: String,
    /// Its id.
    pub field_id: i32,
    /// A generated name, if the column's own name may mean another column in some file.
    pub alias: Option<String>,
}

impl EngineColumn {
    /// The name to request it by.
    pub fn asked_by(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

/// How an engine reads the columns of a scan.
#[derive(Debug, Clone)]
pub struct EngineRead {
    /// The columns to read, in table order: those of the scan and of its filter.
    pub columns: Vec<EngineColumn>,
    /// The obstacle that applies to every file.
    pub obstacle: Option<Obstacle>,
    /// Columns whose value may come from the partition, by id.
    identities: BTreeMap<i32, String>,
}

impl Scan {
    /// How an engine reads `projection` and the columns of the scan's filter.
    pub fn engine_read(&self, projection: &Schema) -> Result<EngineRead> {
        let history = History::of(&self.metadata);
        let mut roots: HashSet<i32> = projection.fields().iter().map(|field| field.id).collect();
        let (filter, named) = self.bound_filter()?;
        let mut filtered = Vec::new();
        for id in filter.predicates().map(|predicate| predicate.term.reference.id) {
            let root = std::iter::successors(Some(id), |id| named.schema.parent(*id)).last();
            roots.extend(root);
            filtered.extend(root.and_then(|root| named.schema.find_field(root)));
        }
        let of_table: Vec<&Field> = self.schema.fields().iter().filter(|field| roots.contains(&field.id)).collect();
        let mut read = projection.fields().iter().chain(filtered);
        let other = read.find(|field| self.schema.find_field(field.id).is_none());
        let obstacle = if self.changes.as_ref().is_some_and(|changes| changes.is_changelog()) {
            Some(Obstacle::Changelog)
        } else if let Some(field) = other {
            Some(match is_metadata_column(field.id) {
                true => Obstacle::MetadataColumn(field.name.clone()),
                false => Obstacle::VariantPath(field.name.clone()),
            })
        } else if self.metadata.property(NAME_MAPPING_PROPERTY).is_some() {
            Some(Obstacle::FieldIds)
        } else if !history.complete {
            Some(Obstacle::Schemas)
        } else {
            of_table.iter().find_map(|field| history.obstacles.get(&field.id).cloned())
        };
        let columns = of_table.iter().map(|field| EngineColumn {
            name: field.name.clone(),
            field_id: field.id,
            alias: history.moved.contains(&field.id).then(|| format!("{}_{}", history.prefix, field.id)),
        });
        let specs = self.metadata.partition_specs().iter();
        let sources = specs.flat_map(|spec| &spec.fields).filter(|field| field.transform == Transform::Identity);
        let sources: BTreeSet<i32> = sources.filter_map(|field| field.source_id()).collect();
        let root_of = |id: i32| std::iter::successors(Some(id), |id| self.schema.parent(*id)).last();
        let read = sources.into_iter().filter(|id| root_of(*id).is_some_and(|root| roots.contains(&root)));
        let identities = read.filter_map(|id| Some((id, self.schema.column_name(id)?.to_owned()))).collect();
        Ok(EngineRead { columns: columns.collect(), obstacle, identities })
    }
}

impl EngineRead {
    /// Columns whose values may come from partitions. A plan must have their metrics for [`Plan::obstacles`].
    pub fn partition_columns(&self) -> impl Iterator<Item = &str> {
        self.identities.values().map(String::as_str)
    }
}

impl Plan {
    /// For each file of the plan, in order, why an engine does not read it; `None` if it may.
    pub fn obstacles(&self, read: &EngineRead) -> Result<Vec<Option<Obstacle>>> {
        let mut found = Vec::with_capacity(self.len());
        let mut kind_of = kind_of(&self.deletes);
        for manifest in &self.manifests {
            let identities = Identities::of(manifest, read);
            for row in 0..manifest.entries.len() {
                found.push(match &read.obstacle {
                    Some(obstacle) => Some(obstacle.clone()),
                    None => obstacle(manifest, row, &identities, &mut kind_of)?,
                });
            }
        }
        Ok(found)
    }
}

fn obstacle(
    manifest: &PlannedManifest,
    row: usize,
    identities: &Identities,
    kind_of: &mut impl FnMut(Linked<'_>) -> Result<Option<DeleteKind>>,
) -> Result<Option<Obstacle>> {
    let format = manifest.entries.file_format.value(row).to_lowercase();
    if format != "parquet" {
        return Ok(Some(Obstacle::Format(format)));
    }
    if manifest.entries.key_metadata.is_valid(row) {
        return Ok(Some(Obstacle::Encrypted));
    }
    let deletes = kind_of(manifest.deletes(row))?.map(|kind| match kind {
        DeleteKind::Vector => Obstacle::Deletes("deletion vector"),
        DeleteKind::Positions => Obstacle::Deletes("positions"),
        DeleteKind::Equality => Obstacle::Deletes("equality"),
    });
    Ok(deletes.or_else(|| identities.missing(row)))
}

/// The kind to report for the deletes of a file: vectors first, then positions. Cached, because there can be very
/// many.
fn kind_of(deletes: &Deletes) -> impl FnMut(Linked<'_>) -> Result<Option<DeleteKind>> {
    let count = |wanted| Sums::new(move |place| Ok(i64::from(deletes.kind(place)? == wanted)));
    let mut counts = [DeleteKind::Vector, DeleteKind::Positions].map(|kind| (kind, count(kind)));
    move |linked| {
        for (kind, count) in &mut counts {
            if count.of(linked)? > 0 {
                return Ok(Some(*kind));
            }
        }
        Ok((!linked.is_empty()).then_some(DeleteKind::Equality))
    }
}

/// Columns of a manifest whose values come from its partitions, and their value counts in each file.
struct Identities(Vec<(String, Option<Int64Array>)>);

impl Identities {
    fn of(manifest: &PlannedManifest, read: &EngineRead) -> Self {
        let fields = manifest.spec.fields.iter().filter(|field| field.transform == Transform::Identity);
        let sources = fields.filter_map(|field| field.source_id());
        let counts = |map: &Option<MetricMap>, id: i32| map.as_ref().map(|map| map.counts(id));
        let named = sources.filter_map(|id| Some((id, read.identities.get(&id)?)));
        Self(named.map(|(id, name)| (name.clone(), counts(&manifest.entries.value_counts, id))).collect())
    }

    /// A writer that leaves the column out reports no values for it.
    fn missing(&self, row: usize) -> Option<Obstacle> {
        let lacks = |counts: &Option<Int64Array>| !counts.as_ref().is_some_and(|counts| counts.is_valid(row));
        let mut found = self.0.iter().filter(|(_, counts)| lacks(counts));
        found.next().map(|(name, _)| Obstacle::PartitionValue(name.clone()))
    }
}

/// Names and types of a table's columns through all its schemas.
struct History {
    /// Whether all schemas are present.
    complete: bool,
    /// Obstacles of top-level columns, by id.
    obstacles: BTreeMap<i32, Obstacle>,
    /// Top-level columns that had another name or type, or share their name with another column, also in nested
    /// fields.
    moved: HashSet<i32>,
    /// A prefix that no column name has.
    prefix: String,
}

/// A field of a schema.
struct Past {
    id: i32,
    root: i32,
    name: String,
    ty: Type,
    has_default: bool,
}

impl History {
    fn of(metadata: &TableMetadata) -> Self {
        let mut schemas: Vec<&Arc<Schema>> = metadata.schemas().iter().collect();
        schemas.sort_by_key(|schema| schema.schema_id());
        let complete = schemas.iter().zip(0..).all(|(schema, id)| schema.schema_id() == id) && !schemas.is_empty();
        let mut all = Vec::new();
        for schema in schemas {
            schema.fields().iter().for_each(|field| add(field, "", field.id, &mut all));
        }
        let (mut names, mut ids) = (BTreeMap::<i32, HashSet<&str>>::new(), BTreeMap::<String, HashSet<i32>>::new());
        let mut types = BTreeMap::<i32, Vec<&Past>>::new();
        for field in &all {
            names.entry(field.id).or_default().insert(&field.name);
            ids.entry(field.name.to_lowercase()).or_default().insert(field.id);
            types.entry(field.id).or_default().push(field);
        }
        let shared: HashSet<i32> = ids.values().filter(|ids| ids.len() > 1).flatten().copied().collect();
        let mut moved = HashSet::new();
        let mut obstacles = BTreeMap::new();
        for field in &all {
            let past = types.get(&field.id).map(Vec::as_slice).unwrap_or_default();
            let changed = past.iter().any(|other| !same(&other.ty, &field.ty));
            if changed || shared.contains(&field.id) || names.get(&field.id).is_some_and(|names| names.len() > 1) {
                moved.insert(field.root);
            }
            if let Some(obstacle) = obstacle_of(field, past) {
                obstacles.entry(field.root).or_insert(obstacle);
            }
        }
        let mut prefix = "_icefield".to_owned();
        while all.iter().any(|field| field.name.to_lowercase().starts_with(&prefix)) {
            prefix.push('_');
        }
        Self { complete, obstacles, moved, prefix }
    }
}

fn add(field: &Field, path: &str, root: i32, all: &mut Vec<Past>) {
    let name = format!("{path}{}", field.name);
    let has_default = field.initial_default.is_some();
    let within = format!("{name}.");
    match &field.ty {
        Type::Struct(ty) => ty.fields.iter().for_each(|field| add(field, &within, root, all)),
        Type::List(ty) => add(&ty.element, &within, root, all),
        Type::Map(ty) => [&ty.key, &ty.value].into_iter().for_each(|field| add(field, &within, root, all)),
        Type::Primitive(_) | Type::Variant => {}
    }
    all.push(Past { id: field.id, root, name, ty: field.ty.clone(), has_default });
}

/// Whether two types are equal, ignoring the fields of nested ones.
fn same(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Primitive(one), Type::Primitive(other)) => one == other,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

fn obstacle_of(field: &Past, past: &[&Past]) -> Option<Obstacle> {
    if field.has_default {
        return Some(Obstacle::Default(field.name.clone()));
    }
    if !is_plain(&field.ty) {
        return Some(Obstacle::Type(field.name.clone(), field.ty.to_string()));
    }
    let promoted = past.windows(2).find_map(|pair| match pair {
        [old, new] if !widens(&old.ty, &new.ty) => Some(old.ty.to_string()),
        _ => None,
    });
    promoted.map(|from| Obstacle::Promotion(field.name.clone(), from))
}

/// Whether engines read the stored values as Iceberg means them. Other types need a cast or a special type.
fn is_plain(ty: &Type) -> bool {
    use PrimitiveType as P;
    match ty {
        Type::Struct(_) | Type::List(_) | Type::Map(_) => true,
        Type::Variant => false,
        Type::Primitive(ty) => matches!(
            ty,
            P::Boolean
                | P::Int
                | P::Long
                | P::Float
                | P::Double
                | P::Date
                | P::Timestamp
                | P::Timestamptz
                | P::String
                | P::Binary
                | P::Decimal { .. }
        ),
    }
}

/// Whether engines read files of the old type as the new one.
fn widens(old: &Type, new: &Type) -> bool {
    use PrimitiveType as P;
    same(old, new)
        || matches!(
            (old, new),
            (Type::Primitive(P::Int), Type::Primitive(P::Long))
                | (Type::Primitive(P::Float), Type::Primitive(P::Double))
                | (Type::Primitive(P::Decimal { .. }), Type::Primitive(P::Decimal { .. }))
        )
}
