//! Schema texts for the headers of manifests and manifest lists, cached because many files of a commit share them.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use super::schemas;
use crate::avro::from_type;
use crate::types::{Field, PrimitiveType, Schema, StructType, Type};
use crate::{Error, Result};

/// Maximum number of partition types whose texts a thread caches.
const MOST: usize = 8;

/// Schemas in the header of a file.
#[derive(Debug)]
pub(super) struct Texts {
    /// `avro.schema`
    pub(super) avro: String,
    /// `iceberg.schema`
    pub(super) iceberg: String,
}

/// Cached texts of manifests, by format version and partition type.
type OfManifests = Vec<(u8, StructType, Arc<Texts>)>;

thread_local! {
    static OF_MANIFESTS: RefCell<OfManifests> = const { RefCell::new(Vec::new()) };
}

/// Returns the schema texts of manifests.
pub(super) fn of_manifest(version: u8, partition: &StructType) -> Result<Arc<Texts>> {
    let known = |(number, ty, _): &&(u8, StructType, _)| *number == version && ty == partition;
    let found = OF_MANIFESTS.with_borrow(|all| all.iter().find(known).map(|(.., texts)| texts.clone()));
    if let Some(texts) = found {
        return Ok(texts);
    }
    let iceberg = schemas::entry_type(version, partition.clone());
    let texts = Arc::new(Texts { avro: avro_schema(version, partition)?, iceberg: schema_text(iceberg)? });
    OF_MANIFESTS.with_borrow_mut(|all| {
        if all.len() == MOST {
            all.remove(0);
        }
        all.push((version, partition.clone(), texts.clone()));
    });
    Ok(texts)
}

/// Returns the schema texts of manifest lists.
pub(super) fn of_list(version: u8) -> Result<&'static Texts> {
    static OF_LISTS: [OnceLock<Result<Texts>>; 3] = [const { OnceLock::new() }; 3];
    let make = || {
        let ty = schemas::manifest_type(version);
        let avro = from_type::record_schema("manifest_file", &ty)?.to_string();
        Ok(Texts { avro, iceberg: schema_text(ty)? })
    };
    let texts = OF_LISTS.get(usize::from(version).wrapping_sub(1));
    let texts = texts.ok_or_else(|| Error::invalid(format!("format version {version} has no manifest lists")))?;
    texts.get_or_init(make).as_ref().map_err(Clone::clone)
}

fn schema_text(ty: StructType) -> Result<String> {
    Ok(Schema::new(0, ty.fields)?.to_json().to_string())
}

/// The Avro schema of entries. The Java library writes `fixed` partition values with a length, and expects one,
/// whatever the schema says. So they are written with a length here too, and the schema says `bytes`: readers that
/// trust it read them correctly.
fn avro_schema(version: u8, partition_type: &StructType) -> Result<String> {
    let plain = |field: &Field| match field.ty {
        Type::Primitive(PrimitiveType::Fixed(_)) => Field { ty: PrimitiveType::Binary.into(), ..field.clone() },
        _ => field.clone(),
    };
    let partition = StructType::new(partition_type.fields.iter().map(plain).collect());
    Ok(from_type::record_schema("manifest_entry", &schemas::entry_type(version, partition))?.to_string())
}
