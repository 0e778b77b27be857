//! `expr.json` with `expr_context.json`, `residuals.json`, `metrics.json` with `metrics_files.json`,
//! `manifest_eval.json` with `manifests.json`.
//!
//! Intended differences from the library (`docs/differences.md`) are recognized by rules on the predicates and values
//! of a case, such as [`Context::differs_on_row`], [`has_uuid_order`] and [`lacks_counts`], never by the number of the
//! case.

use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::expr::{
    BoundExpr, BoundPredicate, Comparison, Expr, FieldStatistics, FieldSummary, FileStatistics, InclusiveMetrics,
    Residuals, StrictMetrics, SummaryEvaluator, Test, project_inclusive, project_strict,
};
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::{Value, binary};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::typed::{hex, refused, same, value};
use crate::{Golden, left_out, trial};

/// The context that the cases of all files share.
struct Context {
    schema: Schema,
    specs: Vec<PartitionSpec>,
    rows: Vec<Vec<Option<Value>>>,
    /// The cases of `expr.json`, to which the other files refer.
    cases: Vec<Json>,
}

impl Context {
    fn load(context: &Json, cases: Vec<Json>) -> Result<Self, Failed> {
        let schema = Schema::from_json(&context["schema"])?;
        let specs = array(&context["specs"]).iter().map(PartitionSpec::from_json).collect::<Result<_, _>>()?;
        let row = |row: &Json| match value(row, &Type::Struct(Arc::clone(schema.as_struct())))? {
            Some(Value::Struct(row)) => Ok(row),
            _ => Err(Failed::from("a row that is no struct")),
        };
        let rows = array(&context["rows"]).iter().map(row).collect::<Result<_, _>>()?;
        Ok(Self { schema, specs, rows, cases })
    }

    fn parse(&self, case: &Json) -> icefield_format::Result<Expr> {
        match case["typed"].as_bool() {
            Some(true) => Expr::from_json_typed(&case["expr"], &self.schema),
            _ => Expr::from_json(&case["expr"]),
        }
    }

    fn bind(&self, case: &Json) -> Result<BoundExpr, Failed> {
        Ok(self.parse(case)?.bind(&self.schema, case["cs"].as_bool().unwrap_or(true))?)
    }

    /// The partition of a row.
    fn partition(&self, row: u64, spec: &PartitionSpec) -> Result<Vec<Option<Value>>, Failed> {
        let row = usize::try_from(row).ok().and_then(|row| self.rows.get(row)).ok_or("no such row")?;
        let of_field = |field: &PartitionField| {
            let source = *field.source_ids.first().ok_or("no source")?;
            let ty = self.schema.find_type(source).ok_or("no source column")?;
            let path = self.schema.accessor(source).ok_or("no way to the source")?;
            let (first, inner) = path.split_first().ok_or("no way to the source")?;
            let mut at = row[*first].as_ref();
            for place in inner {
                at = match at {
                    Some(Value::Struct(fields)) => fields[*place].as_ref(),
                    _ => None,
                };
            }
            Ok::<_, Failed>(field.transform.apply(ty, at)?)
        };
        spec.fields.iter().map(of_field).collect()
    }

    /// The meaning that the library gives to an expression on rows: null is less and NaN greater than all values. Here,
    /// they match no comparison of order.
    fn as_library(expr: &BoundExpr) -> BoundExpr {
        let both = |a: &BoundExpr, b: &BoundExpr| (Box::new(Self::as_library(a)), Box::new(Self::as_library(b)));
        match expr {
            BoundExpr::Not(inner) => BoundExpr::Not(Box::new(Self::as_library(inner))),
            BoundExpr::And(a, b) => {
                let (a, b) = both(a, b);
                BoundExpr::And(a, b)
            }
            BoundExpr::Or(a, b) => {
                let (a, b) = both(a, b);
                BoundExpr::Or(a, b)
            }
            BoundExpr::Predicate(predicate) => {
                let beyond = match &predicate.test {
                    Test::Compare(Comparison::Lt | Comparison::LtEq, _) => alone(predicate, Test::IsNull),
                    Test::Compare(Comparison::Gt | Comparison::GtEq, _) => alone(predicate, Test::IsNan),
                    _ => return expr.clone(),
                };
                BoundExpr::Or(Box::new(expr.clone()), Box::new(beyond))
            }
            BoundExpr::True | BoundExpr::False => expr.clone(),
        }
    }

