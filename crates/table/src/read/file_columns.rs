//! The columns of one file: the ids they are read by, and the leaves to read for some columns.

use arrow_schema::{FieldRef, Fields, Schema as ArrowSchema};
use icefield_format::manifest::FileFormat;
use icefield_format::types::arrow::{has_ids, with_mapped_ids, with_positional_ids};
use icefield_format::types::{Field, NameMapping, Schema};

use super::columns::{Planned, Rules, leaves};
use crate::error::Result;
use crate::file::leaves::projected;
use crate::plan::projection::wanted::Wanted;

/// The columns of a file with the ids they are read by: their own, otherwise those of the name mapping, otherwise
/// positions; in Avro, as in the Java library, ids of the table columns with their names.
pub(super) fn with_ids(wanted: &Wanted, format: &str, fields: &Fields) -> Fields {
    let by_names = || {
        NameMapping::of_schema(&wanted.schema).ok().filter(|_| FileFormat::from_name(format) == Some(FileFormat::Avro))
    };
    match &wanted.name_mapping {
        _ if has_ids(fields) => fields.clone(),
        Some(mapping) => with_mapped_ids(fields, mapping),
        None if let Some(mapping) = by_names() => with_mapped_ids(fields, &mapping),
        None => with_positional_ids(fields),
    }
}

/// The leaves to read for some columns, and the plan of these columns over batches of these leaves.
pub(crate) fn plan_columns(
    rules: &Rules<'_>,
    columns: &Schema,
    output: &ArrowSchema,
    fields: &Fields,
) -> Result<(Vec<usize>, Vec<Planned>)> {
    plan_pairs(rules, &pairs(columns, output), fields)
}

/// As [`plan_columns`], for columns with their Arrow fields.
pub(super) fn plan_pairs(
    rules: &Rules<'_>,
    wanted: &[(Field, FieldRef)],
    fields: &Fields,
) -> Result<(Vec<usize>, Vec<Planned>)> {
    let marks = leaves(&rules.plan(wanted, fields)?, fields);
    let planned = rules.plan(wanted, &projected(fields, &marks))?;
    Ok((marks, planned))
}

/// Pairs columns with their Arrow fields.
pub(crate) fn pairs(columns: &Schema, output: &ArrowSchema) -> Vec<(Field, FieldRef)> {
    columns.fields().iter().cloned().zip(output.fields().iter().cloned()).collect()
}
