//! Any bytes as a Matrix Market file: text, compressed text, archives.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| declive_fuzz::check::matrix_market(bytes));
