//! `schemas.json`: JSON, lookups, ids, compatibility and projection of schemas.

pub(super) mod evolution;
mod file_schemas;
pub(super) mod name_mapping;
pub(super) mod types;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use icefield_format::Result;
use icefield_format::types::{Checks, Schema, Type};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::typed::same;
use crate::values::text;
use crate::{Golden, trial};

/// Trials of all cases.
pub fn trials(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let all = Arc::new(cases);
    (0..all.len())
        .map(|number| {
            let all = Arc::clone(&all);
            trial("schemas", number, move || match (text(&all[number], "kind")?, &all[number]) {
                ("schema", case) => check_schema(case),
                ("pair", case) => check_pair(case),
                ("select", case) => check_selection(case, &all),
                (kind, _) => Err(format!("no check for kind {kind}").into()),
            })
        })
        .collect()
}

fn check_schema(case: &Json) -> Result<(), Failed> {
    let read = Schema::from_json(&case["json"]);
    if case.get("error").is_some() {
        return if read.is_err() || has_wider_default(&case["json"]) {
            Ok(())
        } else {
            Err("read, but is an error".into())
        };
    }
    let schema = read?;
    let written = schema.to_json();
    same("written", &written, case.get("written").unwrap_or(&case["json"]))?;
    same("read again", &Schema::from_json(&written)?.to_json(), &written)?;
    same("highest_field_id", &json!(schema.highest_field_id()), &case["highest_field_id"])?;
    same("identifier_ids", &json!(schema.identifier_field_ids()), &case["identifier_ids"])?;
    check_lookups(case, &schema)?;
    for (version, problem) in case["compatibility"].as_object().into_iter().flatten() {
        let checked = schema.check_compatibility(version.parse()?);
        if checked.is_ok() != problem.is_null() {
            return Err(format!("version {version}: {checked:?}, expected {problem}").into());
        }
    }
    check_fresh_ids(case, &schema)
}

/// Whether a column has a default that the library cannot read: null, and `{}` of a struct (docs/differences.md).
fn has_wider_default(schema: &Json) -> bool {
    let is_wider = |default: Option<&Json>| default.is_some_and(|json| json.is_null() || *json == json!({}));
    let fields = schema["fields"].as_array().into_iter().flatten();
    fields.into_iter().any(|field| is_wider(field.get("initial-default")) || is_wider(field.get("write-default")))
}

fn check_lookups(case: &Json, schema: &Schema) -> Result<(), Failed> {
    same("name_to_id", &json!(sorted(schema.names())), &case["name_to_id"])?;
    let id_to_name: BTreeMap<_, _> = schema.ids().iter().map(|id| (id.to_string(), schema.column_name(*id))).collect();
    same("id_to_name", &json!(id_to_name), &case["id_to_name"])?;
    match (schema.lower_case_names(), case.get("lower_error")) {
        (Ok(names), None) => same("lower_name_to_id", &json!(sorted(names)), &case["lower_name_to_id"])?,
        (Err(_), Some(_)) => {}
        (got, expected) => return Err(format!("lower case: {got:?}, expected {expected:?}").into()),
    }
    for (name, id) in schema.names() {
        let found = schema.find_by_name(name, true)?.map(|field| field.id);
        if found != Some(*id) {
            return Err(format!("{name:?} finds {found:?}, not {id}").into());
        }
    }
    let parents: BTreeMap<_, _> = schema.parents().into_iter().map(|(id, parent)| (id.to_string(), parent)).collect();
    same("parents", &json!(parents), &case["parents"])?;
    let accessors: BTreeSet<_> = schema.ids().iter().filter(|id| schema.accessor(**id).is_some()).collect();
    same("accessors", &json!(accessors), &case["accessors"])?;
    check_accessors(schema)
}

/// Checks that each accessor leads to its field.
fn check_accessors(schema: &Schema) -> Result<(), Failed> {
    for id in schema.ids() {
        let Some((last, ancestors)) = schema.accessor(*id).and_then(<[usize]>::split_last) else { continue };
        let mut at = schema.as_struct();
        for position in ancestors {
            at = at.fields[*position].ty.as_struct().ok_or("not a struct")?;
        }
        if at.fields[*last].id != *id {
            return Err(format!("the accessor of {id} leads to {}", at.fields[*last].id).into());
        }
    }
    Ok(())
}

