//! Chooses the rows of a table to read: those of a scan, or the compared rows of a changelog; with selected columns
//! and an optional limit.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::rest::ScanTasks;
use icefield_format::types::PrimitiveType;

use super::changelog::{self, Comparison};
use super::options::ReadOptions;
use super::scan;
use crate::error::{Error, Result};
use crate::plan::by_metadata::bounds::ColumnBounds;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::split::SplitOptions;
use crate::plan::{Plan, Scan};
use crate::storage::Storage;
use crate::stream::BatchStream;

/// The rows of a scan, with some of their columns.
#[derive(Debug, Clone)]
pub struct RowScan {
    scan: Scan,
    wanted: Arc<Wanted>,
    limit: Option<usize>,
    comparison: Option<Comparison>,
}

impl RowScan {
    /// The rows of a scan, at most `limit`; with all columns unless some are named ([`Scan::wanted`]).
    ///
    /// # Errors
    /// Unknown columns, and a filter that does not fit the table; raised here, before rows are read.
    pub fn new(scan: Scan, columns: Option<&[String]>, limit: Option<usize>) -> Result<Self> {
        let wanted = scan.wanted(columns)?;
        Ok(Self { scan, wanted, limit, comparison: None })
    }

    /// These rows of a changelog, compared with each other.
    ///
    /// # Errors
    /// As [`Comparison::check`].
    pub fn compared(self, comparison: Comparison) -> Result<Self> {
        comparison.check(&self.scan, &self.wanted)?;
        Ok(Self { comparison: Some(comparison), ..self })
    }

    /// These rows of the files that a server planned, which are in `storage`; see [`Scan::planned_by_server`].
    pub fn planned_by_server(&self, pages: &[ScanTasks], storage: Storage) -> Result<Self> {
        let scan = Scan { storage, ..self.scan.clone() }.planned_by_server(pages)?;
        Ok(Self { scan, ..self.clone() })
    }

    /// The scan.
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// The columns.
    pub fn wanted(&self) -> &Arc<Wanted> {
        &self.wanted
    }

    /// Reads the rows.
    pub fn rows(&self, options: &ReadOptions) -> Result<BatchStream> {
        match &self.comparison {
            Some(comparison) => options.apply(changelog::rows(&self.scan, comparison, &self.wanted, self.limit)?),
            None => scan::rows_with(&self.scan, &self.scan.plan()?, &self.wanted, self.limit, options),
        }
    }

    /// The number of rows, at most the limit.
    pub fn count(&self) -> Result<i64> {
        match &self.comparison {
            Some(comparison) => changelog::count(&self.scan, comparison, self.limit),
            None => scan::count_wanted(&self.scan, &self.wanted, self.limit),
        }
    }

    /// The type of a column, and its smallest and largest value; see [`Scan::bounds`].
    pub fn bounds(&self, column: &str) -> Result<(PrimitiveType, ColumnBounds)> {
        let (ty, bounds) = self.scan.bounds(column)?;
        Ok(match self.comparison {
            Some(_) => (ty, ColumnBounds::Unknown("rows of a changelog that are compared may be left out".to_owned())),
            None => (ty, bounds),
        })
    }

    /// The tasks of a plan of this scan; see [`Scan::tasks_of`].
    ///
    /// # Errors
    /// Compared rows, because no single task has all of them.
    pub fn tasks(&self, plan: &Plan, options: &SplitOptions, places: Option<&HashSet<usize>>) -> Result<Vec<ReadTask>> {
        if self.comparison.is_some() {
            let message =
                "a changelog of compared rows cannot be cut into tasks: no task has all rows that are compared";
            return Err(Error::invalid(message));
        }
        self.scan.tasks_of(plan, &self.wanted, options, places)
    }
}
