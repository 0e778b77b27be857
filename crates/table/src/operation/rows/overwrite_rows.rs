//! Replaces the rows that a filter matches, or all rows of some partitions, with new rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::expr::{Comparison, Condition, Expr, Expression, Literal, Predicate, Term, Test};
use icefield_format::manifest::DataFile;
use icefield_format::spec::PartitionSpec;
use icefield_format::transform::Transform;
use icefield_format::types::{Schema, Type};
use icefield_format::value::Value;

use super::checked_rows::CheckedRows;
use super::matching::Matches;
use super::replace_rows::{NewRows, RowOptions, RowsReplaced, replace_widened, replace_with, write};
use super::row_change::{Command, FileCounts, Isolation};
use super::widened::Widened;
use crate::commit::{SnapshotProducer, Transaction};
use crate::error::{Error, Result};
use crate::operation::replace_partitions::ReplacePartitions;

/// What to do with files of older partition specs that may have rows of replaced partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OldSpecs {
    /// Fail if there are such files.
    #[default]
    Refuse,
    /// Remove the rows of the replaced partitions from them.
    Rewrite,
}

impl Transaction {
    /// Deletes the rows that a condition matches and adds others, in one snapshot.
    ///
    /// # Errors
    /// As [`Transaction::replace_rows`]; with [`RowOptions::check_rows`], also a new row that the condition does not
    /// match.
    pub fn overwrite_rows(
        &mut self,
        condition: &Condition,
        case_sensitive: bool,
        rows: NewRows<'_>,
        options: RowOptions,
    ) -> Result<RowsReplaced> {
        self.check_open()?;
        let table = Widened::of(self, rows.schema, rows.evolve)?;
        let (branch, memory) = (&options.snapshot.branch, options.memory);
        let matches = Matches::find(self.storage(), &table.metadata, branch, condition, case_sensitive, memory)?;
        if !options.check_rows {
            return replace_widened(self, table, &matches, Command::Delete, Some(rows), options);
        }
        let NewRows { schema, batches, matching, evolve } = rows;
        let columns = table.metadata.current_schema().clone();
        let mut checked = CheckedRows::new(&columns, schema, batches, matching, condition, case_sensitive)?;
        let rows = NewRows { schema, batches: &mut checked, matching, evolve };
        replace_widened(self, table, &matches, Command::Delete, Some(rows), options)
    }

    /// Adds rows and removes all other rows of their partitions.
    ///
    /// # Errors
    /// A table without partitions; with [`OldSpecs::Refuse`], files of older specs that may have rows of these
    /// partitions; otherwise as [`Transaction::replace_rows`].
    pub fn overwrite_partitions(
        &mut self,
        rows: NewRows<'_>,
        old_specs: OldSpecs,
        options: RowOptions,
    ) -> Result<RowsReplaced> {
        self.check_open()?;
        let table = Widened::of(self, rows.schema, rows.evolve)?;
        let metadata = table.metadata.clone();
        let spec = metadata.default_spec().clone();
        if spec.is_unpartitioned() {
            return Err(Error::invalid("the table has no partitions: overwrite it with a filter instead"));
        }
        let isolation = Isolation::of(options.isolation, Command::Delete, metadata.properties())?;
        let storage = self.storage().clone();
        let written_to = options.written_to(&storage);
        let added = write(&written_to, &metadata, rows, &options.properties)?;
        if added.is_empty() {
            return Ok(RowsReplaced::default());
        }
        let discard = |files: &[DataFile]| {
            let paths: Vec<String> = files.iter().map(|file| file.file_path.clone()).collect();
            written_to.discard(&paths, "data files of an overwrite that failed");
        };
        let (branch, memory) = (&options.snapshot.branch, options.memory);
        let found = of_partitions(&spec, metadata.current_schema(), &added)
            .and_then(|filter| Matches::candidates(&storage, &metadata, branch, &filter, true, memory));
        let candidates = match found {
            Ok(found) => found,
            Err(error) => {
                discard(&added);
                return Err(error);
            }
        };
        let is_old = |file: &&DataFile| file.partition_spec_id != spec.spec_id;
        if let Some(old) = candidates.files().find(is_old) {
            if old_specs == OldSpecs::Refuse {
                let (path, id) = (old.file_path.clone(), old.partition_spec_id);
                discard(&added);
                return Err(Error::Validation(format!(
                    "{path} is of the older partition spec {id} and may have rows of partitions that are replaced: ask for \
                 on_old_specs=\"rewrite\", or overwrite with a filter"
                )));
            }
            let filter = Condition::from(candidates.filter());
            return match Matches::find(&storage, &metadata, branch, &filter, true, memory) {
                Ok(matches) => replace_with(self, table, &matches, Command::Delete, added, options),
                Err(error) => {
                    discard(&added);
                    Err(error)
                }
            };
        }
        let rows_removed = match candidates.row_count() {
            Ok(rows) => rows,
            Err(error) => {
                discard(&added);
                return Err(error);
            }
        };
        let mut result = RowsReplaced {
            rows_removed,
            rows_added: added.iter().map(|file| file.record_count).sum(),
            ..RowsReplaced::default()
        };
        result.files = FileCounts::of_dropped(candidates.files());
        result.files = result.files.with_added(&added);
        if options.dry_run {
            return Ok(result);
        }
        let from = candidates.snapshot().map(|found| found.snapshot_id);
        let content = ReplacePartitions::of_files(added, from, isolation == Isolation::Serializable)?;
        let producer = SnapshotProducer::new(storage, content, options.snapshot).that_owns_its_files();
        table.stage(self, producer)?;
        Ok(result)
    }
}

/// A filter that matches the rows in the partitions of these files.
pub(super) fn of_partitions(spec: &Arc<PartitionSpec>, schema: &Schema, files: &[DataFile]) -> Result<Expr> {
    let mut partitions: BTreeMap<String, &[Option<Value>]> = BTreeMap::new();
    partitions.extend(files.iter().map(|file| (format!("{:?}", file.partition), file.partition.as_slice())));
    let mut any = Vec::with_capacity(partitions.len());
    for partition in partitions.into_values() {
        let mut all = Vec::with_capacity(spec.fields.len());
        for (field, value) in spec.fields.iter().zip(partition) {
            if field.transform.is_void() {
                continue;
            }
            let source = field.source_id().and_then(|id| Some((schema.column_name(id)?, schema.find_type(id)?)));
            let lost =
                || Error::invalid(format!("the source of the partition field {} is not in the schema", field.name));
            let (name, ty) = source.ok_or_else(lost)?;
            let term = match &field.transform {
                Transform::Identity => Term::column(name),
                transform => Term::transform(transform.clone(), name),
            };
            let test = match (value, field.transform.result_type(ty)) {
                (None, _) => Test::IsNull,
                (Some(Value::Float(value)), _) if value.is_nan() => Test::IsNan,
                (Some(Value::Double(value)), _) if value.is_nan() => Test::IsNan,
                (Some(value), Some(Type::Primitive(ty))) => {
                    Test::Compare(Comparison::Eq, Literal::new(ty, value.clone())?)
                }
                (Some(_), _) => return Err(lost()),
            };
            all.push(Expression::Predicate(Predicate { term, test }));
        }
        any.push(Expr::all(all));
    }
    Ok(Expr::any(any).balanced())
}
