//! Serializes tasks for workers on other machines: one JSON document with everything except the storage.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use icefield_format::avro::codec::{Codec, Compression, Compressor, Decompressor};
use icefield_format::encryption::HiddenBytes;
use icefield_format::expr::{BoundExpr, Expr, Extract};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::{Field, NameMapping, PrimitiveType, Schema, StructType, Type};
use icefield_format::value::variant::Path;
use icefield_format::value::{Value, binary as single};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::limits::limits;
use crate::plan::changes::{Change, ChangeType};
use crate::plan::deletes::DeleteKind;
use crate::plan::deletes::delete_parts::DeleteParts;
use crate::plan::deletes::links::Run;
use crate::plan::projection::variant_paths::VariantPath;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::{DeleteList, DeletePart, FilePart, FilePartition, PlannedSpec};

/// Version of the format; a reader refuses other versions.
const FORM: u32 = 8;

/// Data shared by several parts is stored once, and parts refer to it by index.
#[derive(Serialize, Deserialize)]
struct TaskForm {
    form: u32,
    schema: Json,
    projection: Json,
    name_mapping: Option<Json>,
    /// Ids of fields of `_partition`, each with the id of its partition field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    partition_fields: Vec<(i32, i32)>,
    /// Columns that are values inside variants: id, variant column, path and type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    variant_paths: Vec<(i32, i32, String, String)>,
    only_live_rows: bool,
    residuals: Vec<Json>,
    specs: Vec<SpecForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deletes: Vec<DeleteForm>,
    /// Schemas of one column each; equality deletes refer to them by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key_columns: Vec<Json>,
    parts: Vec<PartForm>,
}

#[derive(Serialize, Deserialize)]
struct SpecForm {
    spec: Json,
    /// The types of the tuple's values.
    types: Vec<Json>,
}

#[derive(Serialize, Deserialize)]
struct DeleteForm {
    kind: DeleteKind,
    path: String,
    format: String,
    size: u64,
    rows: i64,
    sequence_number: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    equality_ids: Vec<i32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blob: Option<(i64, i64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_metadata: Option<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct PartForm {
    path: String,
    format: String,
    size: u64,
    /// Encryption key metadata: the key of this file, and no other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_metadata: Option<Vec<u8>>,
    start: u64,
    length: u64,
    rows: i64,
    spec: usize,
    /// Binary form, because JSON has no NaN and no infinities.
    tuple: Vec<Option<Vec<u8>>>,
    sequence_number: Option<i64>,
    first_row_id: Option<i64>,
    residual: usize,
    /// Runs of the task's deletes: start and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deletes: Vec<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted_by: Vec<(u32, u32)>,
    /// Type, ordinal and snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<(String, i32, i64)>,
}

/// Compresses a document for transport; repeated names of columns and folders take little space.
pub fn pack(document: &[u8]) -> Result<Vec<u8>> {
    Ok(Compressor::new(Compression { codec: Codec::Zstandard, level: None })?.run(document)?)
}

/// Decompresses a document from [`pack`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    let document = Decompressor::new(Codec::Zstandard, &limits()?).run(bytes, 0).map(<[u8]>::to_vec);
    document.map_err(|error| Error::invalid(format!("not a packed document: {error}")))
}

/// Items that parts refer to by index, each stored once.
struct Interned<T> {
    items: Vec<T>,
    places: HashMap<String, usize>,
}

impl<T> Interned<T> {
    fn new() -> Self {
        Self { items: Vec::new(), places: HashMap::new() }
    }

