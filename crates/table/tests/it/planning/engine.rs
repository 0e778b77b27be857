//! What an engine's own Parquet reader can read, judging by the columns in all schemas and the files in the manifests.

use std::sync::Arc;

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableDefinition};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, ListType, PrimitiveType, Schema, StructType, Type};
use icefield_format::value::Value;
use icefield_table::operation::create::create;
use icefield_table::plan::engine::EngineRead;
use icefield_table::plan::{At, Scan};
use icefield_table::storage::Storage;

use crate::planning::world::{ID, Manifest, World, file, set_metrics};

fn long(id: i32, name: &str) -> Field {
    Field::optional(id, name, PrimitiveType::Long)
}

fn struct_of(fields: Vec<Field>) -> Type {
    StructType::new(fields).into()
}

/// How to read the columns of a table that had these schemas successively.
fn read(schemas: &[Vec<Field>], properties: &[(&str, &str)]) -> EngineRead {
    let storage = Storage::default();
    let schema = |id: usize| Schema::new(i32::try_from(id).unwrap(), schemas[id].clone()).unwrap();
    let properties = [("format-version", "3")].iter().chain(properties);
    let definition = TableDefinition {
        schema: schema(0),
        partition_spec: PartitionSpec::unpartitioned(),
        sort_order: SortOrder::unsorted(),
        location: "memory://engine/t".to_owned(),
        properties: properties.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let base = create(&storage, &definition).unwrap().metadata;
    let mut builder = MetadataBuilder::from_base(&base, base.last_updated_ms());
    for id in 1..schemas.len() {
        builder = builder
            .apply_all([
                MetadataUpdate::AddSchema { schema: schema(id) },
                MetadataUpdate::SetCurrentSchema { schema_id: -1 },
            ])
            .unwrap();
    }
    let scan = Scan::new(storage, Arc::new(builder.build().unwrap()), &At::default()).unwrap();
    let projection = scan.wanted(None).unwrap().projection.clone();
    scan.engine_read(&projection).unwrap()
}

/// A name, the schemas of a table's history, and the names under which its columns are requested.
type Case<'a> = (&'a str, Vec<Vec<Field>>, &'a [&'a str]);

#[test]
fn columns_keep_names_that_always_meant_them() {
    let list = |element: Field| Type::List(Arc::new(ListType { element }));
    let cases: Vec<Case<'_>> = vec![
        ("one schema", vec![vec![long(1, "a"), long(2, "b")]], &["a", "b"]),
        ("renamed", vec![vec![long(1, "a"), long(2, "b")], vec![long(1, "x"), long(2, "b")]], &["_icefield_1", "b"]),
        (
            "swapped",
            vec![vec![long(1, "a"), long(2, "b")], vec![long(1, "b"), long(2, "a")]],
            &["_icefield_1", "_icefield_2"],
        ),
        (
            "added again",
            vec![vec![long(1, "a"), long(2, "b")], vec![long(1, "a"), long(3, "b")]],
            &["a", "_icefield_3"],
        ),
        ("the case of a name", vec![vec![long(1, "a")], vec![long(1, "A")]], &["_icefield_1"]),
        (
            "widened",
            vec![vec![Field::optional(1, "a", PrimitiveType::Int), long(2, "b")], vec![long(1, "a"), long(2, "b")]],
            &["_icefield_1", "b"],
        ),
        (
            "renamed inside",
            vec![
                vec![Field::optional(1, "s", struct_of(vec![long(3, "p")])), long(2, "b")],
                vec![Field::optional(1, "s", struct_of(vec![long(3, "q")])), long(2, "b")],
            ],
            &["_icefield_1", "b"],
        ),
        (
            "a list",
            vec![vec![Field::optional(1, "l", list(Field::optional(2, "element", PrimitiveType::String)))]],
            &["l"],
        ),
        (
            "a name like ours",
            vec![vec![long(1, "_icefield_2"), long(2, "b")], vec![long(1, "_icefield_2"), long(2, "c")]],
            &["_icefield_2", "_icefield___2"],
        ),
    ];
    for (name, schemas, asked) in cases {
        let read = read(&schemas, &[]);
        assert_eq!(read.columns.iter().map(|column| column.asked_by()).collect::<Vec<_>>(), asked, "{name}");
        assert_eq!(read.obstacle, None, "{name}");
    }
}

