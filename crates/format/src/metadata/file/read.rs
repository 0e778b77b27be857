//! Reads table metadata of all versions, including what older writers left out.
//!
//! Many writers write every member of their structures, so an optional field may be null, which means the same as
//! missing.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::json::{self, ListSink, Object};
use crate::metadata::{
    Document, EncryptedKey, FormatVersion, MAIN_BRANCH, MetadataLogEntry, PartitionStatisticsFile, Snapshot,
    SnapshotLogEntry, SnapshotRef, StatisticsFile, TableMetadata,
};
use crate::spec::{FIRST_PARTITION_FIELD_ID, PartitionSpec, SortOrder, UNSORTED_ORDER_ID};
use crate::types::Schema;
use crate::{Error, Limits, Result};

/// Fields of all versions; any other field comes from a newer writer.
const KNOWN: &[&str] = &[
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schema",
    "schemas",
    "current-schema-id",
    "partition-spec",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "default-sort-order-id",
    "sort-orders",
    "properties",
    "current-snapshot-id",
    "refs",
    "snapshots",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-statistics",
    "next-row-id",
    "encryption-keys",
];

impl TableMetadata {
    /// Reads a metadata file: JSON, compressed or not.
    pub fn from_json(file: &[u8], limits: &Limits) -> Result<Self> {
        let mut budget = limits.budget(file.len());
        let text = crate::metadata::decompress(file, limits, &mut budget)?;
        let mut lists = LongLists::new(limits);
        let document = json::parse_object(&text, &mut lists, &mut budget)?;
        drop(text);
        let writer = lists.writer();
        let reader = DocumentReader::new(&document, limits)?;
        let read = reader.read(Some(lists)).and_then(Document::check);
        read.map_err(|error| reader.missing_fields(writer.as_deref()).unwrap_or(error))
    }

    /// Reads metadata inside another document, such as a response of a REST catalog.
    pub fn from_json_value(value: &Json, limits: &Limits) -> Result<Self> {
        DocumentReader::new(value, limits)?.read(None)?.check()
    }
}

/// The lists that make a document long: all schemas, all snapshots. They are read while the text is parsed, so that a
/// document of many megabytes is never in memory as a tree.
struct LongLists<'a> {
    limits: &'a Limits,
    current: Option<LongList>,
    schemas: Result<Vec<Arc<Schema>>>,
    snapshots: Result<Vec<Arc<Snapshot>>>,
    snapshot_log: Result<Vec<SnapshotLogEntry>>,
    metadata_log: Result<Vec<MetadataLogEntry>>,
}

#[derive(Clone, Copy)]
enum LongList {
    Schemas,
    Snapshots,
    SnapshotLog,
    MetadataLog,
}

impl<'a> LongLists<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            current: None,
            schemas: Ok(Vec::new()),
            snapshots: Ok(Vec::new()),
            snapshot_log: Ok(Vec::new()),
            metadata_log: Ok(Vec::new()),
        }
    }
}

impl LongLists<'_> {
    /// Returns who wrote the newest snapshot, if its summary says so.
    fn writer(&self) -> Option<String> {
        let summary = self.snapshots.as_ref().ok()?.last()?.summary.as_ref()?;
        let engine = summary.properties.get("engine-name")?;
        let version = summary.properties.get("engine-version").map_or("", String::as_str);
        Some(format!("{engine} {version}").trim_end().to_owned())
    }
}

impl ListSink for LongLists<'_> {
    fn begins(&mut self, name: &str) -> bool {
        self.current = match name {
            "schemas" => Some(LongList::Schemas),
            "snapshots" => Some(LongList::Snapshots),
            "snapshot-log" => Some(LongList::SnapshotLog),
            "metadata-log" => Some(LongList::MetadataLog),
            _ => None,
        };
        match self.current {
            // Begin with an empty list, so that the last of two members with the same name counts.
            Some(LongList::Schemas) => self.schemas = Ok(Vec::new()),
            Some(LongList::Snapshots) => self.snapshots = Ok(Vec::new()),
            Some(LongList::SnapshotLog) => self.snapshot_log = Ok(Vec::new()),
            Some(LongList::MetadataLog) => self.metadata_log = Ok(Vec::new()),
            None => {}
        }
        self.current.is_some()
    }

    fn element(&mut self, element: &Json) {
        match self.current {
            Some(LongList::Schemas) => {
                push(&mut self.schemas, "/schemas", || Schema::from_metadata_json(element, self.limits).map(Arc::new));
            }
            Some(LongList::Snapshots) => {
                push(&mut self.snapshots, "/snapshots", || Snapshot::from_json(element).map(Arc::new));
            }
            Some(LongList::SnapshotLog) => {
                push(&mut self.snapshot_log, "/snapshot-log", || read_snapshot_log_entry(element));
            }
            Some(LongList::MetadataLog) => {
                push(&mut self.metadata_log, "/metadata-log", || read_metadata_log_entry(element));
            }
            None => {}
        }
    }
}

