//! Names of the rules by which a change conflicts with other commits. A simulation leaves some out to check that it
//! notices their absence. Published builds always apply all of them.

/// A condition that makes a change conflict with commits since it was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A data file was added.
    AddedData,
    /// A data file was removed.
    RemovedData,
    /// A data file for which the change adds deletes was removed.
    MissingData,
    /// A delete file was added.
    AddedDeletes,
    /// A delete file was added that applies to a data file which the change removes.
    DeletesOfRemoved,
    /// The same, but the deleted rows are not part of the change: it would write them again.
    DeletesBeside,
    /// An equality delete was added for a file whose rows move to another file, to which it no longer applies.
    DeletesOfMoved,
    /// An equality delete for files of all partitions was added, while the change replaces some partitions.
    DeletesEverywhere,
    /// A data file was added with a partition spec that none of the change's new equality deletes has.
    OtherSpecs,
    /// The snapshot that the change was planned on belongs to the same transaction and was made again by a retry.
    StartMadeAnew,
    /// A deletion vector was added for a data file that gets another one from the change. [`Rule::SecondVector`]
    /// catches the same conflict if that vector still exists; this rule also names the snapshot, and reads only new
    /// manifests.
    AddedVectors,
    /// A data file that gets a deletion vector already has another one, from any snapshot.
    SecondVector,
    /// A file to be removed is not in the table.
    RemovedIsThere,
    /// The change removes a data file and adds deletes for it.
    RemovedAndReferenced,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 14] = [
        Self::AddedData,
        Self::RemovedData,
        Self::MissingData,
        Self::AddedDeletes,
        Self::DeletesOfRemoved,
        Self::DeletesBeside,
        Self::DeletesOfMoved,
        Self::DeletesEverywhere,
        Self::OtherSpecs,
        Self::StartMadeAnew,
        Self::AddedVectors,
        Self::SecondVector,
        Self::RemovedIsThere,
        Self::RemovedAndReferenced,
    ];
}

#[cfg(debug_assertions)]
thread_local! {
    static LEFT_OUT: std::cell::Cell<&'static [Rule]> = const { std::cell::Cell::new(&[]) };
}

/// Leaves rules out of all commits of this thread: for simulations, in builds with debug assertions.
#[cfg(debug_assertions)]
pub fn leave_out(rules: &'static [Rule]) {
    LEFT_OUT.set(rules);
}

/// Whether a rule is applied.
#[cfg(debug_assertions)]
pub(crate) fn holds(rule: Rule) -> bool {
    !LEFT_OUT.get().contains(&rule)
}

/// Whether a rule is applied.
#[cfg(not(debug_assertions))]
pub(crate) fn holds(_: Rule) -> bool {
    true
}
