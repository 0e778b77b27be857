//! Metrics maps of entries ("column_sizes" to "upper_bounds"), restricted to the fields that a reader needs.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, MapArray, StructArray, UInt32Array};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use arrow_select::take::take;

use crate::avro::skip::skip_keyed_bytes;
use crate::avro::{Cursor, Fault, RecordSchema, Schema, Skip};
use crate::{Error, Result};

use super::builders::{BytesBuilder, offset};
use super::presence::{Presence, reduce};
use super::wanted::FieldIds;

/// A metrics column: for each file, a map from field id to a count or a bound, restricted to the requested fields.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricMap(MapArray);

impl MetricMap {
    /// The Arrow column: `map<int32, int64>` or `map<int32, binary>`.
    pub fn as_array(&self) -> &MapArray {
        &self.0
    }

    /// Returns the counts of one field; null for files without one. Empty if the column holds bounds.
    pub fn counts(&self, id: i32) -> Int64Array {
        let values = self.0.values().as_primitive_opt::<Int64Type>();
        let count = |at: usize| values.map(|values| values.value(at));
        self.places(id).map(|at| at.and_then(count)).collect()
    }

    /// Returns the bounds of one field as stored; null for files without one. All null if the column holds counts.
    pub fn bounds(&self, id: i32) -> BinaryArray {
        let values = self.0.values().as_binary_opt::<i32>();
        let mut out = BinaryBuilder::with_capacity(self.0.len(), 0);
        self.places(id).for_each(|at| out.append_option(at.and_then(|at| values.map(|values| values.value(at)))));
        out.finish()
    }

    /// Field ids and counts of one file.
    pub fn counts_of(&self, row: usize) -> Option<Vec<(i32, i64)>> {
        let values = self.0.values().as_primitive_opt::<Int64Type>()?;
        Some(self.pairs(row)?.map(|(key, at)| (key, values.value(at))).collect())
    }

    /// Field ids and bounds of one file.
    pub fn bounds_of(&self, row: usize) -> Option<Vec<(i32, Vec<u8>)>> {
        let values = self.0.values().as_binary_opt::<i32>()?;
        Some(self.pairs(row)?.map(|(key, at)| (key, values.value(at).to_vec())).collect())
    }

    /// Restricts the column to these fields.
    pub fn restricted(&self, wanted: &FieldIds) -> Result<Self> {
        let DataType::Map(entries, _) = self.0.data_type() else { return Ok(self.clone()) };
        if *wanted == FieldIds::All {
            return Ok(self.clone());
        }
        let (keys, mut kept, mut offsets) = (self.keys(), Vec::new(), vec![0]);
        for row in 0..self.0.len() {
            let asked = |at: &usize| keys.get(*at).is_some_and(|key| wanted.contains(*key));
            kept.extend(self.range(row).filter(asked).filter_map(|at| u32::try_from(at).ok()));
            offsets.push(offset(kept.len()));
        }
        let failed = |error: ArrowError| Error::invalid(error.to_string());
        let pairs = take(self.0.entries(), &UInt32Array::from(kept), None).map_err(failed)?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let nulls = self.0.nulls().cloned();
        MapArray::try_new(entries.clone(), offsets, pairs.as_struct().clone(), nulls, false).map(Self).map_err(failed)
    }

    fn keys(&self) -> &[i32] {
        self.0.keys().as_primitive::<Int32Type>().values()
    }

    /// Field ids of a file with the indices of their values; `None` if the file has no map.
    fn pairs(&self, row: usize) -> Option<impl Iterator<Item = (i32, usize)>> {
        if row >= self.0.len() || self.0.is_null(row) {
            return None;
        }
        let range = self.range(row);
        Some(self.keys().get(range.clone()).unwrap_or_default().iter().copied().zip(range))
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self.0.value_offsets().get(row..row + 2) {
            Some(&[start, end]) => usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0),
            _ => 0..0,
        }
    }

    /// For each file, the index of a field's value. Files from one writer list their keys in the same order, so the
    /// position in the previous file is tried first.
    fn places(&self, id: i32) -> impl Iterator<Item = Option<usize>> {
        let mut hint = 0;
        (0..self.0.len()).map(move |row| {
            let range = self.range(row);
            let keys = self.keys().get(range.clone()).unwrap_or_default();
            if keys.get(hint) != Some(&id) {
                hint = keys.iter().position(|key| *key == id)?;
            }
            Some(range.start + hint)
        })
    }

    pub(super) fn from_array(array: MapArray) -> Self {
        Self(array)
    }
}

