//! The laws of pruning.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use icefield_format::expr::{BoundExpr, StrictMetrics, project_strict};
use icefield_table::plan::{At, Scan};
use icefield_table::storage::Storage;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::pruning::draw::{Draw, choices};
use crate::pruning::filters::Filter;
use crate::pruning::stored::{Metrics, name};
use crate::pruning::world::{World, schema};

/// Number of filters per table.
pub const FILTERS: usize = 4;

/// A unique location for a table.
pub fn location() -> String {
    static TABLES: AtomicU64 = AtomicU64::new(0);
    format!("memory://pruning/{}", TABLES.fetch_add(1, Ordering::Relaxed))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_lose_no_row_and_residuals_say_what_the_filter_says(choices in choices()) {
        let mut draw = Draw::new(choices);
        let world = World::draw(&mut draw);
        let storage = Storage::default();
        let metadata = world.write(&storage, &location());
        let mut scan = Scan::new(storage, metadata, &At::default()).unwrap();
        scan.cached = draw.chance(20);
        for _ in 0..FILTERS {
            let filter = Filter::draw(&mut draw, &world, 2);
            scan.filter = filter.expr();
            no_row_is_lost(&world, &scan, &filter)?;
            strict_answers_hold(&world, &scan, &filter)?;
        }
    }
}

fn no_row_is_lost(world: &World, scan: &Scan, filter: &Filter) -> TestCaseResult {
    let plan = scan.plan().unwrap();
    let mut residuals: HashMap<String, BoundExpr> = HashMap::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let path = manifest.entries.file_path.value(row).to_owned();
            residuals.insert(path, manifest.residual(row).unwrap().clone());
        }
    }
    for (number, manifest) in world.manifests.iter().enumerate() {
        let spec = &world.specs[manifest.spec];
        for (place, file) in manifest.files.iter().enumerate() {
            let residual = residuals.get(&name(number, place));
            for row in &file.rows {
                let matches = filter.matches(row);
                match residual {
                    Some(residual) => prop_assert_eq!(
                        residual.matches(row),
                        matches,
                        "{} is left of {} for {:?}, {} by {}",
                        residual,
                        scan.filter,
                        row,
                        file.shown(),
                        spec
                    ),
                    None => prop_assert!(!matches, "{} lost {row:?}, {} by {spec}", scan.filter, file.shown()),
                }
            }
        }
    }
    Ok(())
}

fn strict_answers_hold(world: &World, scan: &Scan, filter: &Filter) -> TestCaseResult {
    let bound = scan.filter.bind(&schema(&world.columns, true), true).unwrap();
    let metrics = StrictMetrics::new(&bound);
    for manifest in &world.manifests {
        let spec = &world.specs[manifest.spec];
        let projection = project_strict(&bound, spec);
        for file in &manifest.files {
            let all = file.rows.iter().all(|row| filter.matches(row));
            prop_assert!(
                all || !metrics.must_match(&Metrics(&file.entry)),
                "{bound} promised by metrics: {}",
                file.shown()
            );
            let tuple = world.rewritten(spec, &file.entry.partition);
            prop_assert!(all || !projection.matches(&tuple), "{bound} promised as {projection}: {}", file.shown());
        }
    }
    Ok(())
}
