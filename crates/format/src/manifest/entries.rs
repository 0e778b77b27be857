//! A manifest as columns: one row a file ("Manifests").

use std::sync::Arc;

use crate::avro::Container;
use crate::{Limits, Result};

pub use super::entry_columns::{Entries, ManifestHeader, Tally};
use super::partition::FixedForm;
use super::read::decode::{Decoder, Inherited};
pub use super::read::options::{PartitionFilter, ReadOptions};
use super::read::steps::Steps;

/// Reads a manifest.
///
/// The memory that it takes is bounded by `limits`: one decompressed block and the columns together take no more than the
/// budget of a file of this length.
///
/// # Errors
/// Corrupt bytes, and a manifest with fewer entries than its list says: a file that was cut between two blocks is
/// a sound Avro file.
pub fn read(bytes: &[u8], options: &ReadOptions<'_>, limits: &Limits) -> Result<Entries> {
    let limits = &limits.budget(bytes.len()).of_avro(limits);
    let container = Container::open(bytes)?;
    let header = Arc::new(ManifestHeader::of(&container));
    let schema = container.shared_schema(limits)?;
    let steps = Steps::compile(&schema, options.partition_type, &options.metrics)?;
    let inherited = options.inherit.map(Inherited::of);
    let decode = |form| Decoder::new(&steps, options, inherited, form).run(&container, limits);
    let columns = if steps.has_fixed() {
        // The Java library writes a length before `fixed` partition values, against its own schema. Its form is tried
        // first: it demands that length before each value, so it does not take the plain form for its own.
        decode(FixedForm::Prefixed).or_else(|_| decode(FixedForm::Plain))?
    } else {
        decode(FixedForm::Plain)?
    };
    if let Some(listed) = options.inherit {
        columns.tally.check(listed)?;
    }
    columns.finish(header, &steps)
}
