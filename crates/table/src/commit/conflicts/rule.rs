//! The rules by which a change conflicts with what others have committed, by name: a simulation leaves some out, to see
//! that their absence is noticed. Builds that are published always have all of them.

/// What must not have happened since a change was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A data file was added.
    AddedData,
    /// A data file was removed.
    RemovedData,
    /// A data file that new deletes are for was removed.
    MissingData,
    /// A delete file was added.
    AddedDeletes,
    /// A delete file was added that applies to a file which is removed.
    DeletesOfRemoved,
    /// Likewise, to rows of it that the change does not speak of: they are written again.
    DeletesBeside,
    /// An equality delete was added for a file whose rows get another place, where it does not apply any more.
    DeletesOfMoved,
    /// An equality delete for files of all partitions was added, while some are replaced.
    DeletesEverywhere,
    /// A data file was added that is of none of the partition specs which new equality deletes are for.
    OtherSpecs,
    /// The snapshot that a change was planned in is one of its own transaction, and was made anew.
    StartMadeAnew,
    /// A deletion vector was added for a data file that gets another one. Of what this refuses nothing is left to
    /// [`Rule::SecondVector`] but vectors that have gone again: it only names the snapshot, and needs no manifests but new ones.
    AddedVectors,
    /// A data file that gets a deletion vector has another one, by whatever snapshot.
    SecondVector,
    /// A file that is to be removed is not in the table.
    RemovedIsThere,
    /// A data file is removed by the very change that adds deletes for it.
    RemovedAndReferenced,
}

impl Rule {
    /// All of them.
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

/// Leaves rules out of all commits of this thread. For simulations, in builds with debug assertions.
#[cfg(debug_assertions)]
pub fn leave_out(rules: &'static [Rule]) {
    LEFT_OUT.set(rules);
}

/// Whether a rule holds.
#[cfg(debug_assertions)]
pub(crate) fn holds(rule: Rule) -> bool {
    !LEFT_OUT.get().contains(&rule)
}

/// Whether a rule holds.
#[cfg(not(debug_assertions))]
pub(crate) fn holds(_: Rule) -> bool {
    true
}