/// Order of key and value in the records of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PairOrder {
    /// Key, then value, and nothing else, as usual.
    KeyValue,
    /// Any other order or additional fields.
    Parts(Vec<PairPart>),
}

/// A field of a map's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PairPart {
    Key,
    Value(Presence),
    Skip(Skip),
}

/// Determines the order of key and value in a record; `None` if one is missing or has another type.
pub(super) fn pair_order(record: &RecordSchema, key_id: i32, value_id: i32, is_bound: bool) -> Option<PairOrder> {
    let (key, key_field) = record.field(key_id, &["key"])?;
    let (value, value_field) = record.field(value_id, &["value"])?;
    let (value_presence, value_schema) = reduce(&value_field.schema)?;
    let value_fits = match value_schema {
        Schema::Int(_) | Schema::Long(_) => !is_bound,
        Schema::Bytes(_) | Schema::String(_) => is_bound,
        _ => false,
    };
    if !value_fits || !matches!(key_field.schema, Schema::Int(_) | Schema::Long(_)) {
        return None;
    }
    if record.fields.len() == 2 && key < value && value_presence == Presence::Required {
        return Some(PairOrder::KeyValue);
    }
    let parts = record.fields.iter().enumerate().map(|(index, field)| match index {
        _ if index == key => PairPart::Key,
        _ if index == value => PairPart::Value(value_presence),
        _ => PairPart::Skip(Skip::of(&field.schema)),
    });
    Some(PairOrder::Parts(parts.collect()))
}

/// Positions of the requested keys in the last map, if it had each of them exactly once.
#[derive(Debug, Default)]
struct KeyPositions {
    /// Number of pairs in that map.
    count: u64,
    /// Positions, ascending, with their keys.
    found: Vec<(u64, i32)>,
}

/// Values of the maps.
#[derive(Debug)]
enum MetricValues {
    Counts(Vec<i64>),
    Bounds(BytesBuilder),
}

/// Builds a metrics column.
#[derive(Debug)]
pub(super) struct MetricBuilder {
    wanted: FieldIds,
    places: KeyPositions,
    keys: Vec<i32>,
    values: MetricValues,
    offsets: Vec<i32>,
    valid: NullBufferBuilder,
}

impl MetricBuilder {
    pub(super) fn new(is_bound: bool, wanted: FieldIds) -> Self {
        let values =
            if is_bound { MetricValues::Bounds(BytesBuilder::default()) } else { MetricValues::Counts(Vec::new()) };
        let places = KeyPositions::default();
        Self { wanted, places, keys: Vec::new(), values, offsets: vec![0], valid: NullBufferBuilder::new(0) }
    }

