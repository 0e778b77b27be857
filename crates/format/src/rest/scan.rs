//! Messages about scans that the server plans: requests, tasks, and the files of tasks.

use serde_json::Value as Json;

use super::error::ErrorModel;
use super::form::{Form, Member, messages, words};
use super::table::StorageCredential;
use crate::json::{self, Object, Writer};
use crate::manifest::{DataFile, FileContent, FileFormat};
use crate::types::{Field, PrimitiveType, Schema, StructType, Type, value_json};
use crate::value::{Value, binary};
use crate::{Error, Result};

messages! {
    /// Request to plan a scan; without snapshot ids, a scan of the current snapshot.
    PlanTableScanRequest, "a scan to plan" {
        /// Id of the snapshot.
        snapshot_id: Option<i64> = "snapshot-id";
        /// Full names of the columns to read; by default all.
        select: Option<Vec<String>> = "select";
        /// The filter: see [`crate::expr::Expr::from_json_typed`].
        filter: Option<Json> = "filter";
        /// Number of rows that are enough for the client, as a hint.
        min_rows_requested: Option<i64> = "min-rows-requested";
        /// Whether names in `select` and `filter` are case-sensitive.
        case_sensitive: bool = "case-sensitive" or true;
        /// Whether names refer to the snapshot's schema, as in time travel, instead of the table's.
        use_snapshot_schema: bool = "use-snapshot-schema" or false;
        /// Start of an incremental scan, exclusive.
        start_snapshot_id: Option<i64> = "start-snapshot-id";
        /// End of an incremental scan, inclusive.
        end_snapshot_id: Option<i64> = "end-snapshot-id";
        /// Full names of the columns whose metrics are requested.
        stats_fields: Option<Vec<String>> = "stats-fields";
    }

    /// Request for the files of a plan task.
    FetchScanTasksRequest, "a request for scan tasks" {
        /// Server's name for the plan task.
        plan_task: String = "plan-task";
    }

    /// Files of a scan, and plan tasks whose files are still to be fetched.
    #[derive(Default)]
    ScanTasks, "scan tasks" {
        /// Delete files that `file_scan_tasks` refer to.
        delete_files: Option<Vec<ContentFile>> = "delete-files";
        /// Files to read.
        file_scan_tasks: Option<Vec<FileScanTask>> = "file-scan-tasks";
        /// Plan tasks to fetch.
        plan_tasks: Option<Vec<String>> = "plan-tasks";
    }

    /// A file to read.
    FileScanTask, "a file scan task" {
        /// The data file.
        data_file: ContentFile = "data-file";
        /// Indices in the list of delete files.
        delete_file_references: Option<Vec<i32>> = "delete-file-references";
        /// Residual of the filter for the rows of this file; without it, the whole filter applies.
        residual_filter: Option<Json> = "residual-filter";
    }

    /// A data or delete file. [`ContentFile::to_data_file`] converts its values, for which it needs the table's types.
    ContentFile, "a content file" {
        /// Content: data, position deletes or equality deletes.
        content: ContentKind = "content";
        /// Location of the file.
        file_path: String = "file-path";
        /// Format of the file.
        file_format: FileFormat = "file-format";
        /// Id of the partition spec.
        spec_id: i32 = "spec-id";
        /// Values of the partition fields, in the order of the spec.
        partition: Vec<Json> = "partition";
        /// Size in bytes.
        file_size_in_bytes: i64 = "file-size-in-bytes";
        /// Number of rows.
        record_count: i64 = "record-count";
        /// Encryption key metadata, in hexadecimal digits.
        key_metadata: Option<String> = "key-metadata";
        /// Offsets at which the file can be split.
        split_offsets: Option<Vec<i64>> = "split-offsets";
        /// Id of the sort order.
        sort_order_id: Option<i32> = "sort-order-id";
        /// Data files: row id of the first row.
        first_row_id: Option<i64> = "first-row-id";
        /// Data files: size of each column in bytes.
        column_sizes: Option<CountMap> = "column-sizes";
        /// Data files: number of values of each column.
        value_counts: Option<CountMap> = "value-counts";
        /// Data files: number of nulls of each column.
        null_value_counts: Option<CountMap> = "null-value-counts";
        /// Data files: number of NaNs of each column.
        nan_value_counts: Option<CountMap> = "nan-value-counts";
        /// Data files: lower bound of each column.
        lower_bounds: Option<ValueMap> = "lower-bounds";
        /// Data files: upper bound of each column.
        upper_bounds: Option<ValueMap> = "upper-bounds";
        /// Equality deletes: ids of the columns to compare.
        equality_ids: Option<Vec<i32>> = "equality-ids";
        /// Position deletes: the only data file that they apply to.
        referenced_data_file: Option<String> = "referenced-data-file";
        /// Deletion vectors: offset in the file.
        content_offset: Option<i64> = "content-offset";
        /// Deletion vectors: length in bytes.
        content_size_in_bytes: Option<i64> = "content-size-in-bytes";
    }

    /// Counts by column: column ids, and a count for each.
    #[derive(Default)]
    CountMap, "a map of counts" {
        /// Column ids.
        keys: Vec<i32> = "keys" or Vec::new();
        /// One count for each column.
        values: Vec<i64> = "values" or Vec::new();
    }

    /// Values by column: column ids, and a value for each.
    #[derive(Default)]
    ValueMap, "a map of values" {
        /// Column ids.
        keys: Vec<i32> = "keys" or Vec::new();
        /// One value for each column, of its type.
        values: Vec<Json> = "values" or Vec::new();
    }
}

