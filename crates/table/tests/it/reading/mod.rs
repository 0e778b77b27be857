//! Reading files of each format.

mod avro_files;
mod avro_foreign;
mod column_projection;
mod padded_decimals;
mod projection_laws;
mod read_orc;
mod read_parquet;
mod read_variants;
mod shredded_variants;
