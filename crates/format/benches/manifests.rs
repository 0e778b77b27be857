//! How long manifests take to decode, beside how long they take to inflate (the floor): one thread, best of some rounds.
//!
//! `cargo bench -p icefield-format --bench manifests [-- MANIFESTS]`: each manifest has 2,000 files of 20 columns with full
//! metrics, partitioned by day and bucket, in gzip.

#![allow(clippy::print_stdout)] // What a bench is for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use icefield_format::avro::{Compression, Container, Decompressor};
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, ManifestContent, ManifestFile, Metrics, ReadOptions, entries};
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema, StructType};
use icefield_format::value::Value;
use icefield_format::{Limits, Result};

const FILES: usize = 2_000;
const COLUMNS: i32 = 20;
const DAYS: usize = 100;
const ROUNDS: usize = 5;

struct Manifest {
    bytes: Vec<u8>,
    described: ManifestFile,
}

fn table() -> Result<(Schema, PartitionSpec)> {
    let mut fields =
        vec![Field::required(1, "id", PrimitiveType::Long), Field::optional(2, "ts", PrimitiveType::Timestamp)];
    fields.extend((3..=COLUMNS).map(|id| {
        let ty = if id % 3 == 0 { PrimitiveType::String } else { PrimitiveType::Double };
        Field::optional(id, format!("column_{id}"), ty)
    }));
    let field = |source, field_id, name: &str, transform| PartitionField {
        source_ids: vec![source],
        field_id,
        name: name.to_owned(),
        transform,
    };
    let fields_of_spec =
        vec![field(2, 1000, "ts_day", Transform::Day), field(1, 1001, "id_bucket", Transform::Bucket(16))];
    Ok((Schema::new(0, fields)?, PartitionSpec { spec_id: 0, fields: fields_of_spec }))
}

/// Numbers that look random and are the same each time (splitmix64).
fn noise(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn file(number: usize) -> DataFile {
    let random = |column: i32, salt: u64| noise(number as u64 * 1_000 + column.unsigned_abs() as u64 * 10 + salt);
    let counts = |salt: u64, most: u64| Some((1..=COLUMNS).map(|id| (id, (random(id, salt) % most) as i64)).collect());
    let bounds = |salt: u64| {
        let bound = |id: i32| {
            if id > 2 && id % 3 == 0 {
                format!("{:016x}", random(id, salt)).into_bytes()
            } else {
                random(id, salt).to_le_bytes().to_vec()
            }
        };
        Some((1..=COLUMNS).map(|id| (id, bound(id))).collect())
    };
    let (day, bucket) = (18_000 + (number % DAYS) as i32, (number / DAYS % 16) as i32);
    DataFile {
        file_path: format!(
            "s3://bucket/warehouse/db/events/data/ts_day={day}/id_bucket={bucket}/00000-{number}-{:016x}-00001.parquet",
            noise(number as u64)
        ),
        file_format: "PARQUET".to_owned(),
        partition: vec![Some(Value::Int(day)), Some(Value::Int(bucket))],
        record_count: 100_000 + (random(0, 1) % 1000) as i64,
        file_size_in_bytes: 100_000_000 + (random(0, 2) % 1_000_000) as i64,
        column_sizes: counts(3, 10_000_000),
        value_counts: Some((1..=COLUMNS).map(|id| (id, 100_000 + (random(0, 1) % 1000) as i64)).collect()),
        null_value_counts: counts(4, 1000),
        nan_value_counts: Some((3..=COLUMNS).filter(|id| id % 3 != 0).map(|id| (id, 0)).collect()),
        lower_bounds: bounds(5),
        upper_bounds: bounds(6),
        split_offsets: Some(vec![4]),
        sort_order_id: Some(0),
        ..DataFile::default()
    }
}

fn manifests(count: usize, schema: &Schema, spec: &PartitionSpec) -> Result<Vec<Manifest>> {
    let manifest = |number: usize| {
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: 2,
            content: ManifestContent::Data,
            schema,
            spec,
            snapshot_id: 1,
            first_row_id: None,
            compression: Compression::default(),
            sync: [3; 16],
        })?;
        (number * FILES..(number + 1) * FILES).try_for_each(|file_number| writer.add_file(file(file_number)))?;
        let (bytes, mut described) = writer.finish("m.avro")?;
        described.sequence_number = 7;
        Ok(Manifest { bytes, described })
    };
    (0..count).map(manifest).collect()
}

fn best(name: &str, floor: Option<Duration>, mut run: impl FnMut() -> Result<usize>) -> Result<Duration> {
    let mut best = Duration::MAX;
    let mut count = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        count = run()?;
        best = best.min(start.elapsed());
    }
    let ratio = floor.map_or(1.0, |floor| best.as_secs_f64() / floor.as_secs_f64());
    println!("{name:<32} {:>8.1} ms  {ratio:>5.2} x inflate  ({count})", best.as_secs_f64() * 1e3);
    Ok(best)
}

fn inflate(manifests: &[Manifest], limits: &Limits) -> Result<usize> {
    let mut bytes = 0;
    for manifest in manifests {
        let container = Container::open(&manifest.bytes)?;
        let mut decompressor = Decompressor::new(container.codec, limits);
        for block in container.blocks() {
            let block = block?;
            bytes += decompressor.run(block.data, block.offset)?.len();
        }
    }
    Ok(bytes)
}

fn decode(manifests: &[Manifest], options: &ReadOptions<'_>, limits: &Limits) -> Result<usize> {
    manifests.iter().try_fold(0, |files, manifest| {
        let options = ReadOptions { inherit: Some(&manifest.described), live_only: true, ..options.clone() };
        Ok(files + entries::read(&manifest.bytes, &options, limits)?.len())
    })
}

fn main() -> Result<()> {
    let count = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(50);
    let limits = Limits::default();
    let (schema, spec) = table()?;
    let partition_type: StructType = spec.partition_type(&schema);
    let start = Instant::now();
    let manifests = manifests(count, &schema, &spec)?;
    let stored: usize = manifests.iter().map(|manifest| manifest.bytes.len()).sum();
    println!("{} files, {stored} bytes, written in {:.2} s", count * FILES, start.elapsed().as_secs_f64());
    let base = ReadOptions { partition_type: Some(&partition_type), ..ReadOptions::default() };
    let floor = Some(best("inflate alone", None, || inflate(&manifests, &limits))?);
    best("no metrics", floor, || decode(&manifests, &base, &limits))?;
    let one = ReadOptions { metrics: Metrics::for_filter([1]), ..base.clone() };
    best("counts and bounds of one field", floor, || decode(&manifests, &one, &limits))?;
    let all = ReadOptions { metrics: Metrics::all(), ..base.clone() };
    best("all metrics", floor, || decode(&manifests, &all, &limits))?;
    let asked = AtomicUsize::new(0);
    let day = |tuple: &[Option<Value>]| {
        asked.fetch_add(1, Ordering::Relaxed);
        Ok(matches!(tuple.first(), Some(Some(Value::Int(18_042)))))
    };
    let one_day = ReadOptions { partition_filter: Some(&day), ..one };
    best("one day, and bounds of one field", floor, || decode(&manifests, &one_day, &limits))?;
    println!("the partition filter was asked {} times a round", asked.load(Ordering::Relaxed) / ROUNDS);
    Ok(())
}
