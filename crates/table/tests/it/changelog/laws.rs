//! The state before, plus the changelog, is the state after, however the changelog is read.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use icefield_format::expr::Expr;
use icefield_table::plan::Scan;
use icefield_table::plan::incremental::{Point, Range};
use icefield_table::plan::tasks::split::SplitOptions;
use icefield_table::read::{scan as rows_of, task, wire};
use proptest::prelude::*;

use crate::changelog::history::{History, Step};
use crate::changelog::rows::{row, texts};

pub fn step() -> impl Strategy<Value = Step> {
    let rows = |most: usize| prop::collection::vec(row(), 0..most);
    let keys = prop::sample::select(vec![vec![1], vec![2], vec![3, 4], vec![1, 2]]);
    prop_oneof![
        3 => prop::collection::vec(rows(8), 1..3).prop_map(Step::Append),
        3 => (prop::collection::vec((0..9usize, 0..9usize), 1..6), any::<bool>())
            .prop_map(|(targets, apart)| Step::Positions { targets, apart }),
        3 => (0..9usize, prop::collection::vec(0..9usize, 1..5))
            .prop_map(|(target, positions)| Step::Vector { target, positions }),
        3 => (keys, rows(4), rows(4)).prop_map(|(ids, rows, added)| Step::Equality { ids, rows, added }),
        2 => (0..9usize, 0..9usize, rows(3))
            .prop_map(|(target, without, added)| Step::Overwrite { target, without, added }),
        1 => (0..9usize).prop_map(Step::Remove),
        2 => (0..9usize).prop_map(Step::Undelete),
        1 => Just(Step::Compact),
        1 => Just(Step::Manifests),
    ]
}

pub fn history() -> impl Strategy<Value = (u8, Vec<(Step, usize, bool)>)> {
    (2..=3u8, prop::collection::vec((step(), 0..3usize, prop::bool::weighted(0.3)), 1..9))
}

pub fn told((version, steps): &(u8, Vec<(Step, usize, bool)>)) -> History {
    let mut history = History::new(*version);
    steps.iter().for_each(|(step, format, merge)| history.commit(step, *format, *merge));
    history
}

/// The changelog from after one state up to another.
pub fn changelog(history: &History, from: usize, to: usize) -> Scan {
    let id = |state: usize| (state > 0).then(|| Point::Id(history.snapshots[state - 1]));
    let range = Range { from: id(from), to: id(to), ..Range::default() };
    Scan::changelog(history.storage.clone(), history.metadata.clone(), &range).unwrap()
}

/// Applies the changes of a changelog to a state. The last three columns describe the change.
pub fn replay(state: &mut BTreeMap<String, i64>, batches: &[RecordBatch]) {
    for batch in batches {
        let columns = batch.num_columns();
        let values = texts(&[batch.project(&(0..columns - 3).collect::<Vec<_>>()).unwrap()]);
        let types = texts(&[batch.project(&[columns - 3]).unwrap()]);
        for (value, change_type) in values.into_iter().zip(types) {
            *state.entry(value).or_default() += match change_type.as_str() {
                "INSERT" | "UPDATE_AFTER" => 1,
                "DELETE" | "UPDATE_BEFORE" => -1,
                other => panic!("{other}"),
            };
        }
    }
    state.retain(|_, count| *count != 0);
}

fn read(scan: &Scan) -> Vec<RecordBatch> {
    let plan = scan.plan().unwrap();
    let rows = rows_of::rows(scan, &plan, &scan.wanted(None).unwrap(), None).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Reads the same from serialized tasks of small pieces, as on other machines.
fn read_by_tasks(scan: &Scan) -> Vec<RecordBatch> {
    let plan = scan.plan().unwrap();
    let options = SplitOptions { split_size: 200, open_file_cost: 1, ..SplitOptions::default() };
    let tasks = scan.tasks(&plan, &scan.wanted(None).unwrap(), &options).unwrap();
    let mut batches = Vec::new();
    for one in tasks {
        let one = wire::from_bytes(&wire::to_bytes(&one).unwrap()).unwrap();
        batches.extend(task::rows(one, &scan.storage, None).unwrap().collect::<Result<Vec<_>, _>>().unwrap());
    }
    batches
}

fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut all = texts(batches);
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn state_before_and_changes_are_the_state_after(story in history(), ends in (0..9usize, 0..9usize)) {
        let history = told(&story);
        let last = history.snapshots.len();
        let (one, other) = (ends.0 % (last + 1), ends.1 % (last + 1));
        let mut spans: Vec<(usize, usize)> = (0..last).map(|state| (state, state + 1)).collect();
        spans.extend([(0, last), (one.min(other), one.max(other))]);
        for (from, to) in spans.into_iter().filter(|(from, to)| from < to) {
            let scan = changelog(&history, from, to);
            let batches = read(&scan);
            let mut state = history.counted(from);
            replay(&mut state, &batches);
            prop_assert_eq!(&state, &history.counted(to), "{}..{}", from, to);
            prop_assert_eq!(sorted(&read_by_tasks(&scan)), sorted(&batches));
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            prop_assert_eq!(rows_of::count(&scan, None).unwrap(), i64::try_from(rows).unwrap());
        }
    }

    /// A filter selects rows of the changelog.
    #[test]
    fn filters_choose_among_changes(story in history(), filter in prop::sample::select(vec!["id < 4", "k = 1", "s IS NULL OR f IS NAN"])) {
        let history = told(&story);
        let scan = changelog(&history, 0, history.snapshots.len());
        let mut filtered = scan.clone();
        filtered.filter = Expr::parse(filter).unwrap();
        let bound = filtered.filter.bind(&scan.schema, true).unwrap();
        let keep = |batch: &RecordBatch| {
            arrow_select::filter::filter_record_batch(batch, &bound.evaluate(batch).unwrap()).unwrap()
        };
        let expected: Vec<RecordBatch> = read(&scan).iter().map(keep).collect();
        prop_assert_eq!(sorted(&read(&filtered)), sorted(&expected));
    }
}