    /// Whether the two meanings differ on a row.
    fn differs_on_row(expr: &BoundExpr, row: &[Option<Value>]) -> bool {
        expr.rewrite_not().predicates().any(|predicate| match &predicate.test {
            Test::Compare(Comparison::Lt | Comparison::LtEq, _) => alone(predicate, Test::IsNull).matches(row),
            Test::Compare(Comparison::Gt | Comparison::GtEq, _) => alone(predicate, Test::IsNan).matches(row),
            _ => false,
        })
    }
}

/// The same predicate with another test.
fn alone(predicate: &BoundPredicate, test: Test<Value, Arc<icefield_format::expr::ValueSet>>) -> BoundExpr {
    BoundExpr::Predicate(Arc::new(BoundPredicate { term: Arc::clone(&predicate.term), test }))
}

/// Whether the order of UUIDs matters: the library orders them as two signed numbers, we as bytes. So comparisons, and
/// results that depend on bounds of UUIDs, differ.
fn has_uuid_order(expr: &BoundExpr) -> bool {
    expr.predicates().any(|predicate| {
        let uuid = predicate.term.ty == Type::Primitive(PrimitiveType::Uuid);
        uuid && !matches!(predicate.test, Test::IsNull | Test::NotNull)
    })
}

/// The same for the projections of single predicates, from which residuals are computed.
fn differs_in_partition(expr: &BoundExpr, spec: &PartitionSpec, partition: &[Option<Value>]) -> bool {
    expr.rewrite_not().predicates().any(|predicate| {
        let predicate = BoundExpr::Predicate(Arc::clone(predicate));
        let projections = [project_inclusive(&predicate, spec), project_strict(&predicate, spec)];
        projections.iter().any(|projected| Context::differs_on_row(projected, partition))
    })
}

/// The library counts the characters of a prefix in UTF-16, although `truncate` counts code points.
fn has_supplementary_prefix(expr: &BoundExpr) -> bool {
    expr.predicates().any(|predicate| match &predicate.test {
        Test::StartsWith(Value::String(prefix)) | Test::NotStartsWith(Value::String(prefix)) => {
            prefix.chars().any(|c| c.len_utf16() > 1)
        }
        _ => false,
    })
}

/// The library ignores the bounds for sets of more than 200 values; we use them, and skip more.
fn has_large_set(expr: &BoundExpr) -> bool {
    expr.predicates().any(|predicate| matches!(&predicate.test, Test::In(set) if set.values().len() > 200))
}

