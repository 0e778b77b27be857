//! Arrow columns with the deletes of data files.
//!
//! Usually a list of structs per file. If many deletes apply to each of many files, these lists would be their
//! product. Then the column is a list view over a dictionary: files share common runs, and other deletes take four
//! bytes each.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, ListArray, ListViewArray, StructArray, UInt32Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use arrow_select::take::take;

use crate::error::{Error, Result};
use crate::plan::deletes::links::Linked;

/// Maximum number of delete files in a streamed plan, among those that may apply to many data files, for lists of
/// structs. A stream does not know yet how many data files they apply to.
pub(super) const FEW_OF_A_STREAM: usize = 1000;

/// Maximum number of links in a plan, and of links per file, for lists of structs.
const FEW_LINKS: usize = 1 << 18;
const FEW_OF_A_FILE: usize = 8;

/// Links per batch: as structs, and as indices that are not shared.
const STRUCTS_OF_A_BATCH: usize = 1 << 18;
const PLACES_OF_A_BATCH: usize = 1 << 26;

/// Whether sharing is better for this number of links, data files and delete files.
pub(super) fn are_many(links: usize, files: usize) -> bool {
    links > files.saturating_mul(FEW_OF_A_FILE).saturating_add(FEW_LINKS)
}

/// Builds the delete columns of a plan.
#[derive(Debug)]
pub(super) struct DeleteLists {
    /// One row per delete file, by index.
    rows: Arc<StructArray>,
    element: FieldRef,
    ty: DataType,
    are_shared: bool,
}

impl DeleteLists {
    /// Lists of these delete files, or list views that share them.
    pub(super) fn new(rows: StructArray, are_shared: bool) -> Result<Self> {
        let of_element = DataType::Struct(rows.fields().clone());
        let element = |ty| Arc::new(Field::new("element", ty, false));
        let (element, ty) = match are_shared {
            true => {
                let element = element(DataType::Dictionary(Box::new(DataType::Int32), Box::new(of_element)));
                (element.clone(), DataType::ListView(element))
            }
            false => {
                let element = element(of_element);
                (element.clone(), DataType::List(element))
            }
        };
        if are_shared && i32::try_from(rows.len()).is_err() {
            return Err(too_many());
        }
        Ok(Self { rows: Arc::new(rows), element, ty, are_shared })
    }

    /// The type of the columns.
    pub(super) fn data_type(&self) -> &DataType {
        &self.ty
    }

    /// How many of the first files of all these columns fit into a batch; at least one.
    pub(super) fn fitting(&self, columns: [Option<&[Linked<'_>]>; 2]) -> usize {
        let most = if self.are_shared { PLACES_OF_A_BATCH } else { STRUCTS_OF_A_BATCH };
        let of_column = |column: &[Linked<'_>]| {
            let mut sum = 0usize;
            let fits = |linked: &&Linked<'_>| {
                sum = sum.saturating_add(self.weight(**linked));
                sum <= most
            };
            column.iter().take_while(fits).count().max(1)
        };
        columns.into_iter().flatten().filter(|column| !column.is_empty()).map(of_column).min().unwrap_or(1)
    }

    /// The number of indices or structs that a file does not share.
    fn weight(&self, linked: Linked<'_>) -> usize {
        match self.are_shared && linked.runs().len() <= 1 {
            true => 0,
            false => linked.len(),
        }
    }

    /// Bytes of a file's deletes that it does not share, if others share.
    pub(super) fn copied(&self, linked: Linked<'_>) -> usize {
        if self.are_shared { self.weight(linked).saturating_mul(size_of::<i32>()) } else { 0 }
    }

    /// The deletes of some files.
    pub(super) fn lists(&self, files: &[Linked<'_>]) -> Result<ArrayRef> {
        match self.are_shared {
            true => self.views(files),
            false => self.structs(files),
        }
    }

    fn structs(&self, files: &[Linked<'_>]) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::from_lengths(files.iter().map(|linked| linked.len()));
        let places = UInt32Array::from_iter_values(files.iter().flat_map(|linked| linked.iter().copied()));
        let linked = take(&*self.rows, &places, None).map_err(too_large)?;
        Ok(Arc::new(ListArray::try_new(self.element.clone(), offsets, linked, None).map_err(internal)?))
    }

    fn views(&self, files: &[Linked<'_>]) -> Result<ArrayRef> {
        let mut places: Vec<i32> = Vec::new();
        let place = |place: &u32| place.cast_signed();
        // A file with a single run reuses the entry of an earlier file with the same run.
        let mut lists: HashMap<usize, usize> = HashMap::new();
        let (mut offsets, mut sizes) = (Vec::with_capacity(files.len()), Vec::with_capacity(files.len()));
        for linked in files {
            let offset = match linked.runs() {
                [] => 0,
                [run] => {
                    let first = *lists.entry(linked.list_id()).or_insert_with(|| {
                        let first = places.len();
                        places.extend(linked.list().iter().map(place));
                        first
                    });
                    first.saturating_add(run.start as usize)
                }
                _ => {
                    let first = places.len();
                    places.extend(linked.iter().map(place));
                    first
                }
            };
            offsets.push(i32::try_from(offset).map_err(|_| too_many())?);
            sizes.push(i32::try_from(linked.len()).map_err(|_| too_many())?);
        }
        let keys = Int32Array::from(places);
        let all = DictionaryArray::<Int32Type>::try_new(keys, self.rows.clone()).map_err(internal)?;
        let (offsets, sizes) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes));
        let views = ListViewArray::try_new(self.element.clone(), offsets, sizes, Arc::new(all), None);
        Ok(Arc::new(views.map_err(internal)?))
    }
}

fn too_many() -> Error {
    Error::unsupported("more than 2^31 deletes in one batch of a plan: narrow the filter, or take its tasks")
}

/// The error for data that exceeds the offsets of Arrow's strings and lists.
pub(super) fn too_large(error: ArrowError) -> Error {
    match error {
        ArrowError::OffsetOverflowError(size) => Error::unsupported(format!(
            "a plan whose columns have {size} bytes or values in one batch, where Arrow's offsets end at 2^31: read it in \
             batches (TableScan.plan_batches), narrow the filter, or take its tasks"
        )),
        error => internal(error),
    }
}

pub(super) fn internal(error: ArrowError) -> Error {
    Error::Internal(error.to_string())
}
