//! Turns files into tasks: large files are cut at their split offsets and small pieces packed together, as in Java's
//! `planTasks`.

use std::collections::HashSet;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use icefield_format::manifest::Entries;
use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{ADAPTIVE_SPLIT_SIZE, SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_SIZE};

use super::cut::{MOST_PIECES, Packer, Sizes};
use crate::error::{Error, Result};
use crate::plan::deletes::links::Sums;
use crate::plan::{Plan, PlannedManifest};

/// Tasks are not made smaller than this to get more of them.
const LEAST_ADAPTED: i64 = 16 << 20;

/// How files are cut and packed (`read.split.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// Target weight of a task, in bytes.
    pub split_size: i64,
    /// Number of tasks that are open for more pieces.
    pub lookback: usize,
    /// Minimum weight of a piece, in bytes: the cost of opening a file.
    pub open_file_cost: i64,
    /// Number of tasks that run concurrently: if there would be fewer, tasks are made smaller, down to 16 MiB.
    pub parallelism: Option<usize>,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self {
            split_size: SPLIT_SIZE.default,
            lookback: SPLIT_LOOKBACK.default as usize,
            open_file_cost: SPLIT_OPEN_FILE_COST.default,
            parallelism: None,
        }
    }
}

impl SplitOptions {
    /// The options that the table's properties set.
    ///
    /// # Errors
    /// A property that is not an integer. Sizes that cannot be used are refused by [`Plan::tasks`], as in Java: others may
    /// take their place until then.
    pub fn of_table(metadata: &TableMetadata) -> Result<Self> {
        let properties = metadata.properties();
        Ok(Self {
            split_size: SPLIT_SIZE.read(properties)?,
            lookback: usize::try_from(SPLIT_LOOKBACK.read(properties)?).unwrap_or_default(),
            open_file_cost: SPLIT_OPEN_FILE_COST.read(properties)?,
            parallelism: None,
        })
    }

    /// The task weight for files of these weights, like `adjustSplitSize` in Java's Spark connector. There a file
    /// weighs only its bytes, which makes tasks of many small files smaller than the cost of opening them.
    fn adapted_size(&self, files: impl Iterator<Item = i64>) -> i64 {
        let Some(parallelism) = self.parallelism.and_then(|tasks| i64::try_from(tasks).ok()) else {
            return self.split_size;
        };
        let all = files.fold(0i64, i64::saturating_add);
        let tasks = all.saturating_add(self.split_size - 1) / self.split_size;
        match tasks < parallelism {
            true => (all / parallelism).max(self.split_size.min(LEAST_ADAPTED)),
            false => self.split_size,
        }
    }
}

/// A caller's split options; unset ones come from the table's properties.
#[derive(Debug, Clone, Copy, Default)]
pub struct SplitOverrides {
    /// Target weight of a task, in bytes.
    pub split_size: Option<i64>,
    /// Number of tasks that are open for more pieces.
    pub lookback: Option<usize>,
    /// Minimum weight of a piece, in bytes.
    pub open_file_cost: Option<i64>,
    /// Number of concurrent tasks; used if no size is given and `read.split.adaptive-size.enabled` is true.
    pub parallelism: Option<usize>,
}

impl SplitOverrides {
    /// The options for a table.
    ///
    /// # Errors
    /// As [`SplitOptions::of_table`].
    pub fn for_table(&self, metadata: &TableMetadata) -> Result<SplitOptions> {
        let table = SplitOptions::of_table(metadata)?;
        let is_adaptive = ADAPTIVE_SPLIT_SIZE.read(metadata.properties()) && self.split_size.is_none();
        Ok(SplitOptions {
            split_size: self.split_size.unwrap_or(table.split_size),
            lookback: self.lookback.unwrap_or(table.lookback),
            open_file_cost: self.open_file_cost.unwrap_or(table.open_file_cost),
            parallelism: self.parallelism.filter(|_| is_adaptive),
        })
    }
}

/// A part of a data file: row groups, stripes or blocks that begin within these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index of the manifest in the plan.
    pub manifest: usize,
    /// Index of the file in the manifest.
    pub row: usize,
    /// First byte.
    pub start: i64,
    /// Bytes.
    pub length: i64,
}

impl Plan {
    /// Cuts and packs the files of the plan.
    pub fn tasks(&self, options: &SplitOptions) -> Result<Vec<Vec<Piece>>> {
        self.tasks_among(options, None)
    }