words! {
    /// Content of a file.
    ContentKind, "content of a file" {
        /// Rows.
        Data = "data",
        /// Positions of deleted rows.
        PositionDeletes = "position-deletes",
        /// Values of deleted rows.
        EqualityDeletes = "equality-deletes",
    }
}

/// Result of planning a scan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanningResult {
    /// The plan is complete.
    Completed {
        /// Id of the plan, if the server keeps it.
        plan_id: Option<String>,
        /// Tasks of the plan.
        tasks: ScanTasks,
        /// Credentials for the files of the plan.
        storage_credentials: Option<Vec<StorageCredential>>,
    },
    /// Planning continues in the server.
    Submitted {
        /// Id of the plan.
        plan_id: String,
    },
    /// Planning was cancelled.
    Cancelled,
    /// Planning failed.
    Failed(ErrorModel),
}

impl PlanningResult {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// An unknown status, or a member that is missing or of another kind.
    pub fn from_json(json: &Json) -> Result<Self> {
        let object = Object::new(json, "a result of planning")?;
        match object.field("status", json::string)?.as_str() {
            "completed" => Ok(Self::Completed {
                plan_id: Member::read_member(object, "plan-id")?,
                tasks: ScanTasks::read(json)?,
                storage_credentials: Member::read_member(object, "storage-credentials")?,
            }),
            "submitted" => Ok(Self::Submitted { plan_id: Member::read_member(object, "plan-id")? }),
            "cancelled" => Ok(Self::Cancelled),
            "failed" => Ok(Self::Failed(Member::read_member(object, "error")?)),
            other => Err(Error::corrupt("/status", format!("invalid status of planning: {other:?}"))),
        }
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Writer::default();
        match self {
            Self::Completed { plan_id, tasks, storage_credentials } => {
                object.put("status", "completed");
                plan_id.write_member(&mut object, "plan-id");
                if let Json::Object(members) = tasks.write() {
                    object.put_unknown(&members);
                }
                storage_credentials.write_member(&mut object, "storage-credentials");
            }
            Self::Submitted { plan_id } => {
                object.put("status", "submitted").put("plan-id", plan_id.as_str());
            }
            Self::Cancelled => {
                object.put("status", "cancelled");
            }
            Self::Failed(error) => {
                object.put("status", "failed").put("error", error.write());
            }
        }
        object.finish()
    }
}

