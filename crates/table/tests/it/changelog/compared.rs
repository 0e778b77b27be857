//! Changelogs with compared rows, against the difference of two states, computed by counting all rows.

use std::collections::{BTreeMap, HashMap};

use arrow_array::RecordBatch;
use icefield_format::expr::Expr;
use icefield_table::Error;
use icefield_table::plan::Scan;
use icefield_table::plan::by_metadata::bounds::ColumnBounds;
use icefield_table::plan::tasks::split::SplitOptions;
use icefield_table::read::changelog::{Comparison, Updates, count, rows};
use icefield_table::read::options::ReadOptions;
use icefield_table::read::row_scan::RowScan;
use proptest::prelude::*;

use crate::changelog::history::{History, Step};
use crate::changelog::laws::{changelog, history, replay, told};
use crate::changelog::rows::{Row, texts};

fn read(scan: &Scan, comparison: &Comparison) -> Result<Vec<RecordBatch>, Error> {
    rows(scan, comparison, &*scan.wanted(None)?, None)?.collect()
}

/// The number of occurrences of each row and its change type.
fn told_of(batches: &[RecordBatch]) -> BTreeMap<String, i64> {
    let shown = batches.iter().flat_map(|batch| {
        let columns = batch.num_columns() - 2;
        texts(&[batch.project(&(0..columns).collect::<Vec<_>>()).unwrap()])
    });
    crate::changelog::rows::counted(shown)
}

/// The changelog that represents the difference of two states.
fn difference(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for row in before.keys().chain(after.keys()) {
        let count = after.get(row).unwrap_or(&0) - before.get(row).unwrap_or(&0);
        match count {
            0 => {}
            1.. => drop(found.insert(format!("{row} | INSERT"), count)),
            _ => drop(found.insert(format!("{row} | DELETE"), -count)),
        }
    }
    found
}

fn add(sum: &mut BTreeMap<String, i64>, more: BTreeMap<String, i64>) {
    more.into_iter().for_each(|(row, count)| *sum.entry(row).or_default() += count);
}

fn by(columns: &[&str]) -> Comparison {
    let names = columns.iter().map(|name| (*name).to_owned()).collect();
    Comparison { updates: Some(Updates { identifier_columns: Some(names) }), ..Comparison::default() }
}

const NET: Comparison = Comparison { net_changes: true, updates: None };

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn net_changes_are_the_difference_of_the_states(story in history(), start in 0..9usize) {
        let history = told(&story);
        let (from, to) = (start % history.snapshots.len(), history.snapshots.len());
        let scan = changelog(&history, from, to);
        let found = read(&scan, &NET).unwrap();
        prop_assert_eq!(told_of(&found), difference(&history.counted(from), &history.counted(to)));
        let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
        prop_assert_eq!(count(&scan, &NET, None).unwrap(), i64::try_from(rows).unwrap());
    }

    #[test]
    fn without_rows_carried_over_each_snapshot_is_the_difference_of_two_states(story in history()) {
        let history = told(&story);
        let mut expected = BTreeMap::new();
        for state in (0..history.snapshots.len()).filter(|state| history.changes[*state]) {
            add(&mut expected, difference(&history.counted(state), &history.counted(state + 1)));
        }
        let found = read(&changelog(&history, 0, history.snapshots.len()), &Comparison::default()).unwrap();
        prop_assert_eq!(told_of(&found), expected);
    }

    /// Updates are the same rows with other change types: each pair of before and after has the same identifier.
    #[test]
    fn updates_are_pairs_of_one_identifier(story in history(), net_changes: bool, filter in prop::option::of(prop::sample::select(vec!["id < 4", "k = 1 AND id > 1"]))) {
        let history = told(&story);
        let scan = changelog(&history, 0, history.snapshots.len());
        let plain = Comparison { net_changes, updates: None };
        let updates = Comparison { net_changes, ..by(&["id"]) };
        let found = match read(&scan, &updates) {
            Ok(found) => found,
            Err(Error::Validation(_)) => {
                let mut deleted: HashMap<String, usize> = HashMap::new();
                for batch in read(&scan, &plain).unwrap() {
                    let places = if net_changes { vec![0, 6] } else { vec![0, 6, 7] };
                    let ids = texts(&[batch.project(&places).unwrap()]);
                    ids.into_iter().filter(|id| id.contains("DELETE")).for_each(|id| *deleted.entry(id).or_default() += 1);
                }
                prop_assert!(deleted.values().any(|count| *count > 1));
                return Ok(());
            }
            Err(other) => panic!("{other}"),
        };
        let mut state = BTreeMap::new();
        replay(&mut state, &found);
        prop_assert_eq!(&state, &history.counted(history.snapshots.len()));
        let shown = |batches: &[RecordBatch]| {
            told_of(batches).into_iter().map(|(row, count)| (row.replace("UPDATE_BEFORE", "DELETE").replace("UPDATE_AFTER", "INSERT"), count))
        };
        let mut as_plain = BTreeMap::new();
        shown(&found).for_each(|(row, count)| *as_plain.entry(row).or_default() += count);
        prop_assert_eq!(as_plain, told_of(&read(&scan, &plain).unwrap()));
        for batch in &found {
            let (ids, types) = (texts(&[batch.project(&[0]).unwrap()]), texts(&[batch.project(&[6]).unwrap()]));
            for (row, change_type) in types.iter().enumerate() {
                match change_type.as_str() {
                    "UPDATE_BEFORE" => prop_assert_eq!((&ids[row], types[row + 1].as_str()), (&ids[row + 1], "UPDATE_AFTER")),
                    "UPDATE_AFTER" => prop_assert_eq!(types[row - 1].as_str(), "UPDATE_BEFORE"),
                    _ => {}
                }
            }
        }
        if let Some(filter) = filter {
            // A filter selects rows of the whole changelog.
            let mut filtered = scan.clone();
            filtered.filter = Expr::parse(filter).unwrap();
            let bound = filtered.filter.bind(&scan.schema, true).unwrap();
            let keep = |batch: &RecordBatch| arrow_select::filter::filter_record_batch(batch, &bound.evaluate(batch).unwrap()).unwrap();
            let expected: Vec<RecordBatch> = found.iter().map(keep).collect();
            prop_assert_eq!(told_of(&read(&filtered, &updates).unwrap()), told_of(&expected));
        }
    }
}

