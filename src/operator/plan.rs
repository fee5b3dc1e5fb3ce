//! A block of rows laid out in a format, on the host: all but moved, so that formats can be compared by their bytes.

use super::choice::{Rated, is_near};
use super::kinds::Kinds;
use super::sell::Sell;
use crate::device::Info;
use crate::error::Result;
use crate::kernels::Shape;
use crate::partition::Part;
use crate::real::Real;
use crate::solver::Format;

/// Rows for each compute unit, below which a GPU may be better off if several work-items share a row.
const ROWS_OF_A_UNIT: usize = 512;

/// Bytes of an entry in slices at the least, but for those of full blocks: a value of one byte and a column of two.
const LEAST_SLICED: usize = 3;

/// What an upload needs beside the rows themselves.
pub(super) enum Plan<'a, T> {
    Csr,
    /// Rows of a few kinds.
    Kinds(Kinds),
    Sell(Sell<'a, T>),
}

/// What the rows are laid out for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) shape: Shape,
    pub(crate) compute_units: u32,
    pub(crate) max_buffer_bytes: u64,
}

impl Target {
    /// A device whose products have this shape.
    pub(crate) fn new(device: &Info, shape: Shape) -> Self {
        Self { shape, compute_units: device.compute_units, max_buffer_bytes: device.max_buffer_bytes }
    }
}

/// A format that is possible for a block.
pub(crate) struct Offer<'a, T> {
    pub(crate) rated: Rated,
    pub(super) plan: Plan<'a, T>,
}

impl<'a, T: Real> Offer<'a, T> {
    /// The rows of `part`, times `factor`, in `format`; in [`Format::Auto`], in what the rule of bytes takes.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if the rows do not fit the format.
    pub(crate) fn of(part: &'a Part<'a>, factor: f64, format: Format, target: Target) -> Result<Self> {
        match format {
            Format::Csr => Ok(Self::csr(part)),
            Format::Sell => Ok(Self::sell(part, Sell::plan(part, factor)?, target)),
            Format::Stencil | Format::Pattern => match Kinds::for_format(part, format, target.shape)? {
                Some(kinds) => Ok(Self::kinds(part, kinds, target)),
                None => unreachable!("kinds were asked for"),
            },
            Format::Auto => Ok(by_bytes(Self::all(part, factor, target, false)).unwrap_or_else(|| Self::csr(part))),
        }
    }

    /// The formats that are possible, in the order of the rule of bytes, which takes the first one that is trusted; nothing is
    /// looked for behind that but `csr`, unless formats are to be `compared`. Slices are not for CPUs: on two cores with
    /// PoCL 3.1 products took 1.2 to 1.8 times as long as with `csr`, for fewer bytes, and 0.1 s more to prepare.
    ///
    /// Costs a pass over the entries for each way to find kinds, which ends early where rows differ, and three for slices.
    pub(crate) fn all(part: &'a Part<'a>, factor: f64, target: Target, compared: bool) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let trusted = |all: &[Self]| all.iter().find(|offer| offer.rated.is_trusted).map(|offer| offer.rated.bytes);
        all.extend(Kinds::with_values(part).ok().map(|kinds| Self::kinds(part, kinds, target)));
        if trusted(&all).is_none() {
            all.extend(Kinds::by_columns(part).ok().map(|kinds| Self::kinds(part, kinds, target)));
        }
        let is_worthwhile = match trusted(&all) {
            None => compared || has_rows(part, target),
            Some(fewest) => compared && is_near(with_vectors::<T>(part, LEAST_SLICED * part.nnz()), fewest),
        };
        if target.shape == Shape::Gpu && is_worthwhile {
            let fits = |sell: &Sell<'_, T>| sell.largest_buffer() as u64 <= target.max_buffer_bytes;
            let sell = Sell::plan(part, factor).ok().filter(fits);
            all.extend(sell.map(|sell| Self::sell(part, sell, target)));
        }
        all.push(Self::csr(part));
        all
    }

    /// Memory that the rows take at the most, in bytes: values may be padded.
    pub(crate) fn memory(&self, part: &Part<'_>) -> u64 {
        5 * (self.rated.bytes - with_vectors::<T>(part, 0)) / 4
    }

    fn csr(part: &Part<'_>) -> Self {
        let bytes = with_vectors::<T>(part, compressed::<T>(part));
        Self { rated: Rated { format: Format::Csr, bytes, is_trusted: true }, plan: Plan::Csr }
    }

    fn kinds(part: &Part<'_>, kinds: Kinds, target: Target) -> Self {
        let (format, values) = match &kinds.values {
            Some(_) => (Format::Stencil, 0),
            None => (Format::Pattern, part.nnz()),
        };
        // of each row its kind, of each kind where it begins and ends, and values and distances
        let tables = 8 * (kinds.starts.len() - 1) + 2 * kinds.distances.len() * size_of::<T>();
        let bytes = with_vectors::<T>(part, 2 * part.n_owned() + tables + values * size_of::<T>());
        let is_trusted = kinds.suit(target.shape);
        Self { rated: Rated { format, bytes, is_trusted }, plan: Plan::Kinds(kinds) }
    }

    /// Where rows differ in length, slices suit a GPU better; with few rows, several work-items a row, as `csr` has them,
    /// may do more.
    fn sell(part: &Part<'_>, sell: Sell<'a, T>, target: Target) -> Self {
        let is_trusted =
            target.shape == Shape::Gpu && has_rows(part, target) && sell.bytes() <= compressed::<T>(part);
        let bytes = with_vectors::<T>(part, sell.bytes());
        Self { rated: Rated { format: Format::Sell, bytes, is_trusted }, plan: Plan::Sell(sell) }
    }
}

/// The offer that the rule of bytes takes.
pub(crate) fn by_bytes<'a, T>(all: Vec<Offer<'a, T>>) -> Option<Offer<'a, T>> {
    all.into_iter().find(|offer| offer.rated.is_trusted)
}

/// Whether there are rows for all work-items of a device.
fn has_rows(part: &Part<'_>, target: Target) -> bool {
    part.n_owned() >= ROWS_OF_A_UNIT * target.compute_units.max(1) as usize
}

/// Bytes of compressed rows.
fn compressed<T: Real>(part: &Part<'_>) -> usize {
    part.nnz() * (4 + size_of::<T>()) + 4 * (part.n_owned() + 1)
}

/// Bytes of a product: those of the matrix and of both vectors.
fn with_vectors<T: Real>(part: &Part<'_>, matrix: usize) -> u64 {
    (matrix + 2 * part.n_owned() * size_of::<T>()) as u64
}
