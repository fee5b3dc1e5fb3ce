//! A block of rows laid out in a format, on the host: all but moved, so that formats can be compared by their bytes.

use std::time::Instant;

use rayon::prelude::*;

use super::Format;
use super::by_dictionary::ByDictionary;
use super::choice::{Rated, is_near};
use super::csr::Compressed;
use super::device_rows::DeviceRows;
use super::dictionary::Dictionary;
use super::sell::Sell;
use super::sell::made::SellOfMoved;
use super::sell::moved::Mover;
use crate::device::{Context, Info};
use crate::error::{Error, Result};
use crate::kernels::{Shape, Tuning};
use crate::partition::Part;
use crate::real::Real;

/// Rows for each compute unit, below which a GPU may be better off if several work-items share a row.
const ROWS_OF_A_UNIT: usize = 256;

/// A group that sums a row alone reads this part of what a compute unit reads in the same time,
const UNIT_OF_A_GROUP: usize = 3;
/// which does not matter in rows of fewer entries.
const LONG_ROW: usize = 2048;

/// Bytes of an entry's column in slices at the least, but for those of full blocks.
const COLUMN_SLICED: f64 = 2.0;

/// Values of which the bytes are looked at before rows are laid out in slices.
const SAMPLE: usize = 1 << 12;

/// Rows laid out in a format, all but moved: what is to be known of a format before its rows are on a device.
pub(crate) trait Layout<T> {
    fn format(&self) -> Format;

    /// Bytes of the matrix that a product reads and writes, each array counted once.
    fn bytes(&self) -> usize;

    /// Whether its bytes tell its time on such a device.
    fn is_trusted(&self, target: Target) -> bool;

    /// Moves the rows to the device.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`].
    ///
    /// # Panics
    /// If a column is outside the block.
    fn upload(&self, ctx: &Context, tuning: &Tuning) -> Result<DeviceRows<T>>;
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
    /// Bytes that a product reads and writes, those of both vectors included.
    pub(crate) bytes: u64,
    layout: Box<dyn Layout<T> + 'a>,
}

/// A format, or in a few words why rows do not fit it.
type Fitting<'a, T> = std::result::Result<Offer<'a, T>, String>;

/// How the rows of a part, times a factor, are laid out in a format for a device.
type Lay<T> = for<'a> fn(&'a Part<'a>, f64, Target) -> Fitting<'a, T>;

impl<'a, T: Real> Offer<'a, T> {
    /// The formats; `csr`, which all rows fit, is the last.
    const ALL: [(Format, Lay<T>); 4] = [
        (Format::Dictionary, |part, factor, target| {
            let dictionary = Dictionary::with_values(part)?;
            Ok(Offer::new(part, ByDictionary::new(part, factor, dictionary, target.shape)))
        }),
        (Format::Pattern, |part, factor, target| {
            let dictionary = Dictionary::by_columns(part)?;
            Ok(Offer::new(part, ByDictionary::new(part, factor, dictionary, target.shape)))
        }),
        (Format::Sell, |part, factor, _| Ok(Offer::new(part, Sell::plan(part, factor)))),
        (Format::Csr, |part, factor, _| Ok(Offer::new(part, Compressed::<T>::new(part, factor)))),
    ];

    fn new(part: &Part<'_>, layout: impl Layout<T> + 'a) -> Self {
        Self { format: layout.format(), bytes: with_vectors::<T>(part, layout.bytes()), layout: Box::new(layout) }
    }

    /// The rows of `part`, times `factor`, in `format`; in [`Format::Auto`], in what the rule of bytes takes.
    ///
    /// # Errors
    /// [`Error::Usage`] if the rows do not fit the format.
    pub(crate) fn of(part: &'a Part<'a>, factor: f64, format: Format, target: Target) -> Result<Self> {
        Self::on(part, factor, format, (target, None))
    }