fn array(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn context(golden: &Golden) -> Option<Arc<Context>> {
    let (context, cases) = (golden.vectors("expr_context.json"), golden.vectors("expr.json"));
    if cases.is_empty() {
        return None;
    }
    match Context::load(context.first()?, cases) {
        Ok(context) => Some(Arc::new(context)),
        Err(error) => {
            eprintln!("expr_context.json: {error:?}");
            std::process::exit(1);
        }
    }
}

/// One trial per case with the shared context; without the context all cases are ignored.
fn trials_with(
    file: &'static str,
    golden: &Golden,
    cases: Vec<Json>,
    check: impl Fn(&Context, &Json) -> Result<(), Failed> + Clone + Send + 'static,
) -> Vec<Trial> {
    let context = context(golden);
    let with_context = |(number, case): (usize, Json)| match context.clone() {
        Some(context) => {
            let check = check.clone();
            trial(file, number, move || check(&context, &case))
        }
        None => left_out(file, number),
    };
    cases.into_iter().enumerate().map(with_context).collect()
}

/// Sorts the values of sets in JSON, and removes duplicates.
fn in_order(mut json: Json) -> Json {
    if let Json::Object(object) = &mut json {
        for (name, member) in object.iter_mut() {
            *member = in_order(member.take());
            if let (true, Json::Array(values)) = (name == "values", member) {
                values.sort_by_key(Json::to_string);
                values.dedup();
            }
        }
    }
    json
}

fn same_json(what: &str, got: Json, expected: &Json) -> Result<(), Failed> {
    same(what, &in_order(got).to_string(), &in_order(expected.clone()).to_string())
}

fn skipped(case: &Json, spec: &str) -> bool {
    let named = |list: &str| array(&case[list]).iter().any(|id| id.as_u64() == spec.parse().ok());
    named("skip_specs") || named("unsound_specs")
}

pub fn expressions(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials_with("expr.json", golden, cases, |context, case| {
        if let Some(error) = case.get("error") {
            // The library requires a fraction in the JSON of floats (docs/differences.md).
            let message = error["message"].as_str().unwrap_or_default();
            let of_floats = message.contains("as a float value") || message.contains("as a double value");
            let is_whole = of_floats && case["expr"]["value"].is_i64();
            if is_whole && context.bind(case).is_ok() {
                return Ok(());
            }
            let stage = if context.parse(case).is_err() { "parse" } else { "bind" };
            same("stage", &stage, &error["stage"].as_str().unwrap_or(stage))?;
            return refused("bound", context.bind(case));
        }
        let bound = context.bind(case)?;
        rewritten(context, case, &bound)?;
        // The library reads typed nanoseconds a thousand times too large.
        if case.get("quirk").is_some() {
            return Ok(());
        }
        if case["bound"].get("error").is_none() {
            same_json("bound", bound.to_json()?, &case["bound"])?;
        }
        evaluated(context, case, &bound)?;
        if has_supplementary_prefix(&bound) {
            return Ok(());
        }
        for (number, spec) in context.specs.iter().enumerate().filter(|(number, _)| !skipped(case, &number.to_string()))
        {
            let number = number.to_string();
            let projections = [
                ("inclusive", project_inclusive(&bound, spec), Json::Bool(true)),
                ("strict", project_strict(&bound, spec), Json::Bool(false)),
            ];
            for (mode, projected, missing) in projections {
                let expected = case[mode].get(&number).unwrap_or(&missing);
                if expected.get("error").is_none() && !expected.to_string().contains("\"error\"") {
                    let projected = without_wrapped(&projected, spec, &context.schema);
                    same_json(&format!("{mode} {number}"), projected.to_json()?, expected)?;
                }
            }
        }
        Ok(())
    })
}

/// The results of a partition field for numbers near the smallest one, which wrap around; for longs, also those of
/// promoted ints.
fn wrapped(field: &PartitionField, schema: &Schema) -> Vec<Value> {
    let source = field.source_ids.first().and_then(|id| schema.find_type(*id)).and_then(|ty| ty.as_primitive());
    let result = |ty: PrimitiveType, least: Value| {
        let result = field.transform.apply(&Type::Primitive(ty), Some(&least)).ok().flatten();
        result.filter(|result| *result != least)
    };
    let of_int = || result(PrimitiveType::Int, Value::Int(i32::MIN));
    match (&field.transform, source) {
        (Transform::Truncate(_), Some(PrimitiveType::Int)) => of_int().into_iter().collect(),
        (Transform::Truncate(_), Some(PrimitiveType::Long)) => {
            let promoted = of_int().and_then(|value| if let Value::Int(value) = value { Some(value) } else { None });
            let promoted = promoted.map(|value| Value::Long(value.into()));
            promoted.into_iter().chain(result(PrimitiveType::Long, Value::Long(i64::MIN))).collect()
        }
        _ => Vec::new(),
    }
}

/// Removes the partition of wrapped numbers from a projection: ours include it, unlike those of the library.
fn without_wrapped(expr: &BoundExpr, spec: &PartitionSpec, schema: &Schema) -> BoundExpr {
    let is_added = |a: &BoundExpr, b: &BoundExpr| {
        let BoundExpr::Predicate(b) = b else { return false };
        let id = b.term.reference.id;
        let field = spec.fields.iter().find(|field| field.field_id == id);
        let Test::Compare(Comparison::Eq | Comparison::NotEq, value) = &b.test else { return false };
        a.predicates().all(|predicate| predicate.term.reference.id == id)
            && field.is_some_and(|field| wrapped(field, schema).contains(value))
    };
    let both = |a: &BoundExpr, b: &BoundExpr| {
        (Box::new(without_wrapped(a, spec, schema)), Box::new(without_wrapped(b, spec, schema)))
    };
    match expr {
        BoundExpr::And(a, b) | BoundExpr::Or(a, b) if is_added(a, b) => without_wrapped(a, spec, schema),
        BoundExpr::And(a, b) => {
            let (a, b) = both(a, b);
            BoundExpr::And(a, b)
        }
        BoundExpr::Or(a, b) => {
            let (a, b) = both(a, b);
            BoundExpr::Or(a, b)
        }
        other => other.clone(),
    }
}

/// Whether a partition is one of wrapped numbers.
fn is_wrapped(spec: &PartitionSpec, schema: &Schema, partition: &[Option<Value>]) -> bool {
    let values = spec.fields.iter().zip(partition);
    values.into_iter().any(|(field, value)| value.as_ref().is_some_and(|value| wrapped(field, schema).contains(value)))
}

/// Checks that the expression without `not` means the same. The library shows typed literals as the numbers that it
/// stores.
fn rewritten(context: &Context, case: &Json, bound: &BoundExpr) -> Result<(), Failed> {
    let Some(expected) = case.get("rewrite") else { return Ok(()) };
    if case["typed"].as_bool() != Some(true) {
        return same_json("rewrite", Expr::from_json(&case["expr"])?.rewrite_not().to_json()?, expected);
    }
    let nanoseconds = bound.predicates().any(|predicate| {
        matches!(&predicate.term.ty, Type::Primitive(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs))
    });
    if nanoseconds {
        return Ok(());
    }
    let expected = Expr::from_json(expected)?.bind(&context.schema, case["cs"].as_bool().unwrap_or(true))?;
    same_json("rewrite", bound.rewrite_not().to_json()?, &expected.to_json()?)
}

fn evaluated(context: &Context, case: &Json, bound: &BoundExpr) -> Result<(), Failed> {
    let Some(expected) = case["eval"].as_str() else { return Ok(()) };
    if has_uuid_order(bound) {
        return Ok(());
    }
    let library = Context::as_library(&bound.rewrite_not());
    same("rows", &expected.len(), &context.rows.len())?;
    for (row, expected) in context.rows.iter().zip(expected.chars()) {
        same(&format!("row {row:?}"), &library.matches(row), &(expected == '1'))?;
        if !Context::differs_on_row(bound, row) {
            same(&format!("row {row:?}"), &bound.matches(row), &(expected == '1'))?;
        }
    }
    Ok(())
}

fn case_of<'a>(context: &'a Context, case: &Json) -> Result<&'a Json, Failed> {
    let number = case["case"].as_u64().and_then(|number| usize::try_from(number).ok());
    number.and_then(|number| context.cases.get(number)).ok_or_else(|| "no such case".into())
}

