//! `hash.json`, `transforms.json`, `transform_meta.json`, `transform_parse.json`, `paths.json`.

use icefield_format::spec::path;
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::{Transform, murmur3};
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::Value;
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::typed::{primitive, refused, same, ty, value};
use crate::values::{check_human, same_human, text};
use crate::{Golden, trials};

pub fn hash(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("hash.json", cases, |case| {
        let ty = ty(&case["type"])?;
        let value = value(&case["value"], &ty)?.ok_or("a null value")?;
        let expected = case["hash"].as_i64().ok_or("no hash")?;
        same("hash", &i64::from(hash_of(&value, &ty)? as i32), &expected)
    })
}

/// The hash of a value: from `bucket` with the maximum number of buckets if the type has buckets, otherwise by Appendix
/// B.
fn hash_of(value: &Value, ty: &Type) -> Result<u32, Failed> {
    let hash = match value {
        Value::Float(v) => murmur3::hash_double(f64::from(*v)),
        Value::Double(v) => murmur3::hash_double(*v),
        Value::Boolean(v) => murmur3::hash_long(i64::from(*v)),
        Value::Int(v) => murmur3::hash_long(i64::from(*v)),
        Value::Long(v) if *ty == PrimitiveType::TimestampNs.into() || *ty == PrimitiveType::TimestamptzNs.into() => {
            murmur3::hash_long(v.div_euclid(1000))
        }
        Value::Long(v) => murmur3::hash_long(*v),
        Value::Decimal(v) => murmur3::murmur3_32(icefield_format::value::decimal::minimal_bytes(*v).as_slice()),
        Value::String(v) => murmur3::murmur3_32(v.as_bytes()),
        Value::Uuid(v) => murmur3::murmur3_32(v),
        Value::Binary(v) => murmur3::murmur3_32(v),
        _ => return Err("no hash of a nested value".into()),
    };
    let all = Transform::Bucket(i32::MAX as u32);
    if all.result_type(ty).is_some() {
        let expected = Some(Value::Int(((hash & 0x7fff_ffff) % i32::MAX as u32) as i32));
        same("bucket", &all.apply(ty, Some(value))?, &expected)?;
    }
    Ok(hash)
}

pub fn results(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("transforms.json", cases, |case| {
        let source = ty(&case["type"])?;
        let given = value(&case["value"], &source)?;
        for (name, expected) in case["results"].as_object().ok_or("no results")? {
            let in_transform = |error: Failed| Failed::from(format!("{name}: {}", error.message().unwrap_or("")));
            result(name, &source, given.as_ref(), expected).map_err(in_transform)?;
        }
        Ok(())
    })
}

fn result(name: &str, source: &Type, given: Option<&Value>, expected: &Json) -> Result<(), Failed> {
    let transform = Transform::parse(name)?;
    let result_type = transform.result_type(source).ok_or("the type is refused")?;
    let got = transform.apply(source, given)?;
    same("result", &got, &value(&expected[0], &result_type)?)?;
    let human = expected[1].as_str().ok_or("no human text")?;
    let got_human = transform.to_human_string(got.as_ref(), source.as_primitive().ok_or("no primitive")?);
    same_human(got.as_ref(), &got_human, human)?;
    if transform.is_identity() {
        check_human(given, source, human)?;
    }
    let escaped = expected.get(2).and_then(Json::as_str).unwrap_or(human);
    same("path", &path::escape(human).as_str(), &escaped)
}

pub fn meta(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("transform_meta.json", cases, |case| {
        let transform = Transform::parse(text(case, "transform")?)?;
        same("string", &transform.to_string().as_str(), &text(case, "string")?)?;
        same("dedup name", &transform.dedup_name().as_str(), &text(case, "dedup_name")?)?;
        same("preserves order", &Some(transform.preserves_order()), &case["preserves_order"].as_bool())?;
        same("is identity", &Some(transform.is_identity()), &case["is_identity"].as_bool())?;
        same("is void", &Some(transform.is_void()), &case["is_void"].as_bool())?;
        for (other, expected) in case["satisfies_order_of"].as_object().ok_or("no orders")? {
            let got = transform.satisfies_order_of(&Transform::parse(other)?);
            same(&format!("satisfies the order of {other}"), &Some(got), &expected.as_bool())?;
        }
        for (source, expected) in case["result_types"].as_object().ok_or("no result types")? {
            let source = match serde_json::from_str(source) {
                Ok(nested) => ty(&nested)?,
                Err(_) => Type::parse(source)?,
            };
            let expected = if expected.is_null() { None } else { Some(ty(expected)?) };
            same(&format!("result type of {source}"), &transform.result_type(&source), &expected)?;
        }
        Ok(())
    })
}

