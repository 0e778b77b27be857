//! The deletes that are linked to each data file: on random tables, exactly those of a naive implementation of the
//! rules.

use std::collections::BTreeSet;

use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::value::Value;
use icefield_table::storage::Storage;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::planning::world::{ID, Manifest, NAME, PATH, World, file, linked, set_metrics, spec, tuple};

/// The metrics that a writer wrote.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Written {
    All,
    BoundsOnly,
    Nothing,
}

#[derive(Debug, Clone)]
struct Data {
    name: String,
    spec_id: usize,
    partition: i32,
    sequence_number: i64,
    ids: Vec<i64>,
    names: Vec<Option<String>>,
    written: Written,
}

#[derive(Debug, Clone)]
enum Reach {
    /// Position deletes for any file of the partition.
    Partition,
    /// Position deletes for one file, named by the field or by equal bounds.
    File(usize, bool),
    /// A deletion vector of one file.
    Vector(usize),
    /// Equality deletes.
    Values { ids: Option<Vec<i64>>, names: Option<Vec<Option<String>>>, written: Written },
}

#[derive(Debug, Clone)]
struct Delete {
    spec_id: usize,
    partition: i32,
    sequence_number: i64,
    reach: Reach,
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::weighted(0.8, "[abc]{1,2}")
}

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![3 => Just(Written::All), 1 => Just(Written::BoundsOnly), 1 => Just(Written::Nothing)]
}

prop_compose! {
    fn data()(
        spec_id in 0..3usize, partition in 0..6i32, sequence_number in 1..6i64,
        ids in vec(0..40i64, 1..4), names in vec(text(), 1..4), written in written(),
    ) -> Data {
        Data { name: String::new(), spec_id, partition, sequence_number, ids, names, written }
    }
}

fn values() -> impl Strategy<Value = Reach> {
    let columns = (option::of(vec(0..40i64, 1..3)), option::of(vec(text(), 1..3)), written());
    columns.prop_map(|(ids, names, written)| Reach::Values {
        // At least one column is compared.
        ids: if names.is_none() { ids.or(Some(vec![7])) } else { ids },
        names,
        written,
    })
}

prop_compose! {
    fn delete(files: usize)(
        spec_id in 0..3usize, partition in 0..6i32, sequence_number in 1..6i64,
        reach in prop_oneof![
            2 => Just(Reach::Partition),
            2 => (0..files, any::<bool>()).prop_map(|(at, named)| Reach::File(at, named)),
            1 => (0..files).prop_map(Reach::Vector),
            4 => values(),
        ],
    ) -> Delete {
        Delete { spec_id, partition, sequence_number, reach }
    }
}

fn table() -> impl Strategy<Value = (Vec<Data>, Vec<Delete>)> {
    vec(data(), 1..12).prop_flat_map(|mut files| {
        for (number, file) in files.iter_mut().enumerate() {
            file.name = format!("data-{number}.parquet");
        }
        let deletes = vec(delete(files.len()), 0..14);
        (Just(files), deletes).prop_map(|(files, deletes)| {
            // A file has at most one vector, and none that is older than the file.
            let mut vectors = BTreeSet::new();
            let sound = |delete: &Delete| match delete.reach {
                Reach::Vector(at) => delete.sequence_number >= files[at].sequence_number && vectors.insert(at),
                _ => true,
            };
            let deletes = deletes.into_iter().filter(sound).collect();
            (files, deletes)
        })
    })
}

fn longs(ids: &[i64]) -> Vec<Option<Value>> {
    ids.iter().map(|id| Some(Value::Long(*id))).collect()
}

fn strings(names: &[Option<String>]) -> Vec<Option<Value>> {
    names.iter().map(|name| name.clone().map(Value::String)).collect()
}

fn with_metrics(mut file: DataFile, columns: &[(i32, Vec<Option<Value>>)], written: Written) -> DataFile {
    for (id, values) in columns {
        set_metrics(&mut file, *id, values, written == Written::All, written != Written::Nothing);
    }
    file
}

