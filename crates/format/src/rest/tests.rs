//! Tests of messages: tables of documents, members that may be missing, and properties of random documents.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::form::Form;
use super::*;
use crate::manifest::{DataFile, FileContent};
use crate::types::{Field, PrimitiveType, Schema, StructType};
use crate::value::Value;
use crate::{Error, Result};

/// Reads a document and writes it again.
type Again = fn(&Json) -> Result<Json>;

fn again<T: Form>(json: &Json) -> Result<Json> {
    T::read(json).map(|message| message.write())
}

fn report(json: &Json) -> Result<Json> {
    ReportMetricsRequest::from_json(json).map(|report| report.to_json())
}

fn planning(json: &Json) -> Result<Json> {
    PlanningResult::from_json(json).map(|result| result.to_json())
}

fn metadata() -> Json {
    json!({
        "format-version": 2, "table-uuid": "c8e5a9c9-1c62-4b67-8bcb-a0cb4b26bd4b", "location": "s3://b/t",
        "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 1, "current-schema-id": 0,
        "schemas": [schema()], "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {}, "current-snapshot-id": -1, "refs": {}, "snapshots": [], "statistics": [],
        "partition-statistics": [], "snapshot-log": [], "metadata-log": []
    })
}

fn schema() -> Json {
    json!({
        "type": "struct", "schema-id": 0,
        "fields": [{"id": 1, "name": "id", "required": true, "type": "long"}]
    })
}

fn data_file() -> Json {
    json!({
        "content": "data", "file-path": "s3://b/t/data/a.parquet", "file-format": "parquet", "spec-id": 0,
        "partition": ["2024-02-29", null], "file-size-in-bytes": 100, "record-count": 3, "key-metadata": "78797A",
        "split-offsets": [4], "sort-order-id": 0, "first-row-id": 7,
        "column-sizes": {"keys": [1], "values": [40]}, "value-counts": {"keys": [1], "values": [3]},
        "null-value-counts": {"keys": [1], "values": [0]}, "nan-value-counts": {"keys": [], "values": []},
        "lower-bounds": {"keys": [1], "values": [1]}, "upper-bounds": {"keys": [1], "values": [9]}
    })
}

fn vector() -> Json {
    json!({
        "content": "position-deletes", "file-path": "s3://b/t/data/a.puffin", "file-format": "puffin", "spec-id": 0,
        "partition": [], "file-size-in-bytes": 100, "record-count": 2,
        "referenced-data-file": "s3://b/t/data/a.parquet", "content-offset": 4, "content-size-in-bytes": 40
    })
}

