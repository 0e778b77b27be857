//! Delete files that are damaged, or do not match the manifest, give errors that name the file, never wrong rows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use icefield_format::Limits;
use icefield_format::puffin::DeletionVector;
use icefield_format::types::{Field, ListType, PrimitiveType};
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::{DeletePart, FilePart};
use icefield_table::read::task;
use icefield_table::storage::{Existing, Storage};
use icefield_table::{Error, Result};
use proptest::sample::Index;

use crate::deletes::rows::{Row, batch, current, key_fields, stored};
use crate::deletes::world::{Data, Delete, World, write_positions};
use crate::files::{FORMATS, write_file};

const ROWS: i64 = 50;

fn rows(ids: impl Iterator<Item = i64>) -> Vec<Row> {
    let row = |id| Row { id, k: None, s: None, f: None, st: None, d: None, gone: None, added: None };
    ids.map(row).collect()
}

fn positions(format: usize, entries: Vec<(usize, i64)>) -> Delete {
    Delete::Positions { format, entries, with_row: false, sorted: false }
}

fn equality(format: usize, ids: impl Iterator<Item = i64>) -> Delete {
    Delete::Equality { format, is_old: false, ids: vec![1], rows: rows(ids), copied: Vec::new() }
}

fn vector() -> Delete {
    let file = proptest::strategy::Strategy::new_tree(
        &proptest::arbitrary::any::<Index>(),
        &mut proptest::test_runner::TestRunner::deterministic(),
    );
    let file = proptest::strategy::ValueTree::current(&file.unwrap());
    Delete::Vector { file, positions: vec![1, 4, 7] }
}

/// One data file with rows 0 to 49 and one delete file.
struct Table {
    storage: Storage,
    part: FilePart,
}

impl Table {
    fn new(delete: Delete) -> Self {
        let data = Data { rows: rows(0..ROWS), format: 0, is_old: false, group: 20, d: None };
        let written = World { data: vec![data], deletes: vec![delete], applies: vec![vec![true]] }.write();
        Self { storage: written.storage, part: written.parts.into_iter().next().unwrap() }
    }

    fn delete(&self) -> DeletePart {
        self.part.deletes.iter().next().unwrap().as_ref().clone()
    }

    /// The remaining ids with another delete file.
    fn with(&self, delete: DeletePart) -> Result<Vec<i64>> {
        self.read(vec![Arc::new(delete)], &Limits::default())
    }

    fn read(&self, deletes: Vec<Arc<DeletePart>>, limits: &Limits) -> Result<Vec<i64>> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::Int64Type;
        let schema = Arc::new(current());
        let projection = Arc::new(schema.select(&["id"], true)?);
        let wanted = Arc::new(Wanted::new(schema, projection));
        let parts = vec![FilePart { deletes: deletes.into_iter().collect(), ..self.part.clone() }];
        let batches = task::rows_within(ReadTask { wanted, parts }, &self.storage, None, limits)?;
        let batches: Vec<RecordBatch> = batches.collect::<Result<_>>()?;
        let ids = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        Ok(batches.iter().flat_map(ids).collect())
    }

    /// The error of reading with another delete file; it must name the file.
    fn error(&self, delete: DeletePart) -> String {
        let path = delete.path.clone();
        let error = self.with(delete).unwrap_err();
        assert!(!matches!(error, Error::Internal(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&path), "{text}");
        text
    }

    fn bytes(&self) -> Vec<u8> {
        let delete = self.delete();
        self.storage.range(&delete.path, 0..delete.size).unwrap().to_vec()
    }

    fn replace(&self, bytes: Vec<u8>) {
        self.storage.put(&self.delete().path, bytes, Existing::Replace).unwrap();
    }
}