#[test]
fn columns_that_engines_do_not_read_as_iceberg_means_them() {
    let typed = |ty: PrimitiveType| vec![long(1, "a"), Field::optional(2, "b", ty)];
    let default = Field { initial_default: Some(Value::Long(7)), write_default: Some(Value::Long(7)), ..long(2, "b") };
    let inside = Field::optional(2, "s", struct_of(vec![Field::optional(3, "u", PrimitiveType::Uuid)]));
    let cases: Vec<(Vec<Vec<Field>>, &str)> = vec![
        (vec![typed(PrimitiveType::Uuid)], "type: column b is uuid"),
        (vec![typed(PrimitiveType::Time)], "type: column b is time"),
        (vec![typed(PrimitiveType::TimestampNs)], "type: column b is timestamp_ns"),
        (vec![typed(PrimitiveType::Fixed(3))], "type: column b is fixed[3]"),
        (vec![typed(PrimitiveType::Unknown)], "type: column b is unknown"),
        (vec![vec![long(1, "a"), Field::optional(2, "b", Type::Variant)]], "type: column b is variant"),
        (vec![vec![long(1, "a"), inside]], "type: column s.u is uuid"),
        (vec![vec![long(1, "a"), default]], "default: column b has an initial default"),
        (vec![typed(PrimitiveType::Date), typed(PrimitiveType::Timestamp)], "promotion: column b was date"),
    ];
    for (schemas, expected) in cases {
        let read = read(&schemas, &[]);
        assert_eq!(read.obstacle.map(|obstacle| obstacle.to_string()).as_deref(), Some(expected));
    }
    let mapped = read(&[vec![long(1, "a")]], &[("schema.name-mapping.default", "[]")]).obstacle.unwrap();
    assert_eq!(mapped.to_string(), "missing field ids: the table has schema.name-mapping.default");
}

#[test]
fn files_that_need_help() {
    let mut plain = file("plain", 1, 0);
    set_metrics(&mut plain, ID, &[Some(Value::Long(1))], true, true);
    let mut avro = file("avro", 1, 0);
    avro.file_format = "AVRO".to_owned();
    let mut orc = file("orc", 1, 0);
    orc.file_format = "orc".to_owned();
    let manifest = Manifest {
        spec_id: 1,
        sequence_number: 1,
        entries: vec![(true, plain), (true, avro), (true, orc)],
        ..Manifest::default()
    };
    let world = World::write(&Storage::default(), "memory://engine/files", 2, &[manifest]);
    let scan = world.scan("true");
    let read = scan.engine_read(&scan.wanted(None).unwrap().projection).unwrap();
    let found = scan.plan().unwrap().obstacles(&read).unwrap();
    let texts: Vec<Option<String>> = found.iter().map(|found| found.as_ref().map(ToString::to_string)).collect();
    assert_eq!(texts, [None, Some("format: avro".to_owned()), Some("format: orc".to_owned())]);
}

#[test]
fn metadata_columns_are_in_no_file() {
    let world = identity_world(&Storage::default());
    for (columns, filter) in [(vec!["id", "_file"], "true"), (vec!["id"], "_pos > 3")] {
        let scan = world.scan(filter);
        let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
        let read = scan.engine_read(&scan.wanted(Some(&columns)).unwrap().projection).unwrap();
        assert_eq!(read.obstacle.unwrap().kind(), "metadata column", "{filter}");
    }
}

#[test]
fn columns_that_are_partition_values_may_be_missing_in_files() {
    let storage = Storage::default();
    let world = identity_world(&storage);
    let scan = world.scan("true");
    let read = scan.engine_read(&scan.wanted(None).unwrap().projection).unwrap();
    // The world also has a spec with days.
    assert_eq!(read.partition_columns().collect::<Vec<_>>(), ["id", "day"]);
    let mut with_metrics = scan.clone();
    with_metrics.metrics = scan.metrics_of(&["id".to_owned()]).unwrap();
    for (scan, expected) in [
        (&with_metrics, [None, Some("partition value: the file may lack column id")]),
        // Without metrics, nothing is known about either file.
        (&scan, [Some("partition value: the file may lack column id"); 2]),
    ] {
        let mut scan = scan.clone();
        scan.cached = false;
        let found = scan.plan().unwrap().obstacles(&read).unwrap();
        let texts: Vec<Option<String>> = found.iter().map(|found| found.as_ref().map(ToString::to_string)).collect();
        assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }
    let names = scan.wanted(Some(&["name".to_owned()])).unwrap();
    assert_eq!(scan.engine_read(&names.projection).unwrap().partition_columns().count(), 0);
}

/// A table partitioned by id, with two files: one with counts, the other without.
fn identity_world(storage: &Storage) -> World {
    let mut counted = file("counted", 3, 0);
    counted.partition = vec![Some(Value::Long(1))];
    set_metrics(&mut counted, ID, &[Some(Value::Long(1))], true, false);
    let mut bare = file("bare", 3, 0);
    bare.partition = vec![Some(Value::Long(2))];
    let entries = vec![(true, counted), (true, bare)];
    let manifest = Manifest { spec_id: 3, sequence_number: 1, entries, ..Manifest::default() };
    World::write(storage, "memory://engine/identity", 2, &[manifest])
}
