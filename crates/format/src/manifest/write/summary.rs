//! Computes the partition summaries of a manifest ("Manifest Lists", `field_summary`).

use std::cmp::Ordering;

use crate::Result;
use crate::manifest::FieldSummary;
use crate::types::PrimitiveType;
use crate::value::{Value, binary, order, uuid};

/// Collects the summaries, one for each partition field.
#[derive(Debug, Clone)]
pub struct PartitionSummaries {
    fields: Vec<Seen>,
}

/// Values of one field so far.
#[derive(Debug, Clone)]
struct Seen {
    ty: PrimitiveType,
    null: bool,
    nan: bool,
    range: Option<(Value, Value)>,
    /// For uuids, also the range in the order of the Java library.
    signed: Option<(u128, u128)>,
}

impl PartitionSummaries {
    /// Starts without tuples.
    pub fn new(types: impl IntoIterator<Item = PrimitiveType>) -> Self {
        Self {
            fields: types
                .into_iter()
                .map(|ty| Seen { ty, null: false, nan: false, range: None, signed: None })
                .collect(),
        }
    }

    /// Adds a partition tuple.
    pub fn add(&mut self, partition: &[Option<Value>]) {
        self.fields.iter_mut().zip(partition).for_each(|(field, value)| field.add(value.as_ref()));
    }

    /// Returns the summaries for a manifest list, or none at all if the bounds of a uuid field differ between readers:
    /// the Java library orders uuids differently (`value::uuid`), and takes a field without bounds for one without
    /// values.
    pub fn for_list(self) -> Result<Option<Vec<FieldSummary>>> {
        if self.fields.iter().any(Seen::has_two_orders) {
            return Ok(None);
        }
        self.finish().map(Some)
    }

    /// Returns the summaries.
    pub fn finish(self) -> Result<Vec<FieldSummary>> {
        self.fields.into_iter().map(Seen::finish).collect()
    }
}

impl Seen {
    fn add(&mut self, value: Option<&Value>) {
        let value = match value {
            None => {
                self.null = true;
                return;
            }
            Some(Value::Float(number)) if number.is_nan() => {
                self.nan = true;
                return;
            }
            Some(Value::Double(number)) if number.is_nan() => {
                self.nan = true;
                return;
            }
            Some(value) => value,
        };
        if let Value::Uuid(bytes) = value {
            let key = uuid::signed_key(u128::from_be_bytes(*bytes));
            let (least, most) = self.signed.unwrap_or((key, key));
            self.signed = Some((least.min(key), most.max(key)));
        }
        match &mut self.range {
            None => self.range = Some((value.clone(), value.clone())),
            Some((least, _)) if order::compare(&self.ty, value, least) == Ordering::Less => *least = value.clone(),
            Some((_, most)) if order::compare(&self.ty, value, most) == Ordering::Greater => *most = value.clone(),
            Some(_) => {}
        }
    }

    /// Whether the bounds of uuids differ between the two orders.
    fn has_two_orders(&self) -> bool {
        let Some((Value::Uuid(least), Value::Uuid(most))) = &self.range else { return false };
        let key = |bytes: &[u8; 16]| uuid::signed_key(u128::from_be_bytes(*bytes));
        self.signed != Some((key(least), key(most)))
    }

    fn finish(self) -> Result<FieldSummary> {
        let bytes = |value: Option<&Value>| value.map(|value| binary::to_bytes(value, &self.ty)).transpose();
        Ok(FieldSummary {
            contains_null: self.null,
            contains_nan: Some(self.nan),
            lower_bound: bytes(self.range.as_ref().map(|(least, _)| least))?,
            upper_bound: bytes(self.range.as_ref().map(|(_, most)| most))?,
        })
    }
}
