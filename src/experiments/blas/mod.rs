//! How fast products and factorisations of dense matrices are on a device, and the host's own beside them.

mod factorisation;
mod product;
mod vectors;

pub use factorisation::{Factorisation, amdahl, factorisations, gustafson};
pub(crate) use factorisation::{backward_error, matrix};
pub use product::{Product, host_product, products};
pub use vectors::{OnVectors, VectorTask, host_vectors, on_vectors};
