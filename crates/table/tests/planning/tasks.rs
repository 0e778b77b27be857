//! Tasks as bytes: they come back as they were, take little, and hostile bytes are refused.

use icefield_table::Error;
use icefield_table::plan::split::SplitOptions;
use icefield_table::read::task::ReadTask;
use icefield_table::read::wire::{pack, unpack};
use icefield_table::storage::Storage;

use crate::world::{Manifest, World, file};

const FILES: usize = 400;

fn tasks(split_size: i64) -> Vec<ReadTask> {
    let location = "memory://tasks/one";
    let entries =
        (0..FILES).map(|n| (true, file(format!("{location}/data/day={}/{n:08}.parquet", n / 9), 0, n as i32)));
    let manifest = Manifest { sequence_number: 1, entries: entries.collect(), ..Manifest::default() };
    let world = World::write(&Storage::default(), location, 2, &[manifest]);
    let scan = world.scan("id > 17 AND name LIKE 'a%' OR day = '2019-04-15'");
    let wanted = scan.wanted(Some(&["id".to_owned(), "price".to_owned()])).unwrap();
    scan.tasks(&scan.plan().unwrap(), &wanted, &SplitOptions { split_size, lookback: 1, open_file_cost: 1 }).unwrap()
}

#[test]
fn tasks_come_back_as_they_were() {
    for task in tasks(7_000) {
        let bytes = task.to_bytes().unwrap();
        let again = ReadTask::from_bytes(&unpack(&pack(&bytes).unwrap()).unwrap()).unwrap();
        assert_eq!(again.to_bytes().unwrap(), bytes);
        assert_eq!(again.parts.len(), task.parts.len());
        for (again, part) in again.parts.iter().zip(&task.parts) {
            assert_eq!(format!("{again:?}"), format!("{part:?}"));
        }
    }
}

#[test]
fn a_task_takes_little_and_a_further_file_less() {
    let packed = |task: &ReadTask| pack(&task.to_bytes().unwrap()).unwrap().len();
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
    let document = tasks(1)[0].to_bytes().unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let (plain, packed) =
            (ReadTask::from_bytes(bytes), unpack(bytes).and_then(|bytes| ReadTask::from_bytes(&bytes)));
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
    // Whatever changes, it is read or refused.
    for at in 0..document.len() {
        for byte in [b'"', b'{', b'9', b'-', 0, 0xff] {
            let mut changed = document.clone();
            changed[at] = byte;
            let _ = ReadTask::from_bytes(&changed);
        }
    }
    let text = String::from_utf8(document).unwrap();
    for (from, to) in [
        ("\"form\":1", "\"form\":2"),
        ("\"residual\":0", "\"residual\":7"),
        ("\"size\":1000", "\"size\":-1"),
        ("\"residuals\":[", "\"residuals\":[{\"type\":\"not\"},"),
    ] {
        assert!(text.contains(from), "{from}");
        refused(text.replace(from, to).as_bytes(), from);
    }
    let deep = format!("{{\"form\":1,\"schema\":{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refused(deep.as_bytes(), "deep");
    assert!(unpack(&pack(&vec![b' '; 1 << 24]).unwrap()).is_err(), "a bomb");
}