impl ContentFile {
    /// Converts a file; `partition` is its partition type.
    ///
    /// # Errors
    /// A value that has no JSON form, or is not of its column's type.
    pub fn from_data_file(file: &DataFile, partition: &StructType, schema: &Schema) -> Result<Self> {
        let bounds = |bounds: &Option<Vec<(i32, Vec<u8>)>>| {
            bounds.as_ref().map(|bounds| ValueMap::from_bounds(bounds, schema)).transpose()
        };
        Ok(Self {
            content: match file.content {
                FileContent::Data => ContentKind::Data,
                FileContent::PositionDeletes => ContentKind::PositionDeletes,
                FileContent::EqualityDeletes => ContentKind::EqualityDeletes,
            },
            file_path: file.file_path.clone(),
            file_format: file.format().ok_or_else(|| {
                Error::unsupported(format!("{}: the file format {:?}", file.file_path, file.file_format))
            })?,
            spec_id: file.partition_spec_id,
            partition: partition_to_json(&file.partition, partition)?,
            file_size_in_bytes: file.file_size_in_bytes,
            record_count: file.record_count,
            key_metadata: file.key_metadata.as_deref().map(to_hex).transpose()?,
            split_offsets: file.split_offsets.clone(),
            sort_order_id: file.sort_order_id,
            first_row_id: file.first_row_id,
            column_sizes: file.column_sizes.as_deref().map(CountMap::from_counts),
            value_counts: file.value_counts.as_deref().map(CountMap::from_counts),
            null_value_counts: file.null_value_counts.as_deref().map(CountMap::from_counts),
            nan_value_counts: file.nan_value_counts.as_deref().map(CountMap::from_counts),
            lower_bounds: bounds(&file.lower_bounds)?,
            upper_bounds: bounds(&file.upper_bounds)?,
            equality_ids: file.equality_ids.clone(),
            referenced_data_file: file.referenced_data_file.clone(),
            content_offset: file.content_offset,
            content_size_in_bytes: file.content_size_in_bytes,
        })
    }

    /// Converts to a file; `partition` is its partition type. Bounds of columns that are not in the schema are dropped.
    ///
    /// # Errors
    /// A value that is not of its column's type, or lists of different lengths.
    pub fn to_data_file(&self, partition: &StructType, schema: &Schema) -> Result<DataFile> {
        let counts = |name: &str, map: &Option<CountMap>| {
            map.as_ref().map(CountMap::to_counts).transpose().map_err(|error| error.within(&format!("/{name}")))
        };
        let bounds = |name: &str, map: &Option<ValueMap>| {
            let read = map.as_ref().map(|map| map.to_bounds(schema)).transpose();
            read.map_err(|error| json::locate(error, &format!("/{name}")))
        };
        Ok(DataFile {
            content: match self.content {
                ContentKind::Data => FileContent::Data,
                ContentKind::PositionDeletes => FileContent::PositionDeletes,
                ContentKind::EqualityDeletes => FileContent::EqualityDeletes,
            },
            file_path: self.file_path.clone(),
            file_format: self.file_format.name().to_owned(),
            partition_spec_id: self.spec_id,
            partition: partition_from_json(&self.partition, partition)
                .map_err(|error| json::locate(error, "/partition"))?,
            record_count: self.record_count,
            file_size_in_bytes: self.file_size_in_bytes,
            column_sizes: counts("column-sizes", &self.column_sizes)?,
            value_counts: counts("value-counts", &self.value_counts)?,
            null_value_counts: counts("null-value-counts", &self.null_value_counts)?,
            nan_value_counts: counts("nan-value-counts", &self.nan_value_counts)?,
            lower_bounds: bounds("lower-bounds", &self.lower_bounds)?,
            upper_bounds: bounds("upper-bounds", &self.upper_bounds)?,
            key_metadata: self.key_metadata.as_deref().map(from_hex).transpose()?,
            split_offsets: self.split_offsets.clone(),
            equality_ids: self.equality_ids.clone(),
            sort_order_id: self.sort_order_id,
            first_row_id: self.first_row_id,
            referenced_data_file: self.referenced_data_file.clone(),
            content_offset: self.content_offset,
            content_size_in_bytes: self.content_size_in_bytes,
        })
    }
}

