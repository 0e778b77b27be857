//! Metadata documents of the vector files: base documents by name, differences between documents, patches.

pub(super) mod metadata;
pub(super) mod updates;

use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::metadata::TableMetadata;
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::{Limits, Result};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::{Golden, left_out, trial};

/// The documents that cases refer to by name.
fn named(golden: &Golden) -> Arc<HashMap<String, Json>> {
    let files = ["metadata_bases.json", "metadata_valid.json"];
    let cases = files.iter().flat_map(|file| golden.vectors(file));
    Arc::new(cases.map(|case| (case["name"].as_str().unwrap().to_owned(), case["doc"].clone())).collect())
}

/// One trial for each case with a base document; without the document the case is ignored.
pub fn trials_on<F>(golden: &Golden, file: &'static str, cases: Vec<Json>, key: &str, check: F) -> Vec<Trial>
where
    F: Fn(Option<&Json>, &Json) -> Result<(), Failed> + Clone + Send + 'static,
{
    let named = named(golden);
    let trial_of = |(number, case): (usize, Json)| {
        let name = case[key].as_str().map(str::to_owned);
        if name.as_ref().is_some_and(|name| !named.contains_key(name)) {
            return left_out(file, number);
        }
        let (named, check) = (Arc::clone(&named), check.clone());
        trial(file, number, move || check(name.as_ref().and_then(|name| named.get(name)), &case))
    };
    cases.into_iter().enumerate().map(trial_of).collect()
}

/// Reads a document in the same way as a file.
pub fn read(document: &Json) -> Result<TableMetadata> {
    TableMetadata::from_json(document.to_string().as_bytes(), &Limits::default())
}

/// Members that may be missing, for which null means the same. The library rejects some of these nulls
/// (docs/differences.md, "Members that are null").
const OPTIONAL: [&str; 14] = [
    "encryption-keys",
    "initial-default",
    "manifest-list",
    "parent-snapshot-id",
    "partition-specs",
    "partition-statistics",
    "properties",
    "refs",
    "schemas",
    "sequence-number",
    "sort-orders",
    "statistics",
    "summary",
    "write-default",
];

/// Removes optional members that are null, and null values of properties and summaries.
pub fn without_nulls(document: &Json) -> Json {
    fn strip(json: &Json, of_strings: bool) -> Json {
        match json {
            Json::Object(members) => {
                let is_kept = |name: &str, value: &Json| !value.is_null() || !(of_strings || OPTIONAL.contains(&name));
                let kept = members.iter().filter(|(name, value)| is_kept(name, value));
                let strings = |name: &str| matches!(name, "properties" | "summary");
                kept.map(|(name, value)| (name.clone(), strip(value, strings(name)))).collect()
            }
            Json::Array(items) => items.iter().map(|item| strip(item, false)).collect(),
            other => other.clone(),
        }
    }
    strip(document, false)
}

/// Raises the last ids of a document to the largest ids in use; the library continues from lower ones
/// (docs/differences.md, "Last ids that are too low").
pub fn raised(document: &Json) -> Json {
    let mut document = document.clone();
    let ints =
        |list: &Json, read: &dyn Fn(&Json) -> Vec<i64>| list.as_array().into_iter().flatten().flat_map(read).max();
    let of_spec = |spec: &Json| -> Vec<i64> {
        spec["fields"].as_array().into_iter().flatten().filter_map(|field| field["field-id"].as_i64()).collect()
    };
    let of_rows = |snapshot: &Json| -> Vec<i64> {
        vec![snapshot["first-row-id"].as_i64().unwrap_or(0) + snapshot["added-rows"].as_i64().unwrap_or(0)]
    };
    let fields = ints(&document["partition-specs"], &of_spec);
    let rows = ints(&document["snapshots"], &of_rows);
    for (name, highest) in [("last-partition-id", fields), ("next-row-id", rows)] {
        if let (Some(last), Some(highest)) = (document[name].as_i64(), highest) {
            document[name] = last.max(highest).into();
        }
    }
    document
}

/// Applies a difference `{"set": …, "removed": …}` to a document.
pub fn changed(document: &Json, difference: &Json) -> Json {
    let mut document = document.as_object().unwrap().clone();
    for name in difference["removed"].as_array().into_iter().flatten() {
        document.shift_remove(name.as_str().unwrap());
    }
    for (name, value) in difference["set"].as_object().into_iter().flatten() {
        document.insert(name.clone(), value.clone());
    }
    Json::Object(document)
}

/// Sorts the parts of a document whose order has no meaning.
pub fn sorted(document: &Json) -> Json {
    let mut document = document.clone();
    for list in ["statistics", "partition-statistics"] {
        if let Some(files) = document.get_mut(list).and_then(Json::as_array_mut) {
            files.sort_by_key(|file| file["snapshot-id"].as_i64());
        }
    }
    document
}

/// Field names of versions 1 to 3 in metadata, snapshots, references and statistics files.
const KNOWN: [&str; 51] = [
    "added-rows",
    "blob-metadata",
    "current-schema-id",
    "current-snapshot-id",
    "default-sort-order-id",
    "default-spec-id",
    "encryption-keys",
    "fields",
    "file-footer-size-in-bytes",
    "file-size-in-bytes",
    "first-row-id",
    "format-version",
    "key-id",
    "key-metadata",
    "last-column-id",
    "last-partition-id",
    "last-sequence-number",
    "last-updated-ms",
    "location",
    "manifest-list",
    "manifests",
    "max-ref-age-ms",
    "max-snapshot-age-ms",
    "metadata-log",
    "min-snapshots-to-keep",
    "next-row-id",
    "order-id",
    "parent-snapshot-id",
    "partition-spec",
    "partition-specs",
    "partition-statistics",
    "properties",
    "refs",
    "schema",
    "schema-id",
    "schemas",
    "sequence-number",
    "snapshot-id",
    "snapshot-log",
    "snapshots",
    "sort-orders",
    "statistics",
    "statistics-path",
    "summary",
    "table-uuid",
    "timestamp-ms",
    "type",
    "snapshot-timestamp-ms",
    "spec-id",
    "sequence-numbers",
    "encrypted-key-metadata",
];

/// Rule: fields of later specifications are preserved; the Java library drops them (docs/differences.md). Removes
/// fields that are neither known nor expected.
fn without_unknown(got: &Json, expected: &Json) -> Json {
    fn known(got: &Json, expected: &Json) -> Json {
        let Json::Object(fields) = got else { return got.clone() };
        let kept = fields.iter().filter(|(name, _)| KNOWN.contains(&name.as_str()) || expected.get(name).is_some());
        Json::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    }
    let mut kept = known(got, expected);
    for list in ["snapshots", "statistics", "partition-statistics"] {
        let Some(items) = kept.get_mut(list).and_then(Json::as_array_mut) else { continue };
        for item in items {
            let of_same = |other: &&Json| other["snapshot-id"] == item["snapshot-id"];
            let same = expected[list].as_array().into_iter().flatten().find(of_same);
            *item = known(item, same.unwrap_or(&Json::Null));
        }
    }
    for (name, reference) in kept.get_mut("refs").and_then(Json::as_object_mut).into_iter().flatten() {
        *reference = known(reference, &expected["refs"][name.as_str()]);
    }
    kept
}

/// Fails with the fields that differ.
pub fn same(got: &Json, expected: &Json) -> Result<(), Failed> {
    let (got, expected) = (without_unknown(&sorted(got), expected), sorted(expected));
    let (got, expected) = (got.as_object().unwrap(), expected.as_object().unwrap());
    let mut differences = Vec::new();
    for name in got.keys().chain(expected.keys()) {
        if got.get(name) != expected.get(name) {
            differences.push(format!("{name}: got {:?}, expected {:?}", got.get(name), expected.get(name)));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}

/// Sets or removes the value at a JSON pointer.
pub fn patch(document: &mut Json, path: &str, value: Option<&Json>) {
    let (parent, last) = path.rsplit_once('/').unwrap();
    match (document.pointer_mut(parent).unwrap(), value) {
        (Json::Object(object), Some(value)) => drop(object.insert(last.to_owned(), value.clone())),
        (Json::Object(object), None) => drop(object.shift_remove(last)),
        (Json::Array(array), Some(value)) => array[last.parse::<usize>().unwrap()] = value.clone(),
        (Json::Array(array), None) => drop(array.remove(last.parse::<usize>().unwrap())),
        (other, _) => panic!("nothing to patch at {path}: {other}"),
    }
}

/// Rule: a type name of a later specification is preserved, so that the table loads; the Java library rejects it.
pub fn has_unrecognized_type(metadata: &TableMetadata) -> bool {
    let unrecognized = |ty: &Type| matches!(ty, Type::Primitive(PrimitiveType::Unrecognized(_)));
    metadata.schemas().iter().any(|schema| schema.ids().iter().filter_map(|id| schema.find_type(*id)).any(unrecognized))
}

/// Rule: `source-ids` of v3 is read, even without `source-id`; the Java library knows only `source-id`.
pub fn has_source_ids_alone(value: &Json) -> bool {
    match value {
        Json::Object(object) => {
            (object.contains_key("source-ids") && !object.contains_key("source-id"))
                || object.values().any(has_source_ids_alone)
        }
        Json::Array(array) => array.iter().any(has_source_ids_alone),
        _ => false,
    }
}

/// Rule: metadata whose default spec or sort order is missing is rejected; the Java library loads it and fails later.
pub fn lacks_a_default(document: &Json) -> bool {
    let lacks = |default: &str, list: &str, id: &str| match (&document[default], document[list].as_array()) {
        (Json::Number(default), Some(items)) => !items.iter().any(|item| item[id].as_number() == Some(default)),
        _ => false,
    };
    lacks("default-spec-id", "partition-specs", "spec-id") || lacks("default-sort-order-id", "sort-orders", "order-id")
}
