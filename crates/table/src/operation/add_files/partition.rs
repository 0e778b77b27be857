//! Determines the partition of all rows in a file: from the caller, the path, the footer, or the rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Scalar};
use arrow_ord::cmp::not_distinct;
use arrow_schema::Fields;
use icefield_format::expr::Expression;
use icefield_format::manifest::FileFormat;
use icefield_format::metadata::TableMetadata;
use icefield_format::spec::path::{from_folder_name, split_folder};
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::arrow::field_id;
use icefield_format::types::{NameMapping, PrimitiveType, Schema, Type};
use icefield_format::value::{Value, binary};

use super::options::AddFilesOptions;
use crate::arrow::cells::{StoredColumn, value_at};
use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::plan::deletes::delete_parts::DeleteParts;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::{FilePart, FilePartition};
use crate::read::task;
use crate::storage::Storage;

/// The partition of a file.
pub(super) struct PartitionOf {
    /// A value for each field of the spec.
    pub(super) tuple: Vec<Option<Value>>,
    /// Values of identity fields, by the id of their source column.
    pub(super) identities: HashMap<i32, Option<Value>>,
}

/// Determines the partitions of files.
pub(super) struct Partitioner<'a> {
    storage: &'a Storage,
    schema: &'a Arc<Schema>,
    spec: &'a PartitionSpec,
    mapping: Arc<NameMapping>,
    fields: Vec<SpecField<'a>>,
    options: &'a AddFilesOptions,
}

/// A field of the partition spec with its types.
struct SpecField<'a> {
    field: &'a PartitionField,
    /// Id and type of the source column; `None` for a void transform.
    source: Option<(i32, PrimitiveType)>,
    result: PrimitiveType,
}

/// A file whose partition is being determined.
struct PartitionedFile<'a> {
    path: &'a str,
    format: FileFormat,
    size: u64,
    metrics: &'a FileMetrics,
    columns: &'a Fields,
}

/// What is known about the results of a transform over a file.
enum Proven {
    One(Option<Value>),
    Several,
    Nothing,
}

impl<'a> Partitioner<'a> {
    pub(super) fn new(
        storage: &'a Storage,
        metadata: &'a TableMetadata,
        mapping: &NameMapping,
        options: &'a AddFilesOptions,
    ) -> Result<Self> {
        let (schema, spec) = (metadata.current_schema(), metadata.default_spec());
        let fields = spec.fields.iter().map(|field| SpecField::new(field, schema)).collect::<Result<Vec<_>>>()?;
        let mapping = Arc::new(mapping.clone());
        Ok(Self { storage, schema, spec, mapping, fields, options })
    }

    /// Determines the partition of a file. `metrics` are all metrics of its footer; `columns` are its columns with
    /// their field ids.
    pub(super) fn of(
        &self,
        path: &str,
        format: FileFormat,
        size: u64,
        metrics: &FileMetrics,
        columns: &Fields,
    ) -> Result<PartitionOf> {
        let file = PartitionedFile { path, format, size, metrics, columns };
        self.check_given(path)?;
        let mut found = PartitionOf { tuple: Vec::with_capacity(self.fields.len()), identities: HashMap::new() };
        for field in &self.fields {
            let value = self.value(field, &file)?;
            if let (Transform::Identity, Some((id, _))) = (&field.field.transform, &field.source) {
                found.identities.insert(*id, value.clone());
            }
            found.tuple.push(value);
        }
        Ok(found)
    }

    /// Rejects partition values for fields that the spec does not have.
    fn check_given(&self, path: &str) -> Result<()> {
        let given = self.options.partitions.get(path).into_iter().flat_map(|values| values.keys());
        let known = |name: &&String| self.spec.fields.iter().any(|field| field.name == **name);
        match given.into_iter().find(|name| !known(name)) {
            Some(name) => Err(Error::invalid(format!("{path}: the partition spec has no field {name}"))),
            None => Ok(()),
        }
    }

    fn value(&self, field: &SpecField<'_>, file: &PartitionedFile<'_>) -> Result<Option<Value>> {
        let Some((source, _)) = &field.source else { return Ok(None) };
        let name = &field.field.name;
        let given = self.options.partitions.get(file.path).and_then(|values| values.get(name)).cloned();
        let said = match given {
            Some(value) => Some(value),
            None => field.in_path(file.path)?,
        };
        let is_stored = has_column(file.columns, *source);
        let proven = match field.proven(file.metrics)? {
            Proven::Nothing if is_stored && (said.is_none() || self.options.read_rows) => self.in_rows(field, file)?,
            proven => proven,
        };
        match (said, proven) {
            (Some(said), Proven::One(proven)) if said != proven => {
                let (said, proven) = (field.text(said.as_ref()), field.text(proven.as_ref()));
                Err(Error::invalid(format!(
                    "{}: partition field {name}: it is said to be {said}, and its rows have {proven}",
                    file.path
                )))
            }
            (_, Proven::Several) => Err(Error::invalid(format!(
                "{}: partition field {name}: its rows belong to several partitions; append them instead",
                file.path
            ))),
            (Some(value), _) | (None, Proven::One(value)) => Ok(value),
            (None, Proven::Nothing) => Err(Error::invalid(format!(
                "{}: partition field {name}: neither its path ({name}=...) nor its rows tell its value; give it",
                file.path
            ))),
        }
    }

