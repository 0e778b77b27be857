//! Pruning is sound, and all evaluators agree.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array};
use icefield_format::expr::{
    BoundExpr, Comparison, Expr, FieldSummary, InclusiveMetrics, Literal, Predicate, Residuals, StatisticsColumns,
    StrictMetrics, SummaryEvaluator, Term, Test, project_inclusive, project_strict,
};
use icefield_format::spec::PartitionSpec;
use icefield_format::transform::Transform;
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::expressions::layouts;
use crate::expressions::world::{File, Metrics, Row, bounds_of, columns, expr, partition, row, schema, spec};

/// A list of files as columns of statistics.
fn columns_of(files: &[File]) -> StatisticsColumns {
    let mut all = StatisticsColumns::new(&Int64Array::from_iter_values(files.iter().map(|file| file.record_count)));
    for (_, id, _) in columns() {
        let counts = |place: usize| Some(files.iter().map(|file| file.fields[&id].counts.map(|c| c[place])).collect());
        let lower: ArrayRef =
            Arc::new(BinaryArray::from_iter(files.iter().map(|file| file.fields[&id].lower.as_deref())));
        let upper: ArrayRef =
            Arc::new(BinaryArray::from_iter(files.iter().map(|file| file.fields[&id].upper.as_deref())));
        all = all.with_counts(id, counts(0), counts(1), counts(2)).unwrap();
        all = all.with_bounds(id, Some(&lower), Some(&upper)).unwrap();
    }
    all
}

