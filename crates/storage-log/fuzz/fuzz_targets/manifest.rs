//! Decoding manifests.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| highwater_storage_log::fuzzing::manifest(data));
