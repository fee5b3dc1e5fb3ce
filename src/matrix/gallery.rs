//! Generators of test systems.
