//! `types.json`: type names and their parameters. `promotion.json`: allowed type promotions.

use icefield_format::types::{PrimitiveType, Type, is_promotion_allowed};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::typed::same;
use crate::values::text;
use crate::{Golden, trials};

/// Trials of `types.json`.
pub fn names(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("types", cases, check_name)
}

/// Trials of `promotion.json`.
pub fn promotions(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let all: Vec<String> = cases.iter().filter_map(|case| Some(case.get("from")?.as_str()?.to_owned())).collect();
    trials("promotion", cases, move |case| check_promotions(case, &all))
}

fn check_name(case: &Json) -> Result<(), Failed> {
    let parsed = Type::parse(text(case, "string")?);
    if case.get("error").is_some() {
        return match parsed {
            Err(_) => Ok(()),
            Ok(ty) => Err(format!("{case}: read as {ty}").into()),
        };
    }
    let parsed = parsed.map_err(|error| format!("{case}: {error}"))?;
    let primitive = parsed.as_primitive();
    let crs = primitive.and_then(PrimitiveType::crs);
    let algorithm = primitive.and_then(PrimitiveType::edge_algorithm).map(|algorithm| algorithm.to_string());
    if parsed.to_string() != text(case, "parsed")?
        || crs != case.get("crs").and_then(Json::as_str)
        || algorithm.as_deref() != case.get("algorithm").and_then(Json::as_str)
    {
        return Err(format!("{case}: {parsed:?}, {parsed}").into());
    }
    match case.get("type_id") {
        Some(expected) => same("type id", &Json::from(type_id(&parsed)), expected),
        None => Ok(()),
    }
}

/// The library's name for a kind of type; types with and without time zone are one kind.
fn type_id(ty: &Type) -> String {
    match ty.as_primitive() {
        Some(PrimitiveType::Int) => "INTEGER".to_owned(),
        Some(PrimitiveType::Timestamptz) => "TIMESTAMP".to_owned(),
        Some(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs) => "TIMESTAMP_NANO".to_owned(),
        _ => ty.to_string().split(['(', '[', '<']).next().unwrap_or_default().to_uppercase(),
    }
}

/// Checks promotions. The library knows only those of versions 1 and 2 (docs/differences.md, "Promotions of version
/// 3").
fn check_promotions(case: &Json, all: &[String]) -> Result<(), Failed> {
    let from = Type::parse(text(case, "from")?)?;
    let allowed: Vec<_> = case["allowed"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    for to in all {
        let to_type = Type::parse(to)?;
        let expected = allowed.contains(&to.as_str());
        let got = to_type.as_primitive().is_some_and(|to| is_promotion_allowed(&from, to, 2));
        if got != expected {
            return Err(format!("{from} to {to}: {got}, expected {expected}").into());
        }
    }
    Ok(())
}
