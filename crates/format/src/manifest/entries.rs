//! Reads a manifest to columns, one row per file ("Manifests").

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
/// `limits` bounds the memory: one decompressed block and the columns together stay within the budget for a file of
/// this length.
///
/// # Errors
/// Corrupt bytes, or fewer entries than the manifest list says: a file cut between two blocks is still a valid Avro
/// file.
pub fn read(bytes: &[u8], options: &ReadOptions<'_>, limits: &Limits) -> Result<Entries> {
    let limits = &limits.budget(bytes.len()).of_avro(limits);
    let container = Container::open(bytes)?;
    let header = Arc::new(ManifestHeader::of(&container));
    let schema = container.shared_schema(limits)?;
    let steps = Steps::compile(&schema, options.partition_type, &options.metrics)?;
    let inherited = options.inherit.map(Inherited::of);
    let decode = |form| Decoder::new(&steps, options, inherited, form).run(&container, limits);
    let columns = if steps.has_fixed() {
        // The Java library writes a length before `fixed` partition values, in conflict with its own schema. Try that
        // form first: it requires the length before every value, so it cannot misread the plain form.
        decode(FixedForm::Prefixed).or_else(|_| decode(FixedForm::Plain))?
    } else {
        decode(FixedForm::Plain)?
    };
    if let Some(listed) = options.inherit {
        columns.tally.check(listed)?;
    }
    columns.finish(header, &steps)
}
