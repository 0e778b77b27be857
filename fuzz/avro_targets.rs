//! What the fuzz target of Avro rows does with its input: a file whose blocks are decoded into columns, all of them and every other one.
//!
//! The fuzz target calls this, and so does `crates/table/tests/fuzz_corpus.rs`, which runs it over the stored corpus and over
//! mutations of it in the ordinary tests.

use arrow_schema::Fields;
use icefield_format::Limits;
use icefield_format::avro::{Container, Cursor, Decompressor, Schema};

#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../crates/table/src/file"]
mod file {
    pub mod leaves;

    pub mod avro {
        pub mod column;
        pub mod compile;
        pub mod schema;
    }
}

use file::avro::column::{Budget, columns, read_steps, steps_width};
use file::avro::compile::steps;
use file::avro::schema::fields;
use file::leaves::{count, projected};

/// Takes any bytes; it may refuse them, it may not panic.
pub type Target = fn(&[u8]);

/// Every target; the corpus of each is `corpus/NAME`.
#[allow(dead_code)]
pub const ALL: &[(&str, Target)] = &[("avro_rows", avro_rows)];

/// Rows of a block that are looked at, and bytes that their columns may take.
const ROWS: u64 = 1000;
const ROOM: u64 = 1 << 24;

pub fn avro_rows(data: &[u8]) {
    let limits = Limits { block_bytes: 1 << 20, avro_bytes: 1 << 22, fields: 10_000, ..Limits::default() };
    let Ok(container) = Container::open(data) else { return };
    let Ok(Schema::Record(record)) = container.schema(&limits) else { return };
    let all = fields(&record);
    let leaves: Vec<usize> = (0..count(&all)).collect();
    let some: Vec<usize> = leaves.iter().copied().step_by(2).collect();
    for leaves in [leaves, some] {
        let mut decompressor = Decompressor::new(container.codec, &limits);
        for block in container.blocks().map_while(Result::ok) {
            let Ok(bytes) = decompressor.run(block.data, block.offset) else { return };
            let Ok(mut steps) = steps(&record, &all, &leaves) else { return };
            let rows = block.count.min(ROWS).min(ROOM / steps_width(&steps).max(1));
            let (mut cursor, mut budget) = (Cursor::new(bytes), Budget::new(ROOM));
            if (0..rows).try_for_each(|_| read_steps(&mut steps, &mut cursor, &mut budget)).is_err() {
                continue;
            }
            let read: Fields = projected(&all, &leaves);
            for (field, column) in read.iter().zip(columns(&mut steps)) {
                let Ok(array) = column.finish(field) else { continue };
                assert_eq!(array.len() as u64, rows);
                assert_eq!(array.data_type(), field.data_type());
            }
        }
    }
}
