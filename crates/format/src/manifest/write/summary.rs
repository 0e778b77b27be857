//! Summaries of the partition values of a manifest ("Manifest Lists", `field_summary`).

use std::cmp::Ordering;

use crate::Result;
use crate::manifest::FieldSummary;
use crate::types::PrimitiveType;
use crate::value::{Value, binary, order};

/// The summaries in the making, one a partition field.
#[derive(Debug, Clone)]
pub struct PartitionSummaries {
    fields: Vec<Seen>,
}

/// What was seen of one field.
#[derive(Debug, Clone)]
struct Seen {
    ty: PrimitiveType,
    null: bool,
    nan: bool,
    range: Option<(Value, Value)>,
}

impl PartitionSummaries {
    /// Of nothing yet.
    pub fn new(types: impl IntoIterator<Item = PrimitiveType>) -> Self {
        Self { fields: types.into_iter().map(|ty| Seen { ty, null: false, nan: false, range: None }).collect() }
    }

    /// Takes in a partition tuple.
    pub fn add(&mut self, partition: &[Option<Value>]) {
        self.fields.iter_mut().zip(partition).for_each(|(field, value)| field.add(value.as_ref()));
    }

    /// The summaries.
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
        match &mut self.range {
            None => self.range = Some((value.clone(), value.clone())),
            Some((least, _)) if order::compare(&self.ty, value, least) == Ordering::Less => *least = value.clone(),
            Some((_, most)) if order::compare(&self.ty, value, most) == Ordering::Greater => *most = value.clone(),
            Some(_) => {}
        }
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
