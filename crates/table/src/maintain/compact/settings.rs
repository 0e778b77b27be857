//! The settings of a compaction: Java's options of `rewrite_data_files`, by name.

use std::sync::Arc;

use icefield_format::metadata::properties::WRITE_TARGET_FILE_SIZE_BYTES;
use icefield_format::metadata::{StringMap, TableMetadata};
use icefield_format::spec::PartitionSpec;

use super::super::options::{Given, wrong};
use super::super::sizes::{JobOrder, Sizes};
use super::request::Compaction;
use super::strategy::{Form, Strategy};
use crate::error::Result;

const OPERATION: &str = "compaction";
const OUTPUT_SPEC: &str = "output-spec-id";

/// The settings of a compaction.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) strategy: Strategy,
    pub(super) sizes: Sizes,
    /// The partition spec of new files.
    pub(super) spec: Arc<PartitionSpec>,
    pub(super) rules: Rules,
}

/// The settings that do not depend on the table.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) order: JobOrder,
    /// A file with this many delete files is rewritten whatever its size.
    pub(super) delete_files: usize,
    /// A file that has lost this share of its rows is rewritten whatever its size.
    pub(super) delete_ratio: f64,
    /// Maximum number of files to rewrite.
    pub(super) most_files: usize,
    /// Groups that are rewritten at a time.
    pub(super) concurrent: usize,
    /// Maximum numbers of commits and of failed ones; `None` makes one commit.
    pub(super) partial: Option<(usize, usize)>,
    /// Whether new files have the sequence number of the snapshot that was read.
    pub(super) starting_number: bool,
    /// Whether delete files that no longer apply are removed afterwards.
    pub(super) dangling: bool,
}

impl Settings {
    /// Reads the settings of a request.
    ///
    /// # Errors
    /// Unknown options, and values that are not allowed.
    pub(super) fn of(request: &Compaction, metadata: &TableMetadata) -> Result<Self> {
        let mut given = Given::new(&request.options);
        let given = &mut given;
        let sizes = Sizes::of(given, WRITE_TARGET_FILE_SIZE_BYTES.read_valid(metadata.properties())?)?;
        let spec_id = given.integer(OUTPUT_SPEC, i64::from(metadata.default_spec_id()), 0)?;
        let spec = i32::try_from(spec_id).ok().and_then(|id| metadata.partition_spec(id)).ok_or_else(|| {
            let known: Vec<String> = metadata.partition_specs().iter().map(|spec| spec.spec_id.to_string()).collect();
            wrong(OUTPUT_SPEC, &format!("the id of a partition spec ({})", known.join(", ")), &spec_id.to_string())
        })?;
        let form = Form::of(request.strategy.as_deref(), request.sort_order.as_deref(), given)?;
        let strategy = Strategy::of(form, metadata, spec, request.case_sensitive)?;
        let settings = Self { strategy, sizes, spec: spec.clone(), rules: Rules::of(given)? };
        std::mem::replace(given, Given::new(&request.options)).end(OPERATION)?;
        Ok(settings)
    }
}

impl Rules {
    fn of(given: &mut Given<'_>) -> Result<Self> {
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let in_parts = given.flag("partial-progress.enabled", false)?;
        let commits = given.integer("partial-progress.max-commits", 10, 1)?;
        let failed = given.integer("partial-progress.max-failed-commits", commits, 0)?;
        Ok(Self {
            order: JobOrder::of(given)?,
            delete_files: size(given.integer("delete-file-threshold", i64::from(i32::MAX), 0)?),
            delete_ratio: given.number("delete-ratio-threshold", 0.3, "a number above 0, up to 1", |ratio| {
                ratio > 0.0 && ratio <= 1.0
            })?,
            most_files: size(given.integer("max-files-to-rewrite", i64::MAX, 1)?),
            concurrent: size(given.integer("max-concurrent-file-group-rewrites", 5, 1)?),
            partial: in_parts.then_some((size(commits), size(failed))),
            starting_number: given.flag("use-starting-sequence-number", true)?,
            dangling: given.flag("remove-dangling-deletes", false)?,
        })
    }
}

/// Rejects arguments of a compaction that are wrong for every table. What depends on the table, such as names of columns
/// and ids of partition specs, is not checked.
///
/// # Errors
/// Unknown options, values that are not allowed, and a sort order that does not fit the strategy.
pub fn check_compaction(strategy: Option<&str>, sort_order: Option<&str>, options: &StringMap) -> Result<()> {
    let mut given = Given::new(options);
    Sizes::check(&mut given)?;
    given.integer(OUTPUT_SPEC, 0, 0)?;
    Form::of(strategy, sort_order, &mut given)?.check()?;
    Rules::of(&mut given)?;
    given.end(OPERATION)
}