pub fn residuals(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials_with("residuals.json", golden, cases, |context, case| {
        let original = case_of(context, case)?;
        let bound = context.bind(original)?;
        if original.get("quirk").is_some() {
            return Ok(());
        }
        let number = case["spec"].as_u64().and_then(|spec| usize::try_from(spec).ok()).ok_or("no spec")?;
        let spec = context.specs.get(number).ok_or("no such spec")?;
        let residuals = Residuals::new(&bound, spec);
        let tuple = spec.partition_type(&context.schema);
        for one in array(&case["residuals"]) {
            same("values of the tuple", &array(&one["partition"]).len(), &tuple.fields.len())?;
            let values = array(&one["partition"]).iter().zip(&tuple.fields);
            let partition = values.map(|(json, field)| value(json, &field.ty)).collect::<Result<Vec<_>, _>>()?;
            if let Some(row) = one["row"].as_u64() {
                same(&format!("partition of row {row}"), &context.partition(row, spec)?, &partition)?;
            }
            if has_uuid_order(&bound)
                || differs_in_partition(&bound, spec, &partition)
                || is_wrapped(spec, &context.schema, &partition)
            {
                continue;
            }
            same_json(
                &format!("partition {partition:?}"),
                residuals.of_partition(&partition).to_json()?,
                &one["residual"],
            )?;
        }
        Ok(())
    })
}