    fn place(&mut self, key: String, make: impl FnOnce() -> Result<T>) -> Result<usize> {
        Ok(match self.places.get(&key) {
            Some(place) => *place,
            None => {
                self.items.push(make()?);
                let place = self.items.len() - 1;
                self.places.insert(key, place);
                place
            }
        })
    }
}

/// The delete files of a task, each once, in the order of the lists that parts share, so that the deletes of a part
/// are runs.
struct SharedDeletes {
    items: Vec<DeleteForm>,
    columns: Interned<Json>,
    /// For each list, by its address, the indices of its files among the items.
    of_list: HashMap<usize, Vec<Option<u32>>>,
    /// Whether a list may contain a file twice.
    is_repeated: bool,
}

impl SharedDeletes {
    fn of(parts: &[FilePart]) -> Result<Self> {
        let mut needed = HashMap::new();
        let mut lists = Vec::new();
        for deletes in parts.iter().flat_map(|part| [&part.deletes, &part.deleted_by]) {
            let (list, runs) = deletes.shared();
            let needed = needed.entry(Arc::as_ptr(list).addr()).or_insert_with(|| {
                lists.push(list);
                vec![false; list.len()]
            });
            for run in runs {
                if let Some(of_run) = needed.get_mut(run.start as usize..run.end as usize) {
                    of_run.fill(true);
                }
            }
        }
        let mut own = Self { items: Vec::new(), columns: Interned::new(), of_list: HashMap::new(), is_repeated: false };
        // By path and offset, because a Puffin file has many vectors.
        let mut known = HashMap::<_, u32>::new();
        for list in lists {
            let address = Arc::as_ptr(list).addr();
            let mut places = Vec::with_capacity(list.len());
            for (delete, needed) in list.iter().zip(needed.remove(&address).unwrap_or_default()) {
                let Some(delete) = delete.as_ref().filter(|_| needed) else {
                    places.push(None);
                    continue;
                };
                let next =
                    u32::try_from(own.items.len()).map_err(|_| Error::unsupported("more than 2^32 delete files"))?;
                let place = *known.entry((&*delete.path, delete.blob)).or_insert(next);
                match place == next {
                    true => own.items.push(DeleteForm::of(delete, &mut own.columns)?),
                    false => own.is_repeated = true,
                }
                places.push(Some(place));
            }
            own.of_list.insert(address, places);
        }
        Ok(own)
    }

