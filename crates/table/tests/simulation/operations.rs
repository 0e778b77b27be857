//! What the writers of a schedule do: each change as rows see it, and as files.

use std::collections::{BTreeMap, BTreeSet};

use icefield_format::expr::Expr;
use icefield_format::manifest::DataFile;
use icefield_table::operation::append::Append;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::replace_partitions::ReplacePartitions;
use icefield_table::operation::rewrite_files::RewriteFiles;
use icefield_table::operation::row_delta::RowDelta;

use crate::contents::{Content, Contents, Live, Row, data_file, equality_deletes, partition_of, position_deletes};
use crate::schedule::Left;

/// A change of the rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Adds a row for each key.
    Append(BTreeSet<i64>),
    /// Deletes the rows of keys, by delete files or by files in their place.
    Delete(BTreeSet<i64>, Mode),
    /// Writes the rows of keys anew.
    Update(BTreeSet<i64>, Mode),
    /// Deletes the rows of keys, whatever they are by then, and adds one for each.
    Upsert(BTreeSet<i64>),
    /// Puts the rows of one partition into one file.
    Compact(i32),
    /// Replaces a partition by a row.
    Replace(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    CopyOnWrite,
    MergeOnRead,
}

impl Change {
    /// What the change with this number makes of rows.
    pub fn apply(&self, number: usize, rows: &mut Vec<Row>) {
        match self {
            Self::Append(keys) => rows.extend(keys.iter().map(|key| (*key, number))),
            Self::Delete(keys, _) => rows.retain(|(key, _)| !keys.contains(key)),
            Self::Update(keys, _) => {
                rows.iter_mut().filter(|(key, _)| keys.contains(key)).for_each(|row| row.1 = number);
            }
            Self::Upsert(keys) => {
                rows.retain(|(key, _)| !keys.contains(key));
                rows.extend(keys.iter().map(|key| (*key, number)));
            }
            Self::Compact(_) => {}
            Self::Replace(key) => {
                rows.retain(|(other, _)| partition_of(*other) != partition_of(*key));
                rows.push((*key, number));
            }
        }
        rows.sort_unstable();
    }
}

/// A change as it is committed.
pub enum Planned {
    Append(Append),
    Delta(RowDelta),
    Overwrite(Overwrite),
    Rewrite(RewriteFiles),
    Replace(ReplacePartitions),
}

/// A data file, its rows of some keys with their positions, and its other rows.
type Touched = (DataFile, Vec<(usize, Row)>, Vec<Row>);

/// Makes files of changes, from the table as a writer sees it.
pub struct Planner<'a> {
    pub version: u8,
    /// Number of the change, in the names of its files.
    pub number: usize,
    pub live: &'a Live,
    pub contents: &'a mut Contents,
    /// The snapshot that the writer has read.
    pub from: Option<i64>,
    pub sequence_number: i64,
    /// The check that is left out.
    pub left_out: Option<Left>,
    made: usize,
}

impl<'a> Planner<'a> {
    pub fn new(
        version: u8,
        number: usize,
        live: &'a Live,
        contents: &'a mut Contents,
        (from, sequence_number): (Option<i64>, i64),
        left_out: Option<Left>,
    ) -> Self {
        Self { version, number, live, contents, from, sequence_number, left_out, made: 0 }
    }

    /// The change as files; none where it changes nothing.
    pub fn plan(&mut self, change: &Change) -> Option<Planned> {
        match change {
            Change::Append(keys) => {
                let files = self.files(keys.iter().map(|key| (*key, self.number)).collect());
                Some(Planned::Append(Append::new(files).unwrap()))
            }
            Change::Delete(keys, Mode::MergeOnRead) => self.merge_on_read(keys, false).map(Planned::Delta),
            Change::Update(keys, Mode::MergeOnRead) => self.merge_on_read(keys, true).map(Planned::Delta),
            Change::Delete(keys, Mode::CopyOnWrite) => self.copy_on_write(keys, false).map(Planned::Overwrite),
            Change::Update(keys, Mode::CopyOnWrite) => self.copy_on_write(keys, true).map(Planned::Overwrite),
            Change::Upsert(keys) => Some(Planned::Delta(self.upsert(keys))),
            Change::Compact(partition) => self.compact(*partition).map(Planned::Rewrite),
            Change::Replace(key) => Some(Planned::Replace(self.replace(*key))),
        }
    }

    fn checks(&self, check: Left) -> bool {
        self.left_out != Some(check)
    }

    fn path(&mut self) -> String {
        self.made += 1;
        format!("file-{}-{}", self.number, self.made)
    }

    fn file(&mut self, rows: Vec<Row>) -> DataFile {
        let path = self.path();
        let file = data_file(path.clone(), &rows);
        self.contents.insert(path, Content::Rows(rows));
        file
    }

    /// One file a partition.
    fn files(&mut self, rows: Vec<Row>) -> Vec<DataFile> {
        let mut by_partition: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
        rows.into_iter().for_each(|row| by_partition.entry(partition_of(row.0)).or_default().push(row));
        by_partition.into_values().map(|rows| self.file(rows)).collect()
    }

    /// The data files that have rows of some keys, with these and their other rows.
    fn touched(&self, keys: &BTreeSet<i64>) -> Vec<Touched> {
        let split = |(file, number): &(DataFile, i64)| {
            let (matching, others): (Vec<_>, Vec<_>) =
                self.live.rows(self.contents, file, *number).into_iter().partition(|(_, row)| keys.contains(&row.0));
            (file.clone(), matching, others.into_iter().map(|(_, row)| row).collect())
        };
        self.live.data.iter().map(split).filter(|(_, matching, _)| !matching.is_empty()).collect()
    }

