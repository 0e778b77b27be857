//! Serialized tasks: they are read back unchanged, are small, and hostile bytes are rejected.

use icefield_format::manifest::{DataFile, FileContent};
use icefield_table::Error;
use icefield_table::plan::changes::{Change, ChangeType};
use icefield_table::plan::deletes::DeleteKind;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::DeletePart;
use icefield_table::plan::tasks::split::SplitOptions;
use icefield_table::read::wire::{from_bytes, pack, to_bytes, unpack};
use icefield_table::storage::Storage;

use crate::planning::world::{Manifest, World, file, tuple};

const FILES: usize = 400;

fn tasks(split_size: i64) -> Vec<ReadTask> {
    let location = "memory://tasks/one";
    let entries =
        (0..FILES).map(|n| (true, file(format!("{location}/data/day={}/{n:08}.parquet", n / 9), 0, n as i32)));
    let manifest = Manifest { sequence_number: 1, entries: entries.collect(), ..Manifest::default() };
    let world = World::write(&Storage::default(), location, 2, &[manifest]);
    let scan = world.scan("id > 17 AND name LIKE 'a%' OR day = '2019-04-15'");
    let wanted = scan.wanted(Some(&["id".to_owned(), "price".to_owned()])).unwrap();
    scan.tasks(
        &scan.plan().unwrap(),
        &wanted,
        &SplitOptions { split_size, lookback: 1, open_file_cost: 1, ..SplitOptions::default() },
    )
    .unwrap()
}

#[test]
fn tasks_come_back_as_they_were() {
    for task in tasks(7_000) {
        let bytes = to_bytes(&task).unwrap();
        let again = from_bytes(&unpack(&pack(&bytes).unwrap()).unwrap()).unwrap();
        assert_eq!(to_bytes(&again).unwrap(), bytes);
        assert_eq!(again.parts.len(), task.parts.len());
        for (again, part) in again.parts.iter().zip(&task.parts) {
            assert_eq!(format!("{again:?}"), format!("{part:?}"));
        }
    }
}

/// A serialized task contains what a reader needs: deletes, partitions, row ids and changes.
#[test]
fn all_facts_of_a_part_travel() {
    let location = "memory://tasks/facts";
    let data = file(format!("{location}/data/a.parquet"), 0, 3);
    let vector = |offset| DataFile {
        content: FileContent::PositionDeletes,
        file_format: "PUFFIN".to_owned(),
        referenced_data_file: Some(data.file_path.clone()),
        content_offset: Some(offset),
        content_size_in_bytes: Some(40),
        ..file(format!("{location}/data/deletes.puffin"), 0, 3)
    };
    let equality = DataFile {
        content: FileContent::EqualityDeletes,
        equality_ids: Some(vec![1, 3]),
        ..file(format!("{location}/data/equal.parquet"), 0, 3)
    };
    let deletes = Manifest {
        spec_id: 0,
        sequence_number: 7,
        deletes: true,
        entries: vec![(true, vector(4)), (true, equality)],
        ..Manifest::default()
    };
    let data = Manifest { spec_id: 0, sequence_number: 5, entries: vec![(true, data)], ..Manifest::default() };
    let world = World::write(&Storage::default(), location, 3, &[data, deletes]);
    let scan = world.scan("true");
    let task = scan.tasks(&scan.plan().unwrap(), &scan.wanted(None).unwrap(), &SplitOptions::default()).unwrap();
    let mut task = task.into_iter().next().unwrap();
    task.parts[0].first_row_id = Some(1_000);
    task.parts[0].change = Some(Change { change_type: ChangeType::Delete, ordinal: 2, snapshot_id: 77 });
    let part = &task.parts[0];
    assert_eq!((part.sequence_number, part.partition.spec.spec.spec_id), (Some(5), 0));
    assert_eq!(part.partition.tuple, tuple(0, 3));
    let facts = |delete: &DeletePart| (delete.kind, delete.sequence_number, delete.blob, delete.equality_ids.clone());
    assert_eq!(
        part.deletes.iter().map(|delete| facts(delete)).collect::<Vec<_>>(),
        [(DeleteKind::Equality, 7, None, vec![1, 3]), (DeleteKind::Vector, 7, Some((4, 40)), vec![])]
    );
    let again = from_bytes(&to_bytes(&task).unwrap()).unwrap();
    assert_eq!(format!("{:?}", again.parts[0]), format!("{part:?}"));
}

#[test]
fn a_task_takes_little_and_a_further_file_less() {
    let packed = |task: &ReadTask| pack(&to_bytes(task).unwrap()).unwrap().len();
    let [one, ..] = &tasks(1)[..] else { panic!() };
    assert_eq!(one.parts.len(), 1);
    let [all] = &tasks(1 << 40)[..] else { panic!() };
    assert!(all.parts.len() > FILES / 2);
    let (one, all, parts) = (packed(one), packed(all), all.parts.len());
    assert!(one < 700, "{one} bytes for a task of one file");
    assert!(all / parts < 30, "{all} bytes for {parts} files");
}

#[test]
fn hostile_bytes_are_refused() {
    let document = to_bytes(&tasks(1)[0]).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let (plain, packed) = (from_bytes(bytes), unpack(bytes).and_then(|bytes| from_bytes(&bytes)));
        assert!(plain.is_err() && packed.is_err(), "{what}");
        for error in [plain.unwrap_err(), packed.unwrap_err()] {
            assert!(matches!(error, Error::Invalid(_) | Error::Format(_)), "{what}: {error:?}");
        }
    };
    for cut in 0..document.len() {
        refused(&document[..cut], "cut");
    }
    let packed = pack(&document).unwrap();
    for cut in 1..packed.len() {
        assert!(unpack(&packed[..cut]).is_err(), "{cut}");
    }
    // Changed bytes are read or rejected, without a panic.
    for at in 0..document.len() {
        for byte in [b'"', b'{', b'9', b'-', 0, 0xff] {
            let mut changed = document.clone();
            changed[at] = byte;
            let _ = from_bytes(&changed);
        }
    }
    let text = String::from_utf8(document).unwrap();
    for (from, to) in [
        ("\"form\":8", "\"form\":4"),
        ("\"spec\":0", "\"spec\":7"),
        ("\"tuple\":[", "\"tuple\":[null,"),
        ("\"residual\":0", "\"residual\":7"),
        ("\"size\":1000", "\"size\":-1"),
        ("\"residuals\":[", "\"residuals\":[{\"type\":\"not\"},"),
    ] {
        assert!(text.contains(from), "{from}");
        refused(text.replace(from, to).as_bytes(), from);
    }
    let deep = format!("{{\"form\":8,\"schema\":{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refused(deep.as_bytes(), "deep");
    assert!(unpack(&pack(&vec![b' '; 1 << 24]).unwrap()).is_err(), "a bomb");
}
