//! End-to-end tests of tables, without Python: create, append, plan, read, transactions, conflicts. The catalog is one
//! of pointers, or a service that takes requirements and updates.

mod catalogs;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use icefield_format::evolution::{NewColumn, UpdateSchema};
use icefield_format::metadata::{MetadataUpdate, StringMap, TableDefinition, UpdateRequirement};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{
    Catalog, Committed, Pointer, PointerCatalog, SnapshotOptions, SnapshotProducer, Transaction, Updates, create_table,
};
use icefield_table::operation::append::{Append, AppendOptions};
use icefield_table::operation::create::{create, stage as staged};
use icefield_table::plan::At;
use icefield_table::storage::Storage;
use icefield_table::write::{Matching, TableWriter, WriterConfig};
use icefield_table::{Error, Result, Table};

use catalogs::{Answer, Location, Service};

fn created(properties: &[(&str, &str)]) -> (Storage, Committed) {
    let storage = Storage::default();
    let committed = create(&storage, &definition(properties)).unwrap();
    (storage, committed)
}

fn definition(properties: &[(&str, &str)]) -> TableDefinition {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let waits =
        [("commit.retry.min-wait-ms", "1"), ("commit.retry.max-wait-ms", "2"), ("commit.retry.num-retries", "99")];
    let properties = waits.iter().chain(properties).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    TableDefinition {
        schema: Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)]).unwrap(),
        partition_spec: PartitionSpec::unpartitioned(),
        sort_order: SortOrder::default(),
        location: format!("memory://operations/{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        properties: properties.collect(),
    }
}

fn service(committed: &Committed) -> Arc<Service> {
    let table = Mutex::new(Some(committed.clone()));
    Arc::new(Service { table, ..Service::default() })
}

/// Equal new tables, one in each kind of catalog.
fn tables(properties: &[(&str, &str)]) -> [Table; 2] {
    let (storage, committed) = created(properties);
    let pointer = PointerCatalog::new(storage.clone(), Location(Mutex::new(committed.location.clone())));
    let by_pointer = Table::new(storage, Arc::new(pointer), committed);
    let (storage, committed) = created(properties);
    [by_pointer, Table::new(storage, service(&committed), committed)]
}

fn ids(ids: &[i64]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    RecordBatch::try_from_iter([("id", ids)]).unwrap()
}

fn with_places(rows: &[(i64, &str)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id)));
    let places: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, place)| *place)));
    RecordBatch::try_from_iter([("id", ids), ("place", places)]).unwrap()
}

fn append_to(table: &Table, batch: RecordBatch) -> Result<Table> {
    let options = AppendOptions { matching: subset(), ..AppendOptions::default() };
    Ok(table.append(&batch.schema(), [Ok(batch.clone())].into_iter(), options)?.table)
}

fn stage(transaction: &mut Transaction, batch: RecordBatch) -> Result<i64> {
    let options = AppendOptions { matching: subset(), ..AppendOptions::default() };
    Ok(transaction.append(&batch.schema(), [Ok(batch.clone())].into_iter(), options)?.rows)
}

fn subset() -> Matching {
    Matching { allow_missing: true, ignore_extra: false }
}

/// The sorted ids of a table's rows, from a scan.
fn rows(table: &Table) -> Vec<i64> {
    let scan = table.scan(&At::default()).unwrap();
    let plan = scan.plan().unwrap();
    let mut ids = Vec::new();
    for batch in icefield_table::read::scan::rows(&scan, &plan, &scan.wanted(None).unwrap(), None).unwrap() {
        let batch = batch.unwrap();
        ids.extend_from_slice(batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values());
    }
    ids.sort_unstable();
    ids
}

/// Files in the table's folders that the current metadata does not refer to, except for metadata files.
fn orphans(table: &Table) -> Vec<String> {
    let metadata = table.metadata();
    let mut used = Vec::new();
    for snapshot in metadata.snapshots() {
        used.push(snapshot.manifest_list().unwrap().to_owned());
        let limits = icefield_table::limits().unwrap();
        let manifests = icefield_table::snapshot::manifests::of_snapshot(table.storage(), metadata, snapshot, &limits);
        used.extend(manifests.unwrap().into_iter().map(|manifest| manifest.manifest_path));
    }
    let plan = table.scan(&At::default()).unwrap().plan().unwrap();
    let data = (0..plan.manifests.len()).flat_map(|at| {
        let entries = &plan.manifests[at].entries;
        (0..entries.len()).map(|row| entries.entry(row, 0).unwrap().file.file_path).collect::<Vec<_>>()
    });
    used.extend(data);
    let all = table.storage().list(metadata.location()).unwrap().into_iter().map(|entry| entry.path);
    all.filter(|path| !path.ends_with(".metadata.json") && !used.contains(path)).collect()
}

