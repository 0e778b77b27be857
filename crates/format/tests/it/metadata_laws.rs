//! Laws of table metadata: written metadata is read as the same, ids only grow, an upgrade keeps everything.

// A failing `unwrap` is a failure of the test.
use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::metadata::{
    MAIN_BRANCH, MetadataBuilder, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef,
    StringMap, Summary, TableDefinition, TableMetadata, requirements_for_update,
};
use icefield_format::spec::{NullOrder, PartitionField, PartitionSpec, SortDirection, SortField, SortOrder};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_format::{FormatVersion, Limits};
use proptest::prelude::*;

const START_MS: i64 = 1_700_000_000_000;

/// A random change; its references are adapted to the table when it is applied.
#[derive(Debug, Clone)]
enum Change {
    AddColumn(PrimitiveType),
    Partition(Transform, usize),
    Sort(SortDirection, usize),
    Append { branch: bool },
    RollBack(usize),
    Tag(usize),
    Expire(usize),
    SetProperty(u8, String),
    Upgrade(i32),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let primitive = prop_oneof![Just(PrimitiveType::Long), Just(PrimitiveType::String), Just(PrimitiveType::Date)];
    let transform =
        prop_oneof![Just(Transform::Identity), (1..40_u32).prop_map(Transform::Bucket), Just(Transform::Void)];
    let direction = prop_oneof![Just(SortDirection::Ascending), Just(SortDirection::Descending)];
    let change = prop_oneof![
        primitive.prop_map(Change::AddColumn),
        (transform, 0..8_usize).prop_map(|(transform, column)| Change::Partition(transform, column)),
        (direction, 0..8_usize).prop_map(|(direction, column)| Change::Sort(direction, column)),
        any::<bool>().prop_map(|branch| Change::Append { branch }),
        (0..8_usize).prop_map(Change::RollBack),
        (0..8_usize).prop_map(Change::Tag),
        (0..8_usize).prop_map(Change::Expire),
        (any::<u8>(), ".{0,12}").prop_map(|(name, value)| Change::SetProperty(name, value)),
        (2..=3).prop_map(Change::Upgrade),
    ];
    prop::collection::vec(change, 1..24)
}

fn new_table(version: FormatVersion) -> TableMetadata {
    let schema = Schema::new(0, vec![Field::required(7, "id", PrimitiveType::Long)]).unwrap();
    let properties = StringMap::from([("format-version".to_owned(), version.to_string())]);
    let definition = TableDefinition {
        schema,
        partition_spec: PartitionSpec::unpartitioned(),
        sort_order: SortOrder::unsorted(),
        location: "s3://bucket/table".to_owned(),
        properties,
    };
    let builder = MetadataBuilder::new_table(START_MS);
    let table = builder.apply_all(definition.create_updates("a-uuid").unwrap()).unwrap().build().unwrap();
    assert_eq!(table.format_version(), version);
    table
}

/// The updates of a change, for this table.
fn updates(change: &Change, table: &TableMetadata, now_ms: i64) -> Vec<MetadataUpdate> {
    let schema = table.current_schema();
    let column = |number: usize| schema.fields()[number % schema.fields().len()].id;
    let snapshot = |number: usize| {
        let snapshots = table.snapshots();
        (!snapshots.is_empty()).then(|| snapshots[number % snapshots.len()].snapshot_id)
    };
    match change {
        Change::AddColumn(ty) => {
            let id = table.last_column_id() + 1;
            let mut fields = schema.fields().to_vec();
            fields.push(Field::optional(id, format!("c{id}"), ty.clone()));
            table.current_schema_updates(&Schema::new(0, fields).unwrap())
        }
        Change::Partition(transform, number) => {
            let source_id = column(*number);
            let field_id =
                if table.format_version() == FormatVersion::V1 { 1000 } else { table.last_partition_id() + 1 };
            let name = format!("p{source_id}_{field_id}");
            let field = PartitionField { source_ids: vec![source_id], field_id, name, transform: transform.clone() };
            table.default_spec_updates(&PartitionSpec { spec_id: 0, fields: vec![field] })
        }
        Change::Sort(direction, number) => table.default_sort_order_updates(&SortOrder {
            order_id: 1,
            fields: vec![SortField {
                source_ids: vec![column(*number)],
                transform: Transform::Identity,
                direction: *direction,
                null_order: NullOrder::First,
            }],
        }),
        Change::Append { branch } => append(table, if *branch { "audit" } else { MAIN_BRANCH }, now_ms),
        Change::RollBack(number) => {
            snapshot(*number).map_or_else(Vec::new, |id| set_ref(MAIN_BRANCH, id, RefKind::BRANCH))
        }
        Change::Tag(number) => snapshot(*number).map_or_else(Vec::new, |id| set_ref("tag", id, RefKind::Tag)),
        Change::Expire(number) => {
            let kept = table.refs().values().map(|reference| reference.snapshot_id).collect::<Vec<_>>();
            let id = snapshot(*number).filter(|id| !kept.contains(id));
            id.map_or_else(Vec::new, |id| vec![MetadataUpdate::RemoveSnapshots { snapshot_ids: vec![id] }])
        }
        Change::SetProperty(name, value) => {
            vec![MetadataUpdate::SetProperties { updates: StringMap::from([(format!("p{name}"), value.clone())]) }]
        }
        Change::Upgrade(version) => vec![MetadataUpdate::UpgradeFormatVersion { format_version: *version }],
    }
}