    /// The same, where a device may have the rows first.
    ///
    /// # Errors
    /// As above; a failing device.
    pub(crate) fn on(
        part: &'a Part<'a>,
        factor: f64,
        format: Format,
        (target, mover): (Target, Option<&Mover<'_, T>>),
    ) -> Result<Self> {
        if format == Format::Auto {
            let mut all = Self::all(part, factor, (target, mover), false)?;
            return Ok(all.swap_remove(by_bytes(&all, target)));
        }
        Self::one(part, factor, format, (target, mover))?.map_err(|why| refused(format, &why))
    }

    /// Each format.
    pub(crate) fn each(part: &'a Part<'a>, factor: f64, target: Target) -> [(Format, Fitting<'a, T>); 4] {
        Self::ALL.map(|(format, lay)| (format, lay(part, factor, target)))
    }

    fn one(
        part: &'a Part<'a>,
        factor: f64,
        format: Format,
        (target, mover): (Target, Option<&Mover<'_, T>>),
    ) -> Result<Fitting<'a, T>> {
        if let Some(mover) = mover {
            match format {
                Format::Sell => {
                    let (ctx, moved) = mover.rows(part, factor)?;
                    return Ok(Ok(Self::new(part, SellOfMoved::plan(ctx, part, factor, &moved)?)));
                }
                Format::Csr => {
                    let moved = mover.compressed(part, factor)?;
                    return Ok(Ok(Self::new(part, Compressed { moved, ..Compressed::new(part, factor) })));
                }
                _ => {}
            }
        }
        let row = Self::ALL.into_iter().find(|row| row.0 == format);
        let (_, lay) = row.unwrap_or_else(|| unreachable!("{format} has a layout"));
        Ok(lay(part, factor, target))
    }

    /// The formats that are possible, but for those that can't be what the rule of bytes takes or, if formats are to be
    /// `compared`, not near it; `csr` is always there, and the last. Slices are not for CPUs: on two cores with PoCL
    /// 3.1 products took 1.1 to 1.8 times as long as with `csr`, for fewer bytes, and 0.1 s more to prepare.
    ///
    /// Costs a pass over the entries for each way to find patterns, which ends early where rows differ, and three for
    /// slices, which a device may make that has the rows.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn all(
        part: &'a Part<'a>,
        factor: f64,
        (target, mover): (Target, Option<&Mover<'_, T>>),
        compared: bool,
    ) -> Result<Vec<Self>> {
        let trusted = |all: &[Self]| all.iter().find(|offer| offer.layout.is_trusted(target)).map(|offer| offer.bytes);
        let one = |format, mover| -> Result<Option<Self>> {
            let looking = Instant::now();
            let found = Self::one(part, factor, format, (target, mover))?.ok();
            log::debug!("{} rows, looked at as {format} in {:.1?}", part.n_owned(), looking.elapsed());
            Ok(found)
        };
        let mut all: Vec<Self> = one(Format::Dictionary, None)?.into_iter().collect();
        if trusted(&all).is_none() {
            all.extend(one(Format::Pattern, None)?);
        }
        let least = match mover {
            // of values that nobody has yet
            Some(mover) if mover.scales() => COLUMN_SLICED + size_of::<T>() as f64,
            _ => least_sliced::<T>(part),
        };
        let least = with_vectors::<T>(part, (least * part.nnz() as f64) as usize);
        let is_worthwhile = match trusted(&all) {
            Some(fewest) if compared => is_near(least, fewest),
            Some(fewest) => has_rows(part, target) && least < fewest,
            None => compared || has_rows(part, target) || has_dominant_row(part, target),
        };
        if target.shape == Shape::Gpu && is_worthwhile {
            // where patterns are there, slices are but a rival
            all.extend(one(Format::Sell, mover.filter(|_| trusted(&all).is_none()))?);
        }
        all.extend(one(Format::Csr, mover)?);
        Ok(all)
    }

    /// What judgement needs.
    pub(crate) fn rated(&self, target: Target) -> Rated {
        Rated { format: self.format, bytes: self.bytes, is_trusted: self.layout.is_trusted(target) }
    }

    /// Memory that the rows take at the most, in bytes: values may be padded.
    pub(crate) fn memory(&self) -> u64 {
        5 * self.layout.bytes() as u64 / 4
    }

    /// Moves the rows to the device.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`].
    ///
    /// # Panics
    /// If a column is outside the block.
    pub(crate) fn upload(&self, ctx: &Context, tuning: &Tuning) -> Result<DeviceRows<T>> {
        self.layout.upload(ctx, tuning)
    }
}

/// Which of some offers the rule of bytes takes: of those that are trusted, as compressed rows always are, the one that
/// reads the fewest.
pub(crate) fn by_bytes<T: Real>(all: &[Offer<'_, T>], target: Target) -> usize {
    let trusted = (0..all.len()).filter(|&k| all[k].layout.is_trusted(target));
    trusted.min_by_key(|&k| all[k].bytes).unwrap_or(all.len() - 1)
}

/// Bytes of an entry in slices at the least, by a sample of the values: those of a slice are as wide as the widest.
fn least_sliced<T: Real>(part: &Part<'_>) -> f64 {
    let step = part.nnz().div_ceil(SAMPLE).max(1);
    let widths = || part.values.iter().step_by(step).map(|&v| Sell::<T>::least_value_bytes(v));
    COLUMN_SLICED + widths().sum::<usize>() as f64 / widths().count().max(1) as f64
}

/// Rows that do not fit a format that was asked for.
pub(super) fn refused(format: Format, why: &str) -> Error {
    Error::Usage(format!("format = {format}: {why}; format = auto takes what fits"))
}

/// Whether there are rows for all work-items of a device.
pub(super) fn has_rows(part: &Part<'_>, target: Target) -> bool {
    part.n_owned() >= ROWS_OF_A_UNIT * target.compute_units.max(1) as usize
}

/// Whether a single group is longer with the longest row than the device with all of them, in a format that does not cut it.
pub(super) fn has_dominant_row(part: &Part<'_>, target: Target) -> bool {
    let longest = part.row_ptr.par_windows(2).with_min_len(1 << 14).map(|row| row[1] - row[0]).max().unwrap_or(0);
    longest > LONG_ROW && longest * target.compute_units.max(1) as usize * UNIT_OF_A_GROUP > part.nnz()
}

/// Bytes of a product: those of the matrix and of both vectors.
fn with_vectors<T: Real>(part: &Part<'_>, matrix: usize) -> u64 {
    (matrix + 2 * part.n_owned() * size_of::<T>()) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::opencl::OpenClBackend;
    use crate::backend::{Backend, LinearOperator};
    use crate::comm::Alone;
    use crate::device::{Context, list};
    use crate::kernels::{Kernels, Tuning};
    use crate::matrix::{Csr, gallery};
    use crate::operator::opencl::DeviceBlock;
    use crate::partition::{NewValues, row_ranges, split};

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
        let all = Offer::<f64>::all(&part, 1.0, (target(shape), None), compared).unwrap();
        all.iter().map(|offer| (offer.format, offer.layout.is_trusted(target(shape)))).collect()
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
        assert_eq!(formats("variable:20", Gpu, true), [(Pattern, true), (Sell, true), (Csr, true)]);
        // of eight bytes each, so that slices can't take fewer
        assert_eq!(formats("variable:20", Gpu, false), [(Pattern, true), (Csr, true)]);
        for compared in [false, true] {
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
            let all = Offer::<f64>::all(&part, 1.0, (target, None), compared).unwrap();
            all.iter().map(|offer| (offer.format, offer.layout.is_trusted(target))).collect::<Vec<_>>()
        };
        assert_eq!(of(5, false), [(Format::Sell, true), (Format::Csr, true)]);
        assert_eq!(of(6, false), [(Format::Csr, true)]);
        assert_eq!(of(6, true), [(Format::Sell, false), (Format::Csr, true)]);
    }

    #[test]
    fn long_rows_are_cut_where_a_group_would_be_the_last() {
        // a line of 3000 points of which 4 are tied to all: 21,000 entries or so
        let a = build("dense-rows:3000");
        let part = split(&a, std::slice::from_ref(&(0..3000))).remove(0);
        let of = |compute_units| {
            let target = Target { compute_units, ..target(Shape::Gpu) };
            let csr = Offer::<f64>::of(&part, 1.0, Format::Csr, target).unwrap();
            (csr.layout.is_trusted(target), Offer::<f64>::of(&part, 1.0, Format::Auto, target).unwrap().format)
        };
        assert_eq!([1, 4, 132].map(of), [true, false, false].map(|is_trusted| (is_trusted, Format::Sell)));
    }

    #[test]
    fn bytes_by_hand() {
        // 1,600 rows, 5 · 1600 − 2 · 16 − 2 · 100 entries, 9 patterns of 3 to 5 entries, 33 of them in all
        let a = build("poisson2d:100x16");
        let part = split(&a, std::slice::from_ref(&(0..1600))).remove(0);
        let of = |shape| {
            let bytes = |(_, offer): (Format, Fitting<'_, f64>)| offer.ok().map(|offer| offer.bytes - 2 * 8 * 1600);
            Offer::each(&part, 1.0, target(shape)).map(bytes)
        };
        let (tables, csr) = (9 * 12 + 2 * 8 * 33, 7768 * 12 + 4 * 1601);
        let [dictionary, pattern, sell, compressed] = of(Shape::Cpu).map(Option::unwrap);
        assert_eq!([dictionary, pattern, compressed], [2 * 1600 + tables, 2 * 1600 + tables + 8 * 7768, csr]);
        // values of a byte, columns of two
        assert!((3 * 7768..4 * 7768).contains(&sell), "{sell}");
        // of 50 slices of 32 rows, those that have no end of a line have one pattern
        let alike = (0..50).filter(|k| (32 * k..32 * k + 32).all(|row| (1..99).contains(&(row % 100)))).count() as u64;
        assert_eq!(alike, 32);
        let patterns = 4 * 50 + 2 * (1600 - 32 * alike);
        assert_eq!(of(Shape::Gpu)[0].unwrap(), patterns + tables);
    }

    #[test]
    fn what_is_offered_is_uploaded() {
        let device = list().devices.remove(0);
        let ctx = Context::open(&device).unwrap();
        for (spec, tuning) in ["poisson2d:40", "variable:12", "elasticity3d:6", "dense-rows:3000"]
            .into_iter()
            .flat_map(|spec| [Tuning::uniform(1, 1, 3), Tuning::uniform(32, 512, 3)].map(|tuning| (spec, tuning)))
        {
            let a = build(spec);
            for part in split(&a, &row_ranges(&a, 3)) {
                for (format, offer) in Offer::<f64>::each(&part, 1.0, crate::operator::opencl::target(&ctx, &tuning)) {
                    let Ok(offer) = offer else { continue };
                    let block = DeviceBlock::alone(&ctx, &tuning, &part, &offer).unwrap();
                    assert_eq!(block.format(), format, "{spec}");
                    assert_eq!(LinearOperator::<OpenClBackend<f64, f64>>::bytes(&block), offer.bytes);
                    assert!(block.memory() <= offer.memory() + 8 * part.n_owned() as u64, "{spec} {format}");
                }
            }
        }
    }
    /// In one segment and in several: as rows that are moved with the other values.
    #[test]
    fn other_values_take_the_places_of_these() {
        for (shape, most) in [Shape::Cpu, Shape::Gpu].into_iter().flat_map(|shape| [(shape, 1 << 15), (shape, 1 << 30)])
        {
            let mut device = list().devices.remove(0);
            device.max_buffer_bytes = device.max_buffer_bytes.min(most);
            let ctx = Arc::new(Context::open(&device).unwrap());
            for (spec, format) in ["variable:12", "dense-rows:3000"]
                .into_iter()
                .flat_map(|spec| [Format::Csr, Format::Pattern, Format::Sell].map(|format| (spec, format)))
            {
                let tuning = Tuning::default_for(&device, shape);
                let a = build(spec);
                let (n, values) = (a.n_rows(), a.values().iter().map(|v| 0.1 * v).collect());
                let whole = Arc::new(a.with_values((0..a.nnz()).map(|k| (k % 9) as f64 - 4.0).collect()));
                let a = a.with_values(values);
                let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
                let Ok(offer) = Offer::of(&part, 1.0, format, target(shape)) else { continue };
                let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
                let backend = OpenClBackend::new(Arc::clone(&ctx), kernels, n, Box::new(Alone::default())).unwrap();
                let mut block = DeviceBlock::alone(&ctx, &backend.kernels.tuning, &part, &offer).unwrap();
                let (rows, col_idx) = (0..n, whole.col_idx().into());
                let new = NewValues::new(&whole, rows, col_idx, None, 1.0);
                assert!(block.take_values(&backend, &new).unwrap(), "{spec} {format}");
                let x: Vec<f64> = (0..n).map(|i| (i * 7 % 11) as f64 - 5.0).collect();
                let mut v = [backend.vector(0, "x").unwrap(), backend.vector(0, "y").unwrap()];
                let ([of_x, of_y], mut y) = (&mut v, vec![0.0; n]);
                backend.write(&x, of_x).unwrap();
                block.apply(&backend, of_x, of_y).unwrap();
                backend.read(of_y, &mut y).unwrap();
                assert!(y == whole.mul_vec(&x), "{spec} {format} {shape:?} {most}");
            }
        }
    }
}
