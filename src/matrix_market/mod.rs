//! Matrix Market files.

/// What is wrong with a Matrix Market file.
#[derive(Debug, Clone, thiserror::Error)]
#[error("placeholder")]
pub struct Error;