fn append(table: &TableMetadata, branch: &str, now_ms: i64) -> Vec<MetadataUpdate> {
    let lineage = table.format_version() >= FormatVersion::V3;
    let snapshot = Snapshot {
        snapshot_id: now_ms,
        parent_snapshot_id: table.reference(branch).map(|reference| reference.snapshot_id),
        sequence_number: table.next_sequence_number(),
        timestamp_ms: now_ms,
        summary: Some(Summary::new(Operation::Append)),
        manifests: SnapshotManifests::List(format!("s3://bucket/table/metadata/snap-{now_ms}.avro")),
        schema_id: Some(table.current_schema_id()),
        first_row_id: lineage.then(|| table.next_row_id()),
        added_rows: lineage.then_some(10),
        key_id: None,
        unknown: serde_json::Map::new(),
    };
    let mut updates = vec![MetadataUpdate::AddSnapshot { snapshot: Arc::new(snapshot) }];
    updates.extend(set_ref(branch, now_ms, RefKind::BRANCH));
    updates
}

fn set_ref(name: &str, snapshot_id: i64, kind: RefKind) -> Vec<MetadataUpdate> {
    let reference = SnapshotRef { kind, ..SnapshotRef::branch(snapshot_id) };
    vec![MetadataUpdate::SetSnapshotRef { ref_name: name.to_owned(), reference }]
}

fn read(text: &str) -> TableMetadata {
    TableMetadata::from_json(text.as_bytes(), &Limits::default()).unwrap()
}

