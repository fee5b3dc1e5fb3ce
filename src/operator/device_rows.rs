//! The rows of a block in one of the formats, on a device.

use super::Format;
use crate::kernels::csr::{BlockSet, CsrBlock};
use crate::kernels::dictionary::{DictionaryBlock, RowSet};
use crate::kernels::products::Rows;
use crate::kernels::sell::{SellBlock, SliceSet};
use crate::real::Real;

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

impl Which {
    fn of<S: Copy>(self, [interior, boundary]: &Sets<S>) -> impl Iterator<Item = S> {
        let (interior, boundary) = match self {
            Self::Interior => (&interior[..], &[][..]),
            Self::Boundary => (&[][..], &boundary[..]),
            Self::All => (&interior[..], &boundary[..]),
        };
        interior.iter().chain(boundary).copied()
    }
}

/// Rows in a format, with all that others ask of it.
pub(crate) struct DeviceRows<T> {
    pub(crate) format: Format,
    /// Memory that they take, in bytes.
    pub(crate) memory: usize,
    /// Bytes of them that a product reads and writes.
    pub(crate) bytes: usize,
    pub(crate) arrays: Arrays<T>,
}

/// The arrays of each format, and what a product launches.
pub(crate) enum Arrays<T> {
    /// Compressed rows, and the row blocks of each launch.
    Csr(CsrBlock<T>, Sets<BlockSet>),
    /// Rows by a dictionary: the longest run of rows without a halo, or half of it, and the others.
    Dictionary(Box<DictionaryBlock<T>>, Sets<RowSet>),
    /// Rows in slices, and the slices of each launch.
    Sell(SellBlock<T>, Sets<SliceSet>),
}

impl<T: Real> DeviceRows<T> {
    /// What a product launches on some rows, one after the other. Long rows in slices, which may need the halo, come last.
    pub(crate) fn launches(&self, which: Which) -> Vec<Rows<'_, T>> {
        match &self.arrays {
            Arrays::Csr(block, sets) => which.of(sets).map(|set| Rows::Csr(block, set)).collect(),
            // without a gap
            Arrays::Dictionary(block, _) if which == Which::All => {
                block.whole().map(|set| Rows::Dictionary(block, set)).collect()
            }
            Arrays::Dictionary(block, sets) => which.of(sets).map(|set| Rows::Dictionary(block, set)).collect(),
            Arrays::Sell(block, sets) => {
                let has_long = which != Which::Interior && block.long_count() > 0;
                let long = has_long.then(|| Rows::Long(block, block.long_count() as u32));
                which.of(sets).map(|set| Rows::Sell(block, set)).chain(long).collect()
            }
        }
    }
}
