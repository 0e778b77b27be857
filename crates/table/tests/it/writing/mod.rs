//! Writing rows and deletes.

mod sorted_rows;
mod write;
mod write_deletes;
mod write_orc;
mod write_rows;