/// The updates that add an optional column.
fn column(table: &icefield_format::metadata::TableMetadata, name: &str) -> Vec<MetadataUpdate> {
    let mut change = UpdateSchema::new(table.current_schema(), table.last_column_id(), table.format_version().number());
    change.add(NewColumn::new(name, PrimitiveType::String).unwrap()).unwrap();
    table.current_schema_updates(&change.apply().unwrap())
}

fn property(name: &str, value: &str) -> MetadataUpdate {
    MetadataUpdate::SetProperties { updates: [(name.to_owned(), value.to_owned())].into_iter().collect::<StringMap>() }
}

#[test]
fn rows_that_are_appended_are_planned_and_read() {
    for version in ["1", "2", "3"] {
        for table in tables(&[("format-version", version)]) {
            let table = append_to(&table, ids(&[1, 2])).unwrap();
            let table = append_to(&table, ids(&[3])).unwrap();
            assert_eq!(rows(&table), [1, 2, 3]);
            assert_eq!(table.scan(&At::default()).unwrap().plan().unwrap().manifests.len(), 2);
            assert_eq!(rows(&table.refresh().unwrap()), [1, 2, 3]);
            assert_eq!(orphans(&table), Vec::<String>::new());
        }
    }
}

#[test]
fn a_schema_changes_and_rows_of_it_are_appended_in_one_commit() {
    for table in tables(&[]) {
        let table = append_to(&table, ids(&[1])).unwrap();
        let mut transaction = table.transaction();
        let updates = column(table.metadata(), "place");
        transaction.stage(Updates::new(Vec::new(), updates).unwrap()).unwrap();
        assert_eq!(stage(&mut transaction, with_places(&[(2, "here"), (3, "there")])).unwrap(), 2);
        transaction.stage(Updates::new(Vec::new(), vec![property("owner", "me")]).unwrap()).unwrap();
        // Other readers see none of it yet.
        let before = table.refresh().unwrap();
        assert_eq!((rows(&before), before.metadata().current_schema_id()), (vec![1], 0));

        let table = table.commit(&mut transaction).unwrap();
        assert_eq!(rows(&table), [1, 2, 3]);
        assert_eq!(table.metadata().current_schema().fields().len(), 2);
        assert_eq!(table.metadata().property("owner"), Some("me"));
        assert_eq!(table.metadata().snapshots().len(), 2);
        assert_eq!(orphans(&table), Vec::<String>::new());
        let again = table.commit(&mut transaction).unwrap_err();
        assert_eq!(again.to_string(), "this transaction is finished: begin a new one");
    }
}

#[test]
fn changes_are_made_anew_on_top_of_what_others_committed() {
    for table in tables(&[("format-version", "3")]) {
        let mut transaction = table.transaction();
        stage(&mut transaction, ids(&[1, 2])).unwrap();
        stage(&mut transaction, ids(&[3])).unwrap();
        transaction.metadata().unwrap();
        let others = append_to(&table, ids(&[10, 20, 30])).unwrap();
        let table = table.commit(&mut transaction).unwrap();
        assert_eq!(rows(&table), [1, 2, 3, 10, 20, 30]);
        // Row ids continue after those of the other commit.
        let first: Vec<_> =
            table.metadata().snapshots().iter().map(|snapshot| snapshot.first_row_id.unwrap()).collect();
        assert_eq!(first, [0, 3, 5]);
        let current = table.metadata().current_snapshot_id().unwrap();
        assert_eq!(table.metadata().ancestors(current).count(), 3);
        assert_eq!(others.metadata().current_snapshot_id(), table.metadata().snapshots()[0].snapshot_id.into());
        assert_eq!(orphans(&table), Vec::<String>::new());
    }
}

