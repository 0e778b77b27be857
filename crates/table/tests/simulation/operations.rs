//! Converts the changes of a schedule to files and operations.

use std::collections::{BTreeMap, BTreeSet};

use icefield_format::expr::Expr;
use icefield_format::manifest::{DataFile, Entries};
use icefield_table::commit::{Content as _, Spec, Specs, keys_of_columns};
use icefield_table::operation::append::Append;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::replace_partitions::ReplacePartitions;
use icefield_table::operation::rewrite_files::RewriteFiles;
use icefield_table::operation::rewrite_manifests::RewriteManifests;
use icefield_table::operation::row_delta::RowDelta;
use icefield_table::storage::{Existing, Storage};

use crate::change::{By, Change, Equality, Isolation, Mode, Numbers, Replacing, Row, Slip, partition_of};
use crate::contents::{Content, Contents, Live, WHOLE, data_file, equality_deletes, position_deletes};

/// A change as an operation to commit.
pub enum Planned {
    Append(Append),
    Delta(RowDelta),
    Overwrite(Overwrite),
    Rewrite(RewriteFiles),
    Replace(ReplacePartitions),
    Drop(Delete),
    Manifests(RewriteManifests),
}

/// A data file, its rows with some keys and their positions, and its other rows.
type Touched = (DataFile, Vec<(usize, Row)>, Vec<Row>);

/// Creates the files of changes, based on the table that a writer has read.
pub struct Planner<'a> {
    pub version: u8,
    /// Number of the change, in the names of its files.
    pub number: usize,
    pub live: &'a Live,
    pub contents: &'a mut Contents,
    /// The snapshot that the writer has read.
    pub from: Option<i64>,
    pub sequence_number: i64,
    /// The storage for the files, without faults.
    pub storage: &'a Storage,
    /// The storage of the writer, which deletes the files of a failed change if the writer is alive.
    pub owner: &'a Storage,
    pub root: &'a str,
    /// The partition spec of new files.
    pub spec: i32,
    /// The number of files that all parts of the change have created.
    pub made: &'a mut usize,
}