/// Documents: name of the message, how to read and write it, its required members, and the JSON.
fn documents() -> Vec<(&'static str, Again, &'static [&'static str], Json)> {
    let table = json!({"namespace": ["a", "b"], "name": "t"});
    let credential = json!({"prefix": "s3://b", "config": {"s3.session-token": "s"}});
    let error = json!({"message": "no", "type": "NoSuchTableException", "code": 404, "stack": ["a", "b"]});
    let commit = json!({
        "identifier": table, "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": null}],
        "updates": [{"action": "set-properties", "updates": {"a": "b"}}]
    });
    let metrics = json!({
        "total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 5},
        "result-data-files": {"unit": "count", "value": 1}
    });
    vec![
        (
            "config",
            again::<CatalogConfig>,
            &["overrides", "defaults"],
            json!({
                "overrides": {"warehouse": "w"}, "defaults": {"clients": "4"},
                "endpoints": ["GET /v1/{prefix}/namespaces"], "idempotency-key-lifetime": "PT30M"
            }),
        ),
        ("error", again::<ErrorResponse>, &["error"], json!({"error": error})),
        ("error model", again::<ErrorModel>, &["message", "type", "code"], error.clone()),
        (
            "create namespace",
            again::<CreateNamespaceRequest>,
            &["namespace"],
            json!({
                "namespace": ["a", "b.c"], "properties": {"owner": "me"}
            }),
        ),
        ("namespace", again::<NamespaceResponse>, &["namespace"], json!({"namespace": [], "properties": {}})),
        (
            "namespaces",
            again::<ListNamespacesResponse>,
            &[],
            json!({
                "next-page-token": "n", "namespaces": [["a"], ["a", "b"]]
            }),
        ),
        (
            "update properties",
            again::<UpdateNamespacePropertiesRequest>,
            &[],
            json!({
                "removals": ["a"], "updates": {"b": "c"}
            }),
        ),
        (
            "updated properties",
            again::<UpdateNamespacePropertiesResponse>,
            &["updated", "removed"],
            json!({
                "updated": ["b"], "removed": [], "missing": ["a"]
            }),
        ),
        ("identifier", again::<TableIdentifier>, &["namespace", "name"], table.clone()),
        ("tables", again::<ListTablesResponse>, &[], json!({"next-page-token": "", "identifiers": [table]})),
        (
            "create table",
            again::<CreateTableRequest>,
            &["name", "schema"],
            json!({
                "name": "t", "location": "s3://b/t", "schema": schema(),
                "partition-spec": {"spec-id": 0, "fields": [
                    {"name": "id_bucket", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}
                ]},
                "write-order": {"order-id": 0, "fields": []}, "stage-create": true, "properties": {"a": "b"}
            }),
        ),
        (
            "register table",
            again::<RegisterTableRequest>,
            &["name", "metadata-location"],
            json!({
                "name": "t", "metadata-location": "s3://b/t/metadata/1.json", "overwrite": true
            }),
        ),
        (
            "loaded table",
            again::<LoadTableResult>,
            &["metadata"],
            json!({
                "metadata-location": "s3://b/t/metadata/1.json", "metadata": metadata(), "config": {"token": "t"},
                "storage-credentials": [credential], "read-restrictions": {"required-row-filter": true}
            }),
        ),
        (
            "credentials",
            again::<LoadCredentialsResponse>,
            &["storage-credentials"],
            json!({
                "storage-credentials": [credential]
            }),
        ),
        ("credential", again::<StorageCredential>, &["prefix", "config"], credential.clone()),
        ("commit", again::<CommitTableRequest>, &["requirements", "updates"], commit.clone()),
        (
            "committed",
            again::<CommitTableResponse>,
            &["metadata-location", "metadata"],
            json!({
                "metadata-location": "s3://b/t/metadata/2.json", "metadata": metadata()
            }),
        ),
        ("transaction", again::<CommitTransactionRequest>, &["table-changes"], json!({"table-changes": [commit]})),
        (
            "rename",
            again::<RenameTableRequest>,
            &["source", "destination"],
            json!({
                "source": table, "destination": {"namespace": [], "name": "u"}
            }),
        ),
        (
            "token",
            again::<TokenResponse>,
            &["access_token", "token_type"],
            json!({
                "access_token": "t", "token_type": "bearer", "expires_in": 3600,
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "refresh_token": "r", "scope": "s"
            }),
        ),
        (
            "refused token",
            again::<OAuthError>,
            &["error"],
            json!({
                "error": "invalid_client", "error_description": "no", "error_uri": "https://example.org"
            }),
        ),
        (
            "scan report",
            report,
            &[
                "report-type",
                "table-name",
                "snapshot-id",
                "filter",
                "schema-id",
                "projected-field-ids",
                "projected-field-names",
                "metrics",
            ],
            json!({
                "table-name": "a.t", "snapshot-id": 1, "filter": true, "schema-id": 0, "projected-field-ids": [1],
                "projected-field-names": ["id"], "metrics": metrics, "metadata": {"engine": "e"},
                "report-type": "scan-report"
            }),
        ),
        (
            "commit report",
            report,
            &["report-type", "table-name", "snapshot-id", "sequence-number", "operation", "metrics"],
            json!({
                "table-name": "a.t", "snapshot-id": 1, "sequence-number": 2, "operation": "append",
                "metrics": metrics, "metadata": {}, "report-type": "commit-report"
            }),
        ),
        (
            "scan",
            again::<PlanTableScanRequest>,
            &[],
            json!({
                "snapshot-id": 1, "select": ["a.b"], "filter": {"type": "eq", "term": "a", "value": 1},
                "min-rows-requested": 10, "case-sensitive": false, "use-snapshot-schema": true, "start-snapshot-id": 1,
                "end-snapshot-id": 2, "stats-fields": ["a"]
            }),
        ),
        (
            "completed",
            planning,
            &["status"],
            json!({
                "status": "completed", "plan-id": "p", "delete-files": [vector()],
                "file-scan-tasks": [{
                    "data-file": data_file(), "delete-file-references": [0], "residual-filter": true
                }],
                "plan-tasks": ["x"], "storage-credentials": [credential]
            }),
        ),
        ("submitted", planning, &["status", "plan-id"], json!({"status": "submitted", "plan-id": "p"})),
        ("cancelled", planning, &["status"], json!({"status": "cancelled"})),
        ("failed", planning, &["status", "error"], json!({"status": "failed", "error": error})),
        ("fetch", again::<FetchScanTasksRequest>, &["plan-task"], json!({"plan-task": "x"})),
        (
            "fetched",
            again::<ScanTasks>,
            &[],
            json!({
                "delete-files": [], "file-scan-tasks": [], "plan-tasks": []
            }),
        ),
        ("task", again::<FileScanTask>, &["data-file"], json!({"data-file": data_file()})),
        (
            "file",
            again::<ContentFile>,
            &["content", "file-path", "file-format", "spec-id", "partition", "file-size-in-bytes", "record-count"],
            data_file(),
        ),
    ]
}