    /// Reads the pairs of one file.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>, order: &PairOrder, most: u64) -> Result<(), Fault> {
        let mut room = most;
        loop {
            let (count, _) = cursor.items()?;
            // A map has at most one pair per column.
            room = room.checked_sub(count).ok_or(Fault::TooLong)?;
            if count == 0 {
                return Ok(());
            }
            match order {
                PairOrder::KeyValue => self.key_values(cursor, count)?,
                PairOrder::Parts(parts) => (0..count).try_for_each(|_| self.parts(cursor, parts))?,
            }
        }
    }

    /// Reads key-value pairs. Files from one writer list their keys in the same order: if the last map had all
    /// requested keys, try the same positions, and skip the bytes between them in bulk.
    fn key_values(&mut self, cursor: &mut Cursor<'_>, count: u64) -> Result<(), Fault> {
        let pairs = self.keys.len();
        if self.places.count == count {
            let start = *cursor;
            if self.at_places(cursor)? {
                return Ok(());
            }
            *cursor = start;
            self.truncate(pairs);
        }
        self.places = KeyPositions::default();
        let Some(wanted) = self.wanted.len() else {
            return (0..count).try_for_each(|_| self.key_value(cursor));
        };
        let mut found = Vec::with_capacity(wanted);
        for place in 0..count {
            let before = self.keys.len();
            self.key_value(cursor)?;
            if let Some(key) = self.keys.get(before) {
                found.push((place, *key));
            }
        }
        if found.len() == wanted {
            self.places = KeyPositions { count, found };
        }
        Ok(())
    }

    /// Reads the pairs at the expected positions; returns false if another key is found at one of them.
    fn at_places(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
        let places = std::mem::take(&mut self.places);
        let mut next = 0;
        for (place, key) in &places.found {
            self.skip_pairs(cursor, place - next)?;
            if cursor.int()? != *key {
                return Ok(false);
            }
            match &mut self.values {
                MetricValues::Counts(values) => values.push(cursor.long()?),
                MetricValues::Bounds(values) => values.push(Some(cursor.bytes()?)),
            }
            self.keys.push(*key);
            next = place + 1;
        }
        self.skip_pairs(cursor, places.count - next)?;
        self.places = places;
        Ok(true)
    }

    fn skip_pairs(&self, cursor: &mut Cursor<'_>, pairs: u64) -> Result<(), Fault> {
        match self.values {
            MetricValues::Counts(_) => cursor.skip_varints(pairs.checked_mul(2).ok_or(Fault::TooLong)?),
            MetricValues::Bounds(_) => skip_keyed_bytes(pairs, cursor),
        }
    }

    #[inline]
    fn key_value(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let key = cursor.int()?;
        let wanted = self.wanted.contains(key);
        match &mut self.values {
            MetricValues::Counts(values) if wanted => values.push(cursor.long()?),
            MetricValues::Counts(_) => return cursor.skip_varints(1),
            MetricValues::Bounds(values) => {
                let value = cursor.bytes()?;
                if !wanted {
                    return Ok(());
                }
                values.push(Some(value));
            }
        }
        self.keys.push(key);
        Ok(())
    }

    #[cold]
    fn parts(&mut self, cursor: &mut Cursor<'_>, parts: &[PairPart]) -> Result<(), Fault> {
        let (mut key, mut count, mut bound) = (None, None, None);
        for part in parts {
            match part {
                PairPart::Key => key = Some(cursor.int()?),
                PairPart::Skip(skip) => skip.run(cursor)?,
                PairPart::Value(presence) if !presence.is_some(cursor)? => {}
                PairPart::Value(_) => match self.values {
                    MetricValues::Counts(_) => count = Some(cursor.long()?),
                    MetricValues::Bounds(_) => bound = Some(cursor.bytes()?),
                },
            }
        }
        let Some(key) = key.filter(|key| self.wanted.contains(*key)) else { return Ok(()) };
        match (&mut self.values, count, bound) {
            (MetricValues::Counts(values), Some(count), _) => values.push(count),
            (MetricValues::Bounds(values), _, Some(bound)) => values.push(Some(bound)),
            _ => return Ok(()),
        }
        self.keys.push(key);
        Ok(())
    }

    /// Ends the row with the pairs read since the previous one, or with null.
    pub(super) fn end(&mut self, is_some: bool) {
        self.offsets.push(offset(self.keys.len()));
        self.valid.append(is_some);
    }

    /// Discards the unfinished row.
    pub(super) fn discard_row(&mut self) {
        let pairs = self.offsets.last().map_or(0, |&pairs| usize::try_from(pairs).unwrap_or(0));
        self.truncate(pairs);
    }

    /// Size of the pairs in bytes.
    pub(super) fn bytes(&self) -> usize {
        let value = match self.values {
            MetricValues::Counts(_) => size_of::<i64>(),
            MetricValues::Bounds(_) => size_of::<i32>(),
        };
        self.keys.len() * (size_of::<i32>() + value)
    }

    fn truncate(&mut self, pairs: usize) {
        self.keys.truncate(pairs);
        match &mut self.values {
            MetricValues::Counts(values) => values.truncate(pairs),
            MetricValues::Bounds(values) => values.truncate(pairs),
        }
    }

    pub(super) fn finish(mut self) -> MetricMap {
        let keys: ArrayRef = Arc::new(arrow_array::Int32Array::new(ScalarBuffer::from(self.keys), None));
        let (data_type, values): (_, ArrayRef) = match self.values {
            MetricValues::Counts(values) => {
                (DataType::Int64, Arc::new(Int64Array::new(ScalarBuffer::from(values), None)))
            }
            MetricValues::Bounds(values) => (DataType::Binary, Arc::new(values.finish_binary())),
        };
        let fields = pair_fields(data_type);
        let pairs = StructArray::new(fields.clone(), vec![keys, values], None);
        let entries = Arc::new(Field::new("entries", DataType::Struct(fields), false));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        MetricMap(MapArray::new(entries, offsets, pairs, self.valid.finish(), false))
    }
}

/// The fields of a pair.
pub(super) fn pair_fields(value: DataType) -> Fields {
    Fields::from(vec![Field::new("key", DataType::Int32, false), Field::new("value", value, false)])
}