#[test]
fn a_vector_is_what_the_manifest_says() {
    let table = Table::new(vector());
    let good = table.delete();
    assert_eq!(table.with(good.clone()).unwrap().len(), 47);
    let (offset, size) = good.blob.unwrap();
    let other = |data: &str| Some(data.to_owned());
    for (delete, expected) in [
        (DeletePart { record_count: 4, ..good.clone() }, "the manifest says 4"),
        (DeletePart { referenced_data_file: other("memory://else.parquet"), ..good.clone() }, "memory://else.parquet"),
        (DeletePart { referenced_data_file: None, ..good.clone() }, "no data file"),
        (DeletePart { blob: None, ..good.clone() }, "place"),
        (DeletePart { blob: Some((-1, size)), ..good.clone() }, "begins before"),
        (DeletePart { blob: Some((offset, 1 << 40)), ..good.clone() }, "ends after"),
        (DeletePart { blob: Some((offset, i64::MAX)), ..good.clone() }, "ends after"),
        (DeletePart { blob: Some((offset - 1, size)), ..good.clone() }, "length"),
        (DeletePart { blob: Some((offset + 1, size)), ..good.clone() }, ""),
        (DeletePart { blob: Some((offset, size - 1)), ..good.clone() }, "length"),
        (DeletePart { blob: Some((offset, 0)), ..good.clone() }, "too few"),
    ] {
        let error = table.error(delete);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let two = table.read(vec![Arc::new(good.clone()), Arc::new(good)], &Limits::default()).unwrap_err().to_string();
    assert!(two.contains("two deletion vectors"), "{two}");
}

#[test]
fn a_vector_has_no_position_beyond_its_file() {
    let table = Table::new(vector());
    let blob = DeletionVector::from_positions([3, 50]).unwrap().to_bytes().unwrap();
    let size = blob.len() as i64;
    table.replace(blob);
    let delete = DeletePart { blob: Some((0, size)), size: size as u64, record_count: 2, ..table.delete() };
    let error = table.error(delete);
    assert!(error.contains("position 50") && error.contains("50 rows") && error.contains(&table.part.path), "{error}");
}

/// Some writers concatenate vectors without the magic bytes and the footer of Puffin. Vectors are found by their
/// offsets in the manifest, and vectors with different offsets are different.
#[test]
fn vectors_are_read_without_a_puffin_file_around_them() {
    let table = Table::new(vector());
    let blob =
        |positions: &[u64]| DeletionVector::from_positions(positions.iter().copied()).unwrap().to_bytes().unwrap();
    let run: Vec<u64> = (20..40).collect();
    let all: [&[u64]; 3] = [&[3], &[0, 49], &run];
    let blobs = all.map(blob);
    table.replace(blobs.concat());
    let size: usize = blobs.iter().map(Vec::len).sum();
    let mut offset = 0;
    for (positions, blob) in all.iter().zip(&blobs) {
        let delete = DeletePart {
            blob: Some((offset, blob.len() as i64)),
            size: size as u64,
            record_count: positions.len() as i64,
            ..table.delete()
        };
        let left: Vec<i64> = (0..ROWS).filter(|at| !positions.contains(&(*at as u64))).collect();
        assert_eq!(table.with(delete).unwrap(), left);
        offset += blob.len() as i64;
    }
}

/// Every changed byte of a vector is detected; changes elsewhere in its file do not matter.
#[test]
fn no_change_of_a_vector_reads_as_another() {
    let table = Table::new(vector());
    let (good, bytes) = (table.delete(), table.bytes());
    let (offset, size) = good.blob.unwrap();
    let blob = offset as usize..(offset + size) as usize;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            table.replace(changed);
            assert_eq!(table.with(good.clone()).is_err(), blob.contains(&at), "byte {at}");
        }
    }
    for length in 0..blob.end {
        table.replace(bytes[..length].to_vec());
        assert!(table.with(good.clone()).is_err(), "{length} bytes");
    }
}

/// Changed files without checksums may have other contents, but must not crash, hang or exhaust the memory.
#[test]
fn changed_delete_files_are_read_or_refused() {
    for format in [0, 1, 2] {
        for delete in [positions(format, (0..30).map(|at| (0, at)).collect()), equality(format, 5..40)] {
            let table = Table::new(delete);
            let (good, bytes) = (table.delete(), table.bytes());
            let step = bytes.len() / 150 + 1;
            for at in (0..bytes.len()).step_by(step) {
                for byte in [0, 0x7f, 0xff, bytes[at] ^ 1] {
                    let mut changed = bytes.clone();
                    changed[at] = byte;
                    table.replace(changed);
                    match table.with(good.clone()) {
                        Ok(left) => assert!(left.len() <= ROWS as usize),
                        Err(error) => assert!(!matches!(error, Error::Internal(_)), "byte {at}: {error:?}"),
                    }
                }
            }
            for length in (0..bytes.len()).step_by(step) {
                table.replace(bytes[..length].to_vec());
                assert!(table.with(good.clone()).is_err(), "{} cut to {length} bytes", FORMATS[format]);
            }
        }
    }
}

