//! Sequence numbers and row ids that are inherited from manifest lists and manifests (`row_lineage.json`).

use icefield_format::Limits;
use icefield_format::avro::{Codec, Compression};
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{
    DataFile, ManifestContent, ManifestEntry, ManifestFile, ReadOptions, Status, entries, list,
};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::{Field, PrimitiveType, Schema};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::{Golden, trial};

const COMPRESSION: Compression = Compression { codec: Codec::Null, level: None };
const SYNC: [u8; 16] = [7; 16];

pub fn inheritance(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    // Cases of kind `table` are commits, which the table crate tests.
    let numbered = cases.into_iter().enumerate().filter(|(_, case)| case["kind"] != "table");
    let trial_of = |(number, case): (usize, Json)| {
        trial("row_lineage.json", number, move || match case["kind"].as_str() {
            Some("manifest_list") => manifest_list(&case),
            Some("entries") => manifest_entries(&case),
            kind => Err(format!("no check for kind {kind:?}").into()),
        })
    };
    numbered.map(trial_of).collect()
}

fn equal(what: &str, found: &Json, expected: &Json) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found} where the reference has {expected}").into()) }
}

/// A number, which is text beyond 2^53.
fn number(json: &Json) -> Option<i64> {
    json.as_i64().or_else(|| json.as_str()?.parse().ok())
}

fn numbers(json: &Json) -> Vec<Option<i64>> {
    json.as_array().unwrap().iter().map(number).collect()
}

fn manifest_list(case: &Json) -> Result<(), Failed> {
    let long = |name: &str| number(&case[name]).unwrap();
    let mut writer = ListWriter::new(ListOptions {
        format_version: 3,
        snapshot_id: long("snapshot_id"),
        parent_snapshot_id: None,
        sequence_number: long("sequence_number"),
        first_row_id: Some(long("first_row_id")),
        compression: COMPRESSION,
        sync: SYNC,
    })?;
    for manifest in case["manifests"].as_array().unwrap() {
        let sequence_number = manifest["sequence_number"].as_i64().unwrap();
        writer.add(&ManifestFile {
            manifest_path: "m.avro".to_owned(),
            content: if manifest["content"] == "data" { ManifestContent::Data } else { ManifestContent::Deletes },
            sequence_number,
            min_sequence_number: sequence_number,
            added_snapshot_id: long("snapshot_id"),
            added_files_count: Some(1),
            existing_files_count: Some(1),
            deleted_files_count: Some(1),
            added_rows_count: manifest["added_rows"].as_i64(),
            existing_rows_count: manifest["existing_rows"].as_i64(),
            deleted_rows_count: manifest["deleted_rows"].as_i64(),
            first_row_id: number(&manifest["first_row_id"]),
            ..ManifestFile::default()
        })?;
    }
    let written = writer.finish()?;
    let read = list::read(&written.bytes, &Limits::default())?;
    if read.manifests != written.manifests {
        return Err("what was read is not what was written".into());
    }
    let row_ids: Vec<_> = read.manifests.iter().map(|manifest| manifest.first_row_id).collect();
    let sequence: Vec<_> = read.manifests.iter().map(|manifest| manifest.sequence_number).collect();
    equal("first row ids", &json!(row_ids), &json!(numbers(&case["written_first_row_ids"])))?;
    equal("sequence numbers", &json!(sequence), &case["written_sequence_numbers"])?;
    equal("next row id", &json!(written.next_row_id), &json!(number(&case["next_row_id"])))
}

fn manifest_entries(case: &Json) -> Result<(), Failed> {
    let schema = Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)])?;
    let spec = PartitionSpec::unpartitioned();
    let manifest = &case["manifest"];
    let snapshot_id = manifest["snapshot_id"].as_i64().unwrap();
    let mut writer = ManifestWriter::new(ManifestOptions {
        format_version: u8::try_from(case["format"].as_u64().unwrap()).unwrap(),
        content: ManifestContent::Data,
        schema: &schema,
        spec: &spec,
        snapshot_id,
        first_row_id: None,
        compression: COMPRESSION,
        sync: SYNC,
    })?;
    for entry in case["entries"].as_array().unwrap() {
        let status = match entry["status"].as_str().unwrap() {
            "added" => Status::Added,
            "existing" => Status::Existing,
            _ => Status::Deleted,
        };
        writer.add(&ManifestEntry {
            status,
            snapshot_id: entry["snapshot_id"].as_i64(),
            sequence_number: entry["data_sequence_number"].as_i64(),
            file_sequence_number: entry["file_sequence_number"].as_i64(),
            file: DataFile {
                file_path: "a.parquet".to_owned(),
                file_format: "PARQUET".to_owned(),
                record_count: entry["record_count"].as_i64().unwrap(),
                first_row_id: number(&entry["first_row_id"]),
                ..DataFile::default()
            },
        })?;
    }
    let (bytes, mut described) = writer.finish("m.avro")?;
    let counts = json!([
        described.min_sequence_number,
        described.added_files_count,
        described.added_rows_count,
        described.existing_files_count,
        described.existing_rows_count,
        described.deleted_files_count,
        described.deleted_rows_count,
    ]);
    let names = [
        "written_min_sequence_number",
        "added_files",
        "added_rows",
        "existing_files",
        "existing_rows",
        "deleted_files",
        "deleted_rows",
    ];
    equal("counts", &counts, &json!(names.map(|name| manifest[name].clone())))?;
    described.sequence_number = manifest["sequence_number"].as_i64().unwrap();
    described.first_row_id = number(&manifest["first_row_id"]);
    let options = ReadOptions { inherit: Some(&described), ..ReadOptions::default() };
    let entries = entries::read(&bytes, &options, &Limits::default())?;
    let rows = (0..entries.len()).map(|row| {
        let entry = entries.entry(row, 0).unwrap();
        json!({
            "status": format!("{:?}", entry.status).to_lowercase(),
            "snapshot_id": entry.snapshot_id,
            "data_sequence_number": entry.sequence_number,
            "file_sequence_number": entry.file_sequence_number,
            "first_row_id": entry.file.first_row_id,
        })
    });
    equal("entries", &rows.collect(), &case["read"])
}
