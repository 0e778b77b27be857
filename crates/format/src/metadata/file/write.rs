//! Writes table metadata: the fields of its version, and for v1 those that older readers expect.

use serde_json::Value as Json;

use crate::json::{Writer, write_strings};
use crate::metadata::{Document, FormatVersion, TableMetadata};

impl TableMetadata {
    /// Returns the JSON text.
    pub fn to_json(&self) -> String {
        self.to_json_value().to_string()
    }

    /// Returns the JSON form.
    pub fn to_json_value(&self) -> Json {
        let document = &self.document;
        let mut object = Writer::default();
        object
            .put("format-version", document.format_version.number())
            .put("table-uuid", document.table_uuid.as_deref())
            .put("location", document.location.as_str());
        if document.format_version >= FormatVersion::V2 {
            object.put("last-sequence-number", document.last_sequence_number);
        }
        object.put("last-updated-ms", document.last_updated_ms).put("last-column-id", document.last_column_id);
        self.put_schemas_specs_and_orders(&mut object);
        object.put("properties", write_strings(&document.properties));
        document.put_snapshots(&mut object);
        document.put_logs(&mut object);
        object.put_unknown(&document.unknown).finish()
    }

    fn put_schemas_specs_and_orders(&self, object: &mut Writer) {
        let document = &self.document;
        if document.format_version == FormatVersion::V1 {
            object.put("schema", self.current_schema.to_json());
        }
        object
            .put("current-schema-id", document.current_schema_id)
            .put("schemas", list(&document.schemas, |schema| schema.to_json()));
        if document.format_version == FormatVersion::V1 {
            object.put("partition-spec", self.default_spec.to_json_fields());
        }
        object
            .put("default-spec-id", document.default_spec_id)
            .put("partition-specs", list(&document.partition_specs, |spec| spec.to_json()))
            .put("last-partition-id", document.last_partition_id)
            .put("default-sort-order-id", document.default_sort_order_id)
            .put("sort-orders", list(&document.sort_orders, |order| order.to_json()));
    }
}

impl Document {
    fn put_snapshots(&self, object: &mut Writer) {
        // Readers of v1 and v2 expect -1 for "none", later ones null.
        let none = (self.format_version < FormatVersion::V3).then_some(-1);
        object.put("current-snapshot-id", self.current_snapshot_id.or(none));
        if self.format_version >= FormatVersion::V3 {
            object.put("next-row-id", self.next_row_id);
        }
        if !self.encryption_keys.is_empty() {
            object.put("encryption-keys", list(&self.encryption_keys, |key| key.to_json()));
        }
        let mut refs = Writer::default();
        for (name, reference) in &self.refs {
            refs.put(name, reference.to_json());
        }
        object.put("refs", refs.finish()).put("snapshots", list(&self.snapshots, |snapshot| snapshot.to_json()));
        object
            .put("statistics", list(&self.statistics, |file| file.to_json()))
            .put("partition-statistics", list(&self.partition_statistics, |file| file.to_json()));
    }

    fn put_logs(&self, object: &mut Writer) {
        let snapshot_log = list(&self.snapshot_log, |entry| {
            Writer::default().put("timestamp-ms", entry.timestamp_ms).put("snapshot-id", entry.snapshot_id).finish()
        });
        let metadata_log = list(&self.metadata_log, |entry| {
            let file = entry.metadata_file.as_str();
            Writer::default().put("timestamp-ms", entry.timestamp_ms).put("metadata-file", file).finish()
        });
        object.put("snapshot-log", snapshot_log).put("metadata-log", metadata_log);
    }
}

fn list<T>(items: &[T], write: impl Fn(&T) -> Json) -> Json {
    items.iter().map(write).collect()
}