/// Definitions by kind and id: an assigned id always means the same.
#[derive(Default)]
struct Seen(HashMap<(&'static str, i32), String>);

impl Seen {
    fn check(&mut self, table: &TableMetadata) {
        for schema in table.schemas() {
            self.note("schema", schema.schema_id(), schema.to_json().to_string());
        }
        for spec in table.partition_specs() {
            self.note("spec", spec.spec_id, spec.to_json().to_string());
        }
        for order in table.sort_orders() {
            self.note("order", order.order_id, order.to_json().to_string());
        }
    }

    fn note(&mut self, what: &'static str, id: i32, text: String) {
        let known = self.0.entry((what, id)).or_insert_with(|| text.clone());
        assert_eq!(*known, text, "{what} {id} means something else now");
    }
}

proptest! {
    #[test]
    fn histories_keep_the_laws(
        version in prop_oneof![Just(FormatVersion::V1), Just(FormatVersion::V2), Just(FormatVersion::V3)],
        changes in changes(),
    ) {
        let mut table = new_table(version);
        let mut seen = Seen::default();
        for (number, change) in changes.iter().enumerate() {
            let now_ms = START_MS + 1 + number as i64;
            let updates = updates(change, &table, now_ms);
            for requirement in requirements_for_update(&table, &updates) {
                prop_assert_eq!(requirement.check(Some(&table)), Ok(()));
            }
            for update in &updates {
                prop_assert_eq!(&MetadataUpdate::from_json(&update.to_json()).unwrap(), update);
            }
            let builder = MetadataBuilder::from_base(&table, now_ms).with_previous_file(format!("m{number}.json"));
            let builder = match builder.apply_all(updates) {
                Ok(builder) => builder,
                // The only change that may be rejected is one to an older version.
                Err(error) => {
                    prop_assert!(matches!(change, Change::Upgrade(_)), "{:?}: {}", change, error);
                    continue;
                }
            };
            let changed = !builder.changes().is_empty();
            let next = builder.build().unwrap();
            prop_assert_eq!(&read(&next.to_json()), &next);
            prop_assert!(next.last_column_id() >= table.last_column_id());
            prop_assert!(next.last_partition_id() >= table.last_partition_id());
            prop_assert!(next.last_sequence_number() >= table.last_sequence_number());
            prop_assert!(next.next_row_id() >= table.next_row_id());
            prop_assert_eq!(next.metadata_log().len(), table.metadata_log().len() + usize::from(changed));
            let newest = next.snapshot_log().last().map(|entry| entry.snapshot_id);
            prop_assert_eq!(newest, next.current_snapshot_id());
            seen.check(&next);
            table = next;
        }
    }

    #[test]
    fn an_upgrade_keeps_everything(changes in changes(), to in 2..=3_i32) {
        let mut table = new_table(FormatVersion::V1);
        for (number, change) in changes.iter().filter(|change| !matches!(change, Change::Upgrade(_))).enumerate() {
            let now_ms = START_MS + 1 + number as i64;
            let updates = updates(change, &table, now_ms);
            table = MetadataBuilder::from_base(&table, now_ms).apply_all(updates).unwrap().build().unwrap();
        }
        let update = MetadataUpdate::UpgradeFormatVersion { format_version: to };
        let upgraded = MetadataBuilder::from_base(&table, table.last_updated_ms()).apply(update).unwrap().build().unwrap();
        let mut expected = table.to_json_value();
        let fields = expected.as_object_mut().unwrap();
        fields.shift_remove("schema");
        fields.shift_remove("partition-spec");
        fields.insert("format-version".to_owned(), to.into());
        fields.insert("last-sequence-number".to_owned(), 0.into());
        if to > 2 {
            fields.insert("next-row-id".to_owned(), 0.into());
            if table.current_snapshot_id().is_none() {
                fields.insert("current-snapshot-id".to_owned(), serde_json::Value::Null);
            }
        }
        prop_assert_eq!(upgraded.to_json_value(), expected);
    }
}

#[test]
fn unknown_fields_of_newer_writers_survive() {
    let mut document = new_table(FormatVersion::V2).to_json_value();
    document["from-the-future"] = serde_json::json!({"a": [1, 2.5, null]});
    let table = read(&document.to_string());
    let changed =
        MetadataBuilder::from_base(&table, START_MS).apply(MetadataUpdate::SetLocation { location: "s3://b".into() });
    let written = changed.unwrap().build().unwrap().to_json_value();
    assert_eq!(written["from-the-future"], document["from-the-future"]);
    assert_eq!(written["location"], "s3://b");
}

#[test]
fn a_replaced_table_keeps_the_ids_of_what_it_keeps() {
    let table = new_table(FormatVersion::V2);
    let schema = Schema::new(
        0,
        vec![Field::optional(1, "new", PrimitiveType::Date), Field::required(2, "id", PrimitiveType::Long)],
    );
    let field = |source_id, name: &str, transform| PartitionField {
        source_ids: vec![source_id],
        field_id: 1000,
        name: name.into(),
        transform,
    };
    let definition = TableDefinition {
        schema: schema.unwrap(),
        partition_spec: PartitionSpec { spec_id: 9, fields: vec![field(1, "new_day", Transform::Day)] },
        sort_order: SortOrder::unsorted(),
        location: "s3://bucket/other/".to_owned(),
        properties: StringMap::new(),
    };
    let updates = definition.replace_updates(&table).unwrap();
    let replaced = MetadataBuilder::from_base(&table, START_MS).apply_all(updates).unwrap().build().unwrap();
    let id_of = |name| replaced.current_schema().find_by_name(name, true).unwrap().unwrap().id;
    assert_eq!((id_of("id"), id_of("new"), replaced.last_column_id()), (1, 2, 2));
    assert_eq!(replaced.default_spec().to_string(), "[\n  1000: new_day: day(2)\n]");
    assert_eq!((replaced.default_spec_id(), replaced.current_schema_id()), (1, 1));
    assert_eq!((replaced.location(), replaced.table_uuid()), ("s3://bucket/other", Some("a-uuid")));
}
