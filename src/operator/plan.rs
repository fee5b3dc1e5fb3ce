//! A block of rows laid out in a format, on the host: all but moved, so that formats can be compared by their bytes.

use super::Format;
use super::choice::{Rated, is_near};
use super::dictionary::Dictionary;
use super::sell::Sell;
use crate::device::Info;
use crate::error::{Error, Result};
use crate::kernels::Shape;
use crate::partition::Part;
use crate::real::Real;

/// Rows for each compute unit, below which a GPU may be better off if several work-items share a row.
const ROWS_OF_A_UNIT: usize = 512;

/// Bytes of an entry in slices at the least, but for those of full blocks: a value of one byte and a column of two.
const LEAST_SLICED: usize = 3;

/// What an upload needs beside the rows themselves.
pub(super) enum Plan<'a, T> {
    Csr,
    /// Rows by a dictionary of their patterns.
    Dictionary(Dictionary),
    Sell(Sell<'a, T>),
}

/// What the rows are laid out for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) shape: Shape,
    pub(crate) compute_units: u32,
}

impl Target {
    /// A device whose products have this shape.
    pub(crate) fn new(device: &Info, shape: Shape) -> Self {
        Self { shape, compute_units: device.compute_units }
    }
}

/// A format that is possible for a block.
pub(crate) struct Offer<'a, T> {
    pub(crate) format: Format,
    /// Bytes that a product reads and writes.
    pub(crate) bytes: u64,
    pub(super) plan: Plan<'a, T>,
}

impl<'a, T: Real> Offer<'a, T> {
    /// The rows of `part`, times `factor`, in `format`; in [`Format::Auto`], in what the rule of bytes takes.
    ///
    /// # Errors
    /// [`Error::Usage`] if the rows do not fit the format.
    pub(crate) fn of(part: &'a Part<'a>, factor: f64, format: Format, target: Target) -> Result<Self> {
        match format {
            Format::Auto => {
                let mut all = Self::all(part, factor, target, false);
                Ok(all.swap_remove(by_bytes(&all, part, target)))
            }
            Format::Sell => Ok(Self::sell(part, Sell::plan(part, factor))),
            _ => Self::without_slices(part, format).map_err(|why| refused(format, &why)),
        }
    }

    /// Each format, or in a few words why the rows do not fit it; `csr`, which all do, is the last.
    pub(crate) fn each(part: &'a Part<'a>, factor: f64) -> [(Format, std::result::Result<Self, String>); 4] {
        [Format::Dictionary, Format::Pattern, Format::Sell, Format::Csr].map(|format| match format {
            Format::Sell => (format, Ok(Self::sell(part, Sell::plan(part, factor)))),
            _ => (format, Self::without_slices(part, format)),
        })
    }

    /// The formats that are possible, but for those that can't be what the rule of bytes takes or, if formats are to be
    /// `compared`, not near it; `csr` is always there, and the last. Slices are not for CPUs: on two cores with PoCL
    /// 3.1 products took 1.1 to 1.8 times as long as with `csr`, for fewer bytes, and 0.1 s more to prepare.
    ///
    /// Costs a pass over the entries for each way to find patterns, which ends early where rows differ, and three for
    /// slices.
    pub(crate) fn all(part: &'a Part<'a>, factor: f64, target: Target, compared: bool) -> Vec<Self> {
        let trusted = |all: &[Self]| all.iter().find(|offer| offer.is_trusted(part, target)).map(|offer| offer.bytes);
        let mut all: Vec<Self> = Self::without_slices(part, Format::Dictionary).into_iter().collect();
        if trusted(&all).is_none() {
            all.extend(Self::without_slices(part, Format::Pattern));
        }
        let least = with_vectors::<T>(part, LEAST_SLICED * part.nnz());
        let is_worthwhile = match trusted(&all) {
            Some(fewest) if compared => is_near(least, fewest),
            Some(fewest) => has_rows(part, target) && least < fewest,
            None => compared || has_rows(part, target),
        };
        if target.shape == Shape::Gpu && is_worthwhile {
            all.push(Self::sell(part, Sell::plan(part, factor)));
        }
        all.push(Self::csr(part));
        all
    }