    /// Cuts and packs all files of the plan, or those at some indices, counted over the manifests.
    pub fn tasks_among(&self, options: &SplitOptions, places: Option<&HashSet<usize>>) -> Result<Vec<Vec<Piece>>> {
        let wanted = || {
            self.manifests.iter().enumerate().zip(self.first_places()).flat_map(move |((place, manifest), first)| {
                let rows = 0..manifest.entries.len();
                rows.filter(move |row| places.is_none_or(|places| places.contains(&first.saturating_add(*row))))
                    .map(move |row| (place, manifest, row))
            })
        };
        self.tasks_from(options, wanted)
    }

    /// Cuts and packs some files, each given by the indices of its manifest and within it.
    pub(crate) fn tasks_of_files(&self, options: &SplitOptions, files: &[(usize, usize)]) -> Result<Vec<Vec<Piece>>> {
        let wanted = || files.iter().filter_map(|(place, row)| Some((*place, self.manifests.get(*place)?, *row)));
        self.tasks_from(options, wanted)
    }

    fn tasks_from<'p, I>(&'p self, options: &SplitOptions, wanted: impl Fn() -> I) -> Result<Vec<Vec<Piece>>>
    where
        I: Iterator<Item = (usize, &'p PlannedManifest, usize)>,
    {
        if options.parallelism == Some(0) {
            return Err(Error::invalid(
                "cannot split into tasks of which none runs at a time: parallelism must be positive",
            ));
        }
        if options.split_size <= 0 || options.lookback == 0 || options.open_file_cost < 0 {
            return Err(Error::invalid(format!(
                "cannot split into tasks of {} bytes, of {} at a time, with {} bytes for opening a file: all must be positive",
                options.split_size, options.lookback, options.open_file_cost
            )));
        }
        let mut sizes = Sums::new(|place| self.deletes.content_size(place));
        let mut weight_of_deletes = |manifest, row| weight_of_deletes(&mut sizes, manifest, row, options);
        let weights = wanted().map(|(_, manifest, row)| {
            let (bytes, least) = weight_of_deletes(manifest, row);
            manifest.entries.file_size_in_bytes.value(row).max(0).saturating_add(bytes).max(least)
        });
        let split_size = options.adapted_size(weights);
        let mut packer = Packer::new(split_size, options.lookback);
        let mut total = 0usize;
        for (place, manifest, row) in wanted() {
            let (bytes, least) = weight_of_deletes(manifest, row);
            with_sizes(&manifest.entries, row, |sizes| {
                total = total.saturating_add(sizes.count(split_size));
                if total > MOST_PIECES {
                    return Err(too_many(&manifest.entries, row, split_size));
                }
                sizes.cut(split_size, |start, length| {
                    let piece = Piece { manifest: place, row, start, length };
                    packer.add(piece, length.saturating_add(bytes).max(least));
                });
                Ok(())
            })?;
        }
        Ok(packer.finish().into_iter().map(merged).collect())
    }
}

/// Bytes of a file's deletes, and the minimum weight of one of its pieces.
fn weight_of_deletes<F: Fn(u32) -> Result<i64>>(
    sizes: &mut Sums<F>,
    manifest: &PlannedManifest,
    row: usize,
    options: &SplitOptions,
) -> (i64, i64) {
    let linked = [manifest.deletes(row), manifest.deleted_by(row)];
    let bytes = linked.iter().fold(0i64, |sum, linked| sum.saturating_add(sizes.of(*linked).unwrap_or(0)));
    let opened = linked.iter().fold(1usize, |sum, linked| sum.saturating_add(linked.len()));
    (bytes, options.open_file_cost.saturating_mul(i64::try_from(opened).unwrap_or(i64::MAX)))
}

/// Calls `run` with the sizes of a file.
pub(super) fn with_sizes<T>(entries: &Entries, row: usize, run: impl FnOnce(Sizes<'_>) -> T) -> T {
    let size = entries.file_size_in_bytes.value(row);
    if !entries.split_offsets.is_valid(row) {
        return run(Sizes { size, offsets: None });
    }
    let offsets = entries.split_offsets.value(row);
    run(Sizes { size, offsets: Some(offsets.as_primitive::<Int64Type>().values()) })
}

fn too_many(entries: &Entries, row: usize, split_size: i64) -> Error {
    let (path, size) = (entries.file_path.value(row), entries.file_size_in_bytes.value(row));
    Error::invalid(format!(
        "cannot split into more than {MOST_PIECES} pieces of {split_size} bytes (met at {path}, of {size} bytes by its \
         manifest): raise the split size (read.split.target-size)"
    ))
}

/// Merges adjacent pieces of one file.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match out.last_mut() {
            Some(last)
                if (last.manifest, last.row) == (piece.manifest, piece.row)
                    && last.start + last.length == piece.start =>
            {
                last.length += piece.length;
            }
            _ => out.push(piece),
        }
    }
    out
}