#[test]
fn delete_files_that_are_not_what_the_manifest_says() {
    for format in [0, 1, 2] {
        for delete in [positions(format, vec![(0, 3)]), equality(format, 3..4)] {
            let table = Table::new(delete);
            let good = table.delete();
            assert_eq!(table.with(good.clone()).unwrap().len(), 49);
            for size in [0, 7, good.size / 2, good.size - 1, good.size + 1, good.size * 9, u64::MAX / 2] {
                let left = table.with(DeletePart { size, ..good.clone() });
                // Avro files have no footer, so a size that is too large may go unnoticed.
                let is_unseen = format == 2 && size > good.size && left.as_ref().is_ok_and(|left| left.len() == 49);
                assert!(left.is_err() || is_unseen, "{size} bytes of {}: {left:?}", good.size);
            }
            table.error(DeletePart { format: FORMATS[(format + 1) % 3].to_owned(), ..good.clone() });
            table.error(DeletePart { format: "lance".to_owned(), ..good.clone() });
            let error = table.error(DeletePart { record_count: 2, ..good.clone() });
            assert!(error.contains("has 1 rows, but the manifest says 2"), "{error}");
            table.error(DeletePart { path: "memory://deletes/gone".to_owned(), ..good.clone() });
            // A data file lacks the columns of a position delete file.
            let data = DeletePart { path: table.part.path.clone(), size: table.part.size, ..good };
            if data.equality_ids.is_empty() {
                table.error(DeletePart { format: "parquet".to_owned(), ..data });
            }
        }
    }
}

#[test]
fn positions_that_no_file_can_have() {
    for (position, is_wrong) in [(-1, true), (i64::MIN, true), (i64::MAX, true), (ROWS, false), (1 << 40, false)] {
        let table = Table::new(positions(0, vec![(0, 2), (0, position), (1, -7)]));
        if is_wrong {
            let error = table.error(table.delete());
            assert!(error.contains(&format!("position {position}")) && error.contains(&table.part.path), "{error}");
        } else {
            assert_eq!(table.with(table.delete()).unwrap().len(), 49, "{position} is beyond the end, and ignored");
        }
    }
}

#[test]
fn columns_that_nothing_can_be_deleted_by() {
    let table = Table::new(equality(0, 3..4));
    let good = table.delete();
    let list = Field::optional(1, "id", ListType::optional(40, PrimitiveType::Long));
    for (delete, expected) in [
        (DeletePart { key: Arc::default(), ..good.clone() }, "without equality ids"),
        (DeletePart { key: vec![list].into(), ..good.clone() }, "not a primitive field"),
        (DeletePart { equality_ids: vec![5], key: key_fields(&[6]).into(), ..good }, "not a primitive field"),
    ] {
        let error = table.error(delete);
        assert!(error.contains(expected), "{error}");
    }
}

/// A large position delete file for many data files, sorted by path: positions of other files are skipped.
#[test]
fn the_positions_of_one_data_file_are_found_among_many() {
    for format in [0, 1] {
        let table = Table::new(positions(format, Vec::new()));
        let path = format!("memory://deletes/large.{}", FORMATS[format]);
        let mut draw = 1u64;
        let mut entry = |data: &str, position: Option<i64>| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (data.to_owned(), position.unwrap_or((draw >> 2).cast_signed()))
        };
        let (before, after) = ("memory://a", "memory://z");
        let groups = [
            (0..90_000).map(|_| entry(before, None)).collect::<Vec<_>>(),
            [(before, None), (&*table.part.path, Some(0)), (&*table.part.path, Some(33))]
                .map(|(data, position)| entry(data, position))
                .to_vec(),
            vec![entry(&table.part.path, Some(49)), entry(after, Some(1))],
            (0..90_000).map(|_| entry(after, None)).collect(),
        ];
        let count = groups.iter().map(Vec::len).sum::<usize>() as i64;
        let size = write_positions(&table.storage, &path, &groups, format);
        assert!(size > 1 << 20, "{size} bytes");
        let left = table.with(DeletePart { path, size, record_count: count, ..table.delete() }).unwrap();
        assert_eq!(left, (1..49).filter(|id| *id != 33).collect::<Vec<_>>());
    }
}

/// A small file that expands to very many keys fails at the memory limit of the operation.
#[test]
fn deletes_are_bounded_in_memory() {
    let table = Table::new(equality(0, 3..4));
    let schema = stored(false, &[1]);
    let many = batch(&schema, &rows(0..300_000));
    let path = "memory://deletes/many.orc";
    let size = write_file(&table.storage, path, &schema, &[many], 1);
    assert!(size < 100_000, "{size} bytes");
    let delete =
        DeletePart { path: path.to_owned(), format: "orc".to_owned(), size, record_count: 300_000, ..table.delete() };
    let limits = |bytes| Limits { operation_memory: bytes, ..Limits::default() };
    let error = table.read(vec![Arc::new(delete.clone())], &limits(1 << 20)).unwrap_err().to_string();
    assert!(error.contains(path) && error.contains("ICEFIELD_OPERATION_MEMORY"), "{error}");
    assert!(table.read(vec![Arc::new(delete)], &limits(1 << 30)).unwrap().is_empty());
}