#[test]
fn a_schema_that_others_changed_ends_the_transaction() {
    for table in tables(&[]) {
        let table = append_to(&table, ids(&[1])).unwrap();
        let mut transaction = table.transaction();
        let updates = column(table.metadata(), "place");
        let requirements = icefield_format::metadata::requirements_for_update(table.metadata(), &updates);
        transaction.stage(Updates::new(requirements, updates).unwrap()).unwrap();
        stage(&mut transaction, with_places(&[(2, "here")])).unwrap();
        let others = table.update(Vec::new(), column(table.metadata(), "colour")).unwrap();
        let refused = table.commit(&mut transaction).unwrap_err();
        assert!(refused.to_string().contains("last assigned field id has changed"), "{refused}");
        assert_eq!(rows(&others.refresh().unwrap()), [1]);
        assert_eq!(orphans(&others), Vec::<String>::new());
    }
}

#[test]
fn transactions_race_and_all_land_whole() {
    for table in tables(&[("format-version", "3")]) {
        std::thread::scope(|scope| {
            for thread in 0..6_i64 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..4 {
                        let opened = table.refresh().unwrap();
                        let mut transaction = opened.transaction();
                        let id = 100 * thread + 10 * round;
                        stage(&mut transaction, ids(&[id])).unwrap();
                        stage(&mut transaction, ids(&[id + 1])).unwrap();
                        let owner = property(&format!("p{thread}"), &round.to_string());
                        transaction.stage(Updates::new(Vec::new(), vec![owner]).unwrap()).unwrap();
                        opened.commit(&mut transaction).unwrap();
                    }
                });
            }
        });
        let table = table.refresh().unwrap();
        let expected = (0..6).flat_map(|t| (0..4).flat_map(move |r| [100 * t + 10 * r, 100 * t + 10 * r + 1]));
        assert_eq!(rows(&table), expected.collect::<Vec<i64>>());
        assert_eq!(table.metadata().snapshots().len(), 48);
        assert_eq!(table.metadata().ancestors(table.metadata().current_snapshot_id().unwrap()).count(), 48);
        assert_eq!(table.metadata().next_row_id(), 48);
        assert!((0..6).all(|thread| table.metadata().property(&format!("p{thread}")) == Some("3")));
        assert_eq!(orphans(&table), Vec::<String>::new());
    }
}

/// Two transactions each append rows and add a column: one is committed, and the other is rejected as a whole, and
/// succeeds when it is repeated on the new state of the table.
#[test]
fn two_transactions_of_rows_and_a_column_race() {
    fn attempt(opened: &Table, name: &str, id: i64) -> Result<Table> {
        let mut transaction = opened.transaction();
        let updates = column(opened.metadata(), name);
        let requirements = icefield_format::metadata::requirements_for_update(opened.metadata(), &updates);
        transaction.stage(Updates::new(requirements, updates).unwrap()).unwrap();
        stage(&mut transaction, ids(&[id])).unwrap();
        opened.commit(&mut transaction)
    }

    for table in tables(&[]) {
        let results = std::thread::scope(|scope| {
            let racers = [("place", 1), ("colour", 2)].map(|(name, id)| {
                let opened = table.clone();
                scope.spawn(move || (name, id, attempt(&opened, name, id)))
            });
            racers.map(|racer| racer.join().unwrap())
        });
        let [won, lost] = [true, false].map(|ok| {
            let of_kind: Vec<_> = results.iter().filter(|(.., result)| result.is_ok() == ok).collect();
            assert_eq!(of_kind.len(), 1, "{results:?}");
            of_kind[0]
        });
        let refused = lost.2.as_ref().unwrap_err();
        assert!(refused.to_string().contains("last assigned field id has changed"), "{refused}");
        let table = table.refresh().unwrap();
        assert_eq!(rows(&table), [won.1]);
        assert_eq!(orphans(&table), Vec::<String>::new());

        let table = attempt(&table, lost.0, lost.1).unwrap();
        assert_eq!(rows(&table), [1, 2]);
        let names: Vec<_> = table.metadata().current_schema().fields().iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["id", won.0, lost.0]);
    }
}

