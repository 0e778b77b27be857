//! Maps metadata tables to their modules, and scans them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use icefield_format::expr::BoundExpr;
use icefield_format::metadata::Snapshot;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, Schema};

use super::partition::PartitionUnion;
use super::{
    Inspect, MetadataTable, Part, Read, Selection, entries, files, history, manifests, partitions, position_deletes,
    readable_metrics,
};
use crate::error::{Error, Result};
use crate::plan::{At, Scan};
use crate::snapshot::manifests::list_key;
use crate::stream::{BatchStream, OpenTask};

impl Inspect {
    /// The columns of a metadata table.
    pub fn schema(&self, table: MetadataTable) -> Result<Schema> {
        self.schema_with(table, &PartitionUnion::of(&self.metadata)?)
    }

    fn schema_with(&self, table: MetadataTable, partition: &PartitionUnion) -> Result<Schema> {
        use MetadataTable as T;
        let columns: Vec<Field> = match table {
            T::Snapshots => history::snapshots_fields(),
            T::History => history::history_fields(),
            T::MetadataLogEntries => history::metadata_log_fields(),
            T::Refs => history::refs_fields(),
            T::Manifests => manifests::fields(),
            T::AllManifests => manifests::all_fields(),
            T::Partitions => partitions::fields(&partition.union),
            T::PositionDeletes => return position_deletes::schema(&self.metadata, &partition.union),
            T::Entries | T::AllEntries => {
                readable_metrics::joined(entries::fields(&partition.union), self.metadata.current_schema())?
            }
            T::Files | T::DataFiles | T::DeleteFiles | T::AllFiles | T::AllDataFiles | T::AllDeleteFiles => {
                readable_metrics::joined(files::fields(&partition.union), self.metadata.current_schema())?
            }
        };
        Ok(Schema::new(0, columns)?)
    }

    /// The rows of a metadata table.
    pub fn scan(&self, table: MetadataTable, selection: &Selection) -> Result<BatchStream> {
        let (output, mut tasks) = self.tasks(table, selection)?;
        if let Some(Part { number, of }) = selection.part {
            tasks = tasks.into_iter().enumerate().filter(|(at, _)| at % of == number).map(|(_, task)| task).collect();
        }
        Ok(BatchStream::new(output, tasks, None))
    }

    /// The maximum number of parts of a metadata table: the rows of one manifest stay together, and tables not built
    /// from manifests have one part.
    pub fn most_parts(&self, table: MetadataTable, selection: &Selection) -> Result<usize> {
        Ok(self.tasks(table, selection)?.1.len().max(1))
    }

    /// The key metadata of the encrypted manifest lists that a metadata table is read from, by the ids in the snapshots:
    /// for workers, which cannot ask for the key of the table ([`Storage::with_list_keys`](crate::storage::Storage)).
    ///
    /// # Errors
    /// An unknown snapshot; a key that cannot be had.
    pub fn list_keys(&self, table: MetadataTable, at: &At) -> Result<BTreeMap<String, Vec<u8>>> {
        use MetadataTable as T;
        let chosen = self.snapshot(table, at)?;
        let snapshots: Vec<&Arc<Snapshot>> = match table {
            T::Snapshots | T::History | T::MetadataLogEntries | T::Refs => Vec::new(),
            T::AllFiles | T::AllDataFiles | T::AllDeleteFiles | T::AllEntries | T::AllManifests => {
                self.metadata.snapshots().iter().collect()
            }
            _ => chosen.iter().collect(),
        };
        let key_of = |snapshot: &Arc<Snapshot>| {
            let key = list_key(&self.storage, &self.metadata, snapshot)?;
            Ok(snapshot.key_id.clone().zip(key))
        };
        snapshots.into_iter().filter_map(|snapshot| key_of(snapshot).transpose()).collect()
    }

    fn tasks(&self, table: MetadataTable, selection: &Selection) -> Result<(SchemaRef, Vec<OpenTask>)> {
        let snapshot = self.snapshot(table, &selection.at)?;
        let partition = PartitionUnion::of(&self.metadata)?;
        let schema = self.schema_with(table, &partition)?;
        let wanted = match &selection.columns {
            Some(names) => schema.select_in_order(names, selection.case_sensitive)?,
            None => schema.clone(),
        };
        let filter = selection.filter.as_ref().map(|filter| filter.bind(&schema, selection.case_sensitive));
        let filter = filter.transpose()?;
        let mut ids = wanted.projected_ids();
        ids.extend(filter.iter().flat_map(BoundExpr::predicates).map(|predicate| predicate.term.reference.id));
        let made = schema.project(&ids)?;
        let arrow = |schema: &Schema| Ok::<_, Error>(Arc::new(schema.to_arrow(&ToArrow::default())?));
        let output = arrow(&wanted)?;
        let read =
            Read { inspect: self.clone(), partition, arrow: arrow(&made)?, made, filter, output: output.clone() };
        Ok((output, Arc::new(read).tasks(table, snapshot.as_deref())?))
    }

    fn snapshot(&self, table: MetadataTable, at: &At) -> Result<Option<Arc<Snapshot>>> {
        let chosen = at.snapshot_id.is_some() || at.as_of_ms.is_some() || at.reference.is_some();
        if chosen && !table.has_snapshots() {
            return Err(Error::invalid(format!("cannot select a snapshot in the metadata table {table}")));
        }
        Ok(Scan::new(self.storage.clone(), self.metadata.clone(), at)?.snapshot)
    }
}

impl Read {
    fn tasks(self: &Arc<Self>, table: MetadataTable, snapshot: Option<&Snapshot>) -> Result<Vec<OpenTask>> {
        use MetadataTable as T;
        match table {
            T::Snapshots => Ok(vec![self.task(history::snapshots)]),
            T::History => Ok(vec![self.task(history::history)]),
            T::MetadataLogEntries => Ok(vec![self.task(history::metadata_log)]),
            T::Refs => Ok(vec![self.task(history::refs)]),
            T::Manifests => Ok(snapshot.map(|snapshot| manifests::task(self, snapshot)).into_iter().collect()),
            T::AllManifests => Ok(manifests::all_tasks(self)),
            T::Partitions => Ok(snapshot.map(|snapshot| partitions::task(self, snapshot)).into_iter().collect()),
            T::PositionDeletes => position_deletes::tasks(self, snapshot),
            T::Entries => entries::tasks(self, manifests::of(self, snapshot)?),
            T::AllEntries => entries::tasks(self, manifests::of_all_snapshots(self)?),
            T::Files | T::DataFiles | T::DeleteFiles => files::tasks(self, table, manifests::of(self, snapshot)?),
            T::AllFiles | T::AllDataFiles | T::AllDeleteFiles => {
                files::tasks(self, table, manifests::of_all_snapshots(self)?)
            }
        }
    }
}
