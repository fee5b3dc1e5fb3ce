//! The rows of a block on a device, in whatever format.

use std::sync::Arc;

use crate::device::Context;
use crate::error::Result;
use crate::kernels::csr::CsrBlock;
use crate::kernels::dictionary::DictionaryBlock;
use crate::kernels::products::{ProductRows, Rows};
use crate::partition::NewValues;

/// What a product launches on rows without a halo, and on the others: of each segment what is not empty.
pub(crate) type Sets<S> = [Vec<S>; 2];

/// Rows of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those without a halo.
    Interior,
    /// The others.
    Boundary,
    All,
}

/// What a product launches, one after the other.
pub(crate) struct DeviceRows<T> {
    /// Memory that the rows take, in bytes.
    pub(crate) memory: usize,
    /// Rows without a halo,
    interior: Vec<Box<dyn ProductRows<T>>>,
    /// and the others.
    boundary: Vec<Box<dyn ProductRows<T>>>,
    /// All of them, in fewer launches if that can be.
    whole: Vec<Box<dyn ProductRows<T>>>,
    /// Their values, if these have places that follow from the pattern alone.
    values: Option<Box<dyn Values<T>>>,
    /// The block, if rows are by their patterns.
    patterns: Option<Arc<DictionaryBlock<T>>>,
}

/// Values of rows on a device.
pub(super) trait Values<T>: Send + Sync {
    /// Puts others of the same pattern in their places; tells whether they fit.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    fn replace(&self, ctx: &Context, new: &NewValues<'_>) -> Result<bool>;

    /// The rows as they were before they were laid out, in one piece; `None` where only the host has them.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    fn compressed(&self, _: &Context) -> Result<Option<CsrBlock<T>>> {
        Ok(None)
    }
}

/// Launches of one kind.
pub(super) fn each<T, S, R: ProductRows<T> + 'static>(
    sets: impl IntoIterator<Item = S>,
    rows: impl Fn(S) -> R,
) -> Vec<Box<dyn ProductRows<T>>> {
    sets.into_iter().map(|set| Box::new(rows(set)) as _).collect()
}

impl<T> DeviceRows<T> {
    /// Rows that take so much memory, and are launched so: each in [`Which::Interior`] or [`Which::Boundary`], and all in
    /// [`Which::All`].
    pub(crate) fn new(
        memory: usize,
        [interior, boundary]: [Vec<Box<dyn ProductRows<T>>>; 2],
        whole: Vec<Box<dyn ProductRows<T>>>,
    ) -> Self {
        Self { memory, interior, boundary, whole, values: None, patterns: None }
    }

    /// The same, whose values may be replaced.
    pub(super) fn with_values(self, values: impl Values<T> + 'static) -> Self {
        Self { values: Some(Box::new(values)), ..self }
    }

    /// The same, which are by their patterns.
    pub(super) fn with_patterns(self, block: &Arc<DictionaryBlock<T>>) -> Self {
        Self { patterns: Some(Arc::clone(block)), ..self }
    }

    /// The block, if rows are by their patterns.
    pub(crate) fn patterns(&self) -> Option<&DictionaryBlock<T>> {
        self.patterns.as_deref()
    }

    /// A copy of the rows as they were before they were laid out, if the device can make one.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn compressed(&self, ctx: &Context) -> Result<Option<CsrBlock<T>>> {
        self.values.as_ref().map_or(Ok(None), |values| values.compressed(ctx))
    }

    /// Puts other values in the places of these, if they have such; tells whether it did.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    pub(super) fn replace_values(&self, ctx: &Context, new: &NewValues<'_>) -> Result<bool> {
        self.values.as_ref().map_or(Ok(false), |values| values.replace(ctx, new))
    }

    /// What a product launches on some rows.
    pub(crate) fn launches(&self, which: Which) -> impl ExactSizeIterator<Item = Rows<'_, T>> {
        let rows = match which {
            Which::Interior => &self.interior,
            Which::Boundary => &self.boundary,
            Which::All => &self.whole,
        };
        rows.iter().map(|rows| &**rows)
    }
}
