//! Krylov methods, each a page of text.

pub(crate) mod cg_textbook;
pub(crate) mod minres;