/// A summary that owns its bounds.
struct Summary {
    contains_null: bool,
    contains_nan: Option<bool>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

fn summaries(spec: &PartitionSpec, partitions: &[Row]) -> Vec<Summary> {
    let fields = spec.partition_type(&schema()).fields;
    let summary = |(position, ty): (usize, PrimitiveType)| {
        let values: Vec<&Value> = partitions.iter().filter_map(|tuple| tuple[position].as_ref()).collect();
        let nan = values.iter().any(|value| icefield_format::expr::Datum::of(value).unwrap().is_nan());
        let (lower, upper) = bounds_of(&values, &ty, usize::MAX);
        Summary { contains_null: values.len() < partitions.len(), contains_nan: Some(nan), lower, upper }
    };
    fields.iter().map(|field| field.ty.as_primitive().unwrap().clone()).enumerate().map(summary).collect()
}

fn bind(expr: &Expr) -> BoundExpr {
    expr.bind(&schema(), true).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn metrics_prune_no_match_and_promise_no_miss(
        expr in expr(),
        rows in vec(row(), 1..4),
        length in prop_oneof![Just(1_usize), Just(2), Just(16)],
        counts in any::<bool>(),
    ) {
        let bound = bind(&expr);
        let file = File::of(&rows, length, counts);
        let matching = rows.iter().filter(|row| bound.matches(row)).count();
        prop_assert!(matching == 0 || InclusiveMetrics::new(&bound).might_match(&file), "{bound} pruned {file:?}");
        prop_assert!(matching == rows.len() || !StrictMetrics::new(&bound).must_match(&file), "{bound} promised {file:?}");
    }

    #[test]
    fn partitions_prune_no_match_and_promise_no_miss(expr in expr(), spec in spec(), rows in vec(row(), 1..4)) {
        let bound = bind(&expr);
        let (inclusive, strict) = (project_inclusive(&bound, &spec), project_strict(&bound, &spec));
        let residuals = Residuals::new(&bound, &spec);
        let partitions: Vec<Row> = rows.iter().map(|row| partition(&spec, row)).collect();
        for (row, tuple) in rows.iter().zip(&partitions) {
            let matches = bound.matches(row);
            prop_assert!(!matches || inclusive.matches(tuple), "{bound} as {inclusive} pruned {tuple:?}");
            prop_assert!(matches || !strict.matches(tuple), "{bound} as {strict} promised {tuple:?}");
            let residual = residuals.of_partition(tuple);
            prop_assert_eq!(residual.matches(row), matches, "{} in {:?} is {}", bound, tuple, residual);
        }
        let owned = summaries(&spec, &partitions);
        let borrowed: Vec<FieldSummary<'_>> = owned.iter().map(|summary| FieldSummary {
            contains_null: summary.contains_null,
            contains_nan: summary.contains_nan,
            lower: summary.lower.as_deref(),
            upper: summary.upper.as_deref(),
        }).collect();
        let any = rows.iter().any(|row| bound.matches(row));
        prop_assert!(!any || SummaryEvaluator::new(&inclusive).might_match(Some(&borrowed)), "{bound} as {inclusive}");
    }

    #[test]
    fn columns_answer_as_single_files_and_partitions(expr in expr(), spec in spec(), rows in vec(row(), 1..12)) {
        let bound = bind(&expr);
        let files: Vec<File> = rows.chunks(2).map(|rows| File::of(rows, 16, rows.len() > 1)).collect();
        let all = columns_of(&files);
        let (inclusive, strict) = (InclusiveMetrics::new(&bound), StrictMetrics::new(&bound));
        let (might, must) = (inclusive.evaluate(&all).unwrap(), strict.evaluate(&all).unwrap());
        for (number, file) in files.iter().enumerate() {
            prop_assert_eq!(might.value(number), inclusive.might_match(file));
            prop_assert_eq!(must.value(number), strict.must_match(file));
            prop_assert_eq!(might.value(number), inclusive.might_match(&all.file(number)));
        }
        let partitions: Vec<Row> = rows.iter().map(|row| partition(&spec, row)).collect();
        let batch = layouts::partitions(&spec, &partitions);
        let residuals = Residuals::new(&bound, &spec);
        let (places, distinct) = residuals.of_partitions(&batch).unwrap();
        for (tuple, place) in partitions.iter().zip(places) {
            prop_assert_eq!(&distinct[place as usize], &residuals.of_partition(tuple));
        }
    }

    #[test]
    fn batches_match_as_rows_do_in_every_layout(expr in expr(), rows in vec(row(), 1..20), layout in 0..layouts::LAYOUTS) {
        let bound = bind(&expr);
        let batch = layouts::batch(&rows, layout);
        let mask = bound.evaluate(&batch).unwrap();
        for (number, row) in rows.iter().enumerate() {
            prop_assert_eq!(mask.value(number), bound.matches(row), "{} on {:?}", bound, row);
        }
    }

    #[test]
    fn negation_and_balance_keep_the_meaning(expr in expr(), row in row()) {
        let bound = bind(&expr);
        prop_assert_eq!(bound.rewrite_not().matches(&row), bound.matches(&row));
        prop_assert_eq!(bind(&expr.rewrite_not()).matches(&row), bound.matches(&row));
        prop_assert_eq!(bound.clone().balanced().matches(&row), bound.matches(&row));
    }

    #[test]
    fn text_and_json_give_the_expression_back(expr in expr()) {
        prop_assert_eq!(&Expr::parse(&expr.to_string()).unwrap(), &expr, "{}", expr);
        let bound = bind(&expr);
        let json = bound.to_json().unwrap();
        prop_assert_eq!(&Expr::from_json_typed(&json, &schema()).unwrap().bind(&schema(), true).unwrap(), &bound, "{}", json);
    }
}

#[test]
fn a_thousand_terms_stay_flat() {
    let text = (0..5000).map(|id| format!("id = {id}")).collect::<Vec<_>>().join(" OR ");
    let expr = Expr::parse(&text).unwrap();
    assert!(expr.depth() < 20, "{}", expr.depth());
    let mut grown = Expr::False;
    for id in 0..5000 {
        grown = Expr::or(grown, Expr::parse(&format!("id = {id}")).unwrap());
        if grown.depth() > 64 {
            grown = grown.balanced();
        }
    }
    assert_eq!(grown.predicates().count(), 5000);
    assert!(grown.depth() <= 65, "{}", grown.depth());
}

#[test]
fn the_identity_of_a_uuid_has_bounds_in_either_order() {
    let uuid = |bits: u128| bits.to_be_bytes();
    // The order of Java.
    let [low, high] = [1 << 127, 0].map(|bits| Some(uuid(bits).to_vec()));
    let known = Metrics { counts: Some([2, 0, 0]), lower: low, upper: high };
    let file = File { record_count: 2, fields: [(11, known)].into_iter().collect() };
    for term in [Term::column("u"), Term::transform(Transform::Identity, "u")] {
        let test = Test::Compare(Comparison::Eq, Literal::uuid(uuid(0)));
        let bound = bind(&Expr::Predicate(Predicate { term, test }));
        assert!(InclusiveMetrics::new(&bound).might_match(&file), "{bound}");
    }
}
