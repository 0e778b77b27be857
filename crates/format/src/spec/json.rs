//! JSON form of partition specs and sort orders (Appendix C, "Partition Specs", "Sort Orders").

use serde_json::Value as Json;

use super::{FIRST_PARTITION_FIELD_ID, NullOrder, PartitionField, PartitionSpec, SortDirection, SortField, SortOrder};
use crate::json::{self, Object, Writer};
use crate::transform::Transform;
use crate::{Error, Result};

impl PartitionSpec {
    /// Reads the JSON form of any version. [`Self::check`] checks the fields against a schema.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a partition spec")?;
        Ok(Self {
            spec_id: object.field("spec-id", json::int)?,
            fields: object.field("fields", read_partition_fields)?,
        })
    }

    /// Reads a list of fields without a spec, as in `partition-spec` of v1 metadata.
    pub fn from_json_fields(spec_id: i32, value: &Json) -> Result<Self> {
        Ok(Self { spec_id, fields: read_partition_fields(value)? })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        Writer::default().put("spec-id", self.spec_id).put("fields", self.to_json_fields()).finish()
    }

    /// Writes the list of fields without the spec.
    pub fn to_json_fields(&self) -> Json {
        self.fields.iter().map(PartitionField::to_json).collect()
    }
}

/// Reads the fields. Old v1 writers wrote no ids: then all fields are numbered from 1000.
fn read_partition_fields(value: &Json) -> Result<Vec<PartitionField>> {
    let mut fields = json::list(value, PartitionField::from_json)?;
    let with_id = fields.iter().filter(|(_, id)| id.is_some()).count();
    if with_id != 0 && with_id != fields.len() {
        let message = format!("{} of {} fields have no field-id", fields.len() - with_id, fields.len());
        return Err(Error::corrupt("", message));
    }
    for (field, id) in
        (FIRST_PARTITION_FIELD_ID..).zip(&mut fields).map(|(next, (field, id))| (field, id.unwrap_or(next)))
    {
        field.field_id = id;
    }
    Ok(fields.into_iter().map(|(field, _)| field).collect())
}

impl PartitionField {
    /// Reads a field, and its id if it has one.
    fn from_json(value: &Json) -> Result<(Self, Option<i32>)> {
        let object = Object::new(value, "a partition field")?;
        let field = Self {
            name: object.field("name", json::string)?,
            transform: object.field("transform", read_transform)?,
            source_ids: read_source_ids(object)?,
            field_id: 0,
        };
        Ok((field, object.nullable("field-id", json::int)?))
    }

    fn to_json(&self) -> Json {
        let mut object = Writer::default();
        object.put("name", self.name.as_str()).put("transform", self.transform.to_string());
        write_source_ids(&mut object, &self.source_ids);
        object.put("field-id", self.field_id).finish()
    }
}

impl SortOrder {
    /// Reads the JSON form. [`Self::check`] checks the fields against a schema.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a sort order")?;
        let order = Self {
            order_id: object.field("order-id", json::int)?,
            fields: object.field("fields", |value| json::list(value, SortField::from_json))?,
        };
        order.check_id().map_err(|error| json::locate(error, "/order-id"))?;
        Ok(order)
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let fields: Json = self.fields.iter().map(SortField::to_json).collect();
        Writer::default().put("order-id", self.order_id).put("fields", fields).finish()
    }
}

impl SortField {
    fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a sort field")?;
        Ok(Self {
            transform: object.field("transform", read_transform)?,
            source_ids: read_source_ids(object)?,
            direction: object.field("direction", read_direction)?,
            null_order: object.field("null-order", read_null_order)?,
        })
    }

    fn to_json(&self) -> Json {
        let mut object = Writer::default();
        object.put("transform", self.transform.to_string());
        write_source_ids(&mut object, &self.source_ids);
        object.put("direction", self.direction.as_str()).put("null-order", self.null_order.as_str()).finish()
    }
}

fn read_transform(value: &Json) -> Result<Transform> {
    Transform::parse(&json::string(value)?)
}

/// Reads `source-id`, or `source-ids`, which v3 uses for transforms of several columns. If both are present,
/// `source-id` is used, as before v3.
fn read_source_ids(object: Object<'_>) -> Result<Vec<i32>> {
    if object.get("source-id").is_some() || object.get("source-ids").is_none() {
        return Ok(vec![object.field("source-id", json::int)?]);
    }
    object.field("source-ids", |value| match json::list(value, json::int)? {
        ids if ids.is_empty() => Err(Error::corrupt("", "a field has at least one source")),
        ids => Ok(ids),
    })
}

fn write_source_ids(object: &mut Writer, source_ids: &[i32]) {
    match source_ids {
        [source_id] => object.put("source-id", *source_id),
        several => object.put("source-ids", several.to_vec()),
    };
}

fn read_direction(value: &Json) -> Result<SortDirection> {
    match json::string(value)?.to_lowercase().as_str() {
        "asc" => Ok(SortDirection::Ascending),
        "desc" => Ok(SortDirection::Descending),
        other => Err(Error::corrupt("", format!("neither asc nor desc: {other:?}"))),
    }
}

fn read_null_order(value: &Json) -> Result<NullOrder> {
    match json::string(value)?.to_lowercase().as_str() {
        "nulls-first" => Ok(NullOrder::First),
        "nulls-last" => Ok(NullOrder::Last),
        other => Err(Error::corrupt("", format!("neither nulls-first nor nulls-last: {other:?}"))),
    }
}

impl SortDirection {
    /// Name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

impl NullOrder {
    /// Name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "nulls-first",
            Self::Last => "nulls-last",
        }
    }
}