fn partition_to_json(tuple: &[Option<Value>], partition: &StructType) -> Result<Vec<Json>> {
    same_length(tuple.len(), partition.fields.len())?;
    let values = tuple.iter().zip(&partition.fields);
    values
        .map(|(value, field)| value.as_ref().map_or(Ok(Json::Null), |value| value_json::to_json(value, &field.ty)))
        .collect()
}

fn partition_from_json(tuple: &[Json], partition: &StructType) -> Result<Vec<Option<Value>>> {
    same_length(tuple.len(), partition.fields.len())?;
    let read = |(value, field): (&Json, &Field)| match special(value, &field.ty) {
        Some(special) => Ok(Some(special)),
        None => value_json::from_json_or_null(value, &field.ty),
    };
    tuple.iter().zip(&partition.fields).map(read).collect()
}

/// A number that JSON does not have, as Java's server writes it; defaults of schemas may not be such numbers.
fn special(json: &Json, ty: &Type) -> Option<Value> {
    let number = match json.as_str()? {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    };
    match ty.as_primitive()? {
        PrimitiveType::Float => Some(Value::Float(number as f32)),
        PrimitiveType::Double => Some(Value::Double(number)),
        _ => None,
    }
}

fn same_length(found: usize, expected: usize) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::corrupt("", format!("expected {expected} values, found {found}"))),
    }
}

impl CountMap {
    fn from_counts(counts: &[(i32, i64)]) -> Self {
        let (keys, values) = counts.iter().copied().unzip();
        Self { keys, values }
    }

    fn to_counts(&self) -> Result<Vec<(i32, i64)>> {
        same_length(self.values.len(), self.keys.len())?;
        Ok(self.keys.iter().copied().zip(self.values.iter().copied()).collect())
    }
}

impl ValueMap {
    fn from_bounds(bounds: &[(i32, Vec<u8>)], schema: &Schema) -> Result<Self> {
        let mut map = Self::default();
        for (id, bytes) in bounds {
            let Some(ty) = column_type(schema, *id) else { continue };
            let Some(bound) = binary::bound_from_bytes(bytes, ty)? else { continue };
            map.keys.push(*id);
            map.values.push(value_json::to_json(&bound, &Type::Primitive(ty.clone()))?);
        }
        Ok(map)
    }

    fn to_bounds(&self, schema: &Schema) -> Result<Vec<(i32, Vec<u8>)>> {
        same_length(self.values.len(), self.keys.len())?;
        let mut bounds = Vec::with_capacity(self.keys.len());
        for (id, value) in self.keys.iter().zip(&self.values) {
            let Some(ty) = column_type(schema, *id) else { continue };
            let value = value_json::from_json(value, &Type::Primitive(ty.clone()))?;
            bounds.push((*id, binary::to_bytes(&value, ty)?));
        }
        Ok(bounds)
    }
}

fn column_type(schema: &Schema, id: i32) -> Option<&PrimitiveType> {
    schema.find_field(id)?.ty.as_primitive()
}

const BINARY: Type = Type::Primitive(PrimitiveType::Binary);

fn to_hex(bytes: &[u8]) -> Result<String> {
    value_json::to_json(&Value::Binary(bytes.to_vec()), &BINARY).and_then(|json| json::string(&json))
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    match value_json::from_json(&text.into(), &BINARY).map_err(|error| json::locate(error, "/key-metadata"))? {
        Value::Binary(bytes) => Ok(bytes),
        _ => Err(Error::corrupt("/key-metadata", "expected hexadecimal digits")),
    }
}
