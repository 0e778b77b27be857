#![no_main]

#[path = "../plan_targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::plan_sizes(data));
