//! What a rank's block of rows does for methods.

use super::vectors::Backend;
use crate::error::Result;
use crate::partition::{HaloPlan, NewValues};

/// A product whose halo is under way.
pub struct Arriving<'a, V> {
    /// The place of the vector.
    pub of: usize,
    /// What is to be done to halos once it is there.
    pub then: &'a mut dyn FnMut(&mut [V]) -> Result<()>,
}

/// Two of the vectors.
///
/// # Panics
/// If they are the same, or one is not there.
pub(crate) fn pair<V>(v: &mut [V], [x, y]: [usize; 2]) -> [&mut V; 2] {
    v.get_disjoint_mut([x, y]).unwrap_or_else(|_| panic!("vectors {x} and {y} of a product"))
}

/// Products with a distributed square matrix A. The vector that is multiplied has room for [`halo`](Self::halo) elements
/// behind the owned ones, for those of other ranks that the rows of this one need.
pub trait LinearOperator<O: Backend> {
    /// y = A x; fills the halo of x. Building block 5 of 5 (Bueno 2013, section 4.2.3).
    ///
    /// # Errors
    /// A failing device or rank.
    fn apply(&self, backend: &O, x: &mut O::Vector, y: &mut O::Vector) -> Result<()>;

    /// Fills the halo of `x`.
    ///
    /// # Errors
    /// A failing device or rank.
    fn fill_halo(&self, backend: &O, x: &mut O::Vector) -> Result<()>;

    /// y = A x, and this rank's part of x·y and of y·y, for the vectors in places x and y of `v`. The halo of x must be filled, but for
    /// what depends on the product that is still `arriving`: its halo is exchanged meanwhile. Rows that need no halo do not wait
    /// for it.
    ///
    /// # Errors
    /// A failing device or rank.
    fn multiply(
        &self,
        backend: &O,
        v: &mut [O::Vector],
        of: [usize; 2],
        arriving: Option<Arriving<'_, O::Vector>>,
        dots: &mut O::ProductSums,
    ) -> Result<()>;

    /// Packs what is in other ranks' halos of the y that [`multiply`](Self::multiply) has left, to be exchanged when it is called
    /// again. `is_summed` tells that sums of this y are completed before: then all of it is there.
    ///
    /// # Errors
    /// A failing device.
    fn pack_halo(&self, backend: &O, y: &O::Vector, is_summed: bool) -> Result<()>;

    /// Exchanges the halo of what is arriving without a product.
    ///
    /// # Errors
    /// A failing device or rank.
    fn receive_halo(&self, backend: &O, v: &mut [O::Vector], arriving: Arriving<'_, O::Vector>) -> Result<()>;

    /// Takes other values in the same pattern, where rows are stored so that these go in the places of the former; tells whether they are.
    /// If not, or after an error, products are those of no matrix.
    ///
    /// # Errors
    /// A failing device.
    fn take_values(&mut self, _backend: &O, _values: &NewValues<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Whether there are products with vectors of 2, 4, 8 or 16 [columns](Backend::columns).
    fn takes_columns(&self) -> bool;

    /// The same rows for those.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn of_columns(&self, backend: &O, columns: usize) -> Result<Self>
    where
        Self: Sized;

    /// r = b − A x; fills the halo of x.
    ///
    /// # Errors
    /// A failing device or rank.
    fn residual(&self, backend: &O, b: &O::Vector, x: &mut O::Vector, r: &mut O::Vector) -> Result<()>;

    /// All rows, if one launch of one kernel takes them.
    fn rows(&self) -> Option<O::Rows<'_>> {
        None
    }

    /// What is exchanged with other ranks, if that may be left to kernels that run.
    fn live_halo(&self) -> Option<&HaloPlan> {
        None
    }

    /// Elements that the rank receives from others for each product.
    fn halo(&self) -> usize;

    /// Bytes that a product reads and writes on this rank, each array counted once.
    fn bytes(&self) -> u64;
}
