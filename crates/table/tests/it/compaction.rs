//! Which files compactions and rewrites of deletes choose, and how they group them: cases of described files, which are
//! not read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::TableDefinition;
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_format::value::Value;
use icefield_table::commit::{Pointer, PointerCatalog, SnapshotOptions};
use icefield_table::maintain::compact::{Compaction, Progress, compact};
use icefield_table::maintain::deletes::{DeletesRequest, RewritePositions, dangling_deletes, rewrite_position_deletes};
use icefield_table::operation::create::create;
use icefield_table::operation::row_delta::RowDelta;
use icefield_table::storage::Storage;
use icefield_table::{Error, Result, Table};

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

/// A file: its partition and its bytes.
type Described = (i32, i64);
/// A delete file: its partition, its bytes, the data file that it is about, and its rows.
type Deleting = (i32, i64, Option<usize>, i64);

/// A table with data files of 100 rows each, and delete files of a later commit.
fn table(version: u8, data: &[Described], deletes: &[Deleting], equality: bool) -> Table {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let fields = vec![Field::optional(1, "id", PrimitiveType::Long), Field::optional(2, "p", PrimitiveType::Int)];
    let schema = Schema::new(0, fields).unwrap();
    let definition = TableDefinition {
        partition_spec: PartitionSpec::from_text(0, &["p"], &schema).unwrap(),
        schema,
        sort_order: SortOrder::default(),
        location: format!("memory://compaction/{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        properties: [("format-version".to_owned(), version.to_string())].into_iter().collect(),
    };
    let storage = Storage::default();
    let committed = create(&storage, &definition).unwrap();
    let catalog = PointerCatalog::new(storage.clone(), Location(Mutex::new(committed.location.clone())));
    let table = Table::new(storage, Arc::new(catalog), committed);
    let path = |number: usize| format!("{}/data/{number}.parquet", definition.location);
    let files = data.iter().enumerate().map(|(number, (partition, bytes))| DataFile {
        file_path: path(number),
        file_format: "PARQUET".to_owned(),
        partition: vec![Some(Value::Int(*partition))],
        record_count: 100,
        file_size_in_bytes: *bytes,
        ..DataFile::default()
    });
    let table = table.append_files(files.collect(), SnapshotOptions::default()).unwrap().table;
    if deletes.is_empty() {
        return table;
    }
    let mut delta = RowDelta::new();
    for (number, (partition, bytes, of, rows)) in deletes.iter().enumerate() {
        let vector = version == 3 && !equality;
        let file = DataFile {
            content: if equality { FileContent::EqualityDeletes } else { FileContent::PositionDeletes },
            file_path: format!("{}/data/{number}-deletes", definition.location),
            file_format: if vector { "PUFFIN" } else { "PARQUET" }.to_owned(),
            partition: vec![Some(Value::Int(*partition))],
            record_count: *rows,
            file_size_in_bytes: *bytes,
            equality_ids: equality.then(|| vec![1]),
            referenced_data_file: of.map(path),
            content_offset: vector.then_some(4),
            content_size_in_bytes: vector.then_some(40),
            ..DataFile::default()
        };
        delta.add_deletes(file).unwrap();
    }
    table.change(delta, SnapshotOptions::default()).unwrap().table
}

fn given(options: &[(&str, &str)]) -> icefield_format::metadata::StringMap {
    options.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Groups, replaced files, expected new files, replaced bytes, removed delete files.
fn planned(table: &Table, filter: Expr, options: &[(&str, &str)]) -> (usize, usize, usize, i64, usize) {
    let request = Compaction {
        strategy: None,
        sort_order: None,
        filter,
        case_sensitive: true,
        options: given(options),
        snapshot: SnapshotOptions::default(),
        memory: None,
        dry_run: true,
    };
    let done = compact(table, &request, &Progress::default()).unwrap();
    (done.groups, done.rewritten_data_files, done.added_data_files, done.rewritten_bytes, done.removed_delete_files)
}

#[test]
fn data_files_are_chosen_and_grouped_as_in_java() {
    const SIZES: (&str, &str) = ("target-file-size-bytes", "1000");
    // Of the target: files outside of 750 to 1,800 bytes are rewritten.
    for (data, options, expected) in [
        (&[(0, 10), (0, 10), (0, 10), (0, 10)][..], &[SIZES][..], (0, 0, 0, 0, 0)),
        (&[(0, 10), (0, 10), (0, 10), (0, 10), (0, 10)], &[SIZES], (1, 5, 1, 50, 0)),
        (&[(0, 10), (0, 10), (0, 10), (1, 10), (1, 10)], &[SIZES], (0, 0, 0, 0, 0)),
        (&[(0, 10), (0, 10), (0, 10), (1, 10), (1, 10)], &[SIZES, ("min-input-files", "2")], (2, 5, 2, 50, 0)),
        (&[(0, 10), (0, 1000), (0, 10), (0, 1800)], &[SIZES, ("min-input-files", "2")], (1, 2, 1, 20, 0)),
        (&[(0, 700), (0, 700)], &[SIZES], (1, 2, 2, 1400, 0)),
        (&[(0, 500), (0, 500)], &[SIZES], (0, 0, 0, 0, 0)),
        (&[(0, 1801)], &[SIZES], (1, 1, 2, 1801, 0)),
        (&[(0, 1801), (0, 10_700)], &[SIZES], (1, 2, 12, 12_501, 0)),
        (&[(0, 1000), (1, 1000)], &[SIZES, ("rewrite-all", "true")], (2, 2, 2, 2000, 0)),
        (
            &[(0, 600), (0, 600), (0, 600)],
            &[SIZES, ("max-file-group-size-bytes", "1200"), ("min-input-files", "1")],
            (1, 2, 2, 1200, 0),
        ),
        (
            &[(0, 10), (0, 10), (0, 10)],
            &[SIZES, ("max-file-group-input-files", "2"), ("rewrite-all", "true")],
            (2, 3, 2, 30, 0),
        ),
        (
            &[(0, 10), (0, 10), (1, 10), (1, 10)],
            &[SIZES, ("max-files-to-rewrite", "3"), ("rewrite-all", "true")],
            (2, 3, 2, 30, 0),
        ),
    ] {
        assert_eq!(planned(&table(2, data, &[], false), Expression::True, options), expected, "{data:?} {options:?}");
    }
}

#[test]
fn files_with_deletes_are_rewritten_whatever_their_size() {
    let data = &[(0, 1000), (0, 1000), (1, 1000)];
    let about = |rows: &[i64]| -> Vec<Deleting> {
        rows.iter().enumerate().map(|(number, rows)| (i32::from(number == 2), 50, Some(number), *rows)).collect()
    };
    let size = ("target-file-size-bytes", "1000");
    for (version, deletes, equality, options, expected) in [
        (2, about(&[29]), false, &[][..], (0, 0, 0, 0, 0)),
        (2, about(&[30]), false, &[], (1, 1, 1, 1000, 0)),
        (3, about(&[30, 90, 5]), false, &[], (1, 2, 2, 2000, 2)),
        (3, about(&[30, 90, 5]), false, &[("delete-ratio-threshold", "1")], (0, 0, 0, 0, 0)),
        (3, about(&[30, 90, 5]), false, &[("delete-file-threshold", "1")], (2, 3, 3, 3000, 3)),
        // Deletes of a partition count as files, but not as deleted rows of any data file.
        (2, vec![(0, 50, None, 100)], false, &[], (0, 0, 0, 0, 0)),
        (2, vec![(0, 50, None, 100)], false, &[("delete-file-threshold", "1")], (1, 2, 2, 2000, 0)),
        (2, vec![(0, 50, None, 100), (0, 50, None, 9)], false, &[("delete-file-threshold", "3")], (0, 0, 0, 0, 0)),
        (3, vec![(1, 50, None, 100)], true, &[("delete-file-threshold", "1")], (1, 1, 1, 1000, 0)),
    ] {
        let table = table(version, data, &deletes, equality);
        let options: Vec<(&str, &str)> = options.iter().copied().chain([size]).collect();
        assert_eq!(planned(&table, Expression::True, &options), expected, "v{version} {deletes:?} {options:?}");
    }
}

#[test]
fn a_filter_chooses_partitions() {
    let table = table(2, &[(0, 10), (0, 10), (1, 10)], &[], false);
    let all = ("rewrite-all", "true");
    assert_eq!(planned(&table, Expr::parse("p = 1").unwrap(), &[all]), (1, 1, 1, 10, 0));
    assert_eq!(planned(&table, Expr::parse("p = 7").unwrap(), &[all]), (0, 0, 0, 0, 0));
}

#[test]
fn position_deletes_are_chosen_by_their_partitions_and_sizes() {
    let data = &[(0, 1000), (0, 1000), (1, 1000)];
    let deletes = &[(0, 10, None, 3), (0, 10, None, 3), (0, 1000, None, 5), (1, 10, Some(2), 5)];
    let table = table(2, data, deletes, false);
    let chosen = |filter: Expr, options: &[(&str, &str)]| {
        let request = DeletesRequest {
            filter,
            case_sensitive: true,
            snapshot: SnapshotOptions::default(),
            memory: None,
            dry_run: true,
        };
        let all = [("target-file-size-bytes", "1000")].iter().chain(options).copied().collect::<Vec<_>>();
        rewrite_position_deletes(&table, &RewritePositions { request, options: given(&all) })
    };
    assert_eq!(chosen(Expression::True, &[]).unwrap().rewritten_delete_files, 0);
    // Chosen files are read, and these are only described.
    let error = chosen(Expression::True, &[("min-input-files", "2")]).unwrap_err().to_string();
    assert!(error.contains("0-deletes") || error.contains("1-deletes"), "{error}");
    let error = chosen(Expr::parse("p = 1").unwrap(), &[("rewrite-all", "true")]).unwrap_err().to_string();
    assert!(error.contains("3-deletes"), "{error}");
    assert_eq!(chosen(Expr::parse("p = 7").unwrap(), &[("rewrite-all", "true")]).unwrap().rewritten_bytes, 0);
    let error = chosen(Expression::True, &[("delete-file-threshold", "2")]).unwrap_err().to_string();
    assert!(error.contains("unknown option 'delete-file-threshold'"), "{error}");
}

#[test]
fn deletes_dangle_without_older_data_files_in_their_partition() {
    for (version, deletes, equality, dangling) in [
        (2, vec![(0, 10, None, 1), (7, 10, None, 1)], false, vec![1]),
        (2, vec![(1, 10, None, 1), (7, 10, None, 1)], true, vec![1]),
        (3, vec![(0, 10, Some(0), 1), (0, 10, Some(9), 1)], false, vec![1]),
    ] {
        let table = table(version, &[(0, 10), (1, 10)], &deletes, equality);
        let found = dangling_deletes(&table, "main").unwrap();
        let found: Vec<usize> = (0..deletes.len())
            .filter(|number| found.iter().any(|file| file.file_path.ends_with(&format!("/{number}-deletes"))))
            .collect();
        assert_eq!(found, dangling, "v{version} {deletes:?}");
    }
}