/// Appends an element; after the first error the list keeps that error.
fn push<T>(list: &mut Result<Vec<T>>, name: &str, read: impl FnOnce() -> Result<T>) {
    if let Ok(items) = list {
        match read() {
            Ok(item) => items.push(item),
            Err(error) => *list = Err(json::locate(error, &format!("{name}/{}", items.len()))),
        }
    }
}

struct DocumentReader<'a> {
    object: Object<'a>,
    version: FormatVersion,
    limits: &'a Limits,
}

impl<'a> DocumentReader<'a> {
    fn new(value: &'a Json, limits: &'a Limits) -> Result<Self> {
        let object = Object::new(value, "table metadata")?;
        let version = FormatVersion::try_from(object.field("format-version", json::int)?)?;
        Ok(Self { object, version, limits })
    }

    /// Returns an error that names all fields that the version requires and the document lacks; `None` if there are
    /// none.
    fn missing_fields(&self, writer: Option<&str>) -> Option<Error> {
        let always = ["location", "last-updated-ms", "last-column-id"].as_slice();
        let lists = [
            "table-uuid",
            "last-sequence-number",
            "schemas",
            "current-schema-id",
            "partition-specs",
            "default-spec-id",
            "last-partition-id",
            "sort-orders",
            "default-sort-order-id",
        ];
        let since_2 = if self.version >= FormatVersion::V2 { lists.as_slice() } else { &[] };
        let since_3 = if self.version >= FormatVersion::V3 { ["next-row-id"].as_slice() } else { &[] };
        let required = always.iter().chain(since_2).chain(since_3);
        let missing: Vec<&str> =
            required.copied().filter(|name| self.object.member(name).is_none_or(Json::is_null)).collect();
        let written = writer.map_or(String::new(), |writer| format!("; its last snapshot is by {writer}"));
        let message = match missing.as_slice() {
            [] => return None,
            [only] => format!("`{only}` is missing: it is required in format version {}{written}", self.version),
            all => {
                let names = all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                format!("{names} are missing: they are required in format version {}{written}", self.version)
            }
        };
        Some(Error::corrupt(json::step(missing.first()?), message))
    }

    /// Reads the document; `lists` holds the lists that were already read from it while parsing.
    fn read(&self, lists: Option<LongLists<'_>>) -> Result<Document> {
        let object = self.object;
        let (schemas, snapshots, snapshot_log, metadata_log) = match lists {
            Some(lists) => {
                (Some(lists.schemas), Some(lists.snapshots), Some(lists.snapshot_log), Some(lists.metadata_log))
            }
            None => (None, None, None, None),
        };
        let (schemas, current_schema_id) = self.schemas(schemas)?;
        let (partition_specs, default_spec_id) = self.partition_specs()?;
        let last_partition_id = self.last_partition_id(&partition_specs)?;
        let (sort_orders, default_sort_order_id) = self.sort_orders()?;
        // v1 and v2 write -1 for "no snapshot".
        let current_snapshot_id = object.nullable("current-snapshot-id", json::long)?.filter(|id| *id != -1);
        let refs = self.refs(current_snapshot_id)?;
        Ok(Document {
            format_version: self.version,
            table_uuid: object.nullable("table-uuid", json::string)?,
            location: object.field("location", json::string)?,
            last_sequence_number: self.since(FormatVersion::V2, "last-sequence-number")?,
            last_updated_ms: object.field("last-updated-ms", json::long)?,
            last_column_id: object.field("last-column-id", json::int)?,
            schemas,
            current_schema_id,
            partition_specs,
            default_spec_id,
            last_partition_id,
            sort_orders,
            default_sort_order_id,
            properties: object.nullable("properties", json::present_strings)?.unwrap_or_default(),
            current_snapshot_id,
            snapshots: self.long_list("snapshots", snapshots, |value| Snapshot::from_json(value).map(Arc::new))?,
            refs,
            snapshot_log: self.log("snapshot-log", snapshot_log, read_snapshot_log_entry)?,
            metadata_log: self.log("metadata-log", metadata_log, read_metadata_log_entry)?,
            statistics: self.list("statistics", StatisticsFile::from_json)?,
            partition_statistics: self.list("partition-statistics", PartitionStatisticsFile::from_json)?,
            encryption_keys: self.list("encryption-keys", EncryptedKey::from_json)?,
            next_row_id: self.since(FormatVersion::V3, "next-row-id")?,
            unknown: object.unknown(KNOWN),
        })
    }

    /// Reads a number that `version` introduced; in documents of earlier versions it is 0, whatever they contain.
    fn since(&self, version: FormatVersion, name: &str) -> Result<i64> {
        if self.version < version { Ok(0) } else { self.object.field(name, json::long) }
    }

