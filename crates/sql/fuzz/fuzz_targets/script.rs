//! Reading scripts, and writing back what was read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| highwater_sql::fuzzing::script(data));