/// A file of `metrics_files.json`.
struct File {
    record_count: i64,
    counts: [HashMap<i32, i64>; 3],
    bounds: [HashMap<i32, Vec<u8>>; 2],
}

impl File {
    fn read(json: &Json) -> Result<Self, Failed> {
        let counts = |name: &str| {
            let entries = json[name].as_object().into_iter().flatten();
            entries.filter_map(|(id, count)| Some((id.parse().ok()?, count.as_i64()?))).collect()
        };
        let bounds = |name: &str| {
            let entries = json[name].as_object().into_iter().flatten();
            entries.filter_map(|(id, bound)| Some((id.parse().ok()?, hex(bound.as_str()?)?))).collect()
        };
        Ok(Self {
            record_count: json["record_count"].as_i64().ok_or("no record_count")?,
            counts: [counts("value_counts"), counts("null_value_counts"), counts("nan_value_counts")],
            bounds: [bounds("lower_bounds"), bounds("upper_bounds")],
        })
    }
}

impl FileStatistics for File {
    fn record_count(&self) -> i64 {
        self.record_count
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        let [value_count, null_count, nan_count] = self.counts.each_ref().map(|counts| counts.get(&id).copied());
        let [lower, upper] = self.bounds.each_ref().map(|bounds| bounds.get(&id).map(Vec::as_slice));
        FieldStatistics { value_count, null_count, nan_count, lower, upper }
    }
}

/// Missing counts are unknown here; the library treats them as zero when it tests whether all rows match.
fn lacks_counts(expr: &BoundExpr, file: &File) -> bool {
    expr.predicates().any(|predicate| {
        let field = file.field(predicate.term.reference.id);
        let floating = matches!(predicate.term.ty, Type::Primitive(PrimitiveType::Float | PrimitiveType::Double));
        predicate.term.reference.nullable && field.null_count.is_none() || floating && field.nan_count.is_none()
    })
}

/// A file as the library sees it: missing counts are zero.
struct Complete(File);

impl FileStatistics for Complete {
    fn record_count(&self) -> i64 {
        self.0.record_count
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        let field = self.0.field(id);
        FieldStatistics { null_count: field.null_count.or(Some(0)), nan_count: field.nan_count.or(Some(0)), ..field }
    }
}

/// Whether a bound is truncated near the smallest number, where `truncate` wraps around. The library uses the wrapped
/// result as a lower bound and, if no lower bound is known, that of the upper bound as an upper bound.
fn has_wrapped_bound(expr: &BoundExpr, file: &File) -> bool {
    expr.predicates().any(|predicate| {
        let reference = &predicate.term.reference;
        let (Some(transform), Some(ty)) = (&predicate.term.transform, reference.primitive()) else { return false };
        let truncates = matches!(transform, Transform::Truncate(_));
        if truncates
            && matches!(ty, PrimitiveType::Int | PrimitiveType::Long)
            && file.field(reference.id).lower.is_none()
        {
            return true;
        }
        let lower = file.field(reference.id).lower.and_then(|bytes| binary::from_bytes(bytes, ty).ok());
        match (&lower, transform.apply(&reference.ty, lower.as_ref())) {
            (Some(Value::Int(lower)), Ok(Some(Value::Int(result)))) => result > *lower,
            (Some(Value::Long(lower)), Ok(Some(Value::Long(result)))) => result > *lower,
            _ => false,
        }
    })
}

/// A prefix test of a transformed term cannot match if the column has only nulls; the library keeps such files.
fn has_prefix_of_nulls(expr: &BoundExpr, file: &File) -> bool {
    expr.rewrite_not().predicates().any(|predicate| {
        let field = file.field(predicate.term.reference.id);
        let prefix = matches!(predicate.test, Test::StartsWith(_)) && predicate.term.transform.is_some();
        prefix && field.value_count.is_some() && field.value_count == field.null_count
    })
}

pub fn metrics(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let files = Arc::new(golden.vectors("metrics_files.json"));
    if files.is_empty() {
        return (0..cases.len()).map(|number| left_out("metrics.json", number)).collect();
    }
    trials_with("metrics.json", golden, cases, move |context, case| check_metrics(context, &files, case))
}

