//! All kinds of stores that need no server have the same behavior.

use std::sync::{Arc, Barrier};

use icefield_table::Error;
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};

/// A new folder in each kind of store; the guard keeps local folders alive.
fn places(name: &str) -> Vec<(String, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().to_str().unwrap().to_owned();
    vec![
        (format!("memory://{name}/root"), None),
        (local.clone(), None),
        (format!("file:{local}/colon"), None),
        (format!("file://{local}/slashes"), Some(folder)),
    ]
}

#[test]
fn write_read_list_delete() {
    let storage = Storage::default();
    for (root, _guard) in places("write_read_list_delete") {
        // Three different objects, because paths are neither decoded nor encoded.
        for (number, name) in ["a b/x", "a%20b/x", "a+b/x"].iter().enumerate() {
            storage.put(&format!("{root}/sub/{name}"), vec![number as u8; 10], Existing::Refuse).unwrap();
        }
        for (number, name) in ["a b/x", "a%20b/x", "a+b/x"].iter().enumerate() {
            let path = format!("{root}/sub/{name}");
            assert_eq!(storage.read(&path).unwrap(), vec![number as u8; 10]);
            assert_eq!(storage.size(&path).unwrap(), 10);
            assert_eq!(storage.ranges(&path, &[8..10, 0..0, 0..3]).unwrap().iter().map(|b| b.len()).sum::<usize>(), 5);
            let past = storage.range(&path, 5..11).unwrap_err();
            assert!(matches!(past, Error::CorruptFile { .. }), "{past}");
        }
        let listed: Vec<_> = storage.list(&format!("{root}/sub/")).unwrap().into_iter().map(|e| e.path).collect();
        assert_eq!(listed, ["a b", "a%20b", "a+b"].map(|name| format!("{root}/sub/{name}/x")));
        storage.delete(&listed[0]).unwrap();
        storage.delete(&listed[0]).unwrap();
        assert!(!storage.exists(&listed[0]).unwrap());
        let missing = storage.read(&listed[0]).unwrap_err();
        assert!(matches!(&missing, Error::NotFound { path } if *path == listed[0]), "{missing}");
        assert!(storage.list(&format!("{root}/nowhere")).unwrap().is_empty());
    }
}

#[test]
fn a_listing_comes_in_pages() {
    const FILES: usize = 2100;
    let storage = Storage::default();
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().to_str().unwrap().to_owned();
    let name = |number: usize| format!("{}/{number:04}", number % 3);
    for number in 0..FILES {
        storage.put(&format!("memory://pages/listed/{}", name(number)), "x", Existing::Refuse).unwrap();
        let path = folder.path().join(name(number));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    for root in ["memory://pages/listed", &local] {
        let mut expected: Vec<String> = (0..FILES).map(|number| format!("{root}/{}", name(number))).collect();
        expected.sort();
        // Listed objects can be deleted before the next page is requested.
        let (mut sizes, mut found) = (Vec::new(), Vec::new());
        for page in storage.pages(root).unwrap() {
            let page: Vec<String> = page.unwrap().into_iter().map(|entry| entry.path).collect();
            sizes.push(page.len());
            assert_eq!(storage.delete_all(&page).len(), 0);
            found.extend(page);
        }
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(sizes, [1000, 1000, 100], "{root}");
        assert_eq!(storage.pages(root).unwrap().count(), 0);
    }
    // A failed listing has no further pages.
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let pages: Vec<_> = storage.pages(&format!("{local}/file")).unwrap().collect();
    assert!(matches!(&pages[..], [Err(_)]), "{pages:?}");
}

#[test]
fn an_output_appears_whole_or_not_at_all() {
    let storage = Storage::default();
    for (root, _guard) in places("output") {
        let path = format!("{root}/deep/er/file");
        let mut output = storage.output(&path).unwrap();
        output.write(vec![1; 1000].into()).unwrap();
        assert!(!storage.exists(&path).unwrap());
        output.write(vec![2; 1000].into()).unwrap();
        output.finish().unwrap();
        assert_eq!(storage.size(&path).unwrap(), 2000);
        let mut given_up = storage.output(&format!("{root}/deep/er/other")).unwrap();
        given_up.write(vec![1; 10].into()).unwrap();
        given_up.abort();
        assert_eq!(storage.list(&root).unwrap().len(), 1, "nothing else stays behind");
    }
}

#[test]
fn of_racing_writers_one_creates() {
    let storage = Storage::default();
    for (root, _guard) in places("race") {
        let path = format!("{root}/v1.metadata.json");
        let barrier = Arc::new(Barrier::new(8));
        let racers: Vec<_> = (0..8u8)
            .map(|number| {
                let (storage, path, barrier) = (storage.clone(), path.clone(), barrier.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    storage.put(&path, vec![number; 100], Existing::Refuse).map(|()| number)
                })
            })
            .collect();
        let results: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        let winners: Vec<u8> = results.iter().filter_map(|result| result.as_ref().ok().copied()).collect();
        assert_eq!(winners.len(), 1);
        assert!(results.iter().all(|r| matches!(r, Ok(_) | Err(Error::AlreadyExists { .. }))));
        assert_eq!(storage.read(&path).unwrap(), vec![winners[0]; 100]);
    }
}

