//! Operations on Iceberg tables: storage, planning, reading, writing, committing.
//!
//! All functions are synchronous: one runtime drives the network and one pool does processor work,
//! both of this process alone and both started at first use (see [`runtime`]).
//!
//! A [`Table`] is loaded from a [`commit::Catalog`], which may be no more than the location of a metadata file:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! use icefield_format::expr::Expr;
//! use icefield_format::metadata::{StringMap, TableDefinition};
//! use icefield_format::spec::{PartitionSpec, SortOrder};
//! use icefield_format::types::{Field, PrimitiveType, Schema};
//! use icefield_table::commit::{Pointer, PointerCatalog};
//! use icefield_table::operation::append::AppendOptions;
//! use icefield_table::operation::create::create;
//! use icefield_table::plan::{At, Scan};
//! use icefield_table::read::scan::rows;
//! use icefield_table::storage::Storage;
//! use icefield_table::{Error, Result, Table};
//!
//! struct Location(Mutex<String>);
//!
//! impl Pointer for Location {
//!     fn load(&self) -> Result<String> {
//!         Ok(self.0.lock().unwrap().clone())
//!     }
//!
//!     fn swap(&self, base: &str, new: &str) -> Result<()> {
//!         let mut location = self.0.lock().unwrap();
//!         if *location != base {
//!             return Err(Error::CommitFailed("the table has changed".to_owned()));
//!         }
//!         *location = new.to_owned();
//!         Ok(())
//!     }
//! }
//!
//! let storage = Storage::default();
//! let definition = TableDefinition {
//!     schema: Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)])?,
//!     partition_spec: PartitionSpec::unpartitioned(),
//!     sort_order: SortOrder::unsorted(),
//!     location: "memory://warehouse/numbers".to_owned(),
//!     properties: StringMap::new(),
//! };
//! let committed = create(&storage, &definition)?;
//! let location = Location(Mutex::new(committed.location.clone()));
//! let catalog = PointerCatalog::new(storage.clone(), location);
//! let table = Table::new(storage, Arc::new(catalog), committed);
//!
//! let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
//! let batch = RecordBatch::try_from_iter([("id", id)])?;
//! let batches = [Ok(batch.clone())].into_iter();
//! let appended = table.append(&batch.schema(), batches, AppendOptions::default())?;
//! assert_eq!(appended.rows, 3);
//!
//! let scan = Scan { filter: Expr::parse("id > 1")?, ..appended.table.scan(&At::default())? };
//! let plan = scan.plan()?;
//! assert_eq!(plan.len(), 1);
//! let read = rows(&scan, &plan, &scan.wanted(None)?, None)?.collect::<Result<Vec<_>>>()?;
//! assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs, unreachable_pub)]

pub mod arrow;
pub mod clock;
pub mod commit;
pub mod error;
pub mod file;
pub mod inspect;
pub mod interrupt;
mod limits;
pub mod maintain;
mod memory;
pub mod operation;
pub mod orc_pool;
pub mod plan;
pub mod read;
pub mod runtime;
pub mod snapshot;
mod spill;
pub mod storage;
pub mod stream;
mod table;
pub mod transform;
pub mod write;

pub use error::{Error, Result, UnknownCommit};
pub use limits::{limits, orc_limits};
pub use table::{Appended, Changed, RowsCommitted, Table};
