//! Routes rows to partitions ("Partitioning"): transforms a batch by kernel and groups rows by partition tuple.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use hashbrown::HashMap;

use icefield_format::spec::PartitionSpec;
use icefield_format::spec::path::partition_path;
use icefield_format::transform::Transform;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::Value;

use super::fault::{Fault, Wrong};
use crate::arrow::cells::{StoredColumn, value_at};
use crate::error::{Error, Result};

/// A partition tuple, in the order of the spec.
pub(in crate::write) type Tuple = Vec<Option<Value>>;

/// Rows of a batch that go to one partition.
#[derive(Debug)]
pub struct Share {
    /// Number of the partition, in order of first appearance.
    pub partition: usize,
    /// The rows, ascending.
    pub rows: Vec<u32>,
}

/// Finds the partition of each row.
#[derive(Debug)]
pub struct Router {
    spec: Arc<PartitionSpec>,
    fields: Vec<RoutedField>,
    keys: TupleKeys,
    tuples: Vec<Tuple>,
}

#[derive(Debug)]
struct RoutedField {
    /// `None` if the transform is `void`.
    source: Option<StoredColumn>,
    transform: Transform,
    source_type: PrimitiveType,
    result_type: PrimitiveType,
}

/// Tuples in a form that hashes fast.
#[derive(Debug)]
enum TupleKeys {
    /// Not chosen before the first batch.
    Unknown,
    /// All partition values are narrow: they are packed side by side.
    Packed(HashMap<u128, u32>),
    /// Arrow's row format.
    Rows(Box<RowConverter>, HashMap<Vec<u8>, u32>),
}