fn check_fresh_ids(case: &Json, schema: &Schema) -> Result<(), Failed> {
    let mut last_id = 0;
    let fresh = schema.with_fresh_ids(5, &mut last_id)?;
    match case.get("fresh") {
        Some(expected) => same("fresh", &fresh.to_json(), expected)?,
        None => same("fresh", &fresh.with_schema_id(schema.schema_id()).to_json(), &schema.to_json())?,
    }
    same("fresh_last_id", &json!(last_id), &case["fresh_last_id"])?;
    match case.get("increasing_fresh") {
        Some(expected) => same("increasing_fresh", &schema.with_fresh_ids(0, &mut 0)?.to_json(), expected),
        None => Ok(()),
    }
}

fn check_pair(case: &Json) -> Result<(), Failed> {
    let (schema, base) = (Schema::from_json(&case["schema"])?, Schema::from_json(&case["base"])?);
    let mut last_id = base.highest_field_id();
    let results = [
        ("reassign_ids", schema.with_ids_of(&base, true)),
        ("reassign_ids_case_insensitive", schema.with_ids_of(&base, false)),
        ("reassign_or_refresh_ids", schema.with_ids_of_or_fresh(&base, true)),
        ("reassign_or_refresh_ids_case_insensitive", schema.with_ids_of_or_fresh(&base, false)),
        ("fresh_from_base", schema.with_fresh_ids_from(&base, &mut last_id)),
    ];
    for (name, result) in results {
        check_result(name, result, case.get(name))?;
    }
    let errors = [
        ("write_errors", Checks::WRITE),
        ("write_errors_unordered", Checks::WRITE_UNORDERED),
        ("type_errors", Checks::TYPES),
        ("read_errors", Checks::READ),
    ];
    for (name, checks) in errors {
        if case[name].get("error").is_none() {
            same(name, &json!(base.compatibility_errors(&schema, checks)), &case[name])?;
        }
    }
    same("same_schema", &json!(schema.same_schema(&base)), &case["same_schema"])
}

fn check_selection(case: &Json, all: &[Json]) -> Result<(), Failed> {
    let of = case["case"].as_u64().and_then(|number| all.get(usize::try_from(number).ok()?));
    let schema = Schema::from_json(&of.ok_or("no such case")?["json"])?;
    let ids: HashSet<i32> = serde_json::from_value(case["ids"].clone())?;
    check_result("select", schema.select_ids(&ids), case.get("select"))?;
    if !selects_variant_of_collection(&schema, &ids) {
        check_result("project", schema.project(&ids), case.get("project"))?;
    }
    let rest: HashSet<i32> = schema.projected_ids().difference(&ids).copied().collect();
    if !selects_variant_of_collection(&schema, &rest) {
        check_result("select_not", schema.select_not(&ids), case.get("select_not"))?;
    }
    let projected: BTreeSet<_> = schema.projected_ids().into_iter().collect();
    same("projected_ids", &json!(projected), &case["projected_ids"])
}

/// The library cannot project a variant that is a list element or a map value (docs/differences.md, "Variants").
fn selects_variant_of_collection(schema: &Schema, ids: &HashSet<i32>) -> bool {
    ids.iter().any(|id| schema.accessor(*id).is_none() && schema.find_type(*id) == Some(&Type::Variant))
}

fn check_result(name: &str, result: Result<Schema>, expected: Option<&Json>) -> Result<(), Failed> {
    match (result, expected) {
        (_, None) => Ok(()),
        (Err(_), Some(expected)) if expected.get("error").is_some() => Ok(()),
        (Err(error), Some(_)) => Err(format!("{name}: {error}").into()),
        (Ok(schema), Some(expected)) => same(name, &schema.to_json(), expected),
    }
}

fn sorted(names: &std::collections::HashMap<String, i32>) -> BTreeMap<&str, i32> {
    names.iter().map(|(name, id)| (name.as_str(), *id)).collect()
}