    fn runs(&self, deletes: &DeleteParts) -> Vec<(u32, u32)> {
        let (list, runs) = deletes.shared();
        let places = self.of_list.get(&Arc::as_ptr(list).addr()).map(Vec::as_slice).unwrap_or_default();
        let (mut found, mut known) = (Vec::with_capacity(runs.len()), HashSet::new());
        for place in runs.iter().flat_map(|run| run.of(places)).flatten() {
            if self.is_repeated && !known.insert(place) {
                continue;
            }
            Run { start: *place, end: place + 1 }.add_to(&mut found);
        }
        found.into_iter().map(|run| (run.start, run.end)).collect()
    }
}

/// Serializes a task.
pub fn to_bytes(task: &ReadTask) -> Result<Vec<u8>> {
    let wanted = &task.wanted;
    let (mut residuals, mut specs) = (Interned::new(), Interned::new());
    let deletes = SharedDeletes::of(&task.parts)?;
    let mut parts = Vec::with_capacity(task.parts.len());
    // Mostly those of the part before, whose place needs no text to be found by.
    let mut before: Option<(&FilePart, usize, usize)> = None;
    for part in &task.parts {
        let residual = match before {
            Some((known, place, _)) if known.residual == part.residual => place,
            _ => {
                let residual = part.residual.to_json()?;
                residuals.place(residual.to_string(), || Ok(residual))?
            }
        };
        let spec = match before {
            Some((known, _, place)) if Arc::ptr_eq(&known.partition.spec, &part.partition.spec) => place,
            _ => {
                let spec = SpecForm::of(&part.partition.spec);
                specs.place(format!("{} {:?}", spec.spec, spec.types), || Ok(spec))?
            }
        };
        before = Some((part, residual, spec));
        parts.push(PartForm {
            path: part.path.clone(),
            format: part.format.clone(),
            size: part.size,
            key_metadata: part.key_metadata.as_ref().map(|key| key.0.clone()),
            start: part.start,
            length: part.length,
            rows: part.record_count,
            spec,
            tuple: tuple_out(&part.partition)?,
            sequence_number: part.sequence_number,
            first_row_id: part.first_row_id,
            residual,
            deletes: deletes.runs(&part.deletes),
            deleted_by: deletes.runs(&part.deleted_by),
            change: part.change.map(|one| (one.change_type.as_str().to_owned(), one.ordinal, one.snapshot_id)),
        });
    }
    let variant_paths = wanted.variant_paths.iter().map(|(id, path)| {
        let VariantPath { column, extract, .. } = path;
        (*id, *column, extract.path().to_string(), extract.ty().to_string())
    });
    let form = TaskForm {
        form: FORM,
        schema: wanted.schema.to_json(),
        projection: wanted.projection.to_json(),
        name_mapping: wanted.name_mapping.as_ref().map(|mapping| mapping.to_json()),
        partition_fields: wanted.partition_fields.iter().map(|(id, field)| (*id, *field)).collect(),
        variant_paths: variant_paths.collect(),
        only_live_rows: wanted.only_live_rows,
        residuals: residuals.items,
        specs: specs.items,
        deletes: deletes.items,
        key_columns: deletes.columns.items,
        parts,
    };
    serde_json::to_vec(&form).map_err(|error| Error::Internal(error.to_string()))
}

/// Deserializes a task from [`to_bytes`].
pub fn from_bytes(bytes: &[u8]) -> Result<ReadTask> {
    let wrong = |error| Error::invalid(format!("not a scan task: {error}"));
    // Read the version first; it decides what else to expect.
    let Version { form } = serde_json::from_slice(bytes).map_err(wrong)?;
    if form != FORM {
        return Err(Error::invalid(format!(
            "not a scan task that can be read here: expected version {FORM}, got {form}"
        )));
    }
    let form: TaskForm = serde_json::from_slice(bytes).map_err(wrong)?;
    let schema = Arc::new(Schema::from_json(&form.schema)?);
    let residuals = form.residuals.iter().map(|json| bind(json, &schema)).collect::<Result<Vec<_>>>()?;
    let name_mapping = form.name_mapping.as_ref().map(NameMapping::from_json).transpose()?.map(Arc::new);
    let shared = SharedParts {
        residuals,
        specs: form.specs.iter().map(|spec| spec.read().map(Arc::new)).collect::<Result<_>>()?,
        deletes: deletes(form.deletes, &form.key_columns)?,
    };
    let parts = form.parts.into_iter().map(|part| shared.part(part)).collect::<Result<_>>()?;
    let projection = Arc::new(Schema::from_json(&form.projection)?);
    let partition_fields = form.partition_fields.into_iter().collect();
    let variant_path = |(id, column, path, ty): &(i32, i32, String, String)| {
        let extract = Extract::new(Path::parse(path)?, PrimitiveType::parse(ty)?)?;
        Ok((*id, VariantPath::new(&schema, *column, extract)?))
    };
    let variant_paths = form.variant_paths.iter().map(variant_path).collect::<Result<_>>()?;
    let only_live_rows = form.only_live_rows;
    let wanted = Wanted { schema, projection, name_mapping, partition_fields, variant_paths, only_live_rows };
    Ok(ReadTask { wanted: Arc::new(wanted), parts })
}

#[derive(Deserialize)]
struct Version {
    form: u32,
}

/// Binds a stored residual: names are those of the schema, in any case, and literals have the columns' types.
fn bind(json: &Json, schema: &Schema) -> Result<BoundExpr> {
    let expr = Expr::from_json_typed(json, schema)?;
    Ok(expr.bind(schema, true).or_else(|_| expr.bind(schema, false))?)
}

impl SpecForm {
    fn of(spec: &PlannedSpec) -> Self {
        let types = spec.partition_type.fields.iter().map(|field| field.ty.to_json());
        Self { spec: spec.spec.to_json(), types: types.collect() }
    }

    fn read(&self) -> Result<PlannedSpec> {
        let spec = PartitionSpec::from_json(&self.spec)?;
        if spec.fields.len() != self.types.len() {
            return Err(Error::invalid("not a scan task: a partition spec with more or fewer types than fields"));
        }
        let fields = spec.fields.iter().zip(&self.types);
        let fields = fields.map(|(field, ty)| Ok(Field::optional(field.field_id, &*field.name, Type::from_json(ty)?)));
        let partition_type = StructType::new(fields.collect::<Result<_>>()?);
        Ok(PlannedSpec { spec: Arc::new(spec), partition_type })
    }
}

fn deletes(forms: Vec<DeleteForm>, columns: &[Json]) -> Result<DeleteList> {
    let column = |json| Ok(Schema::from_json(json)?.fields().to_vec());
    let columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    forms.into_iter().map(|form| Ok(Some(Arc::new(form.read(&columns)?)))).collect()
}

impl DeleteForm {
    fn of(delete: &DeletePart, columns: &mut Interned<Json>) -> Result<Self> {
        let key = delete.key.iter().map(|field| {
            let schema = Schema::new(0, vec![field.clone()])?.to_json();
            columns.place(schema.to_string(), || Ok(schema))
        });
        Ok(Self {
            key: key.collect::<Result<_>>()?,
            kind: delete.kind,
            path: delete.path.clone(),
            format: delete.format.clone(),
            size: delete.size,
            rows: delete.record_count,
            sequence_number: delete.sequence_number,
            equality_ids: delete.equality_ids.clone(),
            data_file: delete.referenced_data_file.clone(),
            blob: delete.blob,
            key_metadata: delete.key_metadata.as_ref().map(|key| key.0.clone()),
        })
    }

