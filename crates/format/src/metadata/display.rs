//! Formats a summary of table metadata for people.

use std::fmt;

use super::TableMetadata;

impl fmt::Display for TableMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = &self.document;
        writeln!(f, "table {} (format version {})", document.location, document.format_version)?;
        if let Some(uuid) = &document.table_uuid {
            writeln!(f, "  uuid            {uuid}")?;
        }
        let columns = self.current_schema.fields().len();
        writeln!(
            f,
            "  schema          {} of {}, {columns} columns",
            document.current_schema_id,
            document.schemas.len()
        )?;
        write!(f, "  partition spec  {} of {}:", document.default_spec_id, document.partition_specs.len())?;
        write_inline(f, &self.default_spec.fields, "unpartitioned")?;
        write!(f, "  sort order      {} of {}:", document.default_sort_order_id, document.sort_orders.len())?;
        write_inline(f, &self.default_sort_order.fields, "unsorted")?;
        write!(f, "  snapshots       {}", document.snapshots.len())?;
        if let Some(id) = document.current_snapshot_id {
            write!(f, ", current {id}")?;
        }
        writeln!(f)?;
        for (name, reference) in &document.refs {
            writeln!(f, "  {:<15} {name} at {}", reference.kind, reference.snapshot_id)?;
        }
        write!(f, "  properties      {}", document.properties.len())
    }
}

fn write_inline(f: &mut fmt::Formatter<'_>, fields: &[impl fmt::Display], none: &str) -> fmt::Result {
    for (position, field) in fields.iter().enumerate() {
        write!(f, "{} {field}", if position == 0 { "" } else { "," })?;
    }
    writeln!(f, "{}", if fields.is_empty() { format!(" {none}") } else { String::new() })
}