fn without(document: &Json, member: &str) -> Json {
    let mut document = document.clone();
    document.as_object_mut().unwrap().shift_remove(member);
    document
}

fn with(document: &Json, member: &str, value: Json) -> Json {
    let mut document = document.clone();
    document[member] = value;
    document
}

#[test]
fn documents_are_written_as_they_were_read() {
    for (name, again, _, document) in documents() {
        assert_eq!(again(&document).unwrap(), document, "{name}");
        // Members of a later protocol version are ignored.
        assert_eq!(again(&with(&document, "later", json!([1]))).unwrap(), document, "{name}");
    }
}

#[test]
fn required_members_are_named_where_they_are_missing() {
    for (name, again, required, document) in documents() {
        for member in document.as_object().unwrap().keys() {
            let missing = again(&without(&document, member));
            match required.contains(&member.as_str()) {
                true => {
                    let message = missing.unwrap_err().to_string();
                    assert_eq!(message, format!("/{member}: required, but missing"), "{name}");
                }
                false => {
                    let read = missing.unwrap_or_else(|error| panic!("{name}: {member}: {error}"));
                    // `null` means missing.
                    assert_eq!(again(&with(&document, member, Json::Null)).unwrap(), read, "{name}: {member}");
                }
            }
        }
    }
}

#[test]
fn errors_name_the_place() {
    let error = |again: Again, document: Json| again(&document).unwrap_err().to_string();
    let tables = json!({"identifiers": [{"namespace": ["a"], "name": "t"}, {"namespace": ["a", 1], "name": "t"}]});
    let task = json!({"file-scan-tasks": [{"data-file": with(&data_file(), "file-format", json!("lance"))}]});
    let commit = json!({"table-changes": [{"requirements": [], "updates": [{"action": "fly"}]}]});
    let counter = json!({"report-type": "commit-report", "table-name": "t", "snapshot-id": 1, "sequence-number": 1,
        "operation": "append", "metrics": {"a/b": {"unit": "count", "value": "1"}}});
    for (error, expected) in [
        (error(again::<ListTablesResponse>, tables), "/identifiers/1/namespace/1: expected a string, found 1"),
        (error(again::<ScanTasks>, task), "/file-scan-tasks/0/data-file/file-format: invalid file format: \"lance\""),
        (error(again::<ListTablesResponse>, json!([])), "a list of tables must be an object, not an array"),
        (
            error(again::<CreateTableRequest>, json!({"name": "t", "schema": schema(), "stage-create": 1})),
            "/stage-create: expected true or false, found 1",
        ),
        (error(planning, json!({"status": "lost"})), "/status: invalid status of planning: \"lost\""),
        (error(report, json!({"report-type": "x"})), "/report-type: invalid type of report: \"x\""),
        (error(report, counter), "/metrics/a~1b/value: expected a 64-bit integer, found \"1\""),
    ] {
        assert_eq!(error, expected);
    }
    let error = error(again::<CommitTransactionRequest>, commit);
    assert!(error.starts_with("/table-changes/0/updates/0/action: "), "{error}");
}

