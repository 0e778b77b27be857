#![no_main]

#[path = "../avro_targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::avro_rows(data));