#[test]
fn appends_add_the_columns_that_rows_have() {
    for table in tables(&[]) {
        let table = append_to(&table, ids(&[1])).unwrap();
        let batch = with_places(&[(2, "here")]);
        let refused = append_to(&table, batch.clone()).unwrap_err();
        assert!(refused.to_string().contains("place"), "{refused}");
        let options = AppendOptions { matching: subset(), evolve: true, ..AppendOptions::default() };
        let appended = table.append(&batch.schema(), [Ok(batch.clone())].into_iter(), options).unwrap();
        assert_eq!((rows(&appended.table), appended.rows), (vec![1, 2], 1));
        assert_eq!(appended.table.metadata().current_schema().fields().len(), 2);
        assert_eq!(orphans(&appended.table), Vec::<String>::new());
    }
}

#[test]
fn what_is_given_up_leaves_no_file() {
    for table in tables(&[]) {
        let table = append_to(&table, ids(&[1])).unwrap();
        // Transactions that are dropped, aborted, or ended by an error of their rows.
        let mut transaction = table.transaction();
        stage(&mut transaction, ids(&[2])).unwrap();
        transaction.metadata().unwrap();
        drop(transaction);
        let mut transaction = table.transaction();
        stage(&mut transaction, ids(&[3])).unwrap();
        transaction.abort();
        let batch = ids(&[4]);
        let batches = [Ok(batch.clone()), Err(Error::invalid("no more rows"))].into_iter();
        let failed = table.append(&batch.schema(), batches, AppendOptions::default()).unwrap_err();
        assert_eq!(failed.to_string(), "no more rows");
        assert_eq!(orphans(&table.refresh().unwrap()), Vec::<String>::new());
    }
}

#[test]
fn a_change_that_cannot_be_made_is_no_part_of_the_transaction() {
    for table in tables(&[]) {
        let mut transaction = table.transaction();
        stage(&mut transaction, ids(&[1])).unwrap();
        let requirement = UpdateRequirement::AssertCurrentSchemaId { current_schema_id: 7 };
        let unmet = Updates::new(vec![requirement], vec![property("a", "b")]).unwrap();
        assert!(transaction.stage(unmet).unwrap_err().to_string().contains("current schema id has changed"));
        let table = table.commit(&mut transaction).unwrap();
        assert_eq!((rows(&table), table.metadata().property("a")), (vec![1], None));
    }
}

#[test]
fn each_answer_of_a_catalog_has_its_outcome() {
    let (storage, committed) = created(&[("commit.retry.num-retries", "1")]);
    let catalog = service(&committed);
    let table = Table::new(storage, catalog.clone(), committed);
    let answered = |answers: &[Answer], id| {
        *catalog.answers.lock().unwrap() = answers.to_vec();
        append_to(&table.refresh().unwrap(), ids(&[id]))
    };
    assert_eq!(rows(&answered(&[Answer::Lost], 1).unwrap()), [1]);

    let lost = answered(&[Answer::Lost, Answer::Lost], 2).unwrap_err();
    assert!(matches!(&lost, Error::CommitFailed(reason) if reason.starts_with("busy")), "{lost}");
    let refused = answered(&[Answer::Refused], 3).unwrap_err();
    assert!(matches!(&refused, Error::Validation(_)), "{refused}");
    assert_eq!(orphans(&table.refresh().unwrap()), Vec::<String>::new());

    // The answer is lost, but the commit is found.
    assert_eq!(rows(&answered(&[Answer::AppliedButUnknown], 4).unwrap()), [1, 4]);
    // The outcome cannot be determined.
    let unknown = answered(&[Answer::Forgotten], 5).unwrap_err();
    let Error::CommitStateUnknown { commit, .. } = unknown else { panic!("{unknown}") };
    let id = commit.snapshot_id.unwrap();
    *catalog.is_deaf.lock().unwrap() = false;
    let now = table.refresh().unwrap();
    assert_eq!((now.metadata().current_snapshot_id(), rows(&now)), (Some(id), vec![1, 4, 5]));
    assert_eq!(orphans(&now), Vec::<String>::new());
}