#[test]
fn relocation_matches_at_separators_and_longest_first() {
    let storage = Storage::default().relocated([
        ("file:/old".to_owned(), "memory://moved/a".to_owned()),
        ("file:/old/deep/".to_owned(), "memory://moved/b".to_owned()),
        ("s3://bucket".to_owned(), "/srv/bucket/".to_owned()),
        ("hdfs://host".to_owned(), String::new()),
        ("/".to_owned(), "memory://moved/".to_owned()),
    ]);
    let storage = storage.unwrap();
    for (path, place) in [
        ("file:/old/x", "memory://moved/a/x"),
        ("file:/old/deep/x", "memory://moved/b/x"),
        ("file:/older/x", "/older/x"),
        ("s3://bucket/x%20y", "/srv/bucket/x%20y"),
        ("s3://bucket-two/x", "s3://bucket-two/x"),
        ("hdfs://host/a/b", "/a/b"),
        ("/a/b", "memory://moved/a/b"),
        ("a/b", "a/b"),
    ] {
        assert_eq!(storage.resolve(path).unwrap().to_string(), place, "{path}");
    }
    assert!(storage.resolve("hdfs://host").is_err() && storage.resolve("").is_err());
    let nowhere = Storage::default().relocated([(String::new(), "/srv".to_owned())]).unwrap_err();
    assert_eq!(nowhere.to_string(), "relocation to \"/srv\": the old prefix is empty");
    storage.put("file:/old/t/1", "x", Existing::Refuse).unwrap();
    assert_eq!(storage.list("file:/old/t").unwrap()[0].path, "file:/old/t/1");
    let missing = storage.read("file:/old/none").unwrap_err();
    assert_eq!(missing.to_string(), "file:/old/none: not found");
}

#[test]
fn secrets_do_not_print() {
    let properties = [("s3.secret-access-key", "canary"), ("adls.sas-token.acc", "canary"), ("s3.region", "here")];
    let storage = Storage::new(properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let shown = format!("{storage:?}");
    assert!(!shown.contains("canary") && shown.contains("here"), "{shown}");
}

#[test]
fn faults_strike_the_chosen_step() {
    for (fault, effects) in
        [(Fault::Error, [true, false, true]), (Fault::LostReply, [true; 3]), (Fault::Killed, [true, false, false])]
    {
        let plan = FaultPlan::new(1, fault);
        let plain = Storage::default();
        let storage = plain.with_faults(plan.clone());
        for (number, effect) in effects.into_iter().enumerate() {
            let path = format!("memory://faults/{fault:?}/{number}");
            let reported = storage.put(&path, "x", Existing::Refuse).is_ok();
            assert_eq!(reported, effect && !(fault == Fault::LostReply && number == 1), "{fault:?} {number}");
            assert_eq!(plain.exists(&path).unwrap(), effect, "{fault:?} {number}");
        }
        assert_eq!(plan.steps(), 3);
    }
}