fn check_metrics(context: &Context, files: &[Json], case: &Json) -> Result<(), Failed> {
    let bound = context.bind(case_of(context, case)?)?;
    if has_uuid_order(&bound) {
        return Ok(());
    }
    let (inclusive, strict) = (InclusiveMetrics::new(&bound), StrictMetrics::new(&bound));
    let answers = |name: &str| case[name].as_str().map(|text| text.chars().map(|c| c == '1').collect::<Vec<_>>());
    let (might, must) = (answers("inclusive").ok_or("no inclusive")?, answers("strict").ok_or("no strict")?);
    for (number, json) in files.iter().enumerate() {
        let file = File::read(json)?;
        let (might, must) = (might.get(number).ok_or("too short")?, must.get(number).ok_or("too short")?);
        let ours = inclusive.might_match(&file);
        let differs = (has_large_set(&bound) || has_prefix_of_nulls(&bound, &file)) && !ours
            || has_wrapped_bound(&bound, &file) && ours;
        if !differs {
            same(&format!("inclusive, file {number}"), &ours, might)?;
        }
        let ours = strict.must_match(&file);
        if ours != *must && lacks_counts(&bound, &file) {
            let ours = strict.must_match(&Complete(file));
            same(&format!("strict, file {number}, counts that are not there being zero"), &ours, must)?;
        } else {
            same(&format!("strict, file {number}"), &ours, must)?;
        }
    }
    Ok(())
}

/// A summary of a manifest of `manifests.json`: flags, and bounds as bytes.
type Summary = (bool, Option<bool>, Option<Vec<u8>>, Option<Vec<u8>>);

fn summaries(json: &Json) -> Option<Vec<Summary>> {
    let bound = |json: &Json| json.as_str().and_then(hex);
    let summary = |one: &Json| {
        let contains_null = one["contains_null"].as_bool().unwrap_or(false);
        (contains_null, one["contains_nan"].as_bool(), bound(&one["lower_bound"]), bound(&one["upper_bound"]))
    };
    json["partitions"].as_array().map(|list| list.iter().map(summary).collect())
}

pub fn manifest_eval(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let manifests = Arc::new(golden.vectors("manifests.json"));
    if manifests.is_empty() {
        return (0..cases.len()).map(|number| left_out("manifest_eval.json", number)).collect();
    }
    trials_with("manifest_eval.json", golden, cases, move |context, case| check_manifests(context, &manifests, case))
}

fn check_manifests(context: &Context, manifests: &[Json], case: &Json) -> Result<(), Failed> {
    let original = case_of(context, case)?;
    let bound = context.bind(original)?;
    if has_uuid_order(&bound) {
        return Ok(());
    }
    for (number, spec) in context.specs.iter().enumerate() {
        let name = number.to_string();
        if skipped(original, &name) || skipped(case, &name) || original.get("quirk").is_some() {
            continue;
        }
        let projected = project_inclusive(&bound, spec);
        let evaluator = SummaryEvaluator::new(&projected);
        let library = SummaryEvaluator::new(&without_wrapped(&projected, spec, &context.schema));
        let of_spec = manifests.iter().filter(|manifest| manifest["spec"] == json!(number));
        for manifest in of_spec {
            let place =
                manifest["manifest"].as_u64().and_then(|place| usize::try_from(place).ok()).ok_or("no number")?;
            let expected = case["results"].get(&name).and_then(Json::as_str);
            let expected = expected.is_none_or(|answers| answers.chars().nth(place) == Some('1'));
            let owned = summaries(manifest);
            let borrowed = owned.as_ref().map(|list| list.iter().map(summary).collect::<Vec<_>>());
            let ours = evaluator.might_match(borrowed.as_deref());
            let keeps_wrapped = ours && !expected && !library.might_match(borrowed.as_deref());
            if !(keeps_wrapped || expected && !ours && has_large_set(&bound)) {
                same(&format!("spec {number}, manifest {place}"), &ours, &expected)?;
            }
        }
    }
    Ok(())
}

fn summary(parts: &Summary) -> FieldSummary<'_> {
    let (contains_null, contains_nan, lower, upper) = parts;
    FieldSummary {
        contains_null: *contains_null,
        contains_nan: *contains_nan,
        lower: lower.as_deref(),
        upper: upper.as_deref(),
    }
}
