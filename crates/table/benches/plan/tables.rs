//! Tables of many data files that do not exist: manifests, a manifest list and metadata, written by our writers.
//!
//! File `n` lies on day `n / 1000` and in bucket `n % 16`; its `key`s are `1000 n` to `1000 n + 999`, which no other file
//! has. Twenty columns have all metrics.

use std::collections::BTreeMap;

use icefield_format::avro::Compression;
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, ManifestFile};
use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef, Summary,
    TableDefinition,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_format::value::Value;
use icefield_table::commit::write_metadata;
use icefield_table::operation::create::create;
use icefield_table::storage::{Existing, Storage};
use icefield_table::{Error, Result};

const FILES_OF_DAY: usize = 1_000;
const FILES_OF_MANIFEST: usize = 2_000;
const COLUMNS: i32 = 20;
const FIRST_DAY: i32 = 18_262;
/// One data file of so many has a delete.
const DELETED: usize = 10;

/// What deletes a table has: each tenth data file one, and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletes {
    None,
    Position,
    Vectors,
    Equality,
}

impl Deletes {
    pub fn parse(word: &str) -> Result<Self> {
        match word {
            "none" => Ok(Self::None),
            "position" => Ok(Self::Position),
            "vectors" => Ok(Self::Vectors),
            "equality" => Ok(Self::Equality),
            other => Err(Error::invalid(format!("{other} is no kind of deletes"))),
        }
    }

    fn version(self) -> u8 {
        if self == Self::Vectors { 3 } else { 2 }
    }
}

/// Writes a table to a folder and gives the location of its metadata.
pub fn write(folder: &str, files: usize, deletes: Deletes) -> Result<String> {
    let storage = Storage::default();
    let version = deletes.version();
    let schema = schema()?;
    let spec = PartitionSpec::from_text(0, &["day(ts)", "bucket(16, id)"], &schema)?;
    let definition = TableDefinition {
        schema: schema.clone(),
        partition_spec: spec.clone(),
        sort_order: SortOrder::unsorted(),
        location: folder.to_owned(),
        properties: [("format-version".to_owned(), version.to_string())].into_iter().collect(),
    };
    let base = create(&storage, &definition)?.metadata;
    let mut list = ListWriter::new(ListOptions {
        format_version: version,
        snapshot_id: 2,
        parent_snapshot_id: None,
        sequence_number: 2,
        first_row_id: (version >= 3).then_some(0),
        compression: Compression::default(),
        sync: [1; 16],
    })?;
    let mut manifest = |name: String, content, sequence_number, of: Vec<DataFile>| -> Result<()> {
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: version,
            content,
            schema: &schema,
            spec: &spec,
            snapshot_id: sequence_number,
            first_row_id: None,
            compression: Compression::default(),
            sync: [7; 16],
        })?;
        of.into_iter().try_for_each(|file| writer.add_file(file))?;
        let location = format!("{folder}/metadata/{name}");
        let (bytes, mut described) = writer.finish(&location)?;
        storage.put(&location, bytes, Existing::Refuse)?;
        // The data are older than their deletes.
        described.sequence_number = sequence_number;
        described.min_sequence_number = sequence_number;
        list.add(&ManifestFile { added_snapshot_id: sequence_number, ..described })?;
        Ok(())
    };
    for (number, first) in (0..files).step_by(FILES_OF_MANIFEST).enumerate() {
        let last = files.min(first + FILES_OF_MANIFEST);
        let of = (first..last).map(|n| data_file(folder, n)).collect();
        manifest(format!("data-{number:05}.avro"), ManifestContent::Data, 1, of)?;
    }
    if deletes != Deletes::None {
        let all: Vec<usize> = (0..files).step_by(DELETED).collect();
        for (number, some) in all.chunks(FILES_OF_MANIFEST).enumerate() {
            let of = some.iter().map(|n| delete_file(folder, *n, deletes)).collect();
            manifest(format!("deletes-{number:05}.avro"), ManifestContent::Deletes, 2, of)?;
        }
    }
    let written = list.finish()?;
    let location = format!("{folder}/metadata/snap-2.avro");
    storage.put(&location, written.bytes, Existing::Refuse)?;
    let snapshot = Snapshot {
        snapshot_id: 2,
        parent_snapshot_id: None,
        sequence_number: 2,
        timestamp_ms: base.last_updated_ms(),
        summary: Some(Summary { operation: Operation::Append, properties: [].into_iter().collect() }),
        manifests: SnapshotManifests::List(location),
        schema_id: Some(0),
        first_row_id: (version >= 3).then_some(0),
        added_rows: written.next_row_id,
        key_id: None,
        unknown: serde_json::Map::new(),
    };
    let reference =
        SnapshotRef { snapshot_id: 2, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown: serde_json::Map::new() };
    let metadata = MetadataBuilder::from_base(&base, base.last_updated_ms()).apply_all([
        MetadataUpdate::AddSnapshot { snapshot: snapshot.into() },
        MetadataUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference },
    ])?;
    write_metadata(&storage, &metadata.build()?, 1)
}

fn schema() -> Result<Schema> {
    let mut fields = vec![
        Field::required(1, "id", PrimitiveType::Long),
        Field::optional(2, "ts", PrimitiveType::Timestamp),
        Field::required(3, "key", PrimitiveType::Long),
        Field::optional(4, "price", PrimitiveType::Double),
    ];
    fields.extend((5..=COLUMNS).map(|id| {
        let ty = if id % 3 == 0 { PrimitiveType::String } else { PrimitiveType::Double };
        Field::optional(id, format!("column_{id}"), ty)
    }));
    Ok(Schema::new(0, fields)?)
}