    fn read(self, columns: &[Vec<Field>]) -> Result<DeletePart> {
        let missing = || Error::invalid("a scan task without a column of its deletes");
        let mut key = Vec::with_capacity(self.key.len().min(columns.len()));
        for place in &self.key {
            key.extend(columns.get(*place).ok_or_else(missing)?.iter().cloned());
        }
        Ok(DeletePart {
            key: key.into(),
            kind: self.kind,
            path: self.path,
            format: self.format,
            size: self.size,
            record_count: self.rows,
            sequence_number: self.sequence_number,
            equality_ids: self.equality_ids,
            referenced_data_file: self.data_file,
            blob: self.blob,
            key_metadata: self.key_metadata.map(HiddenBytes),
        })
    }
}

fn tuple_out(partition: &FilePartition) -> Result<Vec<Option<Vec<u8>>>> {
    let fields = partition.spec.partition_type.fields.iter().zip(&partition.tuple);
    let bytes = |(field, value): (&Field, &Option<Value>)| {
        let ty = primitive(&field.ty)?;
        Ok(value.as_ref().map(|value| single::to_bytes(value, ty)).transpose()?)
    };
    fields.map(bytes).collect()
}

fn primitive(ty: &Type) -> Result<&PrimitiveType> {
    match ty {
        Type::Primitive(ty) => Ok(ty),
        other => Err(Error::invalid(format!("a partition value of the type {other}"))),
    }
}

/// What the parts of a task refer to by index.
struct SharedParts {
    residuals: Vec<BoundExpr>,
    specs: Vec<Arc<PlannedSpec>>,
    deletes: DeleteList,
}

impl SharedParts {
    /// The deletes of a part. No file may be in two of its runs, so a hostile document cannot list more files than
    /// there are.
    fn deletes(&self, runs: &[(u32, u32)]) -> Result<DeleteParts> {
        if runs.is_empty() {
            return Ok(DeleteParts::default());
        }
        let runs: Arc<[Run]> = runs.iter().map(|(start, end)| Run { start: *start, end: *end }).collect();
        let len = |run: &Run| match run.end as usize <= self.deletes.len() && run.start < run.end {
            true => Ok(run.len()),
            false => Err(Error::invalid("not a scan task: its delete file is missing")),
        };
        if runs.iter().map(len).sum::<Result<usize>>()? > self.deletes.len() {
            return Err(Error::invalid("not a scan task: the same delete file applies to a part twice"));
        }
        Ok(DeleteParts::of_list(self.deletes.clone(), runs))
    }

    fn part(&self, part: PartForm) -> Result<FilePart> {
        let missing = |what: &str| Error::invalid(format!("not a scan task: its {what} is missing"));
        let spec = self.specs.get(part.spec).ok_or_else(|| missing("partition spec"))?;
        if part.tuple.len() != spec.partition_type.fields.len() {
            return Err(missing("partition values"));
        }
        let values = spec.partition_type.fields.iter().zip(part.tuple).map(|(field, value)| {
            let ty = primitive(&field.ty)?;
            Ok(value.map(|value| single::from_bytes(&value, ty)).transpose()?)
        });
        let change = |(kind, ordinal, snapshot_id): (String, i32, i64)| {
            Ok::<_, Error>(Change { change_type: ChangeType::parse(&kind)?, ordinal, snapshot_id })
        };
        Ok(FilePart {
            path: part.path,
            format: part.format,
            size: part.size,
            key_metadata: part.key_metadata.map(HiddenBytes),
            start: part.start,
            length: part.length,
            record_count: part.rows,
            partition: FilePartition { spec: spec.clone(), tuple: values.collect::<Result<_>>()? },
            sequence_number: part.sequence_number,
            first_row_id: part.first_row_id,
            deletes: self.deletes(&part.deletes)?,
            deleted_by: self.deletes(&part.deleted_by)?,
            residual: self.residuals.get(part.residual).ok_or_else(|| missing("residual"))?.clone(),
            change: part.change.map(change).transpose()?,
        })
    }
}