pub fn parse(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("transform_parse.json", cases, |case| {
        let parsed = Transform::parse(text(case, "string")?);
        if case.get("error").is_some() {
            return refused("parsed", parsed);
        }
        let parsed = parsed?;
        same("written", &parsed.to_string().as_str(), &text(case, "parsed")?)?;
        same("known", &Some(!matches!(parsed, Transform::Unknown(_))), &case["known"].as_bool())?;
        match case.get("kind") {
            Some(expected) => same("kind", &Json::from(kind(&parsed)), expected),
            None => Ok(()),
        }
    })
}

/// The name of a transform's class in the library.
fn kind(transform: &Transform) -> &'static str {
    match transform {
        Transform::Identity => "Identity",
        Transform::Bucket(_) => "Bucket",
        Transform::Truncate(_) => "Truncate",
        Transform::Year => "Years",
        Transform::Month => "Months",
        Transform::Day => "Days",
        Transform::Hour => "Hours",
        Transform::Void => "VoidTransform",
        Transform::Unknown(_) => "UnknownTransform",
    }
}

pub fn paths(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("paths.json", cases, |case| match text(case, "kind")? {
        "escape" => same("escaped", &path::escape(text(case, "string")?).as_str(), &text(case, "escaped")?),
        "from_partition_string" => {
            let ty = primitive(&case["type"])?;
            let got = path::from_partition_string(text(case, "string")?, &ty);
            if case.get("error").is_some() {
                return refused("value", got);
            }
            same("value", &got?, &value(&case["value"], &ty.into())?)
        }
        "path" => partition(case),
        other => Err(format!("kind {other} is not known").into()),
    })
}

fn partition(case: &Json) -> Result<(), Failed> {
    let Type::Struct(schema) = ty(&case["schema"])? else { return Err("no schema".into()) };
    let (mut spec, mut sources, mut partition) = (PartitionSpec::default(), Vec::new(), Vec::new());
    let fields = case["spec"]["fields"].as_array().ok_or("no fields")?;
    let tuple = case["partition"].as_array().ok_or("no partition")?;
    same("values", &fields.len(), &tuple.len())?;
    for (field, expected) in fields.iter().zip(tuple) {
        let source_id = field["source-id"].as_i64().ok_or("no source")? as i32;
        let source = schema.fields.iter().find(|field| field.id == source_id).ok_or("no source column")?;
        let transform = Transform::parse(text(field, "transform")?)?;
        let given = value(&case["row"][&source.name], &source.ty)?;
        let result = transform.apply(&source.ty, given.as_ref())?;
        let result_type = transform.result_type(&source.ty).ok_or("the type is refused")?;
        same("partition", &result, &value(expected, &result_type)?)?;
        spec.fields.push(PartitionField {
            source_ids: vec![source_id],
            field_id: field["field-id"].as_i64().ok_or("no field id")? as i32,
            name: text(field, "name")?.to_owned(),
            transform,
        });
        sources.push(source.ty.as_primitive().ok_or("no primitive")?.clone());
        partition.push(result);
    }
    let got = path::partition_path(&spec, &sources, &partition)?;
    let expected = text(case, "path")?;
    // Compare by segments, because the text of a float may differ (see `same_human`); slashes and `=` are escaped on
    // both sides.
    let segments = got.split('/').zip(expected.split('/'));
    for ((got, expected), value) in segments.zip(&partition) {
        let ((name, got), (expected_name, expected)) =
            (got.split_once('=').ok_or("no =")?, expected.split_once('=').ok_or("no =")?);
        same("name", &name, &expected_name)?;
        same_human(value.as_ref(), got, expected)?;
    }
    same("fields", &got.split('/').count(), &expected.split('/').count())
}