    /// Whether the rule of bytes may take it on a device.
    fn is_trusted(&self, part: &Part<'_>, target: Target) -> bool {
        match &self.plan {
            Plan::Csr => true,
            Plan::Dictionary(dictionary) => dictionary.suit(target.shape),
            // where rows differ in length, slices suit a GPU better; with few rows, several work-items a row may do
            // more
            Plan::Sell(sell) => {
                target.shape == Shape::Gpu && has_rows(part, target) && sell.bytes() <= compressed::<T>(part)
            }
        }
    }

    /// What judgement needs.
    pub(crate) fn rated(&self, part: &Part<'_>, target: Target) -> Rated {
        Rated { format: self.format, bytes: self.bytes, is_trusted: self.is_trusted(part, target) }
    }

    /// Memory that the rows take at the most, in bytes: values may be padded.
    pub(crate) fn memory(&self, part: &Part<'_>) -> u64 {
        5 * (self.bytes - with_vectors::<T>(part, 0)) / 4
    }

    /// Any format but slices; an error tells in a few words why the rows do not fit it.
    fn without_slices(part: &Part<'_>, format: Format) -> std::result::Result<Self, String> {
        match format {
            Format::Dictionary => Dictionary::with_values(part).map(|dictionary| Self::dictionary(part, dictionary)),
            Format::Pattern => Dictionary::by_columns(part).map(|dictionary| Self::dictionary(part, dictionary)),
            _ => Ok(Self::csr(part)),
        }
    }

    fn csr(part: &Part<'_>) -> Self {
        let bytes = with_vectors::<T>(part, compressed::<T>(part));
        Self { format: Format::Csr, bytes, plan: Plan::Csr }
    }

    fn dictionary(part: &Part<'_>, dictionary: Dictionary) -> Self {
        let (format, values) = match &dictionary.values {
            Some(_) => (Format::Dictionary, 0),
            None => (Format::Pattern, part.nnz()),
        };
        // of each row its pattern, which is less where rows of the main pattern are side by side; of each pattern where it begins and
        // ends, its part of the main pattern, and values and distances
        let tables = 12 * (dictionary.starts.len() - 1) + 2 * dictionary.distances.len() * size_of::<T>();
        let bytes = with_vectors::<T>(part, 2 * part.n_owned() + tables + values * size_of::<T>());
        Self { format, bytes, plan: Plan::Dictionary(dictionary) }
    }

    fn sell(part: &Part<'_>, sell: Sell<'a, T>) -> Self {
        Self { format: Format::Sell, bytes: with_vectors::<T>(part, sell.bytes()), plan: Plan::Sell(sell) }
    }
}

