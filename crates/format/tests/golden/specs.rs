//! Partition specs, their evolution, and sort orders.

use icefield_format::Result;
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata};
use icefield_format::spec::{PartitionSpec, SortOrder, SpecUse, UpdatePartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Schema, Type};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::documents::has_source_ids_alone;
use crate::documents::metadata::NOW_MS;
use crate::documents::updates::table;
use crate::{Golden, trials};

/// The schema of a file: its first case.
fn schema_of(cases: &[Json]) -> Json {
    cases.first().map_or(Json::Null, |case| case["schema"].clone())
}

/// `specs.json`.
pub fn specs(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let schema = schema_of(&cases);
    let compared: Vec<Json> =
        cases.iter().filter(|case| case["kind"] == "compatible").map(|case| case["spec"].clone()).collect();
    trials("specs.json", cases, move |case| match case["kind"].as_str().unwrap() {
        "spec" => {
            let unbound = PartitionSpec::from_json(&case["json"]);
            if has_source_ids_alone(&case["json"]) {
                return unbound.map_or_else(|error| Err(error.into()), |_| Ok(()));
            }
            if let Some(expected) = case.get("unbound") {
                check_unbound(&unbound, expected)?;
            }
            check_spec(unbound, &schema, SpecUse::Kept, case)
        }
        "fields" => check_spec(PartitionSpec::from_json_fields(0, &case["json"]), &schema, SpecUse::Default, case),
        "compatible" => check_compatible(case, &compared),
        "schema" => check_schema(case),
        kind => Err(format!("no check for kind {kind}").into()),
    })
}

/// Checks the schema that the other cases of its file use.
fn check_schema(case: &Json) -> Result<(), Failed> {
    equal("schema", Schema::from_json(&case["schema"])?.to_json(), case["schema"].clone())
}

/// Checks which specs of the file are equal except for ids, and which are equal; a spec is itself only among the
/// former.
fn check_compatible(case: &Json, compared: &[Json]) -> Result<(), Failed> {
    let spec = PartitionSpec::from_json(&case["spec"])?;
    let list = |name: &str| -> Result<Vec<PartitionSpec>> {
        case[name].as_array().into_iter().flatten().map(PartitionSpec::from_json).collect()
    };
    let compared = compared.iter().map(PartitionSpec::from_json).collect::<Result<Vec<_>>>()?;
    let compatible: Vec<_> = compared.iter().filter(|other| spec.compatible_with(other)).cloned().collect();
    let same: Vec<_> = compared.iter().filter(|other| spec == **other).skip(1).cloned().collect();
    if (&compatible, &same) != (&list("with")?, &list("equal")?) {
        return Err(format!("compatible with {compatible:?}, equal to {same:?}").into());
    }
    Ok(())
}

/// Checks a spec that is read without a schema: it is written as expected, or rejected.
fn check_unbound(spec: &Result<PartitionSpec>, expected: &Json) -> Result<(), Failed> {
    match (spec, expected.get("error").is_some()) {
        (Ok(spec), false) => equal("unbound", spec.to_json(), expected.clone()),
        (Err(_), true) => Ok(()),
        (other, _) => Err(format!("unbound: got {other:?}, expected {expected}").into()),
    }
}

fn check_spec(spec: Result<PartitionSpec>, schema: &Json, usage: SpecUse, case: &Json) -> Result<(), Failed> {
    let schema = Schema::from_json(schema)?;
    let spec = spec.and_then(|spec| spec.check(&schema, usage).map(|()| spec));
    if case.get("error").is_some() {
        return spec.map_or(Ok(()), |_| Err("was read, but must be refused".into()));
    }
    let spec = spec?;
    let whole = case["json"].is_object();
    let written = if whole { spec.to_json() } else { spec.to_json_fields() };
    equal("written", written, case.get("written").unwrap_or(&case["json"]).clone())?;
    if let Some(expected) = case.get("partition_type") {
        let partition_type = spec.partition_type(&schema);
        equal("partition_type", Type::Struct(partition_type.into()).to_json(), expected.clone())?;
    }
    equal("last_assigned_field_id", json!(spec.last_assigned_field_id()), case["last_assigned_field_id"].clone())?;
    equal("sequential_ids", json!(spec.has_sequential_ids()), case["sequential_ids"].clone())?;
    equal("unpartitioned", json!(spec.is_unpartitioned()), case["unpartitioned"].clone())?;
    equal("string", json!(spec.to_string()), case["string"].clone())
}

