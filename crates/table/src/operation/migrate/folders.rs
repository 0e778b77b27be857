//! Lists the files of a folder, and the partitions in the names of its subfolders.

use std::collections::BTreeMap;

use icefield_format::spec::path::{infer_type, split_folder};
use icefield_format::spec::{FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema, Type};

use crate::error::{Error, Result};
use crate::storage::{Entry, Storage};

/// Folders in which other table formats record deletions. Reading such files without these records would return deleted
/// rows.
const LOGS: [(&str, &str); 4] = [
    ("_delta_log", "a Delta table"),
    (".hoodie", "a Hudi table"),
    ("snapshot", "a Paimon table"),
    ("metadata", "an Iceberg table"),
];

/// The files of a folder, and their common partition columns.
pub(super) struct Folders {
    pub(super) files: Vec<Entry>,
    /// Names of the partition columns, with their values as written in the names of subfolders.
    columns: Vec<(String, Vec<String>)>,
}

impl Folders {
    pub(super) fn find(storage: &Storage, folder: &str) -> Result<Self> {
        let folder = folder.trim_end_matches('/');
        let below = |path: &str| path.get(folder.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
        let mut files = storage.list(folder)?;
        for file in &files {
            check_is_plain(folder, &below(&file.path))?;
        }
        files.retain(|file| {
            let below = below(&file.path);
            file.size > 0 && !below.split('/').any(is_hidden) && !is_left_over(&below)
        });
        let Some(first) = files.first() else {
            return Err(Error::invalid(format!("{folder}: there are no data files in this folder")));
        };
        let names = |path: &str| -> Result<Vec<(String, String)>> {
            let below = below(path);
            let (folders, _) = below.rsplit_once('/').unwrap_or_default();
            let pairs = folders.split('/').filter_map(|folder| split_folder(folder).transpose());
            pairs.map(|pair| pair.map(|(name, value)| (name, value.to_owned())).map_err(Error::from)).collect()
        };
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        for (name, _) in names(&first.path)? {
            if columns.iter().any(|(known, _)| *known == name) {
                return Err(Error::invalid(format!(
                    "{}: partition column {name} occurs twice in the path",
                    first.path
                )));
            }
            columns.push((name, Vec::new()));
        }
        for file in &files {
            let own = names(&file.path)?;
            let (found, known) = (own.iter().map(|(name, _)| name), columns.iter().map(|(name, _)| name));
            if !found.eq(known) {
                return Err(Error::invalid(format!(
                    "the partition columns differ: {} has {}, and {} has {}",
                    first.path,
                    listed(columns.iter().map(|(name, _)| name.as_str())),
                    file.path,
                    listed(own.iter().map(|(name, _)| name.as_str())),
                )));
            }
            for ((_, values), (_, value)) in columns.iter_mut().zip(own) {
                // Files are sorted by path, so those of one folder are adjacent.
                if values.last() != Some(&value) {
                    values.push(value);
                }
            }
        }
        Ok(Self { files, columns })
    }

    /// Adds the partition columns to the schema; returns it with their partition spec.
    pub(super) fn with_partitions(
        &self,
        schema: Schema,
        types: &BTreeMap<String, PrimitiveType>,
    ) -> Result<(Schema, PartitionSpec)> {
        if let Some(name) = types.keys().find(|name| self.columns.iter().all(|(known, _)| known != *name)) {
            let known = listed(self.columns.iter().map(|(name, _)| name.as_str()));
            return Err(Error::invalid(format!("there are no folders {name}=...: the partition columns are {known}")));
        }
        let mut fields = schema.fields().to_vec();
        let mut last_id = schema.highest_field_id();
        for (name, values) in &self.columns {
            let given = types.get(name);
            match fields.iter().find(|field| field.name == *name) {
                None => {
                    let inferred = || infer_type(values.iter().map(String::as_str));
                    last_id = last_id.saturating_add(1);
                    fields.push(Field::optional(last_id, name, given.cloned().unwrap_or_else(inferred)));
                }
                Some(Field { ty: Type::Primitive(ty), .. }) if given.is_none_or(|given| given == ty) => {}
                Some(Field { ty, .. }) => {
                    let wanted = given.map_or("a primitive type".to_owned(), ToString::to_string);
                    return Err(Error::invalid(format!(
                        "partition column {name} is stored in the files as {ty}, and should be {wanted}"
                    )));
                }
            }
        }
        let schema = Schema::new(0, fields)?;
        let field = |(field_id, (name, _)): (i32, &(String, _))| {
            let source_ids = vec![schema.named(name, true)?.id];
            Ok::<_, Error>(PartitionField { source_ids, field_id, name: name.clone(), transform: Transform::Identity })
        };
        let fields = (FIRST_PARTITION_FIELD_ID..).zip(&self.columns).map(field).collect::<Result<_>>()?;
        Ok((schema, PartitionSpec { spec_id: 0, fields }))
    }
}

/// Whether a file is a manifest or a manifest list, left by a process that ended in the middle of a migration.
fn is_left_over(below: &str) -> bool {
    const UUID_CHARS: usize = 36;
    let name = below.strip_prefix("metadata/").filter(|name| name.ends_with(".avro"));
    name.is_some_and(|name| {
        name.starts_with("snap-") || name.get(UUID_CHARS..).is_some_and(|rest| rest.starts_with("-m"))
    })
}

/// Rejects folders of other table formats: their files may have deleted rows.
fn check_is_plain(folder: &str, below: &str) -> Result<()> {
    let (first, rest) = below.split_once('/').unwrap_or((below, ""));
    let is_log = |name: &str| match name {
        "metadata" => rest.ends_with(".metadata.json") || rest.ends_with(".metadata.json.gz"),
        "snapshot" => rest == "LATEST" || rest.starts_with("snapshot-"),
        _ => true,
    };
    if let Some((_, what)) = LOGS.iter().find(|(name, _)| *name == first && is_log(name)) {
        let remedy = if first == "metadata" { ": register its metadata file" } else { "" };
        return Err(Error::unsupported(format!("{folder}: this is {what}, not a folder of Hive's layout{remedy}")));
    }
    let is_of_acid = |name: &str| {
        let number = name.strip_prefix("base_").or_else(|| name.strip_prefix("delta_"));
        let number = number.or_else(|| name.strip_prefix("delete_delta_"));
        number
            .is_some_and(|number| number.len() >= 7 && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_'))
    };
    if below.rsplit('/').skip(1).any(is_of_acid) {
        return Err(Error::unsupported(format!(
            "{folder}: this is a transactional table of Hive ({below}): its files have rows that may be deleted"
        )));
    }
    Ok(())
}

/// Whether files and folders with this name are not part of a table.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
