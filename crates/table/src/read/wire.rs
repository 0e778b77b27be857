//! Tasks as bytes, for workers on other machines: one JSON document that names everything it needs but the storage.

use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::avro::codec::{Codec, Compression, Compressor, Decompressor};
use icefield_format::expr::{BoundExpr, Expr};
use icefield_format::types::{NameMapping, PrimitiveType, Schema, Type};
use icefield_format::value::{Value, binary as single};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::task::{FilePart, ReadTask, Wanted};
use crate::error::{Error, Result};
use crate::limits::limits;

/// Version of the form; a reader refuses others.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct TaskForm {
    form: u32,
    schema: Json,
    projection: Json,
    name_mapping: Option<Json>,
    residuals: Vec<Json>,
    parts: Vec<PartForm>,
}

#[derive(Serialize, Deserialize)]
struct PartForm {
    path: String,
    format: String,
    size: u64,
    start: u64,
    length: u64,
    rows: i64,
    /// In their binary form: JSON has no NaN and no infinities.
    identity: Vec<(i32, Option<Vec<u8>>)>,
    residual: usize,
    deletes: usize,
}

/// A document as it travels to another machine: names of columns and folders, which repeat, take little.
pub fn pack(document: &[u8]) -> Result<Vec<u8>> {
    Ok(Compressor::new(Compression { codec: Codec::Zstandard, level: None })?.run(document)?)
}

/// The document that [`pack`] made smaller.
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    let document = Decompressor::new(Codec::Zstandard, &limits()?).run(bytes, 0).map(<[u8]>::to_vec);
    document.map_err(|error| Error::invalid(format!("not a packed document: {error}")))
}

impl ReadTask {
    /// The task as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let wanted = &self.wanted;
        let mut residuals: Vec<Json> = Vec::new();
        let mut places = HashMap::new();
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let residual = part.residual.to_json()?;
            let place = *places.entry(residual.to_string()).or_insert_with(|| {
                residuals.push(residual);
                residuals.len() - 1
            });
            parts.push(PartForm {
                path: part.path.clone(),
                format: part.format.clone(),
                size: part.size,
                start: part.start,
                length: part.length,
                rows: part.record_count,
                identity: identity_out(&wanted.schema, &part.identity)?,
                residual: place,
                deletes: part.deletes,
            });
        }
        let form = TaskForm {
            form: FORM,
            schema: wanted.schema.to_json(),
            projection: wanted.projection.to_json(),
            name_mapping: wanted.name_mapping.as_ref().map(|mapping| mapping.to_json()),
            residuals,
            parts,
        };
        serde_json::to_vec(&form).map_err(|error| Error::Internal(error.to_string()))
    }

    /// The task that [`ReadTask::to_bytes`] made into bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let form: TaskForm =
            serde_json::from_slice(bytes).map_err(|error| Error::invalid(format!("not a scan task: {error}")))?;
        if form.form != FORM {
            return Err(Error::invalid(format!("a scan task of form {}, but this icefield reads {FORM}", form.form)));
        }
        let schema = Arc::new(Schema::from_json(&form.schema)?);
        let residuals = form.residuals.iter().map(|json| bind(json, &schema)).collect::<Result<Vec<_>>>()?;
        let name_mapping = form.name_mapping.as_ref().map(NameMapping::from_json).transpose()?.map(Arc::new);
        let parts = form.parts.into_iter().map(|part| part_in(part, &schema, &residuals));
        let parts = parts.collect::<Result<_>>()?;
        let projection = Arc::new(Schema::from_json(&form.projection)?);
        Ok(Self { wanted: Arc::new(Wanted { schema, projection, name_mapping }), parts })
    }
}

/// Residuals are written bound: the names are those of the schema, in some case, and the literals have the columns' types.
fn bind(json: &Json, schema: &Schema) -> Result<BoundExpr> {
    let expr = Expr::from_json_typed(json, schema)?;
    Ok(expr.bind(schema, true).or_else(|_| expr.bind(schema, false))?)
}

/// Values of columns that the schema has; of others nobody asks.
fn identity_out(schema: &Schema, identity: &[(i32, Option<Value>)]) -> Result<Vec<(i32, Option<Vec<u8>>)>> {
    let known = identity.iter().filter_map(|(id, value)| Some((*id, value, schema.find_field(*id)?)));
    known
        .map(|(id, value, field)| {
            let ty = primitive(&field.ty)?;
            Ok((id, value.as_ref().map(|value| single::to_bytes(value, ty)).transpose()?))
        })
        .collect()
}

fn primitive(ty: &Type) -> Result<&PrimitiveType> {
    match ty {
        Type::Primitive(ty) => Ok(ty),
        other => Err(Error::invalid(format!("a partition value of the type {other}"))),
    }
}

fn part_in(part: PartForm, schema: &Schema, residuals: &[BoundExpr]) -> Result<FilePart> {
    let identity = part.identity.into_iter().map(|(id, value)| {
        let field = schema.find_field(id);
        let field =
            field.ok_or_else(|| Error::invalid(format!("a scan task with a value of field {id}, which it lacks")))?;
        let ty = primitive(&field.ty)?;
        Ok((id, value.map(|value| single::from_bytes(&value, ty)).transpose()?))
    });
    let residual = residuals.get(part.residual).ok_or_else(|| Error::invalid("a scan task without its residual"))?;
    Ok(FilePart {
        path: part.path,
        format: part.format,
        size: part.size,
        start: part.start,
        length: part.length,
        record_count: part.rows,
        identity: identity.collect::<Result<_>>()?,
        residual: residual.clone(),
        deletes: part.deletes,
    })
}
