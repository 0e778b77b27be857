//! The columns that a scan reads: of the table, metadata columns, and values inside variants.

pub mod metadata_columns;
pub mod partition_union;
pub mod variant_paths;
pub mod wanted;
