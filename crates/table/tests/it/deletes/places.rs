//! The file, position and row id of rows, with deletes, splits and filters, against counting the rows of each file.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_select::filter::filter_record_batch;
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expr};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{DELETED, FILE, LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID, SPEC_ID};
use icefield_format::types::{Field, Schema};
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::FilePart;
use icefield_table::read::{task, wire};
use proptest::prelude::*;

use crate::deletes::rows::{Row, batch, current, texts};
use crate::deletes::world::{Written, world};

const FILTERS: [&str; 10] = [
    "id >= 0",
    "_pos < 40",
    "_pos >= 17 AND id < 30",
    "_row_id >= 1010 OR k > 0",
    "_row_id IS NULL AND _pos != 3",
    "_last_updated_sequence_number = 2 AND st.x IS NULL",
    "_deleted = true AND _pos < 60",
    "NOT _pos < 50 AND _deleted = false",
    "_spec_id = 1 OR _row_id IN (3, 2005, 17)",
    "_file LIKE 'memory%' AND added = 5",
];

/// A way to read a table.
#[derive(Debug, Clone)]
struct Reading {
    columns: Vec<i32>,
    filter: &'static str,
    /// Where files are split, in thousandths of their size.
    cuts: Vec<u64>,
    by_wire: bool,
}

fn reading() -> impl Strategy<Value = Reading> {
    let ids: Vec<i32> = all().fields().iter().map(|field| field.id).collect();
    let count = ids.len();
    let columns = prop::sample::subsequence(ids, 0..=count);
    let filter = prop::sample::select(FILTERS.to_vec());
    (columns, filter, prop::collection::vec(0..1000u64, 0..3), any::<bool>())
        .prop_map(|(columns, filter, cuts, by_wire)| Reading { columns, filter, cuts, by_wire })
}

fn metadata_columns() -> [Field; 6] {
    [FILE, POS, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER].map(|column| column.to_field())
}

fn all() -> Schema {
    with(metadata_columns().into_iter())
}

fn with(columns: impl Iterator<Item = Field>) -> Schema {
    Schema::new(1, current().fields().iter().cloned().chain(columns).collect()).unwrap()
}

/// Assigns row ids and sequence numbers to files; one has none, as from before an upgrade.
fn with_lineage(written: &mut Written, without: usize) {
    for (place, part) in written.parts.iter_mut().enumerate() {
        part.sequence_number = Some(place as i64 + 1);
        part.first_row_id = (place != without).then_some(1000 * place as i64);
    }
}

impl Reading {
    fn has_deleted_rows(&self) -> bool {
        self.columns.contains(&DELETED.id) || self.filter.contains(DELETED.name)
    }

    fn bound(&self) -> BoundExpr {
        Expr::parse(self.filter).unwrap().bind(&all(), true).unwrap()
    }

    fn read(&self, written: &Written) -> Vec<String> {
        let named = metadata_columns().into_iter().filter(|column| self.filter.contains(&column.name));
        let fields = all().fields().iter().filter(|field| self.columns.contains(&field.id)).cloned().collect();
        let wanted = Wanted::new(Arc::new(with(named)), Arc::new(Schema::new(0, fields).unwrap()));
        let mut task = ReadTask { wanted: Arc::new(wanted), parts: self.parts(written) };
        if self.by_wire {
            task = wire::from_bytes(&wire::to_bytes(&task).unwrap()).unwrap();
        }
        let batches = task::rows_within(task, &written.storage, None, &Limits::default()).unwrap();
        texts(&batches.collect::<Result<Vec<RecordBatch>, _>>().unwrap())
    }

    fn parts(&self, written: &Written) -> Vec<FilePart> {
        let mut parts = Vec::new();
        for part in &written.parts {
            let mut ends: Vec<u64> = self.cuts.iter().map(|cut| part.size * cut / 1000).chain([part.size]).collect();
            ends.sort_unstable();
            let mut start = 0;
            for end in ends {
                parts.push(FilePart { start, length: end - start, residual: self.bound(), ..part.clone() });
                start = end;
            }
        }
        parts
    }

    fn expected(&self, written: &Written) -> Vec<String> {
        let mut batches = Vec::new();
        for (part, rows) in written.parts.iter().zip(&written.rows) {
            let (rows, deleted): (Vec<Row>, Vec<bool>) = rows.iter().cloned().unzip();
            let count = rows.len();
            let ids = (0..count as i64).map(|at| part.first_row_id.map(|first| first + at));
            let number = part.sequence_number.filter(|_| part.first_row_id.is_some());
            let metadata: [ArrayRef; 6] = [
                Arc::new(StringArray::from(vec![part.path.as_str(); count])),
                Arc::new(Int64Array::from_iter_values(0..count as i64)),
                Arc::new(BooleanArray::from(deleted.clone())),
                Arc::new(Int32Array::from(vec![part.partition.spec.spec.spec_id; count])),
                Arc::new(ids.collect::<Int64Array>()),
                Arc::new(Int64Array::from(vec![number; count])),
            ];
            let columns = batch(&current(), &rows).columns().iter().cloned().chain(metadata).collect();
            let schema = Arc::new(all().to_arrow(&ToArrow::default()).unwrap());
            let whole = RecordBatch::try_new(schema, columns).unwrap();
            let live = deleted.iter().map(|deleted| Some(self.has_deleted_rows() || !deleted)).collect();
            let live = filter_record_batch(&whole, &live).unwrap();
            let kept = filter_record_batch(&live, &self.bound().evaluate(&live).unwrap()).unwrap();
            let all = all();
            let places = all.fields().iter().enumerate().filter(|(_, field)| self.columns.contains(&field.id));
            batches.push(kept.project(&places.map(|(place, _)| place).collect::<Vec<_>>()).unwrap());
        }
        texts(&batches)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_where_counting_says(world in world(), without in 0..4usize, readings in prop::collection::vec(reading(), 4)) {
        let mut written = world.write();
        with_lineage(&mut written, without);
        for reading in readings {
            let (found, expected) = (reading.read(&written), reading.expected(&written));
            prop_assert_eq!(found, expected, "{:?}", reading);
        }
    }
}