/// A change of metadata only has no snapshot to look for; the commit is recognized by its effects on the metadata.
#[test]
fn changes_of_metadata_are_found_after_a_lost_answer() {
    let (storage, committed) = created(&[]);
    let catalog = service(&committed);
    let table = Table::new(storage, catalog.clone(), committed);
    let schema = Schema::new(
        1,
        vec![Field::required(1, "id", PrimitiveType::Long), Field::optional(2, "place", PrimitiveType::String)],
    );
    let widened =
        vec![MetadataUpdate::AddSchema { schema: schema.unwrap() }, MetadataUpdate::SetCurrentSchema { schema_id: -1 }];
    for updates in [vec![property("a", "b")], widened] {
        *catalog.answers.lock().unwrap() = vec![Answer::AppliedButUnknown];
        let before = table.refresh().unwrap();
        let after = before.update(Vec::new(), updates).unwrap();
        assert!(after.metadata() != before.metadata());
        assert_eq!(after.metadata(), table.refresh().unwrap().metadata());
    }
}

/// A staged snapshot is not written again if the service has the same table state.
#[test]
fn each_list_and_manifest_is_written_once() {
    for table in tables(&[]) {
        let appended = append_to(&table, ids(&[1])).unwrap();
        let mut transaction = appended.transaction();
        stage(&mut transaction, ids(&[2])).unwrap();
        stage(&mut transaction, ids(&[3])).unwrap();
        let table = appended.commit(&mut transaction).unwrap();
        for snapshot in table.metadata().snapshots() {
            let list = snapshot.manifest_list().unwrap();
            assert!(list.contains(&format!("snap-{}-1-", snapshot.snapshot_id)), "{list} is not of the first attempt");
        }
        assert_eq!(table.metadata().snapshots().len(), 3);
    }
}

#[test]
fn commits_require_the_table_and_the_branch_that_they_were_made_of() {
    let (storage, committed) = created(&[]);
    let catalog = service(&committed);
    let table = Table::new(storage, catalog.clone(), committed.clone());
    let first = append_to(&table, ids(&[1])).unwrap();
    append_to(&first, ids(&[2])).unwrap();
    let of = |snapshot_id| UpdateRequirement::AssertRefSnapshotId { ref_name: "main".into(), snapshot_id };
    let uuid = committed.metadata.table_uuid().unwrap().to_owned();
    let uuid = || UpdateRequirement::AssertTableUuid { uuid: uuid.clone() };
    let snapshot = first.metadata().current_snapshot_id();
    assert_eq!(*catalog.asked.lock().unwrap(), [uuid(), of(None), uuid(), of(snapshot)]);

    let (_, other) = created(&[]);
    *catalog.table.lock().unwrap() = Some(other);
    let replaced = append_to(&first, ids(&[3])).unwrap_err();
    assert!(matches!(replaced, Error::TableReplaced { .. }), "{replaced}");
}