    /// Determines the partition value from the rows.
    fn in_rows(&self, field: &SpecField<'_>, file: &PartitionedFile<'_>) -> Result<Proven> {
        let Some((source, _)) = &field.source else { return Ok(Proven::Nothing) };
        let projection = Arc::new(self.schema.select_ids(&[*source].into())?);
        let column = StoredColumn::find(&projection, *source)?;
        let wanted =
            Wanted { name_mapping: Some(self.mapping.clone()), ..Wanted::new(self.schema.clone(), projection) };
        let part = FilePart {
            path: file.path.to_owned(),
            format: file.format.name().to_owned(),
            size: file.size,
            key_metadata: None,
            start: 0,
            length: file.size,
            record_count: file.metrics.record_count,
            partition: FilePartition::unpartitioned(),
            sequence_number: None,
            first_row_id: None,
            deletes: DeleteParts::default(),
            residual: Expression::True,
            change: None,
            deleted_by: DeleteParts::default(),
        };
        let task = ReadTask { wanted: Arc::new(wanted), parts: vec![part] };
        let mut first: Option<ArrayRef> = None;
        for batch in task::rows(task, self.storage, None)? {
            let results = field.field.transform.kernel(&column.of(&batch?)?)?;
            if results.is_empty() {
                continue;
            }
            let one = first.get_or_insert_with(|| results.slice(0, 1));
            let same = not_distinct(&results, &Scalar::new(one.clone()));
            let same = same.map_err(|error| Error::Internal(format!("comparing partition values: {error}")))?;
            if same.false_count() > 0 {
                return Ok(Proven::Several);
            }
        }
        Ok(match first {
            Some(one) => Proven::One(value_at(&one, &field.result, 0)?),
            None => Proven::Nothing,
        })
    }
}

impl<'a> SpecField<'a> {
    fn new(field: &'a PartitionField, schema: &Schema) -> Result<Self> {
        let name = &field.name;
        if let Transform::Unknown(text) = &field.transform {
            return Err(Error::unsupported(format!("writing through the partition transform {text} of {name}")));
        }
        if field.transform.is_void() {
            return Ok(Self { field, source: None, result: PrimitiveType::Int });
        }
        let [id] = field.source_ids.as_slice() else {
            return Err(Error::unsupported(format!("writing through the multi-argument transform of {name}")));
        };
        let source = schema.find_type(*id).and_then(Type::as_primitive);
        let result = source.and_then(|source| field.transform.result_type(&source.clone().into()));
        let (Some(source), Some(Type::Primitive(result))) = (source, result) else {
            return Err(Error::invalid(format!("partition field {name}: its source column {id} is not in the schema")));
        };
        Ok(Self { field, source: Some((*id, source.clone())), result })
    }

    fn text(&self, value: Option<&Value>) -> String {
        let int = PrimitiveType::Int;
        self.field.transform.to_human_string(value, self.source.as_ref().map_or(&int, |(_, source)| source))
    }

    /// The value from the last folder of a path that is named `name=value`.
    fn in_path(&self, path: &str) -> Result<Option<Option<Value>>> {
        let Some((_, source)) = &self.source else { return Ok(None) };
        let (folders, _) = path.rsplit_once('/').unwrap_or_default();
        let named = folders.split('/').rev().find_map(|folder| {
            // The name may be escaped, like the value.
            let (name, value) = split_folder(folder).ok()??;
            (name == self.field.name).then_some(value)
        });
        let Some(value) = named else { return Ok(None) };
        from_folder_name(value, &self.field.transform, source)
            .map(Some)
            .map_err(|error| Error::invalid(format!("{path}: partition field {}: {error}", self.field.name)))
    }

    /// What the footer proves: one value if both bounds transform to it and there are no nulls, or if all values are
    /// null.
    fn proven(&self, metrics: &FileMetrics) -> Result<Proven> {
        let Some((id, source)) = &self.source else { return Ok(Proven::Nothing) };
        let (Some(values), Some(nulls)) = (metrics.value_counts.get(id), metrics.null_value_counts.get(id)) else {
            return Ok(Proven::Nothing);
        };
        if *nulls > 0 {
            return Ok(if nulls == values { Proven::One(None) } else { Proven::Several });
        }
        let is_float = matches!(source, PrimitiveType::Float | PrimitiveType::Double);
        if is_float && metrics.nan_value_counts.get(id) != Some(&0) {
            return Ok(Proven::Nothing);
        }
        let (Some(lower), Some(upper)) = (metrics.lower_bounds.get(id), metrics.upper_bounds.get(id)) else {
            return Ok(Proven::Nothing);
        };
        if lower != upper && !self.field.transform.preserves_order() {
            return Ok(Proven::Nothing);
        }
        let ty = source.clone().into();
        let result = |bound: &[u8]| self.field.transform.apply(&ty, Some(&binary::from_bytes(bound, source)?));
        let (first, last) = (result(lower)?, result(upper)?);
        Ok(match (first == last, source) {
            (true, _) => Proven::One(first),
            // Bounds of these types may be truncated, so they can lie outside the values.
            (false, PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_) | PrimitiveType::Uuid) => {
                Proven::Nothing
            }
            // The bounds of zeros are -0.0 and +0.0 whichever sign occurs, so different results prove nothing.
            (false, _) if is_float => Proven::Nothing,
            (false, _) => Proven::Several,
        })
    }
}

/// Whether a column, or a field nested in structs, has this field id.
fn has_column(columns: &Fields, id: i32) -> bool {
    columns.iter().any(|column| {
        field_id(column) == Some(id)
            || matches!(column.data_type(), arrow_schema::DataType::Struct(inner) if has_column(inner, id))
    })
}
