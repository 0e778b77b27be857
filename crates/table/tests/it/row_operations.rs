//! Deletes, updates, overwrites, merges, upserts and changes by key: cases of rows before and after. Each runs with
//! format versions 2 and 3, copy-on-write and merge-on-read, with and without partitions. Some rows were deleted
//! before, by position and by key.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use icefield_format::expr::{Condition, Expr};
use icefield_format::metadata::TableDefinition;
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{Pointer, PointerCatalog, SnapshotOptions, Transaction};
use icefield_table::operation::append::AppendOptions;
use icefield_table::operation::create::create;
use icefield_table::operation::keyed_batch::KeyedBatch;
use icefield_table::operation::matching::{MEMORY_LIMIT, Matches};
use icefield_table::operation::merge::clause::{Action, Clause, Condition as When, Rules, When as Side};
use icefield_table::operation::merge::run::MergeOptions;
use icefield_table::operation::replace_rows::{NewRows, RowOptions, columns_to_change};
use icefield_table::operation::row_change::{Command, Mode};
use icefield_table::operation::upsert::UpsertOptions;
use icefield_table::plan::At;
use icefield_table::storage::Storage;
use icefield_table::write::Matching;
use icefield_table::{Error, Result, Table};

/// A row: its id, its partition, its value.
type Row = (Option<i64>, i32, Option<&'static str>);

const A: Row = (Some(1), 0, Some("a"));
const B: Row = (Some(2), 1, Some("b"));
const NO_ID: Row = (None, 0, Some("e"));
const NO_VALUE: Row = (Some(6), 1, None);
/// A row that was deleted by position before each case.
const BY_POSITION: Row = (Some(3), 0, Some("c"));
/// A row that was deleted by key before each case.
const BY_KEY: Row = (Some(4), 1, Some("d"));

struct Location(Mutex<String>);

impl Pointer for Location {
    fn load(&self) -> Result<String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        let mut location = self.0.lock().unwrap();
        if *location != base {
            return Err(Error::CommitFailed("the table has changed".into()));
        }
        new.clone_into(&mut location);
        Ok(())
    }
}

/// How a case is run.
#[derive(Debug, Clone, Copy)]
struct Way {
    version: u8,
    mode: Mode,
    partitioned: bool,
}

impl Way {
    fn all() -> impl Iterator<Item = Self> {
        let versions = [2, 3].into_iter();
        let modes = versions.flat_map(|version| [Mode::CopyOnWrite, Mode::MergeOnRead].map(|mode| (version, mode)));
        modes.flat_map(|(version, mode)| [false, true].map(|partitioned| Self { version, mode, partitioned }))
    }

    fn options(self) -> RowOptions {
        RowOptions { mode: Some(self.mode), ..RowOptions::default() }
    }

