//! Joins rows of a table with those of a source. For each pair, and for each row without a partner, the first clause
//! whose condition is true applies.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;

use super::assigned::rows_of;
use super::changes::Changes;
use super::clause::When;
use super::joined::{Joined, SOURCE, TARGET};
use super::keyed::KeyedRows;
use super::plan::{Plan, ReadyAction, ReadyCondition};
use crate::arrow::conform::conform;
use crate::error::{Error, Result};
use crate::operation::condition::differences::differences;

/// Joins the rows of a source, held in memory, with those of a table.
#[derive(Debug)]
pub(crate) struct Join<'a> {
    plan: &'a mut Plan,
    source: KeyedRows,
    /// For each source row, whether the table has its key.
    matched: Vec<bool>,
}

/// The rows that a clause applies to.
struct Chosen {
    clause: usize,
    rows: Vec<u32>,
}

impl<'a> Join<'a> {
    /// A join that has not processed any row of the table.
    pub(crate) fn new(plan: &'a mut Plan, source: KeyedRows) -> Self {
        let matched = vec![false; source.len()];
        Self { plan, source, matched }
    }

    /// Joins rows of the table. Their columns are those of the plan, followed by the number of the file and the
    /// position.
    pub(crate) fn meet(&mut self, batch: &RecordBatch, changes: &mut Changes) -> Result<()> {
        let keys = self.plan.key.of_target(batch)?;
        let (mut rows, mut partners, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let by_source = self.plan.has(When::NotMatchedBySource);
        for (row, number) in (0..keys.len()).zip(0_u32..) {
            let before = rows.len();
            if let Some(key) = keys.get(row) {
                for partner in self.source.find(self.plan.key.hash(key), key) {
                    if let Some(matched) = self.matched.get_mut(partner as usize) {
                        *matched = true;
                    }
                    rows.push(number);
                    partners.push(partner);
                }
            }
            if by_source && rows.len() == before {
                alone.push(number);
            }
        }
        if self.plan.has(When::Matched) && !rows.is_empty() {
            self.pairs(batch, &rows, &partners, changes)?;
        }
        if !alone.is_empty() {
            let own = taken(batch, &alone)?;
            let joined = Joined::new(self.target_columns(&own)?, alone.len())?;
            let chosen = self.choose(When::NotMatchedBySource, &joined)?;
            self.apply(chosen, &own, &joined, changes)?;
        }
        Ok(())
    }

    /// Finishes after all rows of the table: processes the source rows without a partner.
    pub(crate) fn finish(self, changes: &mut Changes) -> Result<()> {
        let Self { plan, source, matched } = self;
        if !plan.has(When::NotMatched) {
            return Ok(());
        }
        for (number, batch) in source.batches().iter().enumerate() {
            let rows = source.unmarked(number, &matched);
            if rows.true_count() == 0 {
                continue;
            }
            let batch = filter_record_batch(batch, &rows).map_err(internal)?;
            let columns = plan.joined.iter().filter_map(|place| {
                let name = source.schema().fields().get(*place)?.name();
                Some((format!("{SOURCE}.{name}"), batch.columns().get(*place)?.clone()))
            });
            let joined = Joined::new(columns.collect(), batch.num_rows())?;
            for Chosen { clause, rows } in choose(plan, When::NotMatched, &joined)? {
                let Some(clause) = plan.clauses.get_mut(clause) else { continue };
                let ReadyAction::Write(assigned) = &mut clause.action else { continue };
                let values = assigned.values(&joined.take(&rows)?)?;
                changes.write(&rows_of(&values, None, &plan.written)?)?;
                changes.inserted += i64::try_from(rows.len()).unwrap_or(i64::MAX);
            }
        }
        Ok(())
    }

    /// Processes pairs of table and source rows with the same key.
    fn pairs(&mut self, batch: &RecordBatch, rows: &[u32], partners: &[u32], changes: &mut Changes) -> Result<()> {
        let own = taken(batch, rows)?;
        let mut columns = self.target_columns(&own)?;
        for place in &self.plan.joined {
            let Some(field) = self.source.schema().fields().get(*place) else { continue };
            columns.push((format!("{SOURCE}.{}", field.name()), self.source.column(*place, partners)?));
        }
        let joined = Joined::new(columns, rows.len())?;
        let mut chosen = self.choose(When::Matched, &joined)?;
        if rows.is_sorted_by(|a, b| a < b) {
            return self.apply(chosen, &own, &joined, changes);
        }
        // Several source rows match one row of the table: only one of them may change it.
        let mut seen = vec![false; batch.num_rows()];
        let allowed = self.plan.allows_many();
        for Chosen { clause, rows: pairs } in &mut chosen {
            let mut double = None;
            pairs.retain(|pair| {
                let row = rows.get(*pair as usize).and_then(|row| seen.get_mut(*row as usize));
                let is_first = row.is_some_and(|seen| !std::mem::replace(seen, true));
                double = double.or((!is_first).then_some(*pair));
                is_first
            });
            if let Some(pair) = double.filter(|_| !allowed) {
                let clause = self.plan.clauses.get(*clause).map_or("", |clause| clause.name.as_str());
                return Err(Error::invalid(format!(
                    "merge: several rows of the source match the row of the table with the key {}, and {clause} applies to \
                     more than one of them: nothing was changed",
                    self.plan.key.shown(&own, pair as usize)?
                )));
            }
        }
        self.apply(chosen, &own, &joined, changes)
    }

    /// Columns of table rows, by their names in joined rows.
    fn target_columns(&self, own: &RecordBatch) -> Result<Vec<(String, ArrayRef)>> {
        let column = |name: &String| {
            let column = own.column_by_name(name).ok_or_else(|| Error::Internal(format!("no column {name}")))?;
            Ok((format!("{TARGET}.{name}"), column.clone()))
        };
        self.plan.target.iter().map(column).collect()
    }

    fn choose(&mut self, when: When, joined: &Joined) -> Result<Vec<Chosen>> {
        choose(self.plan, when, joined)
    }

    /// Applies actions to rows of the table.
    fn apply(&mut self, chosen: Vec<Chosen>, own: &RecordBatch, joined: &Joined, changes: &mut Changes) -> Result<()> {
        for Chosen { clause, rows } in chosen.into_iter().filter(|chosen| !chosen.rows.is_empty()) {
            let Some(clause) = self.plan.clauses.get_mut(clause) else { continue };
            let old = taken(own, &rows)?;
            let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            match &mut clause.action {
                ReadyAction::Delete => changes.deleted += count,
                ReadyAction::Write(assigned) => {
                    let values = assigned.values(&joined.take(&rows)?)?;
                    changes.write(&rows_of(&values, Some(&old), &self.plan.written)?)?;
                    changes.updated += count;
                }
            }
            changes.remove(&old)?;
        }
        Ok(())
    }
}

/// For each clause, the rows it applies to: those that no earlier clause applies to.
fn choose(plan: &Plan, when: When, joined: &Joined) -> Result<Vec<Chosen>> {
    let mut left: Vec<u32> = (0..u32::try_from(joined.rows().num_rows()).unwrap_or(u32::MAX)).collect();
    let mut chosen = Vec::new();
    for (number, clause) in plan.clauses.iter().enumerate().filter(|(_, clause)| clause.when == when) {
        if left.is_empty() {
            break;
        }
        if matches!(clause.condition, ReadyCondition::Always) {
            chosen.push(Chosen { clause: number, rows: std::mem::take(&mut left) });
            break;
        }
        let mask = holds(&clause.condition, &joined.take(&left)?, &clause.name)?;
        let (rows, others): (Vec<_>, Vec<_>) = left.iter().zip(mask.iter()).partition(|(_, holds)| *holds);
        chosen.push(Chosen { clause: number, rows: rows.into_iter().map(|(row, _)| *row).collect() });
        left = others.into_iter().map(|(row, _)| *row).collect();
    }
    Ok(chosen)
}

/// The rows for which a condition is true.
fn holds(condition: &ReadyCondition, joined: &Joined, clause: &str) -> Result<BooleanBuffer> {
    let rows = joined.rows().num_rows();
    Ok(match condition {
        ReadyCondition::Always => BooleanBuffer::new_set(rows),
        ReadyCondition::Filter(filter) => filter.matching(joined)?,
        ReadyCondition::Function(function) => {
            let answer = function(joined.rows().clone(), None)?;
            let answer = answer.as_boolean_opt().filter(|answer| answer.len() == rows).ok_or_else(|| {
                Error::invalid(format!(
                    "{clause}: expected {rows} booleans of its condition, got {} values of {}",
                    answer.len(),
                    answer.data_type()
                ))
            })?;
            match answer.nulls() {
                Some(nulls) => answer.values() & nulls.inner(),
                None => answer.values().clone(),
            }
        }
        ReadyCondition::Differs(names) => {
            let pair = |name: &String| {
                let old = joined.column(&[format!("{TARGET}.{name}")])?;
                let new = conform(&joined.column(&[format!("{SOURCE}.{name}")])?, old.data_type())?;
                Ok((old, new))
            };
            let pairs = names.iter().map(pair).collect::<Result<Vec<_>>>()?;
            differences(&pairs, rows)?.values().clone()
        }
    })
}

fn taken(batch: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    if rows.len() == batch.num_rows() && rows.iter().zip(0_u32..).all(|(row, place)| *row == place) {
        return Ok(batch.clone());
    }
    take_record_batch(batch, &UInt32Array::from(rows.to_vec())).map_err(internal)
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("rows of a merge: {error}"))
}