fn data_file(data: &Data) -> DataFile {
    let columns = [(ID, longs(&data.ids)), (NAME, strings(&data.names))];
    with_metrics(file(&data.name, data.spec_id, data.partition), &columns, data.written)
}

fn delete_file(delete: &Delete, name: String, files: &[Data]) -> DataFile {
    let made = file(name, delete.spec_id, delete.partition);
    let positions = DataFile { content: FileContent::PositionDeletes, ..made.clone() };
    match &delete.reach {
        Reach::Partition => {
            // Bounds that cover several paths do not name a file.
            let lower_bounds = Some(vec![(PATH, b"data-0".to_vec())]);
            DataFile { lower_bounds, upper_bounds: Some(vec![(PATH, b"data-z".to_vec())]), ..positions }
        }
        Reach::File(at, true) => DataFile { referenced_data_file: Some(files[*at].name.clone()), ..positions },
        Reach::File(at, false) => {
            let bounds = Some(vec![(PATH, files[*at].name.as_bytes().to_vec())]);
            DataFile { lower_bounds: bounds.clone(), upper_bounds: bounds, ..positions }
        }
        Reach::Vector(at) => DataFile {
            file_format: "PUFFIN".to_owned(),
            referenced_data_file: Some(files[*at].name.clone()),
            content_offset: Some(4),
            content_size_in_bytes: Some(40),
            ..positions
        },
        Reach::Values { ids, names, written } => {
            let columns = [ids.as_deref().map(|ids| (ID, longs(ids))), names.as_deref().map(|n| (NAME, strings(n)))];
            let columns: Vec<_> = columns.into_iter().flatten().collect();
            let equality_ids = Some(columns.iter().map(|(id, _)| *id).collect());
            with_metrics(DataFile { content: FileContent::EqualityDeletes, equality_ids, ..made }, &columns, *written)
        }
    }
}

/// Whether the values of a column can be equal (including null and null), judging by the written metrics.
fn meet<T: Ord + Clone>(data: &[Option<T>], told: Written, delete: &[Option<T>], says: Written) -> bool {
    if told == Written::Nothing || says == Written::Nothing {
        return true;
    }
    // Without counts, there may be nulls.
    let null = |values: &[Option<T>], written| written != Written::All || values.iter().any(Option::is_none);
    if null(data, told) && null(delete, says) {
        return true;
    }
    let ends = |values: &[Option<T>]| -> Option<(T, T)> {
        let present = || values.iter().flatten().cloned();
        present().min().zip(present().max())
    };
    match (ends(data), ends(delete)) {
        (Some((data_least, data_most)), Some((least, most))) => data_least <= most && least <= data_most,
        // One side has only nulls: the other side may have one, or was not counted.
        (None, _) => told != Written::All || null(delete, says),
        (_, None) => says != Written::All || null(data, told),
    }
}

/// The rules of "Scan Planning", implemented naively.
fn applies(delete: &Delete, data: &Data, place: usize, has_vector: bool) -> bool {
    let same_partition = delete.spec_id == data.spec_id
        && tuple(delete.spec_id, delete.partition) == tuple(data.spec_id, data.partition);
    let not_older = delete.sequence_number >= data.sequence_number;
    match &delete.reach {
        Reach::Vector(at) => *at == place,
        Reach::Partition => !has_vector && not_older && same_partition,
        Reach::File(at, _) => !has_vector && not_older && *at == place,
        Reach::Values { ids, names, written } => {
            let everywhere = spec(delete.spec_id).is_unpartitioned();
            let options = |ids: &[i64]| ids.iter().copied().map(Some).collect::<Vec<_>>();
            delete.sequence_number > data.sequence_number
                && (everywhere || same_partition)
                && ids.as_ref().is_none_or(|ids| meet(&options(&data.ids), data.written, &options(ids), *written))
                && names.as_ref().is_none_or(|names| meet(&data.names, data.written, names, *written))
        }
    }
}