fn plain(id: i64, s: &'static str) -> Row {
    Row { id, k: Some(1), s: Some(s), f: Some(f64::NAN), nested: Some(2) }
}

/// Two appends of two rows each, then an update by rewriting.
fn updated(version: u8) -> History {
    let mut history = History::new(version);
    history.commit(&Step::Append(vec![vec![plain(1, "a"), plain(2, "a")]]), 0, false);
    history.commit(&Step::Append(vec![vec![plain(3, "a")]]), 0, false);
    history.commit(&Step::Overwrite { target: 0, without: 0, added: vec![plain(1, "")] }, 0, false);
    history
}

#[test]
fn updates_and_projections() {
    let history = updated(2);
    let scan = changelog(&history, 0, 3);
    let shown = |comparison: &Comparison, columns: &[&str]| {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let found = rows(&scan, comparison, &scan.wanted(Some(&columns)).unwrap(), None)
            .unwrap()
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        texts(&found)
    };
    let columns = ["_change_type", "s", "id"];
    let inserts = ["INSERT | a | 1", "INSERT | a | 2", "INSERT | a | 3"];
    let of = |updates: [&str; 2]| inserts.iter().chain(&updates).map(|row| (*row).to_owned()).collect::<Vec<_>>();
    assert_eq!(shown(&Comparison::default(), &columns), of(["DELETE | a | 1", "INSERT |  | 1"]));
    assert_eq!(shown(&by(&["id"]), &columns), of(["UPDATE_BEFORE | a | 1", "UPDATE_AFTER |  | 1"]));
    let mut net = shown(&NET, &columns);
    net.sort();
    assert_eq!(net, ["INSERT |  | 1", "INSERT | a | 2", "INSERT | a | 3"]);
    assert_eq!(
        rows(&scan, &NET, &scan.wanted(None).unwrap(), Some(2))
            .unwrap()
            .map(|batch| batch.unwrap().num_rows())
            .sum::<usize>(),
        2
    );
    assert_eq!(count(&scan, &by(&["id"]), None).unwrap(), 5);
}

#[test]
fn what_cannot_be_compared_is_told() {
    let without = Comparison { updates: Some(Updates::default()), ..Comparison::default() };
    for (comparison, message) in [
        (without, "no identifier fields"),
        (by(&["none"]), "none"),
        (by(&[]), "no identifier columns"),
        (by(&["k"]), "several deleted rows"),
    ] {
        // All rows have the same k: the first two snapshots insert their rows, and the third deletes one more.
        let mut history = updated(2);
        history.commit(&Step::Remove(0), 0, false);
        history.commit(&Step::Equality { ids: vec![2], rows: vec![plain(0, "")], added: vec![] }, 0, false);
        let error = read(&changelog(&history, 0, 5), &comparison).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn compared_rows_have_no_tasks_and_no_bounds() {
    let scan = changelog(&updated(2), 0, 3);
    let plan = scan.plan().unwrap();
    let plain = RowScan::new(scan, Some(&["id".to_owned()]), None).unwrap();
    let compared = plain.clone().compared(by(&["id"])).unwrap();
    assert_eq!(plain.tasks(&plan, &SplitOptions::default(), None).unwrap().len(), 1);
    let error = compared.tasks(&plan, &SplitOptions::default(), None).unwrap_err().to_string();
    assert!(error.contains("cannot be cut into tasks"), "{error}");
    let (_, ColumnBounds::Unknown(why)) = compared.bounds("id").unwrap() else { panic!("bounds of compared rows") };
    assert!(why.contains("compared"), "{why}");
    let rows = |scan: &RowScan| {
        let batches = scan.rows(&ReadOptions::default()).unwrap();
        batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>() as i64
    };
    assert_eq!((rows(&compared), compared.count().unwrap()), (5, 5));
    assert_eq!(rows(&plain), plain.count().unwrap());
}
