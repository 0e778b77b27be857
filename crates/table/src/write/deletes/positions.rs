//! Writes position delete files ("Position Delete Files"), sorted by data file and position.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::DEFAULT_WRITE_METRICS_MODE;
use icefield_format::types::Schema;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use rayon::prelude::*;

use super::{DeleteConfig, DeletedRows, Granularity, delete_properties, discard};
use crate::error::{Error, Result};
use crate::file::modes::Modes;
use crate::file::{FileLayout, FileWriter};
use crate::write::describe::described;
use crate::write::location::{DataLocations, FileNames};
use crate::write::options::WriteOptions;
use crate::{interrupt, runtime};

/// Rows of an encoded batch.
const BATCH_ROWS: usize = 1 << 15;

/// Writes position deletes in the format of `write.delete.format.default`. A partition's file is followed by another
/// one, between two data files, when it reaches `write.delete.target-file-size-bytes`.
///
/// # Errors
///
/// Invalid table properties, and errors of the storage. No file of the write is left then.
pub fn write_positions(
    config: &DeleteConfig,
    deleted: Vec<DeletedRows>,
    granularity: Granularity,
) -> Result<Vec<DataFile>> {
    let writer = PositionWriter::new(config)?;
    let mut groups: BTreeMap<(i32, String), Vec<DeletedRows>> = BTreeMap::new();
    for rows in deleted.into_iter().filter(|rows| !rows.positions.is_empty()) {
        let of = match granularity {
            Granularity::File => rows.data_file.clone(),
            // In one spec, equal tuples have equal paths and different ones differ.
            Granularity::Partition => config.partition_path(&rows)?,
        };
        groups.entry((rows.spec.spec_id, of)).or_default().push(rows);
    }
    let groups: Vec<Vec<DeletedRows>> = groups.into_values().collect();
    let write = || groups.into_par_iter().map(|group| writer.write_group(group)).collect::<Vec<_>>();
    let (mut written, mut failed) = (Vec::new(), None);
    for result in runtime::pool()?.install(write) {
        match result {
            Ok(files) => written.extend(files),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        None => Ok(written),
        Some(error) => {
            discard(&config.storage, &written);
            Err(error)
        }
    }
}

/// Shared by all files of one write.
struct PositionWriter<'a> {
    config: &'a DeleteConfig,
    layout: FileLayout,
    arrow: SchemaRef,
    locations: DataLocations,
    names: FileNames,
    target_bytes: u64,
}

impl<'a> PositionWriter<'a> {
    fn new(config: &'a DeleteConfig) -> Result<Self> {
        let options = WriteOptions::new(&delete_properties(&config.properties))?;
        let schema = Arc::new(Schema::new(0, vec![DELETE_FILE_PATH.to_field(), DELETE_FILE_POS.to_field()])?);
        let arrow = Arc::new(schema.to_arrow(&ToArrow::default())?);
        // Bounds identify the data file, so they must not be truncated.
        let full: StringMap = [(DEFAULT_WRITE_METRICS_MODE.name.to_owned(), "full".to_owned())].into_iter().collect();
        let modes = Modes::new(&full, &schema, None)?;
        let layout = FileLayout::new(&schema, arrow.clone(), &options.format, modes)?.encrypted(options.key_length);
        let names = config.names(layout.format());
        let locations = config.locations()?;
        Ok(Self { config, layout, arrow, locations, names, target_bytes: options.target_file_bytes })
    }

    /// The files of some data files of one partition.
    fn write_group(&self, mut group: Vec<DeletedRows>) -> Result<Vec<DataFile>> {
        group.sort_by(|a, b| a.data_file.cmp(&b.data_file));
        let mut done = Vec::new();
        let mut rest = group.as_slice();
        while !rest.is_empty() {
            match self.write_file(rest) {
                Ok((file, taken)) => {
                    done.push(file);
                    rest = rest.get(taken..).unwrap_or_default();
                }
                Err(error) => {
                    discard(&self.config.storage, &done);
                    return Err(error);
                }
            }
        }
        Ok(done)
    }

    /// One file, and how many data files went into it.
    fn write_file(&self, group: &[DeletedRows]) -> Result<(DataFile, usize)> {
        let Some(first) = group.first() else { return Err(Error::Internal("no deleted rows".into())) };
        let path = self.locations.file(&self.config.partition_path(first)?, &self.names.next())?;
        let mut file = self.layout.create(&self.config.storage, path, &[])?;
        let taken = match self.fill(file.as_mut(), group) {
            Ok(taken) => taken,
            Err(error) => {
                file.abort();
                return Err(error);
            }
        };
        let written = file.finish()?;
        let described = described(written, self.layout.format(), first.spec.spec_id, first.partition.clone(), 0);
        let is_one = group.iter().take(taken).all(|rows| rows.data_file == first.data_file);
        let file = DataFile {
            content: FileContent::PositionDeletes,
            // As in the Java library: counts are meaningless, bounds matter only for one data file, and the sort
            // order is fixed.
            value_counts: None,
            null_value_counts: None,
            nan_value_counts: None,
            lower_bounds: described.lower_bounds.filter(|_| is_one),
            upper_bounds: described.upper_bounds.filter(|_| is_one),
            referenced_data_file: is_one.then(|| first.data_file.clone()),
            sort_order_id: None,
            ..described
        };
        Ok((file, taken))
    }

    fn fill(&self, file: &mut dyn FileWriter, group: &[DeletedRows]) -> Result<usize> {
        for (place, rows) in group.iter().enumerate() {
            // Positions of one data file stay in one file.
            if place > 0 && file.size() >= self.target_bytes {
                return Ok(place);
            }
            let mut positions = rows.positions.positions().peekable();
            while positions.peek().is_some() {
                interrupt::check()?;
                let piece =
                    positions.by_ref().take(BATCH_ROWS).map(|position| i64::try_from(position).unwrap_or(i64::MAX));
                let positions: Int64Array = piece.collect::<Vec<i64>>().into();
                let paths = StringArray::new_repeated(&rows.data_file, arrow_array::Array::len(&positions));
                let columns: Vec<ArrayRef> = vec![Arc::new(paths), Arc::new(positions)];
                let batch = RecordBatch::try_new(self.arrow.clone(), columns);
                file.write(&[batch.map_err(|error| Error::Internal(error.to_string()))?], false)?;
            }
        }
        Ok(group.len())
    }
}