/// Manifests, each with one spec and one sequence number.
fn manifests(files: &[Data], deletes: &[Delete]) -> Vec<Manifest> {
    let mut all: Vec<Manifest> = Vec::new();
    let mut add = |spec_id, sequence_number, deletes, file| {
        let same = |known: &&mut Manifest| {
            (known.spec_id, known.sequence_number, known.deletes) == (spec_id, sequence_number, deletes)
        };
        match all.iter_mut().find(same) {
            Some(known) => known.entries.push((true, file)),
            None => all.push(Manifest {
                spec_id,
                sequence_number,
                deletes,
                entries: vec![(true, file)],
                ..Manifest::default()
            }),
        }
    };
    files.iter().for_each(|data| add(data.spec_id, data.sequence_number, false, data_file(data)));
    for (number, delete) in deletes.iter().enumerate() {
        let made = delete_file(delete, format!("delete-{number}"), files);
        add(delete.spec_id, delete.sequence_number, true, made);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn links_are_exactly_those_of_the_rules((files, deletes) in table(), number in any::<u64>()) {
        let location = format!("memory://links/{number}");
        let world = World::write(&Storage::default(), &location, 3, &manifests(&files, &deletes));
        let plan = world.scan("true").plan().unwrap();
        let mut links = 0;
        for manifest in &plan.manifests {
            for row in 0..manifest.entries.len() {
                let path = manifest.entries.file_path.value(row);
                let place = files.iter().position(|data| data.name == path).unwrap();
                let has_vector = deletes.iter().any(|d| matches!(d.reach, Reach::Vector(at) if at == place));
                let applying = |(number, delete): (usize, &Delete)| {
                    applies(delete, &files[place], place, has_vector).then(|| format!("delete-{number}"))
                };
                let mut wanted: Vec<String> = deletes.iter().enumerate().filter_map(applying).collect();
                wanted.sort();
                links += wanted.len();
                prop_assert_eq!(linked(&plan, manifest, row), wanted, "{:?}", files[place]);
            }
        }
        prop_assert_eq!(plan.len(), files.len());
        prop_assert_eq!(plan.report.result_delete_files, links);
        // However deletes are linked, none that removes a row may be missing: check this again, by values.
        for (number, delete) in deletes.iter().enumerate() {
            let Reach::Values { ids: Some(ids), names: None, .. } = &delete.reach else { continue };
            for data in files.iter().filter(|data| data.sequence_number < delete.sequence_number) {
                let hit = data.ids.iter().any(|id| ids.contains(id));
                let everywhere = spec(delete.spec_id).is_unpartitioned();
                if hit && everywhere {
                    let found = plan.manifests.iter().flat_map(|m| (0..m.entries.len()).map(move |row| (m, row)));
                    let mut found = found.filter(|(m, row)| m.entries.file_path.value(*row) == data.name);
                    let (manifest, row) = found.next().unwrap();
                    let name = format!("delete-{number}");
                    prop_assert!(linked(&plan, manifest, row).contains(&name), "{} lacks {}", data.name, name);
                }
            }
        }
    }
}

fn error_of(files: &[Data], deletes: &[Delete], location: &str) -> String {
    let world = World::write(&Storage::default(), location, 3, &manifests(files, deletes));
    world.scan("true").plan().unwrap_err().to_string()
}

fn one(number: i64) -> Data {
    let name = "data-0.parquet".to_owned();
    let (ids, names) = (vec![1], vec![None]);
    Data { name, spec_id: 1, partition: 0, sequence_number: number, ids, names, written: Written::All }
}

#[test]
fn what_cannot_be_is_named() {
    let vector = |sequence_number| Delete { spec_id: 1, partition: 0, sequence_number, reach: Reach::Vector(0) };
    let two = error_of(&[one(1)], &[vector(2), vector(3)], "memory://links/two");
    assert!(two.contains("data-0.parquet") && two.contains("two deletion vectors"), "{two}");
    let older = error_of(&[one(5)], &[vector(2)], "memory://links/older");
    assert!(older.contains("data-0.parquet") && older.contains("sequence number 2"), "{older}");
}