/// Numbers that look random and are the same each time (splitmix64).
fn noise(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn day(n: usize) -> i32 {
    FIRST_DAY + (n / FILES_OF_DAY) as i32
}

fn partition(n: usize) -> Vec<Option<Value>> {
    vec![Some(Value::Int(day(n))), Some(Value::Int((n % 16) as i32))]
}

fn path(folder: &str, n: usize) -> String {
    let (bucket, name) = (n % 16, noise(n as u64));
    format!("{folder}/data/ts_day={}/id_bucket={bucket}/00000-{n}-{name:016x}-00001.parquet", day(n))
}

/// Lower or upper bound of a column of a file.
fn bound(n: usize, column: i32, upper: bool) -> Vec<u8> {
    let random = |salt: u64| noise(n as u64 * 64 + column.unsigned_abs() as u64 * 2 + salt);
    let side = u64::from(upper);
    match column {
        // Ids are spread over all files of a bucket.
        1 if upper => (i64::MAX / 2 - (random(1) % 1_000_000) as i64).to_le_bytes().to_vec(),
        1 => ((random(0) % 1000) as i64 - 1000).to_le_bytes().to_vec(),
        2 => {
            let second = random(0) % 40_000 + side * 40_000;
            (i64::from(day(n)) * 86_400_000_000 + (second * 1_000_000) as i64).to_le_bytes().to_vec()
        }
        3 => (n as i64 * 1000 + side as i64 * 999).to_le_bytes().to_vec(),
        // Prices of a file lie within one of each other, those of the table within 0 and 1000.
        4 => ((noise(n as u64) % 100_000) as f64 / 100.0 + side as f64).to_le_bytes().to_vec(),
        column if column % 3 == 0 => format!("{:08x}", random(side) >> 32).into_bytes(),
        _ => ((random(side) % 10_000) as f64 / 100.0).to_le_bytes().to_vec(),
    }
}

fn data_file(folder: &str, n: usize) -> DataFile {
    let random = |salt: u64| noise(n as u64 * 1_000 + salt);
    let rows = 100_000 + (random(0) % 1000) as i64;
    let ids = 1..=COLUMNS;
    let counts = |count: &dyn Fn(i32) -> i64| Some(ids.clone().map(|id| (id, count(id))).collect());
    DataFile {
        file_path: path(folder, n),
        file_format: "PARQUET".to_owned(),
        partition: partition(n),
        record_count: rows,
        file_size_in_bytes: 100_000_000 + (random(1) % 1_000_000) as i64,
        column_sizes: counts(&|id| (random(2 + id.unsigned_abs() as u64) % 100_000) as i64),
        value_counts: counts(&|_| rows),
        null_value_counts: counts(&|id| if id < 4 { 0 } else { (random(90) % 100) as i64 }),
        nan_value_counts: Some(ids.clone().filter(|id| *id > 3 && id % 3 != 0).map(|id| (id, 0)).collect()),
        lower_bounds: Some(ids.clone().map(|id| (id, bound(n, id, false))).collect()),
        upper_bounds: Some(ids.clone().map(|id| (id, bound(n, id, true))).collect()),
        split_offsets: Some(vec![4]),
        sort_order_id: Some(0),
        ..DataFile::default()
    }
}

/// The delete that reaches data file `n` and no other.
fn delete_file(folder: &str, n: usize, deletes: Deletes) -> DataFile {
    const PATH: i32 = 2_147_483_546;
    let name = |what: &str, end: &str| path(folder, n).replace("-00001.parquet", &format!("-{what}.{end}"));
    let made = DataFile {
        content: FileContent::PositionDeletes,
        file_format: "PARQUET".to_owned(),
        partition: partition(n),
        record_count: 100,
        file_size_in_bytes: 2_000,
        ..DataFile::default()
    };
    let bounds = |id, lower: Vec<u8>, upper: Vec<u8>| (Some(vec![(id, lower)]), Some(vec![(id, upper)]));
    match deletes {
        Deletes::Equality => {
            let (lower_bounds, upper_bounds) = bounds(3, bound(n, 3, false), bound(n, 3, true));
            DataFile {
                content: FileContent::EqualityDeletes,
                file_path: name("equality", "parquet"),
                equality_ids: Some(vec![3]),
                value_counts: Some(vec![(3, 100)]),
                null_value_counts: Some(vec![(3, 0)]),
                lower_bounds,
                upper_bounds,
                ..made
            }
        }
        Deletes::Vectors => DataFile {
            file_path: format!("{folder}/data/vectors-{}.puffin", n / FILES_OF_DAY),
            file_format: "PUFFIN".to_owned(),
            referenced_data_file: Some(path(folder, n)),
            content_offset: Some((n % FILES_OF_DAY) as i64 * 64 + 4),
            content_size_in_bytes: Some(64),
            ..made
        },
        _ => {
            let text = path(folder, n).into_bytes();
            let (lower_bounds, upper_bounds) = bounds(PATH, text.clone(), text);
            DataFile { file_path: name("position", "parquet"), lower_bounds, upper_bounds, ..made }
        }
    }
}

/// A door without settings.
pub fn storage() -> Storage {
    Storage::new(BTreeMap::new())
}