/// `orders.json`.
pub fn orders(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let schema = schema_of(&cases);
    let orders: Vec<Json> =
        cases.iter().filter(|case| case["kind"] == "satisfies").map(|case| case["order"].clone()).collect();
    trials("orders.json", cases, move |case| match case["kind"].as_str().unwrap() {
        "order" => check_order(&schema, case),
        "satisfies" => {
            let order = SortOrder::from_json(&case["order"])?;
            for other in &orders {
                let satisfied = case["satisfies"].as_array().unwrap().contains(&other["fields"]);
                let what = format!("satisfies {other}");
                equal(&what, json!(order.satisfies(&SortOrder::from_json(other)?)), json!(satisfied))?;
            }
            Ok(())
        }
        "schema" => check_schema(case),
        kind => Err(format!("no check for kind {kind}").into()),
    })
}

fn check_order(schema: &Json, case: &Json) -> Result<(), Failed> {
    let schema = Schema::from_json(schema)?;
    let order = SortOrder::from_json(&case["json"]).and_then(|order| order.check(&schema).map(|()| order));
    if case.get("error").is_some() {
        return match order {
            Ok(_) if !has_source_ids_alone(&case["json"]) => Err("was read, but must be refused".into()),
            _ => Ok(()),
        };
    }
    let order = order?;
    equal("written", order.to_json(), case.get("written").unwrap_or(&case["json"]).clone())?;
    equal("sorted", json!(!order.is_unsorted()), case["sorted"].clone())?;
    equal("string", json!(order.to_string()), case["string"].clone())
}

/// `spec_updates.json`: successive commits.
pub fn spec_updates(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let shared = schema_of(&cases);
    trials("spec_updates.json", cases, move |case| {
        if case["kind"] == "schema" {
            return check_schema(case);
        }
        let steps = case["steps"].as_array().ok_or("no steps")?;
        let schema = case.get("schema").unwrap_or(&shared);
        let mut metadata = table(u8::try_from(case["format"].as_u64().unwrap())?, schema, &case["start"])?;
        for step in steps {
            let committed = commit(&metadata, &step["ops"]);
            if step.get("error").is_some() {
                return committed.map_or(Ok(()), |_| Err("went through, but must fail".into()));
            }
            metadata = committed?;
            equal("default_spec_id", json!(metadata.default_spec_id()), step["default_spec_id"].clone())?;
            let specs = metadata.partition_specs().iter().map(|spec| spec.to_json()).collect();
            equal("specs", specs, step["specs"].clone())?;
            equal("last_partition_id", json!(metadata.last_partition_id()), step["last_partition_id"].clone())?;
        }
        Ok(())
    })
}

fn commit(metadata: &TableMetadata, ops: &Json) -> Result<TableMetadata> {
    let mut update = metadata.update_partition_spec();
    let mut as_default = true;
    for op in ops.as_array().unwrap() {
        let words: Vec<&str> = op.as_array().unwrap().iter().map(|word| word.as_str().unwrap_or_default()).collect();
        match words[0] {
            "cs" => drop(update.case_sensitive(op[1].as_bool().unwrap())),
            "nondefault" => as_default = false,
            _ => change(&mut update, &words)?,
        }
    }
    let spec = update.apply()?;
    let updates =
        if as_default { metadata.default_spec_updates(&spec) } else { vec![MetadataUpdate::AddSpec { spec }] };
    MetadataBuilder::from_base(metadata, NOW_MS).apply_all(updates)?.build()
}

fn change(update: &mut UpdatePartitionSpec, words: &[&str]) -> Result<()> {
    match words {
        ["add", transform, column] => update.add_field(Transform::parse(transform)?, column, None)?,
        ["add", transform, column, name] => update.add_field(Transform::parse(transform)?, column, Some(name))?,
        ["remove", transform, column] => update.remove_transform(&Transform::parse(transform)?, column)?,
        ["remove-name", name] => update.remove_field(name)?,
        ["rename", from, to] => update.rename_field(from, to)?,
        other => panic!("no such operation: {other:?}"),
    };
    Ok(())
}

fn equal(what: &str, got: Json, expected: Json) -> Result<(), Failed> {
    if got == expected { Ok(()) } else { Err(format!("{what}: got {got}, expected {expected}").into()) }
}