    fn list<T>(&self, name: &str, read: impl FnMut(&Json) -> Result<T>) -> Result<Vec<T>> {
        Ok(self.object.nullable(name, |value| json::list(value, read))?.unwrap_or_default())
    }

    /// Whether a list is present. Only v1 has older fields that replace a missing one.
    fn has(&self, name: &str) -> Result<bool> {
        match (self.object.get(name), self.version) {
            (Some(_), _) => Ok(true),
            (None, FormatVersion::V1) => Ok(false),
            (None, version) => Err(Error::corrupt(json::step(name), format!("required in format version {version}"))),
        }
    }

    /// Reads a list, unless it was already read while parsing: then its member is an empty array, or not an array at
    /// all.
    fn long_list<T>(
        &self,
        name: &str,
        taken: Option<Result<Vec<T>>>,
        read: impl Fn(&Json) -> Result<T>,
    ) -> Result<Vec<T>> {
        match (self.object.member(name), taken) {
            (Some(Json::Array(_)), Some(taken)) => taken,
            _ => self.list(name, read),
        }
    }

    fn schemas(&self, taken: Option<Result<Vec<Arc<Schema>>>>) -> Result<(Vec<Arc<Schema>>, i32)> {
        let read = |value: &Json| Schema::from_metadata_json(value, self.limits).map(Arc::new);
        if self.has("schemas")? {
            let schemas = self.long_list("schemas", taken, read)?;
            return Ok((schemas, self.object.field("current-schema-id", json::int)?));
        }
        let schema = self.object.field("schema", read)?;
        let schema_id = schema.schema_id();
        Ok((vec![schema], schema_id))
    }

    fn partition_specs(&self) -> Result<(Vec<Arc<PartitionSpec>>, i32)> {
        if self.has("partition-specs")? {
            let specs = self.list("partition-specs", |value| PartitionSpec::from_json(value).map(Arc::new))?;
            return Ok((specs, self.object.field("default-spec-id", json::int)?));
        }
        let spec = self.object.field("partition-spec", |value| PartitionSpec::from_json_fields(0, value))?;
        Ok((vec![Arc::new(spec)], 0))
    }

    fn last_partition_id(&self, specs: &[Arc<PartitionSpec>]) -> Result<i32> {
        match self.object.nullable("last-partition-id", json::int)? {
            Some(id) => Ok(id),
            None if self.version == FormatVersion::V1 => {
                let ids = specs.iter().map(|spec| spec.last_assigned_field_id());
                Ok(ids.fold(FIRST_PARTITION_FIELD_ID.saturating_sub(1), i32::max))
            }
            None => {
                let message = format!("required in format version {}", self.version);
                Err(Error::corrupt("/last-partition-id", message))
            }
        }
    }

    fn sort_orders(&self) -> Result<(Vec<Arc<SortOrder>>, i32)> {
        if self.has("sort-orders")? {
            let orders = self.list("sort-orders", |value| SortOrder::from_json(value).map(Arc::new))?;
            return Ok((orders, self.object.field("default-sort-order-id", json::int)?));
        }
        Ok((vec![Arc::new(SortOrder::unsorted())], UNSORTED_ORDER_ID))
    }

    /// Reads the references. Writers from before branches and tags left out `refs`: then `main` is the current
    /// snapshot, if any.
    fn refs(&self, current_snapshot_id: Option<i64>) -> Result<IndexMap<String, SnapshotRef>> {
        let main = || current_snapshot_id.map(|id| (MAIN_BRANCH.to_owned(), SnapshotRef::branch(id)));
        let refs = self.object.nullable("refs", |value| json::map(value, SnapshotRef::from_json))?;
        Ok(refs.unwrap_or_else(|| main().into_iter().collect()))
    }

    /// Reads a log. Anything but an array counts as an empty log, as in the Java library: logs are history, not state.
    fn log<T>(&self, name: &str, taken: Option<Result<Vec<T>>>, read: impl Fn(&Json) -> Result<T>) -> Result<Vec<T>> {
        match self.object.member(name) {
            Some(Json::Array(_)) => self.long_list(name, taken, read),
            _ => Ok(Vec::new()),
        }
    }
}

fn read_snapshot_log_entry(value: &Json) -> Result<SnapshotLogEntry> {
    let object = Object::new(value, "an entry of the snapshot log")?;
    Ok(SnapshotLogEntry {
        timestamp_ms: object.field("timestamp-ms", json::long)?,
        snapshot_id: object.field("snapshot-id", json::long)?,
    })
}

fn read_metadata_log_entry(value: &Json) -> Result<MetadataLogEntry> {
    let object = Object::new(value, "an entry of the metadata log")?;
    Ok(MetadataLogEntry {
        timestamp_ms: object.field("timestamp-ms", json::long)?,
        metadata_file: object.field("metadata-file", json::string)?,
    })
}
