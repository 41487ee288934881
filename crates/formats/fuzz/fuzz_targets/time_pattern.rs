//! Compiling date patterns, reading and writing by them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| highwater_formats::fuzzing::time_pattern(data));