/// Which of some offers the rule of bytes takes: of those that are trusted, as compressed rows always are, the one that
/// reads the fewest.
pub(crate) fn by_bytes<T: Real>(all: &[Offer<'_, T>], part: &Part<'_>, target: Target) -> usize {
    let trusted = (0..all.len()).filter(|&k| all[k].is_trusted(part, target));
    trusted.min_by_key(|&k| all[k].bytes).unwrap_or(all.len() - 1)
}

/// Rows that do not fit a format that was asked for.
pub(super) fn refused(format: Format, why: &str) -> Error {
    Error::Usage(format!("format = {format}: {why}; format = auto takes what fits"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::LinearOperator;
    use crate::backend::opencl::OpenClBackend;
    use crate::device::{Context, list};
    use crate::kernels::Tuning;
    use crate::matrix::{Csr, gallery};
    use crate::operator::opencl::DeviceBlock;
    use crate::partition::{row_ranges, split};

    fn build(spec: &str) -> Csr {
        spec.parse::<gallery::Spec>().unwrap().build().unwrap()
    }

    /// With rows enough for anything.
    fn target(shape: Shape) -> Target {
        Target { shape, compute_units: 1 }
    }

    fn formats(spec: &str, shape: Shape, compared: bool) -> Vec<(Format, bool)> {
        let a = build(spec);
        let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        let all = Offer::<f64>::all(&part, 1.0, target(shape), compared);
        all.iter().map(|offer| (offer.format, offer.is_trusted(&part, target(shape)))).collect()
    }

    #[test]
    fn what_is_offered() {
        use Format::{Csr, Dictionary, Pattern, Sell};
        use Shape::{Cpu, Gpu};
        // nothing comes near a stencil, but for slices of the shortest rows
        for shape in [Gpu, Cpu] {
            assert_eq!(formats("poisson2d:40", shape, true), [(Dictionary, true), (Csr, true)]);
        }
        assert_eq!(formats("band:2000,width=1", Gpu, true), [(Dictionary, true), (Sell, true), (Csr, true)]);
        assert_eq!(formats("band:2000,width=1", Gpu, false), [(Dictionary, true), (Csr, true)]);
        // values of their own
        for compared in [false, true] {
            assert_eq!(formats("variable:20", Gpu, compared), [(Pattern, true), (Sell, true), (Csr, true)]);
            assert_eq!(formats("variable:20", Cpu, compared), [(Pattern, true), (Csr, true)]);
        }
        // unknowns that alternate are not for CPUs, unless they are measured
        let alternating = [(Dictionary, false), (Pattern, false), (Csr, true)];
        assert_eq!(formats("elasticity3d:10", Cpu, true), alternating);
        assert_eq!(formats("elasticity3d:10", Gpu, true), [(Dictionary, true), (Csr, true)]);
        // rows that differ
        assert_eq!(formats("random-spd:1500,seed=7", Gpu, false), [(Sell, true), (Csr, true)]);
        assert_eq!(formats("random-spd:1500,seed=7", Cpu, true), [(Csr, true)]);
    }

    #[test]
    fn the_fewest_bytes_are_taken() {
        let of = |spec: &str, shape| {
            let a = build(spec);
            let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            Offer::<f64>::of(&part, 1.0, Format::Auto, target(shape)).unwrap().format
        };
        let all = ["poisson2d:40", "variable:20", "elasticity3d:10", "random-spd:1500,seed=7"];
        assert_eq!(
            all.map(|spec| of(spec, Shape::Gpu)),
            [Format::Dictionary, Format::Pattern, Format::Dictionary, Format::Sell]
        );
        assert_eq!(
            all.map(|spec| of(spec, Shape::Cpu)),
            [Format::Dictionary, Format::Pattern, Format::Csr, Format::Csr]
        );
    }

    #[test]
    fn few_rows_are_in_slices_only_by_measurement() {
        let a = build("random-spd:1500,seed=7");
        let part = split(&a, std::slice::from_ref(&(0..1500))).remove(0);
        let of = |compute_units, compared| {
            let target = Target { compute_units, ..target(Shape::Gpu) };
            let all = Offer::<f64>::all(&part, 1.0, target, compared);
            all.iter().map(|offer| (offer.format, offer.is_trusted(&part, target))).collect::<Vec<_>>()
        };
        assert_eq!(of(2, false), [(Format::Sell, true), (Format::Csr, true)]);
        assert_eq!(of(3, false), [(Format::Csr, true)]);
        assert_eq!(of(3, true), [(Format::Sell, false), (Format::Csr, true)]);
    }

    #[test]
    fn offers_are_what_is_uploaded() {
        let device = list().devices.remove(0);
        let (ctx, tuning) = (Context::open(&device).unwrap(), Tuning::default_for(&device, Shape::of(&device)));
        for spec in ["poisson2d:40", "variable:12", "elasticity3d:6", "dense-rows:3000"] {
            let a = build(spec);
            for part in split(&a, &row_ranges(&a, 3)) {
                for (format, offer) in Offer::<f64>::each(&part, 1.0) {
                    let Ok(offer) = offer else { continue };
                    let block = DeviceBlock::alone(&ctx, &tuning, &part, 1.0, &offer).unwrap();
                    assert_eq!(block.format(), format, "{spec}");
                    let bytes = LinearOperator::<OpenClBackend<f64, f64>>::bytes(&block);
                    assert_eq!(offer.bytes, bytes, "{spec} {format}");
                }
            }
        }
    }
}
