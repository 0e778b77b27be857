//! Upserts: source rows replace table rows with the same key, or are added as new rows.
//!
//! An upsert is a merge in which null matches null, a key that occurs twice in the source is an error, and a row is
//! changed only if it differs.

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::types::Schema;

use super::matching::MEMORY_LIMIT;
use super::merge::clause::{Action, Clause, Condition, Rules, When};
use super::merge::run::{MergeOptions, Merged};
use super::replace_rows::RowOptions;
use crate::commit::Transaction;
use crate::error::{Error, Result};
use crate::write::Matching;

/// Options of an upsert.
#[derive(Debug, Clone)]
pub struct UpsertOptions {
    /// Names of the key columns; if empty, the identifier fields of the schema.
    pub join_columns: Vec<String>,
    /// Whether to change rows whose key the table has.
    pub update_matched: bool,
    /// Whether to add rows whose key the table does not have.
    pub insert_others: bool,
    /// Whether column names are matched case-sensitively.
    pub case_sensitive: bool,
    /// How the columns of the source may differ from the table's.
    pub matching: Matching,
    /// Whether columns that the table lacks are added in the same commit.
    pub evolve: bool,
    /// Approximate memory limit in bytes.
    pub memory_limit: usize,
    /// Options of the row change.
    pub rows: RowOptions,
}

impl Default for UpsertOptions {
    /// Updates and inserts by the identifier fields.
    fn default() -> Self {
        Self {
            join_columns: Vec::new(),
            update_matched: true,
            insert_others: true,
            case_sensitive: true,
            matching: Matching::default(),
            evolve: false,
            memory_limit: MEMORY_LIMIT,
            rows: RowOptions::default(),
        }
    }
}

impl Transaction {
    /// Updates table rows whose key the source has, if they differ, and adds the other source rows. In updated rows,
    /// columns that the source lacks keep their values. A null key matches null.
    ///
    /// # Errors
    /// A key that occurs twice in the source; a table without identifier fields if no columns are named; or an error of
    /// the rows, the table or the storage. Written files are then deleted.
    pub fn upsert(
        &mut self,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        options: UpsertOptions,
    ) -> Result<Merged> {
        self.check_open()?;
        let clause =
            |name: &str, when, condition| Clause { name: name.to_owned(), when, condition, action: Action::WriteAll };
        let mut clauses = Vec::new();
        if options.update_matched {
            clauses.push(clause("upsert", When::Matched, Condition::Differs));
        }
        if options.insert_others {
            clauses.push(clause("upsert", When::NotMatched, Condition::Always));
        }
        if clauses.is_empty() {
            return Err(Error::invalid(
                "upsert: neither rows that match nor others are wanted: there is nothing to do",
            ));
        }
        let on = key_names(self.metadata()?.current_schema(), options.join_columns)?;
        let rules = Rules {
            on: on.into_iter().map(|name| (name.clone(), name)).collect(),
            clauses,
            case_sensitive: options.case_sensitive,
            exact: true,
            matching: options.matching,
            mentions: Vec::new(),
        };
        let merged =
            MergeOptions { rules, evolve: options.evolve, memory_limit: options.memory_limit, rows: options.rows };
        self.merge(schema, batches, merged)
    }
}

/// The names of the key columns.
fn key_names(table: &Schema, asked: Vec<String>) -> Result<Vec<String>> {
    let names = match asked.is_empty() {
        false => asked,
        true => {
            let ids = table.identifier_field_ids().iter();
            ids.filter_map(|id| table.column_name(*id)).map(str::to_owned).collect()
        }
    };
    if names.is_empty() {
        return Err(Error::invalid(
            "upsert: name the columns of the key (join_cols), or set identifier fields in the table's schema",
        ));
    }
    Ok(names)
}
