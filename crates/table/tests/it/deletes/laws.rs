//! Every way of reading a table with deletes returns the same rows as checking every delete for every row.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expr, Expression};
use icefield_format::types::Schema;
use icefield_format::types::reserved::DELETED;
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::FilePart;
use icefield_table::read::{task, wire};
use proptest::prelude::*;

use crate::deletes::rows::{Row, batch, current, texts};
use crate::deletes::world::{Written, world};

/// How a table is read.
#[derive(Debug, Clone)]
struct Reading {
    /// Ids of the columns.
    columns: Vec<i32>,
    filter: &'static str,
    limit: Option<usize>,
    /// Where files are split, in thousandths of their size.
    cuts: Vec<u64>,
    by_wire: bool,
    /// Whether the memory for deletes is too small to keep any of them.
    is_tight: bool,
}

const FILTERS: [&str; 8] = [
    "true",
    "id < 30",
    "k > 0",
    "s = 'a' OR f IS NAN",
    "st.x IS NULL",
    "added = 5 AND d IS NOT NULL",
    "_deleted = true",
    "_deleted = false AND id >= 10",
];

fn reading() -> impl Strategy<Value = Reading> {
    let columns = prop::sample::subsequence(vec![1, 2, 3, 4, 5, 7, 9, DELETED.id], 0..=8);
    (
        prop_oneof![Just(vec![1, 2, 3, 4, 5, 7, 9]), columns],
        prop::sample::select(FILTERS.to_vec()),
        prop::option::weighted(0.2, 0..100usize),
        prop::collection::vec(0..1000u64, 0..3),
        any::<bool>(),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(columns, filter, limit, cuts, by_wire, is_tight)| Reading {
            columns,
            filter,
            limit,
            cuts,
            by_wire,
            is_tight,
        })
}

impl Reading {
    /// Whether deleted rows are read too.
    fn is_marked(&self) -> bool {
        self.columns.contains(&DELETED.id) || self.filter.contains(DELETED.name)
    }

    fn read(&self, written: &Written) -> Vec<String> {
        let with_mark = with_mark();
        let fields = with_mark.fields().iter().filter(|field| self.columns.contains(&field.id)).cloned();
        let projection = Arc::new(Schema::new(0, fields.collect()).unwrap());
        // Tasks contain filters bound to the schema of the table.
        let schema = if self.filter.contains(DELETED.name) { with_mark } else { current() };
        let wanted = Arc::new(Wanted::new(Arc::new(schema), projection));
        let mut task = ReadTask { wanted, parts: self.parts(written) };
        if self.by_wire {
            task = wire::from_bytes(&wire::to_bytes(&task).unwrap()).unwrap();
        }
        let limits = Limits { operation_memory: if self.is_tight { 1 } else { 1 << 30 }, ..Limits::default() };
        let batches = task::rows_within(task, &written.storage, self.limit, &limits).unwrap();
        let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>().unwrap();
        texts(&batches)
    }

    fn parts(&self, written: &Written) -> Vec<FilePart> {
        let residual = bound(self.filter);
        let pieces = |part: &FilePart| {
            let mut ends: Vec<u64> = self.cuts.iter().map(|cut| part.size * cut / 1000).collect();
            ends.push(part.size);
            ends.sort_unstable();
            let mut start = 0;
            let pieces = ends.into_iter().map(|end| {
                let length = end - start;
                let piece = FilePart { start, length, residual: residual.clone(), ..part.clone() };
                start = end;
                piece
            });
            pieces.collect::<Vec<_>>()
        };
        written.parts.iter().flat_map(pieces).collect()
    }

    fn expected(&self, written: &Written) -> Vec<String> {
        let rows = written.rows.iter().flatten().filter(|(_, is_deleted)| self.is_marked() || !is_deleted);
        let (rows, marks): (Vec<Row>, Vec<bool>) = rows.cloned().unzip();
        let plain = batch(&current(), &rows);
        let marks: ArrayRef = Arc::new(BooleanArray::from(marks));
        let schema = with_mark().to_arrow(&icefield_format::types::arrow::ToArrow::default()).unwrap();
        let columns = plain.columns().iter().cloned().chain([marks]).collect();
        let all = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let kept = filter_record_batch(&all, &bound(self.filter).evaluate(&all).unwrap()).unwrap();
        let schema = with_mark();
        let places = schema.fields().iter().enumerate().filter(|(_, field)| self.columns.contains(&field.id));
        let kept = kept.project(&places.map(|(place, _)| place).collect::<Vec<_>>()).unwrap();
        let mut found = texts(&[kept]);
        found.truncate(self.limit.unwrap_or(usize::MAX));
        found
    }
}

fn with_mark() -> Schema {
    Schema::new(1, current().fields().iter().cloned().chain([DELETED.to_field()]).collect()).unwrap()
}

fn bound(filter: &str) -> BoundExpr {
    if filter == "true" { Expression::True } else { Expr::parse(filter).unwrap().bind(&with_mark(), true).unwrap() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_no_delete_meets(world in world(), readings in prop::collection::vec(reading(), 4)) {
        let written = world.write();
        for reading in readings {
            let (found, expected) = (reading.read(&written), reading.expected(&written));
            prop_assert_eq!(found, expected, "{:?}", reading);
        }
    }
}
