//! Turns a plan into tasks for readers.

use std::collections::HashSet;
use std::sync::Arc;

use super::part::{FilePart, Parts};
use super::split::{Piece, SplitOptions};
use crate::error::Result;
use crate::plan::projection::wanted::Wanted;
use crate::plan::{Plan, Scan};

/// Parts of files that one worker reads.
#[derive(Debug, Clone)]
pub struct ReadTask {
    /// The request, shared by all tasks of a scan.
    pub wanted: Arc<Wanted>,
    /// The parts, in order.
    pub parts: Vec<FilePart>,
}

impl Scan {
    /// The tasks of a plan of this scan.
    pub fn tasks(&self, plan: &Plan, wanted: &Arc<Wanted>, options: &SplitOptions) -> Result<Vec<ReadTask>> {
        self.tasks_of(plan, wanted, options, None)
    }

    /// The tasks of a plan of this scan: of all files, or of those at some indices, counted over the plan's
    /// manifests.
    pub fn tasks_of(
        &self,
        plan: &Plan,
        wanted: &Arc<Wanted>,
        options: &SplitOptions,
        places: Option<&HashSet<usize>>,
    ) -> Result<Vec<ReadTask>> {
        self.tasks_with(plan, wanted, &plan.tasks_among(options, places)?)
    }

    /// The tasks of a plan of this scan: of some files, each given by the indices of its manifest and within it.
    pub(crate) fn tasks_of_files(
        &self,
        plan: &Plan,
        wanted: &Arc<Wanted>,
        options: &SplitOptions,
        files: &[(usize, usize)],
    ) -> Result<Vec<ReadTask>> {
        self.tasks_with(plan, wanted, &plan.tasks_of_files(options, files)?)
    }

    fn tasks_with(&self, plan: &Plan, wanted: &Arc<Wanted>, tasks: &[Vec<Piece>]) -> Result<Vec<ReadTask>> {
        // Shared by all tasks, because the same delete files apply to many of them.
        let mut parts = Parts::new(self, plan, tasks.iter().flatten())?;
        let task = |pieces: &Vec<Piece>| {
            let parts = pieces.iter().map(|piece| parts.part(piece)).collect::<Result<_>>()?;
            Ok(ReadTask { wanted: wanted.clone(), parts })
        };
        tasks.iter().map(task).collect()
    }
}

impl Plan {
    /// Every file of the plan as one piece, in order.
    pub fn whole_files(&self) -> Vec<Piece> {
        let files = self.manifests.iter().enumerate().flat_map(|(manifest, planned)| {
            let lengths = planned.entries.file_size_in_bytes.values().iter().enumerate();
            lengths.map(move |(row, length)| Piece { manifest, row, start: 0, length: *length })
        });
        files.collect()
    }

    /// For each manifest the index of its first file among all files of the plan.
    pub fn first_places(&self) -> Vec<usize> {
        let lengths = self.manifests.iter().map(|manifest| manifest.entries.len());
        lengths.scan(0, |next: &mut usize, length| Some(std::mem::replace(next, next.saturating_add(length)))).collect()
    }
}
