//! Decoding DELIMITED records.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| highwater_formats::fuzzing::delimited(data));
