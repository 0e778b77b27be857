#![no_main]

#[allow(dead_code)]
#[path = "../orc_targets.rs"]
mod orc_targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| orc_targets::orc_write(data));
