//! `name_mapping.json`: name mappings, and the ids that they assign to the fields of files.

use std::collections::BTreeMap;

use arrow_schema::{DataType, Fields, Schema as ArrowSchema};
use icefield_format::types::arrow::{
    FromArrow, field_id, has_ids, with_ids_only, with_mapped_ids, with_positional_ids,
};
use icefield_format::types::{MappedField, NameMapping, Schema};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use super::file_schemas::{self, PATH_KEY};
use crate::typed::same;
use crate::values::text;
use crate::{Golden, trials as trials_of};

/// Trials of all cases.
pub fn trials(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials_of("name_mapping", cases, |case| match text(case, "kind")? {
        "parse" => check_parse(case),
        "create" => {
            let mapping = NameMapping::of_schema(&Schema::from_json(&case["schema"])?)?;
            same("mapping", &mapping.to_json(), &case["mapping"])
        }
        "apply_avro" => {
            let mapping = NameMapping::from_json(&case["mapping"])?;
            same("result", &mapping.apply_to_avro(&case["file_schema"])?, &case["result"])
        }
        "apply_parquet" => check_parquet(case),
        "apply_orc" => {
            let fields = file_schemas::orc(text(case, "file_schema")?)?;
            check_ids(case, &with_mapped_ids(&fields, &NameMapping::from_json(&case["mapping"])?))
        }
        "fallback_parquet" => {
            let fields = file_schemas::parquet(text(case, "file_schema")?)?;
            same("has_ids", &json!(has_ids(&fields)), &case["has_ids"])?;
            check_ids(case, &with_positional_ids(&fields))
        }
        kind => Err(format!("no check for kind {kind}").into()),
    })
}

fn check_parse(case: &Json) -> Result<(), Failed> {
    let read = NameMapping::from_json(&case["json"]);
    if case.get("error").is_some() {
        return match read {
            Err(_) => Ok(()),
            Ok(_) if lacks_an_id(&case["json"]) || has_null_fields(&case["json"]) => Ok(()),
            Ok(mapping) => Err(format!("read, but is an error: {mapping:?}").into()),
        };
    }
    let mapping = read?;
    let written = case.get("written").unwrap_or(&case["json"]);
    same("written", &sorted_names(&mapping.to_json()), &sorted_names(written))?;
    let by_id: BTreeMap<_, _> = mapping.by_id().iter().map(|(id, field)| (id.to_string(), entry(field))).collect();
    same("by_id", &json!(by_id), &case["by_id"])?;
    for (path, expected) in case["by_name"].as_object().into_iter().flatten() {
        let found = mapping.find(path).ok_or_else(|| format!("{path:?} is not found"))?;
        same(path, &entry(&found), expected)?;
    }
    same("a name that is not there", &mapping.find("\u{0}.").map(|field| field.id), &None)
}

/// Whether an entry has no id, which is valid, but the library cannot read it (docs/differences.md, "Name mappings
/// without ids").
fn lacks_an_id(json: &Json) -> bool {
    match json {
        Json::Array(fields) => fields.iter().any(lacks_an_id),
        Json::Object(field) => {
            field.get("field-id").is_none_or(Json::is_null) || field.get("fields").is_some_and(lacks_an_id)
        }
        _ => false,
    }
}

/// Whether there is a `"fields": null`, which PyIceberg writes and the library rejects (docs/differences.md, "Name
/// mappings without ids").
fn has_null_fields(json: &Json) -> bool {
    match json {
        Json::Array(fields) => fields.iter().any(has_null_fields),
        Json::Object(field) => field.get("fields").is_some_and(|inside| inside.is_null() || has_null_fields(inside)),
        _ => false,
    }
}

fn entry(field: &MappedField) -> Json {
    let mut names = field.names.clone();
    names.sort_unstable();
    json!({"field-id": field.id, "names": names})
}

/// Sorts the names of each entry, as they are sets.
pub fn sorted_names(json: &Json) -> Json {
    match json {
        Json::Array(fields) => fields.iter().map(sorted_names).collect(),
        Json::Object(field) => {
            let mut field = field.clone();
            if let Some(Json::Array(names)) = field.get_mut("names") {
                names.sort_by_key(ToString::to_string);
            }
            if let Some(fields) = field.get_mut("fields") {
                *fields = sorted_names(fields);
            }
            Json::Object(field)
        }
        other => other.clone(),
    }
}

fn check_parquet(case: &Json) -> Result<(), Failed> {
    let fields = file_schemas::parquet(text(case, "file_schema")?)?;
    same("has_ids", &json!(has_ids(&fields)), &case["has_ids"])?;
    let mapped = with_mapped_ids(&fields, &NameMapping::from_json(&case["mapping"])?);
    check_ids(case, &mapped)?;
    if case["pruned_schema"].get("error").is_some() {
        return Ok(());
    }
    let pruned = ArrowSchema::new(with_ids_only(&mapped));
    same("pruned", &Schema::from_arrow(&pruned, &FromArrow::for_version(3))?.to_json(), &case["pruned_schema"])
}

fn check_ids(case: &Json, fields: &Fields) -> Result<(), Failed> {
    let mut ids = BTreeMap::new();
    collect(fields, &mut ids);
    same("ids", &json!(ids), &case["ids"])
}

fn collect(fields: &Fields, ids: &mut BTreeMap<String, i32>) {
    for field in fields {
        if let (Some(id), Some(path)) = (field_id(field), field.metadata().get(PATH_KEY)) {
            ids.insert(path.clone(), id);
        }
        match field.data_type() {
            DataType::Struct(inner) => collect(inner, ids),
            DataType::List(inner) | DataType::Map(inner, _) => collect(&Fields::from(vec![inner.clone()]), ids),
            _ => {}
        }
    }
}