#[test]
fn what_is_missing_has_the_default_of_the_protocol() {
    let scan = PlanTableScanRequest::from_json(&json!({})).unwrap();
    assert_eq!((scan.case_sensitive, scan.use_snapshot_schema, scan.snapshot_id), (true, false, None));
    let create = json!({"name": "t", "schema": schema(), "partition-spec": {"fields": []}});
    let create = CreateTableRequest::from_json(&create).unwrap();
    assert_eq!((create.stage_create, create.properties.len()), (false, 0));
    assert_eq!(create.partition_spec.unwrap().spec_id, 0);
    let tables = ListTablesResponse::from_json(&json!({"next-page-token": null})).unwrap();
    assert_eq!(tables, ListTablesResponse { next_page_token: None, identifiers: Vec::new() });
}

#[test]
fn secrets_are_not_printed() {
    let loaded = json!({"metadata": metadata(), "config": {"token": "hidden"},
        "storage-credentials": [{"prefix": "s3://b", "config": {"s3.secret-access-key": "hidden"}}]});
    let token = json!({"access_token": "hidden", "token_type": "bearer", "refresh_token": "hidden"});
    let request = TokenRequest::ClientCredentials {
        client_id: Some("me".to_owned()),
        client_secret: Some(Secret::new("hidden")),
        scope: None,
    };
    for printed in [
        format!("{:?}", LoadTableResult::from_json(&loaded).unwrap()),
        format!("{:?}", TokenResponse::from_json(&token).unwrap()),
        format!("{request:?}"),
    ] {
        assert!(!printed.contains("hidden") && printed.contains("********"), "{printed}");
    }
}

#[test]
fn requests_for_tokens_are_forms() {
    let requests = [
        TokenRequest::ClientCredentials { client_id: None, client_secret: None, scope: Some("catalog".to_owned()) },
        TokenRequest::TokenExchange {
            subject_token: Secret::new("s"),
            subject_token_type: "urn:ietf:params:oauth:token-type:access_token".to_owned(),
            actor_token: Some((Secret::new("a"), "urn:ietf:params:oauth:token-type:jwt".to_owned())),
            requested_token_type: None,
            scope: None,
        },
    ];
    for request in requests {
        assert_eq!(TokenRequest::from_form(&request.to_form()), Ok(request));
    }
    for (form, place) in [
        (vec![], "grant_type"),
        (vec![("grant_type", "password")], "grant_type"),
        (vec![("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")], "subject_token"),
    ] {
        match TokenRequest::from_form(&form) {
            Err(Error::Corrupt(corrupt)) => assert_eq!(corrupt.place, place),
            other => panic!("{other:?}"),
        }
    }
}

/// The types of [`data_file`].
fn types() -> (StructType, Schema) {
    let partition = StructType::new(vec![
        Field::optional(1000, "day", PrimitiveType::Date),
        Field::optional(1001, "name", PrimitiveType::String),
    ]);
    (partition, Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)]).unwrap())
}

