//! Writes all encrypted files again with the same keys and masks. Readers with the keys read the original rows, others
//! the same masked values as from orc-core, and the statistics of the true values stay the same.

use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::TypeDescription;
use icefield_orc::{EncryptionOptions, FileMetadata, Kind, Limits, Mask, Reader, WriterOptions};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::rewrite::{as_exact_as_possible, check, forms, write};
use super::rows::{check_rows, parse};
use super::{Golden, hex, trial, unhex};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let encrypted = |name: &String| golden.folder.join(format!("expected/{name}.masked.rows.jsonl.gz")).exists();
    let names = golden.names().filter(encrypted);
    names
        .map(|name| {
            let golden = Arc::clone(golden);
            trial(format!("encrypted::{name}"), move || check_file(&golden, &name))
        })
        .collect()
}

fn check_file(golden: &Golden, name: &str) -> Result<(), Failed> {
    let reader = Reader::open_with(Bytes::from(golden.file(name)?), Limits::default(), golden.keys(false))?;
    let file = reader.metadata();
    let (arrow, batches) = as_exact_as_possible(&reader)?;
    let schema = reader.schema(&icefield_orc::ReadOptions { arrow, ..Default::default() })?;
    for (index, form) in forms(&reader).into_iter().enumerate() {
        let within = |error: Failed| Failed::from(format!("form {index}: {}", error.message().unwrap_or("failed")));
        let own = encryption(golden, file)?;
        // Row groups of one row would make reading slow.
        let row_index_stride = if form.row_index_stride == 1 { 50 } else { form.row_index_stride };
        let bytes = write(&schema, &batches, WriterOptions { encryption: Some(own), row_index_stride, ..form })?;
        check_bytes(golden, name, file, &bytes).map_err(within)?;
    }
    Ok(())
}

fn check_bytes(golden: &Golden, name: &str, file: &FileMetadata, bytes: &Bytes) -> Result<(), Failed> {
    for (form, keys) in
        [("rows.jsonl", golden.keys(false)), ("masked.rows.jsonl", None), ("partial.rows.jsonl", golden.keys(true))]
    {
        if let Some(rows) = golden.expected(name, form) {
            let rows = with_digests(golden, name, file, parse(&rows)?)?;
            let checked = check_rows(bytes, &rows, keys, None);
            checked.map_err(|error| format!("{form}: {}", error.message().unwrap_or("failed")))?;
        }
    }
    let again = Reader::open_with(bytes.clone(), Limits::default(), golden.keys(false))?;
    let (own, wanted) = (again.metadata().file_statistics()?, file.file_statistics()?);
    let counts = |statistics: &[icefield_orc::proto::ColumnStatistics]| -> Vec<_> {
        statistics.iter().map(|own| (own.number_of_values, own.has_null)).collect()
    };
    check(counts(&own) == counts(&wanted), || format!("counts {:?}, {:?} wanted", counts(&own), counts(&wanted)))?;
    let masked = Reader::open(bytes.clone())?.metadata().file_statistics()?;
    check(masked != own, || "statistics in the clear".to_owned())?;
    // The footer has the same keys, masks and variants as that of orc-core.
    let (own, wanted) = (&again.metadata().footer.encryption, &file.footer.encryption);
    let (Some(own), Some(wanted)) = (own, wanted) else { return Err("no encryption".into()) };
    check(own.key == wanted.key, || format!("keys {:?}, {:?} wanted", own.key, wanted.key))?;
    let roots = |own: &icefield_orc::proto::Encryption| -> Vec<_> {
        own.variants.iter().map(|variant| (variant.root, variant.key)).collect()
    };
    check(roots(own) == roots(wanted), || format!("variants {:?}, {:?} wanted", roots(own), roots(wanted)))
}

/// Replaces the digests in expected rows by those of the expected values. In the golden set, all binary values of a
/// batch have the digest of the last (a bug of orc-core), and `char` values have the digest of the text with trailing
/// spaces.
fn with_digests(golden: &Golden, name: &str, file: &FileMetadata, mut rows: Vec<Json>) -> Result<Vec<Json>, Failed> {
    let truth = parse(&golden.expected(name, "rows.jsonl").ok_or("no rows")?)?;
    let masks = file.footer.encryption.iter().flat_map(|encryption| &encryption.mask);
    let hashed = masks.filter(|mask| mask.name.as_deref() == Some("sha256")).flat_map(|mask| &mask.columns);
    for node in hashed.filter_map(|column| file.schema.find(*column)) {
        let path = path_of(&file.schema, node.column).ok_or("no path")?;
        for (row, truth) in rows.iter_mut().zip(&truth) {
            let (Some(masked), Some(value)) = (row.get_mut(&path), truth[&path].as_str()) else { continue };
            if masked.as_str() == Some(value) {
                continue;
            }
            match node.kind {
                Kind::Binary => *masked = hex(&Sha256::digest(unhex(value))).into(),
                Kind::Char { length } => {
                    let digest = hex(&Sha256::digest(value)).to_uppercase();
                    *masked = digest.chars().take(length as usize).collect::<String>().into();
                }
                _ => {}
            }
        }
    }
    Ok(rows)
}

/// The encryption options with which a file was written.
fn encryption(golden: &Golden, file: &FileMetadata) -> Result<EncryptionOptions, Failed> {
    let footer = file.footer.encryption.as_ref().ok_or("no encryption")?;
    let path = |column: u32| path_of(&file.schema, column).ok_or(format!("no column {column}"));
    let mut columns = Vec::new();
    for variant in &footer.variants {
        let key = footer.key.get(variant.key.unwrap_or(0) as usize).ok_or("no key")?;
        columns.push((key.key_name.clone().unwrap_or_default(), vec![path(variant.root.unwrap_or(0))?]));
    }
    let mut masks = Vec::new();
    for mask in &footer.mask {
        let paths = mask.columns.iter().map(|column| path(*column)).collect::<Result<_, _>>()?;
        masks.push((Mask::named(mask.name.as_deref().unwrap_or_default(), &mask.mask_parameters)?, paths));
    }
    let keys = golden.master_keys(false).ok_or("no keys")?;
    Ok(EncryptionOptions { keys: Arc::new(keys), columns, masks })
}

/// The dotted path of a column.
pub fn path_of(node: &TypeDescription, column: u32) -> Option<String> {
    let at = node.children.iter().position(|child| (child.column..child.end).contains(&column))?;
    let (child, name) = (&node.children[at], node.child_name(at).into_owned());
    if child.column == column { Some(name) } else { Some(format!("{name}.{}", path_of(child, column)?)) }
}