    /// The checks of Spark's writes with serializable isolation.
    fn merge_on_read(&mut self, keys: &BTreeSet<i64>, updates: bool) -> Option<RowDelta> {
        let mut delta = RowDelta::new();
        let mut rows = Vec::new();
        let touched = self.touched(keys);
        if touched.is_empty() {
            return None;
        }
        for (file, matching, _) in &touched {
            let mut positions: BTreeSet<usize> = matching.iter().map(|(position, _)| *position).collect();
            rows.extend(matching.iter().map(|(_, (key, _))| (*key, self.number)));
            if let Some(vector) = self.live.vector_of(&file.file_path) {
                let Content::Positions(_, older) = &self.contents[&vector.file_path] else { panic!("no positions") };
                positions.extend(older);
                delta.remove_deletes(vector.clone()).unwrap();
            }
            let path = self.path();
            delta.add_deletes(position_deletes(path.clone(), file, positions.len(), self.version)).unwrap();
            self.contents.insert(path, Content::Positions(file.file_path.clone(), positions));
        }
        self.from.into_iter().for_each(|from| delta.validate_from_snapshot(from));
        delta.conflict_detection_filter(filter(keys));
        if self.checks(Left::DataFilesExist) {
            delta.validate_data_files_exist(touched.into_iter().map(|(file, ..)| file.file_path));
        }
        if self.checks(Left::NewData) {
            delta.validate_no_conflicting_data_files();
        }
        if updates {
            self.files(rows).into_iter().for_each(|file| delta.add_rows(file).unwrap());
            delta.validate_deleted_files();
            if self.checks(Left::NewDeletes) {
                delta.validate_no_conflicting_delete_files();
            }
        }
        Some(delta)
    }

    fn copy_on_write(&mut self, keys: &BTreeSet<i64>, updates: bool) -> Option<Overwrite> {
        let mut overwrite = Overwrite::new();
        let touched = self.touched(keys);
        if touched.is_empty() {
            return None;
        }
        for (file, matching, mut rows) in touched {
            if updates {
                rows.extend(matching.iter().map(|(_, (key, _))| (*key, self.number)));
            }
            if !rows.is_empty() {
                overwrite.add_file(self.file(rows)).unwrap();
            }
            if let Some(vector) = self.live.vector_of(&file.file_path) {
                overwrite.remove_deletes(vector.clone()).unwrap();
            }
            overwrite.delete_file(file).unwrap();
        }
        self.from.into_iter().for_each(|from| overwrite.validate_from_snapshot(from));
        overwrite.conflict_detection_filter(filter(keys));
        if self.checks(Left::NewDeletes) {
            overwrite.validate_no_conflicting_deletes();
        }
        if self.checks(Left::NewData) {
            overwrite.validate_no_conflicting_data();
        }
        Some(overwrite)
    }

    /// Deletes by keys apply to whatever is there before them: nothing is checked.
    fn upsert(&mut self, keys: &BTreeSet<i64>) -> RowDelta {
        let mut delta = RowDelta::new();
        self.from.into_iter().for_each(|from| delta.validate_from_snapshot(from));
        for partition in 0..2 {
            let own: BTreeSet<i64> = keys.iter().copied().filter(|key| partition_of(*key) == partition).collect();
            if own.is_empty() {
                continue;
            }
            let path = self.path();
            delta.add_deletes(equality_deletes(path.clone(), partition, own.len())).unwrap();
            delta.add_rows(self.file(own.iter().map(|key| (*key, self.number)).collect())).unwrap();
            self.contents.insert(path, Content::Keys(own));
        }
        delta
    }

    fn compact(&mut self, partition: i32) -> Option<RewriteFiles> {
        let mut rewrite = RewriteFiles::new();
        let mut rows = Vec::new();
        for (file, number) in &self.live.data {
            let Content::Rows(stored) = &self.contents[&file.file_path] else { panic!("no data") };
            if partition_of(stored[0].0) != partition {
                continue;
            }
            rows.extend(self.live.rows(self.contents, file, *number).into_iter().map(|(_, row)| row));
            rewrite.delete_data_file(file.clone()).unwrap();
            if let Some(vector) = self.live.vector_of(&file.file_path) {
                rewrite.delete_delete_file(vector.clone()).unwrap();
            }
        }
        if rows.is_empty() {
            return None;
        }
        rewrite.add_data_file(self.file(rows)).unwrap();
        rewrite.data_sequence_number(self.sequence_number);
        self.from.into_iter().for_each(|from| rewrite.validate_from_snapshot(from));
        Some(rewrite)
    }

    fn replace(&mut self, key: i64) -> ReplacePartitions {
        let mut replace = ReplacePartitions::new();
        replace.add_file(self.file(vec![(key, self.number)])).unwrap();
        self.from.into_iter().for_each(|from| replace.validate_from_snapshot(from));
        if self.checks(Left::NewData) {
            replace.validate_no_conflicting_data();
        }
        if self.checks(Left::NewDeletes) {
            replace.validate_no_conflicting_deletes();
        }
        replace
    }
}

fn filter(keys: &BTreeSet<i64>) -> Expr {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    Expr::parse(&format!("key IN ({})", keys.join(", "))).unwrap()
}