impl Planner<'_> {
    /// Plans a change; `None` if it changes nothing.
    pub fn plan(&mut self, change: &Change) -> Option<Planned> {
        match change {
            Change::Append(keys) | Change::Stage(keys) => {
                let files = self.files(keys.iter().map(|key| (*key, self.number)).collect());
                let mut append = Append::new(files).unwrap();
                append.changes_mut().own_files(self.owner.clone());
                Some(Planned::Append(append))
            }
            Change::Delete(keys, Mode::MergeOnRead, isolation) => {
                self.merge_on_read(keys, false, *isolation, None).map(Planned::Delta)
            }
            Change::Update(keys, Mode::MergeOnRead, isolation) => {
                self.merge_on_read(keys, true, *isolation, None).map(Planned::Delta)
            }
            Change::Careless(keys, slip) => {
                self.merge_on_read(keys, false, Isolation::Serializable, Some(*slip)).map(Planned::Delta)
            }
            Change::Delete(keys, Mode::CopyOnWrite, isolation) => {
                self.copy_on_write(keys, false, *isolation).map(Planned::Overwrite)
            }
            Change::Update(keys, Mode::CopyOnWrite, isolation) => {
                self.copy_on_write(keys, true, *isolation).map(Planned::Overwrite)
            }
            Change::Erase(keys, how) => Some(Planned::Delta(self.by_key(keys, *how, false))),
            Change::Upsert(keys, how) => Some(Planned::Delta(self.by_key(keys, *how, true))),
            Change::Drop(partition) => {
                let mut delete = Delete::new();
                delete.delete_by_filter(of_partition(*partition));
                Some(Planned::Drop(delete))
            }
            Change::Rebuild(partition, by) => self.rebuild(*partition, *by),
            Change::StageRebuild(partition) => self.rebuild(*partition, By::Partition),
            Change::Replace(key) => {
                let file = self.file(vec![(*key, self.number)]);
                Some(Planned::Replace(self.replace(file)))
            }
            Change::Compact(partition, numbers) => self.compact(*partition, *numbers).map(Planned::Rewrite),
            Change::CompactDeletes => self.compact_deletes().map(Planned::Rewrite),
            Change::Convert(how) => self.convert(*how),
            Change::RemoveDangling => self.remove_dangling().map(Planned::Rewrite),
            Change::Manifests => {
                let by = ["partition".to_owned()];
                let clustering =
                    move |specs: &Specs, spec: &Spec, entries: &Entries| keys_of_columns(specs, spec, entries, &by);
                let clustering = Box::new(clustering);
                let mut rewrite = RewriteManifests::new();
                rewrite.cluster_by(clustering);
                self.from.map(|_| Planned::Manifests(rewrite))
            }
            Change::Expire(..)
            | Change::RemoveOrphans
            | Change::Branch
            | Change::Forward
            | Change::Pick
            | Change::Several(_) => None,
        }
    }

    /// Creates a new file and returns its path; its contents are recorded elsewhere.
    fn path(&mut self) -> String {
        *self.made += 1;
        let path = format!("{}/data/{}-{}", self.root, self.number, self.made);
        self.storage.put(&path, &b"x"[..], Existing::Refuse).unwrap();
        path
    }

    fn file(&mut self, rows: Vec<Row>) -> DataFile {
        let path = self.path();
        let file = data_file(path.clone(), &rows, self.spec);
        self.contents.insert(path, Content::Rows(rows));
        file
    }

    /// Creates one file per partition.
    fn files(&mut self, rows: Vec<Row>) -> Vec<DataFile> {
        if self.spec == WHOLE {
            return if rows.is_empty() { Vec::new() } else { vec![self.file(rows)] };
        }
        let mut by_partition: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
        rows.into_iter().for_each(|row| by_partition.entry(partition_of(row.0)).or_default().push(row));
        by_partition.into_values().map(|rows| self.file(rows)).collect()
    }

    /// The data files with rows of some keys, with these rows and their other rows.
    fn touched(&self, keys: &BTreeSet<i64>) -> Vec<Touched> {
        let split = |(file, number): &(DataFile, i64)| {
            let (matching, others): (Vec<_>, Vec<_>) =
                self.live.rows(self.contents, file, *number).into_iter().partition(|(_, row)| keys.contains(&row.0));
            (file.clone(), matching, others.into_iter().map(|(_, row)| row).collect())
        };
        self.live.data.iter().map(split).filter(|(_, matching, _)| !matching.is_empty()).collect()
    }

    /// Deletes rows by delete files, with the validations of Spark's writes.
    fn merge_on_read(
        &mut self,
        keys: &BTreeSet<i64>,
        updates: bool,
        isolation: Isolation,
        slip: Option<Slip>,
    ) -> Option<RowDelta> {
        let mut delta = RowDelta::new();
        delta.changes_mut().own_files(self.owner.clone());
        let mut rows = Vec::new();
        let touched = self.touched(keys);
        if touched.is_empty() {
            return None;
        }
        for (file, matching, others) in &touched {
            let mut positions: BTreeSet<usize> = matching.iter().map(|(position, _)| *position).collect();
            rows.extend(matching.iter().map(|(_, (key, _))| (*key, self.number)));
            if let Some(vector) = self.live.vector_of(&file.file_path) {
                let Content::Positions(_, older) = &self.contents[&vector.file_path] else { panic!("no positions") };
                positions.extend(older);
                if slip != Some(Slip::KeepsVector) {
                    delta.remove_deletes(vector.clone()).unwrap();
                }
            }
            if slip == Some(Slip::RemovesReferenced) && others.is_empty() {
                delta.remove_rows(file.clone()).unwrap();
            }
            let path = self.path();
            delta.add_deletes(position_deletes(path.clone(), file, positions.len(), self.version)).unwrap();
            self.contents.insert(path, Content::Positions(file.file_path.clone(), positions));
        }
        self.from.into_iter().for_each(|from| delta.validate_from_snapshot(from));
        delta.conflict_detection_filter(filter(keys));
        delta.validate_data_files_exist(touched.into_iter().map(|(file, ..)| file.file_path));
        if isolation == Isolation::Serializable {
            delta.validate_no_conflicting_data_files();
        }
        if updates {
            self.files(rows).into_iter().for_each(|file| delta.add_rows(file).unwrap());
            delta.validate_deleted_files();
            delta.validate_no_conflicting_delete_files();
        }
        Some(delta)
    }

    fn copy_on_write(&mut self, keys: &BTreeSet<i64>, updates: bool, isolation: Isolation) -> Option<Overwrite> {
        let mut overwrite = Overwrite::new();
        overwrite.changes_mut().own_files(self.owner.clone());
        let touched = self.touched(keys);
        if touched.is_empty() {
            return None;
        }
        for (file, matching, mut rows) in touched {
            if updates {
                rows.extend(matching.iter().map(|(_, (key, _))| (*key, self.number)));
            }
            self.files(rows).into_iter().for_each(|file| overwrite.add_file(file).unwrap());
            if let Some(vector) = self.live.vector_of(&file.file_path) {
                overwrite.remove_deletes(vector.clone()).unwrap();
            }
            overwrite.delete_file(file).unwrap();
        }
        self.from.into_iter().for_each(|from| overwrite.validate_from_snapshot(from));
        overwrite.conflict_detection_filter(filter(keys));
        overwrite.validate_no_conflicting_deletes();
        if isolation == Isolation::Serializable {
            overwrite.validate_no_conflicting_data();
        }
        Some(overwrite)
    }

    /// Equality deletes apply to all older files of their partition specs; only these specs need validation.
    fn by_key(&mut self, keys: &BTreeSet<i64>, how: Equality, adds: bool) -> RowDelta {
        let mut delta = RowDelta::new();
        delta.changes_mut().own_files(self.owner.clone());
        self.from.into_iter().for_each(|from| delta.validate_from_snapshot(from));
        let live = self.live.data.iter().map(|(file, _)| file.partition_spec_id);
        let specs: BTreeSet<i32> = match how.everywhere {
            true => BTreeSet::from([WHOLE]),
            false if self.live.data.is_empty() => BTreeSet::from([self.spec]),
            false => live.collect(),
        };
        let of = |partition: i32| keys.iter().copied().filter(|key| partition_of(*key) == partition).collect();
        for spec in &specs {
            let parts: Vec<BTreeSet<i64>> = if *spec == WHOLE { vec![keys.clone()] } else { vec![of(0), of(1)] };
            for part in parts.into_iter().filter(|part| !part.is_empty()) {
                let path = self.path();
                delta.add_deletes(equality_deletes(path.clone(), &part, *spec, how.bounds)).unwrap();
                self.contents.insert(path, Content::Keys(part));
            }
        }
        if !specs.contains(&WHOLE) {
            delta.validate_data_files_of_specs(specs);
        }
        let rows = keys.iter().filter(|_| adds).map(|key| (*key, self.number)).collect();
        self.files(rows).into_iter().for_each(|file| delta.add_rows(file).unwrap());
        delta
    }

    fn compact(&mut self, partition: i32, numbers: Numbers) -> Option<RewriteFiles> {
        let mut rewrite = RewriteFiles::new();
        rewrite.changes_mut().own_files(self.owner.clone());
        let mut rows = Vec::new();
        for (file, number) in &self.live.data {
            let Content::Rows(stored) = &self.contents[&file.file_path] else { panic!("no data") };
            if stored.iter().all(|(key, _)| partition_of(*key) != partition) {
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
        self.files(rows).into_iter().for_each(|file| rewrite.add_data_file(file).unwrap());
        if numbers == Numbers::OfRead {
            rewrite.data_sequence_number(self.sequence_number);
        }
        self.from.into_iter().for_each(|from| rewrite.validate_from_snapshot(from));
        Some(rewrite)
    }

    fn compact_deletes(&mut self) -> Option<RewriteFiles> {
        let several = |(file, _): &&(DataFile, i64)| self.live.positions_of(&file.file_path).count() > 1;
        let (of, _) = self.live.data.iter().find(several)?;
        let mut rewrite = RewriteFiles::new();
        rewrite.changes_mut().own_files(self.owner.clone());
        let (mut all, mut newest) = (BTreeSet::new(), 0);
        for (file, number) in self.live.positions_of(&of.file_path) {
            let Content::Positions(_, positions) = &self.contents[&file.file_path] else { panic!("no positions") };
            all.extend(positions);
            newest = newest.max(*number);
            rewrite.delete_delete_file(file.clone()).unwrap();
        }
        let path = self.path();
        let file = position_deletes(path.clone(), of, all.len(), self.version);
        rewrite.add_delete_file(file, Some(newest)).unwrap();
        self.contents.insert(path, Content::Positions(of.file_path.clone(), all));
        self.from.into_iter().for_each(|from| rewrite.validate_from_snapshot(from));
        Some(rewrite)
    }

    /// Deletes by position what keys have deleted; the equality deletes go.
    fn convert(&mut self, how: Replacing) -> Option<Planned> {
        let keys: Vec<(DataFile, i64)> = (self.live.deletes.iter())
            .filter(|(file, _)| matches!(self.contents[&file.file_path], Content::Keys(_)))
            .cloned()
            .collect();
        if keys.is_empty() {
            return None;
        }
        let (mut delta, mut rewrite) = (RowDelta::new(), RewriteFiles::new());
        delta.changes_mut().own_files(self.owner.clone());
        rewrite.changes_mut().own_files(self.owner.clone());
        let mut referenced = Vec::new();
        for (file, number) in self.live.data.clone() {
            if !keys.iter().any(|(delete, of)| *of > number && self.live.is_about(delete, &file)) {
                continue;
            }
            referenced.push(file.file_path.clone());
            let Content::Rows(rows) = &self.contents[&file.file_path] else { panic!("no data") };
            let left = self.live.rows(self.contents, &file, number);
            let left: BTreeSet<usize> = left.into_iter().map(|(position, _)| position).collect();
            let gone: BTreeSet<usize> = (0..rows.len()).filter(|position| !left.contains(position)).collect();
            if gone.is_empty() {
                continue;
            }
            let replaced: Vec<DataFile> =
                self.live.positions_of(&file.file_path).map(|(file, _)| file.clone()).collect();
            for older in replaced {
                delta.remove_deletes(older.clone()).unwrap();
                rewrite.delete_delete_file(older).unwrap();
            }
            let path = self.path();
            let new = position_deletes(path.clone(), &file, gone.len(), self.version);
            delta.add_deletes(new.clone()).unwrap();
            rewrite.add_delete_file(new, None).unwrap();
            self.contents.insert(path, Content::Positions(file.file_path, gone));
        }
        for (file, _) in keys {
            delta.remove_deletes(file.clone()).unwrap();
            rewrite.delete_delete_file(file).unwrap();
        }
        self.from.into_iter().for_each(|from| {
            delta.validate_from_snapshot(from);
            rewrite.validate_from_snapshot(from);
        });
        delta.validate_deleted_files();
        delta.validate_data_files_exist(referenced);
        Some(match how {
            Replacing::AsDeletes => Planned::Delta(delta),
            Replacing::AsFiles => Planned::Rewrite(rewrite),
        })
    }

    fn remove_dangling(&self) -> Option<RewriteFiles> {
        let mut rewrite = RewriteFiles::new();
        let dangling = |(file, number): &&(DataFile, i64)| {
            let mut of = self.live.data.iter().filter(|(data, _)| self.live.is_about(file, data));
            match &self.contents[&file.file_path] {
                Content::Keys(_) => of.all(|(_, data)| number <= data),
                Content::Positions(path, _) if file.file_format == "PUFFIN" => {
                    !self.live.data.iter().any(|(data, _)| data.file_path == *path)
                }
                _ => of.all(|(_, data)| number < data),
            }
        };
        let files: Vec<&(DataFile, i64)> = self.live.deletes.iter().filter(dangling).collect();
        files.iter().for_each(|(file, _)| rewrite.delete_delete_file(file.clone()).unwrap());
        self.from.into_iter().for_each(|from| rewrite.validate_from_snapshot(from));
        (!files.is_empty()).then_some(rewrite)
    }

    /// Rewrites all rows of a partition with a new number.
    fn rebuild(&mut self, partition: i32, by: By) -> Option<Planned> {
        let rows: Vec<Row> = self.live.all(self.contents);
        let own = rows.into_iter().filter(|(key, _)| partition_of(*key) == partition);
        let rows: Vec<Row> = own.map(|(key, _)| (key, self.number)).collect();
        if rows.is_empty() {
            return None;
        }
        let file = self.file(rows);
        if by == By::Partition {
            return Some(Planned::Replace(self.replace(file)));
        }
        let mut overwrite = Overwrite::new();
        overwrite.changes_mut().own_files(self.owner.clone());
        overwrite.overwrite_by_filter(of_partition(partition));
        overwrite.add_file(file).unwrap();
        self.from.into_iter().for_each(|from| overwrite.validate_from_snapshot(from));
        overwrite.validate_no_conflicting_data();
        overwrite.validate_no_conflicting_deletes();
        Some(Planned::Overwrite(overwrite))
    }

    fn replace(&mut self, file: DataFile) -> ReplacePartitions {
        let mut replace = ReplacePartitions::new();
        replace.changes_mut().own_files(self.owner.clone());
        replace.add_file(file).unwrap();
        self.from.into_iter().for_each(|from| replace.validate_from_snapshot(from));
        replace.validate_no_conflicting_data();
        replace.validate_no_conflicting_deletes();
        replace
    }
}

fn of_partition(partition: i32) -> Expr {
    Expr::parse(&format!("p = {partition}")).unwrap()
}

fn filter(keys: &BTreeSet<i64>) -> Expr {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    Expr::parse(&format!("key IN ({})", keys.join(", "))).unwrap()
}