impl Router {
    /// A router for batches of the stored form of `schema`.
    pub fn new(spec: Arc<PartitionSpec>, schema: &Schema) -> Result<Self> {
        let fields = spec.fields.iter().map(|field| {
            let name = &field.name;
            if let Transform::Unknown(text) = &field.transform {
                return Err(Error::unsupported(format!("writing through the partition transform {text} of {name}")));
            }
            if field.transform.is_void() {
                let source_type = PrimitiveType::Int;
                return Ok(RoutedField {
                    source: None,
                    transform: Transform::Void,
                    result_type: source_type.clone(),
                    source_type,
                });
            }
            let [source_id] = field.source_ids.as_slice() else {
                return Err(Error::unsupported(format!("writing through the multi-argument transform of {name}")));
            };
            let found = schema.find_type(*source_id).and_then(Type::as_primitive);
            let source_type = found.ok_or_else(|| {
                Error::invalid(format!("partition field {name}: its source column {source_id} is not in the schema"))
            })?;
            let result = field.transform.result_type(&source_type.clone().into());
            let Some(Type::Primitive(result_type)) = result else {
                return Err(Error::invalid(format!(
                    "partition field {name}: its transform does not take {source_type}"
                )));
            };
            Ok(RoutedField {
                source: Some(StoredColumn::find(schema, *source_id)?),
                transform: field.transform.clone(),
                source_type: source_type.clone(),
                result_type,
            })
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        Ok(Self { spec, fields, keys: TupleKeys::Unknown, tuples: Vec::new() })
    }

    /// The tuple of a partition.
    pub fn tuple(&self, partition: usize) -> Option<&Tuple> {
        self.tuples.get(partition)
    }

    /// The path of a partition, as in folder names.
    pub fn path(&self, partition: usize) -> Result<String> {
        let sources: Vec<PrimitiveType> = self.fields.iter().map(|field| field.source_type.clone()).collect();
        let tuple = self.tuples.get(partition).map(Vec::as_slice).unwrap_or_default();
        Ok(partition_path(&self.spec, &sources, tuple)?)
    }

    /// The rows of a batch by partition, in order of first appearance.
    pub(super) fn route(&mut self, batch: &RecordBatch) -> Result<Vec<Share>, Fault> {
        let results = self.fields.iter().map(|field| field.apply(batch)).collect::<Result<Vec<_>, Fault>>()?;
        let partitions = self.number(&results, batch.num_rows())?;
        // Count first: each share is allocated at its final size, and a row costs two passes over integers.
        let mut counts = vec![0_usize; self.tuples.len()];
        let mut appearing = Vec::new();
        for partition in &partitions {
            if let Some(count) = counts.get_mut(*partition as usize) {
                if *count == 0 {
                    appearing.push(*partition as usize);
                }
                *count += 1;
            }
        }
        let mut shares: Vec<Share> = Vec::with_capacity(appearing.len());
        let mut places = vec![usize::MAX; self.tuples.len()];
        for partition in appearing {
            let rows = Vec::with_capacity(counts.get(partition).copied().unwrap_or(0));
            if let Some(place) = places.get_mut(partition) {
                *place = shares.len();
            }
            shares.push(Share { partition, rows });
        }
        for (row, partition) in (0_u32..).zip(partitions) {
            let place = places.get(partition as usize).copied().unwrap_or(usize::MAX);
            if let Some(share) = shares.get_mut(place) {
                share.rows.push(row);
            }
        }
        Ok(shares)
    }

    /// The partition number of each row.
    fn number(&mut self, results: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        if matches!(self.keys, TupleKeys::Unknown) {
            self.keys = TupleKeys::for_columns(results)?;
        }
        let (types, tuples) = (&self.fields, &mut self.tuples);
        let mut learn = |row: usize| -> Result<u32> {
            let tuple = results.iter().zip(types).map(|(column, field)| value_at(column, &field.result_type, row));
            let number = u32::try_from(tuples.len()).map_err(|_| Error::unsupported("more than 2^32 partitions"))?;
            tuples.push(tuple.collect::<Result<_>>()?);
            Ok(number)
        };
        let mut numbers = Vec::with_capacity(rows);
        match &mut self.keys {
            TupleKeys::Packed(known) => {
                let mut last: Option<(u128, u32)> = None;
                for (row, key) in pack(results, rows).into_iter().enumerate() {
                    let number = match last {
                        Some((same, number)) if same == key => number,
                        _ => match known.get(&key) {
                            Some(number) => *number,
                            None => *known.entry(key).insert(learn(row)?).get(),
                        },
                    };
                    last = Some((key, number));
                    numbers.push(number);
                }
            }
            TupleKeys::Rows(converter, known) => {
                let keys = converter.convert_columns(results).map_err(|error| Error::Internal(error.to_string()))?;
                for (row, key) in keys.iter().enumerate() {
                    let number = match known.get(key.as_ref()) {
                        Some(number) => *number,
                        None => *known.entry(key.as_ref().to_vec()).insert(learn(row)?).get(),
                    };
                    numbers.push(number);
                }
            }
            TupleKeys::Unknown => {}
        }
        Ok(numbers)
    }
}

impl RoutedField {
    fn apply(&self, batch: &RecordBatch) -> Result<ArrayRef, Fault> {
        let Some(source) = &self.source else {
            return Ok(arrow_array::new_null_array(&DataType::Int32, batch.num_rows()));
        };
        self.transform.kernel(&source.of(batch)?).map_err(|error| match error {
            icefield_format::Error::Value { row, message } => {
                let wrong = Wrong::Value(format!("has no partition: {message}"));
                Fault::Row { column: source.to_string(), row, wrong }
            }
            other => Error::from(other).into(),
        })
    }
}

impl TupleKeys {
    fn for_columns(results: &[ArrayRef]) -> Result<Self> {
        let bits: Option<u32> = results.iter().map(|column| bits(column.data_type())).sum();
        if bits.is_some_and(|bits| bits <= u128::BITS) {
            return Ok(Self::Packed(HashMap::new()));
        }
        let fields = results.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let converter = RowConverter::new(fields).map_err(|error| Error::unsupported(error.to_string()))?;
        Ok(Self::Rows(Box::new(converter), HashMap::new()))
    }
}

/// Bits of a packed value, including one for null.
fn bits(ty: &DataType) -> Option<u32> {
    match ty {
        DataType::Int32 | DataType::Date32 => Some(33),
        DataType::Int64 => Some(65),
        _ => None,
    }
}

fn pack(results: &[ArrayRef], rows: usize) -> Vec<u128> {
    let mut keys = vec![0_u128; rows];
    for column in results {
        let width = bits(column.data_type()).unwrap_or(0);
        let nulls = column.nulls();
        let add = |row: usize, key: &mut u128, value: u128| {
            let value = if nulls.is_some_and(|nulls| nulls.is_null(row)) { 1 } else { value << 1 };
            *key = key.wrapping_shl(width) | value;
        };
        if let Some(values) = column.as_primitive_opt::<Int64Type>() {
            let values = values.values().iter().zip(&mut keys).enumerate();
            values.for_each(|(row, (value, key))| add(row, key, u128::from(value.cast_unsigned())));
            continue;
        }
        let ints = column.as_primitive_opt::<Int32Type>().map(|array| array.values());
        let ints = ints.or_else(|| column.as_primitive_opt::<Date32Type>().map(|array| array.values()));
        let ints = ints.map(|values| &values[..]).unwrap_or_default();
        let values = ints.iter().zip(&mut keys).enumerate();
        values.for_each(|(row, (value, key))| add(row, key, u128::from(value.cast_unsigned())));
    }
    keys
}