#[test]
fn files_are_read_with_the_types_of_the_table() {
    let (partition, schema) = types();
    let message = ContentFile::from_json(&data_file()).unwrap();
    let file = message.to_data_file(&partition, &schema).unwrap();
    let expected = DataFile {
        content: FileContent::Data,
        file_path: "s3://b/t/data/a.parquet".to_owned(),
        file_format: "PARQUET".to_owned(),
        partition: vec![Some(Value::Int(19_782)), None],
        record_count: 3,
        file_size_in_bytes: 100,
        column_sizes: Some(vec![(1, 40)]),
        value_counts: Some(vec![(1, 3)]),
        null_value_counts: Some(vec![(1, 0)]),
        nan_value_counts: Some(Vec::new()),
        lower_bounds: Some(vec![(1, 1i64.to_le_bytes().to_vec())]),
        upper_bounds: Some(vec![(1, 9i64.to_le_bytes().to_vec())]),
        key_metadata: Some(b"xyz".to_vec()),
        split_offsets: Some(vec![4]),
        sort_order_id: Some(0),
        first_row_id: Some(7),
        ..DataFile::default()
    };
    assert_eq!(file, expected);
    assert_eq!(ContentFile::from_data_file(&file, &partition, &schema), Ok(message));
    let changed = |member: &str, value: Json| {
        let message = ContentFile::from_json(&with(&data_file(), member, value)).unwrap();
        message.to_data_file(&partition, &schema)
    };
    for (member, value, expected) in [
        ("partition", json!([null]), "/partition: expected 2 values, found 1"),
        ("column-sizes", json!({"keys": [1], "values": []}), "/column-sizes: expected 1 values, found 0"),
        ("lower-bounds", json!({"keys": [], "values": [1]}), "/lower-bounds: expected 0 values, found 1"),
    ] {
        assert_eq!(changed(member, value).unwrap_err().to_string(), expected);
    }
    let error = changed("lower-bounds", json!({"keys": [1], "values": ["x"]})).unwrap_err().to_string();
    assert!(error.starts_with("/lower-bounds"), "{error}");
    assert!(changed("key-metadata", json!("7")).unwrap_err().to_string().starts_with("/key-metadata"));
    // Bounds of dropped columns are ignored.
    assert_eq!(changed("lower-bounds", json!({"keys": [9], "values": ["x"]})).unwrap().lower_bounds, Some(Vec::new()));
}

fn strings() -> impl Strategy<Value = Json> {
    proptest::collection::hash_map(".{0,8}", ".{0,8}", 0..4).prop_map(|map| json!(map))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Reading what was written returns the same message, for any names and numbers.
    #[test]
    fn messages_survive_the_way_there_and_back(
        levels in proptest::collection::vec(".{0,8}", 0..4), name in ".{0,8}", token in proptest::option::of(".{0,8}"),
        properties in strings(), numbers in proptest::collection::vec((any::<i32>(), any::<i64>()), 0..5),
        code in any::<i32>(), rows in proptest::option::of(any::<i64>()), flag in any::<bool>(),
    ) {
        let identifier = json!({"namespace": levels, "name": name});
        let (keys, values): (Vec<i32>, Vec<i64>) = numbers.into_iter().unzip();
        let documents: [(Again, Json); 6] = [
            (again::<CreateNamespaceRequest>, json!({"namespace": levels, "properties": properties})),
            (again::<ListTablesResponse>, json!({"next-page-token": token, "identifiers": [identifier, identifier]})),
            (again::<ErrorModel>, json!({"message": name, "type": name, "code": code, "stack": levels})),
            (again::<CatalogConfig>, json!({"overrides": properties, "defaults": properties, "endpoints": levels})),
            (again::<PlanTableScanRequest>, json!({
                "snapshot-id": rows, "select": levels, "min-rows-requested": rows, "case-sensitive": flag,
                "use-snapshot-schema": flag, "filter": properties
            })),
            (again::<CountMap>, json!({"keys": keys, "values": values})),
        ];
        for (again, document) in documents {
            let written = again(&document).unwrap();
            prop_assert_eq!(again(&written).unwrap(), written.clone());
            // Everything that was read is written, except `null`s and defaults.
            for (member, value) in document.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()) {
                prop_assert_eq!(&written[member], value);
            }
        }
    }

    /// The same for the typed values of a file.
    #[test]
    fn files_survive_the_way_there_and_back(
        day in proptest::option::of(-100_000..100_000i32), name in proptest::option::of(".{0,8}"),
        lower in any::<i64>(), counts in proptest::collection::vec((any::<i32>(), any::<i64>()), 0..4),
        key in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..5)),
    ) {
        let (partition, schema) = types();
        let file = DataFile {
            file_path: "a".to_owned(),
            file_format: "ORC".to_owned(),
            partition: vec![day.map(Value::Int), name.map(Value::String)],
            value_counts: Some(counts),
            lower_bounds: Some(vec![(1, lower.to_le_bytes().to_vec())]),
            key_metadata: key,
            ..DataFile::default()
        };
        let message = ContentFile::from_data_file(&file, &partition, &schema).unwrap();
        let again = ContentFile::from_json(&message.to_json()).unwrap();
        prop_assert_eq!(&again, &message);
        prop_assert_eq!(again.to_data_file(&partition, &schema).unwrap(), file);
    }
}