#[test]
fn files_that_the_caller_wrote_stay_the_callers() {
    let (storage, committed) = created(&[]);
    let catalog = service(&committed);
    let table = Table::new(storage.clone(), catalog.clone(), committed);
    let batch = ids(&[1]);
    let mut writer =
        TableWriter::new(WriterConfig::of_table(storage.clone(), table.metadata()), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let files = writer.finish().unwrap();
    catalog.answers.lock().unwrap().push(Answer::Refused);
    table.append_files(files.clone(), SnapshotOptions::default()).unwrap_err();
    assert_eq!(orphans(&table), [files[0].file_path.clone()]);
    // The same file given twice is added once.
    let twice = [files.clone(), files].concat();
    let change = SnapshotProducer::new(storage, Append::new(twice).unwrap(), SnapshotOptions::default());
    let mut transaction = table.transaction();
    transaction.add(change);
    assert_eq!(rows(&table.commit(&mut transaction).unwrap()), [1]);
}

/// A transaction that creates a table, appends rows and adds a column.
fn creating(storage: &Storage, version: &str) -> (Transaction, Table) {
    let metadata = Arc::new(staged(&definition(&[("format-version", version)])).unwrap());
    let base = Committed { location: String::new(), metadata };
    let nowhere = PointerCatalog::new(storage.clone(), Location(Mutex::new(String::new())));
    let table = Table::new(storage.clone(), Arc::new(nowhere), base.clone());
    let mut transaction = Transaction::new(storage.clone(), base);
    stage(&mut transaction, ids(&[1, 2])).unwrap();
    let updates = column(transaction.metadata().unwrap(), "place");
    transaction.stage(Updates::new(Vec::new(), updates).unwrap()).unwrap();
    (transaction, table)
}

fn data_files(table: &Table) -> usize {
    let entries = table.storage().list(table.metadata().location()).unwrap();
    entries.iter().filter(|entry| entry.path.ends_with(".parquet")).count()
}

#[test]
fn a_table_is_created_with_its_rows_in_one_commit() {
    for version in ["1", "2", "3"] {
        let storage = Storage::default();
        let service = Arc::new(Service::default());
        let pointer = Arc::new(PointerCatalog::new(storage.clone(), Location(Mutex::new(String::new()))));
        let catalogs: [Arc<dyn Catalog>; 2] = [service.clone(), pointer];
        for catalog in catalogs {
            let (mut transaction, _) = creating(&storage, version);
            let committed = transaction.create(&*catalog).unwrap();
            let table = Table::load(storage.clone(), catalog.clone()).unwrap();
            assert_eq!(table.metadata().table_uuid(), committed.metadata.table_uuid());
            assert_eq!(rows(&table), [1, 2]);
            assert_eq!(table.metadata().format_version().number().to_string(), version);
            assert_eq!(table.metadata().schemas().len(), 2);
            assert!(table.metadata().metadata_log().is_empty());
            assert!(transaction.create(&*catalog).is_err());
            // A second table with this name fails, and its files are deleted.
            let (mut other, its_files) = creating(&storage, version);
            assert_eq!(data_files(&its_files), 1);
            assert!(matches!(other.create(&*catalog), Err(Error::Refused(_))));
            assert_eq!(data_files(&its_files), 0);
            assert_eq!(rows(&table.refresh().unwrap()), [1, 2]);
            assert_eq!(rows(&append_to(&table, ids(&[3])).unwrap()), [1, 2, 3]);
        }
        assert_eq!(
            service.asked.lock().unwrap()[..2],
            [UpdateRequirement::AssertCreate, UpdateRequirement::AssertCreate]
        );
    }
}

#[test]
fn files_of_a_table_stay_only_where_it_may_have_been_created() {
    for (answer, left) in
        [(Answer::Lost, 0), (Answer::Refused, 0), (Answer::AppliedButUnknown, 1), (Answer::Forgotten, 1)]
    {
        let storage = Storage::default();
        let service = Service { answers: Mutex::new(vec![answer]), ..Service::default() };
        let (mut transaction, table) = creating(&storage, "2");
        let snapshot_id = transaction.metadata().unwrap().current_snapshot_id();
        let created = transaction.create(&service);
        drop(transaction);
        assert_eq!(data_files(&table), left);
        if answer == Answer::AppliedButUnknown {
            // The answer is lost, but the table exists.
            assert_eq!(created.unwrap().metadata.current_snapshot_id(), snapshot_id);
            continue;
        }
        let error = created.unwrap_err();
        match (answer, error) {
            (Answer::Lost, Error::CommitFailed(_)) | (Answer::Refused, Error::Validation(_)) => {}
            (Answer::Forgotten, Error::CommitStateUnknown { commit, .. }) => {
                assert_eq!(commit.snapshot_id, snapshot_id);
                assert!(commit.files.iter().any(|file| file.ends_with(".parquet")));
            }
            (_, other) => panic!("{other}"),
        }
    }
}

#[test]
fn catalogs_that_cannot_create_tables_say_so() {
    struct Fixed;
    impl Pointer for Fixed {
        fn load(&self) -> Result<String> {
            Err(Error::NotFound { path: "the table".to_owned() })
        }
        fn swap(&self, _base: &str, _new: &str) -> Result<()> {
            Err(Error::CommitFailed("fixed".to_owned()))
        }
    }
    let storage = Storage::default();
    let (mut transaction, table) = creating(&storage, "2");
    let error = transaction.create(&PointerCatalog::new(storage.clone(), Fixed)).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
    assert_eq!(table.storage().list(table.metadata().location()).unwrap(), []);
    let unmet = UpdateRequirement::AssertCurrentSchemaId { current_schema_id: 0 };
    assert!(matches!(create_table(&PointerCatalog::new(storage, Fixed), &[unmet], &[]), Err(Error::CommitFailed(_))));
}