    /// A table with the initial rows of all cases.
    fn table(self) -> Table {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let fields = vec![
            Field::optional(1, "id", PrimitiveType::Long),
            Field::required(2, "p", PrimitiveType::Int),
            Field::optional(3, "v", PrimitiveType::String),
        ];
        let schema = Schema::new(0, fields).unwrap();
        let by: &[&str] = if self.partitioned { &["p"] } else { &[] };
        let definition = TableDefinition {
            partition_spec: PartitionSpec::from_text(0, by, &schema).unwrap(),
            schema,
            sort_order: SortOrder::default(),
            location: format!("memory://row-operations/{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            properties: [("format-version".to_owned(), self.version.to_string())].into_iter().collect(),
        };
        let storage = Storage::default();
        let committed = create(&storage, &definition).unwrap();
        let catalog = PointerCatalog::new(storage.clone(), Location(Mutex::new(committed.location.clone())));
        let mut table = Table::new(storage, Arc::new(catalog), committed);
        for rows in [&[A, BY_POSITION, BY_KEY][..], &[B, NO_ID], &[NO_VALUE]] {
            let batch = batch(rows);
            table =
                table.append(&batch.schema(), [Ok(batch.clone())].into_iter(), AppendOptions::default()).unwrap().table;
        }
        let by_position = Self { mode: Mode::MergeOnRead, ..self };
        let table = by_position.changed(&table, &Change::Delete("id = 3")).unwrap();
        self.changed(&table, &Change::Keys(&[], &[BY_KEY])).unwrap()
    }

    fn changed(self, table: &Table, change: &Change<'_>) -> Result<Table> {
        let mut transaction = table.transaction();
        self.make(&mut transaction, change)?;
        table.commit(&mut transaction)
    }

    fn make(self, transaction: &mut Transaction, change: &Change<'_>) -> Result<()> {
        let given = |rows: &[Row]| {
            let batch = batch(rows);
            (batch.schema(), [Ok(batch)].into_iter())
        };
        match change {
            Change::Delete(filter) => transaction.delete_rows(&condition(filter), true, self.options()).map(drop),
            Change::Update(filter) => {
                let metadata = transaction.metadata()?.clone();
                let matches = Matches::find(transaction.storage(), &metadata, "main", &condition(filter), true, None)?;
                let columns = columns_to_change(&metadata)?;
                let mut rows = matches
                    .matching_rows(columns)?
                    .map(|batch| with_value(&batch?))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .peekable();
                let Some(Ok(first)) = rows.peek() else { return rows.collect::<Result<Vec<_>>>().map(drop) };
                let schema = first.schema();
                let matching = Matching::default();
                let rows = NewRows { schema: &schema, batches: &mut rows, matching, evolve: false };
                transaction.replace_rows(&matches, Command::Update, Some(rows), self.options()).map(drop)
            }
            Change::Overwrite(filter, rows) => {
                let (schema, mut batches) = given(rows);
                let rows =
                    NewRows { schema: &schema, batches: &mut batches, matching: Matching::default(), evolve: false };
                transaction.overwrite_rows(&condition(filter), true, rows, self.options()).map(drop)
            }
            Change::Merge(clauses, rows) => {
                let clause = |(when, action): &(Side, Action)| Clause {
                    name: "clause".to_owned(),
                    when: *when,
                    condition: When::Always,
                    action: action.clone(),
                };
                let rules = Rules {
                    on: vec![("id".to_owned(), "id".to_owned())],
                    clauses: clauses.iter().map(clause).collect(),
                    case_sensitive: true,
                    exact: false,
                    matching: Matching::default(),
                    mentions: Vec::new(),
                };
                let options = MergeOptions { rules, evolve: false, memory_limit: MEMORY_LIMIT, rows: self.options() };
                let (schema, batches) = given(rows);
                transaction.merge(&schema, batches, options).map(drop)
            }
            Change::Upsert(rows) => {
                let join_columns = vec!["id".to_owned()];
                let options = UpsertOptions { join_columns, rows: self.options(), ..UpsertOptions::default() };
                let (schema, batches) = given(rows);
                transaction.upsert(&schema, batches, options).map(drop)
            }
            Change::Keys(upserts, deletes) => {
                let key = ["id".to_owned(), "p".to_owned()];
                let mut keyed = KeyedBatch::new(transaction, &key, true, MEMORY_LIMIT)?;
                let (schema, batches) = given(deletes);
                keyed.delete(&schema, batches)?;
                let (schema, batches) = given(upserts);
                keyed.upsert(&schema, batches, Matching::default())?;
                keyed.commit(transaction, SnapshotOptions::default()).map(drop)
            }
            Change::Several(changes) => changes.iter().try_for_each(|change| self.make(transaction, change)),
        }
    }
}

enum Change<'a> {
    Delete(&'static str),
    /// Sets the value of matching rows to z.
    Update(&'static str),
    Overwrite(&'static str, &'a [Row]),
    Merge(Vec<(Side, Action)>, &'a [Row]),
    Upsert(&'a [Row]),
    /// Writes rows and deletes keys, by id and partition.
    Keys(&'a [Row], &'a [Row]),
    /// Several changes in one transaction.
    Several(Vec<Change<'a>>),
}

fn condition(filter: &str) -> Condition {
    Condition::from(&Expr::parse(filter).unwrap())
}

fn batch(rows: &[Row]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
    let partitions: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>());
    let values: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<StringArray>());
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("p", partitions, false), ("v", values, true)])
        .unwrap()
}

/// Rows with the value z.
fn with_value(batch: &RecordBatch) -> Result<RecordBatch> {
    let place = batch.schema().index_of("v").unwrap();
    let mut columns = batch.columns().to_vec();
    columns[place] = Arc::new(StringArray::from(vec!["z"; batch.num_rows()]));
    Ok(RecordBatch::try_new(batch.schema(), columns).unwrap())
}

/// The rows of a table, sorted.
fn rows(table: &Table) -> Vec<(Option<i64>, i32, Option<String>)> {
    let scan = table.scan(&At::default()).unwrap();
    let plan = scan.plan().unwrap();
    let mut found = Vec::new();
    for batch in icefield_table::read::scan::rows(&scan, &plan, &scan.wanted(None).unwrap(), None).unwrap() {
        let batch = batch.unwrap();
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        let partitions = batch.column_by_name("p").unwrap().as_primitive::<Int32Type>();
        let values = batch.column_by_name("v").unwrap().as_string::<i32>();
        for row in 0..batch.num_rows() {
            let value = values.is_valid(row).then(|| values.value(row).to_owned());
            found.push((ids.is_valid(row).then(|| ids.value(row)), partitions.value(row), value));
        }
    }
    found.sort();
    found
}

fn check(cases: Vec<(&str, Change<'_>, &[Row])>) {
    for (what, change, expected) in cases {
        for way in Way::all() {
            let changed = way.changed(&way.table(), &change).unwrap_or_else(|error| panic!("{what}, {way:?}: {error}"));
            let mut expected: Vec<_> = expected.iter().map(|(id, p, v)| (*id, *p, v.map(str::to_owned))).collect();
            expected.sort();
            assert_eq!(rows(&changed), expected, "{what}, {way:?}");
        }
    }
}

const fn z(row: Row) -> Row {
    (row.0, row.1, Some("z"))
}

#[test]
fn the_first_rows_are_there() {
    check(vec![("nothing", Change::Delete("false"), &[A, B, NO_ID, NO_VALUE])]);
}

#[test]
fn deletes() {
    check(vec![
        ("one row", Change::Delete("id = 1"), &[B, NO_ID, NO_VALUE]),
        ("nulls do not match", Change::Delete("id > 0"), &[NO_ID]),
        ("nulls", Change::Delete("v is null"), &[A, B, NO_ID]),
        ("a partition", Change::Delete("p = 0"), &[B, NO_VALUE]),
        ("part of a file", Change::Delete("id = 2"), &[A, NO_ID, NO_VALUE]),
        ("all", Change::Delete("true"), &[]),
        ("rows that are deleted already", Change::Delete("id = 3 or id = 4"), &[A, B, NO_ID, NO_VALUE]),
    ]);
}

#[test]
fn updates() {
    check(vec![
        ("one row", Change::Update("id = 2"), &[A, z(B), NO_ID, NO_VALUE]),
        ("nulls", Change::Update("id is null or v is null"), &[A, B, z(NO_ID), z(NO_VALUE)]),
        ("beside rows that are deleted", Change::Update("p = 0"), &[z(A), B, z(NO_ID), NO_VALUE]),
        ("rows that are deleted already", Change::Update("id = 3 or id = 4"), &[A, B, NO_ID, NO_VALUE]),
    ]);
}

#[test]
fn overwrites() {
    check(vec![
        ("a partition", Change::Overwrite("p = 0", &[(Some(7), 0, None)]), &[B, NO_VALUE, (Some(7), 0, None)]),
        ("nothing but new rows", Change::Overwrite("id = 4", &[BY_KEY]), &[A, B, NO_ID, NO_VALUE, BY_KEY]),
        ("all", Change::Overwrite("true", &[BY_POSITION, BY_KEY]), &[BY_POSITION, BY_KEY]),
    ]);
}

#[test]
fn merges() {
    let write = |when| (when, Action::WriteAll);
    let both = || vec![write(Side::Matched), write(Side::NotMatched)];
    check(vec![
        (
            "changes and additions",
            Change::Merge(both(), &[z(B), z(BY_KEY), z(BY_POSITION)]),
            &[A, z(B), NO_ID, NO_VALUE, z(BY_KEY), z(BY_POSITION)],
        ),
        ("null is no key", Change::Merge(both(), &[z(NO_ID)]), &[A, B, NO_ID, z(NO_ID), NO_VALUE]),
        (
            "deletes of matches",
            Change::Merge(vec![(Side::Matched, Action::Delete)], &[A, BY_KEY, NO_ID]),
            &[B, NO_ID, NO_VALUE],
        ),
        (
            "deletes of the others",
            Change::Merge(vec![(Side::NotMatchedBySource, Action::Delete)], &[A, BY_POSITION]),
            &[A],
        ),
        (
            "additions alone",
            Change::Merge(vec![write(Side::NotMatched)], &[z(A), z(BY_KEY)]),
            &[A, B, NO_ID, NO_VALUE, z(BY_KEY)],
        ),
    ]);
}

#[test]
fn upserts() {
    check(vec![
        ("changes and additions", Change::Upsert(&[z(A), z(BY_KEY)]), &[z(A), B, NO_ID, NO_VALUE, z(BY_KEY)]),
        ("null is a key", Change::Upsert(&[z(NO_ID)]), &[A, B, z(NO_ID), NO_VALUE]),
        ("nothing differs", Change::Upsert(&[A, B]), &[A, B, NO_ID, NO_VALUE]),
    ]);
}

#[test]
fn changes_by_key() {
    check(vec![
        ("rows", Change::Keys(&[z(A), z(BY_KEY)], &[]), &[z(A), B, NO_ID, NO_VALUE, z(BY_KEY)]),
        ("deletes", Change::Keys(&[], &[B, NO_VALUE, BY_POSITION]), &[A, NO_ID]),
        ("null is a key", Change::Keys(&[z(NO_ID)], &[]), &[A, B, z(NO_ID), NO_VALUE]),
        ("the last change counts", Change::Keys(&[z(B)], &[B]), &[A, z(B), NO_ID, NO_VALUE]),
    ]);
}

#[test]
fn transactions_of_several_changes() {
    check(vec![
        (
            "a key after a rewrite of its file",
            Change::Several(vec![Change::Update("id = 2"), Change::Keys(&[], &[NO_ID])]),
            &[A, z(B), NO_VALUE],
        ),
        (
            "a rewrite after a key of its file",
            Change::Several(vec![
                Change::Keys(&[z(BY_KEY)], &[NO_ID]),
                Change::Update("id = 2"),
                Change::Delete("id = 4"),
            ]),
            &[A, z(B), NO_VALUE],
        ),
        (
            "an overwrite and an upsert",
            Change::Several(vec![Change::Overwrite("p = 0", &[BY_POSITION]), Change::Upsert(&[z(BY_POSITION), z(A)])]),
            &[z(A), B, NO_VALUE, z(BY_POSITION)],
        ),
    ]);
}

/// If two changes affect one file, the second is rejected, or does not bring back what the first has deleted.
#[test]
fn a_rewrite_beside_a_change_by_key_brings_nothing_back() {
    let rewrites = [
        Change::Delete("id = 2"),
        Change::Update("id = 2"),
        Change::Overwrite("id = 2", &[z(B)]),
        Change::Upsert(&[z(B)]),
    ];
    for change in &rewrites {
        for way in Way::all() {
            let table = way.table();
            let mut transaction = table.transaction();
            way.make(&mut transaction, change).unwrap();
            // Without partitions, the row is in the same file as the changed one.
            let changed = way.changed(&table, &Change::Keys(&[], &[NO_ID, NO_VALUE])).unwrap();
            let committed = table.commit(&mut transaction);
            let found = rows(committed.as_ref().unwrap_or(&changed));
            assert!(found.iter().all(|row| row.0.is_some_and(|id| id < 6)), "{way:?}: {found:?}");
            if let Err(error) = committed {
                assert!(matches!(error, Error::Validation(_)), "{way:?}: {error}");
            }
        }
    }
}
