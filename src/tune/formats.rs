//! The format of a block of rows on a device: as asked for, as a former run found it, by measurement on the block
//! itself, or by the rule of bytes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::kept;
use super::mode::Tune;
use super::stopwatch::Stopwatch;
use super::store::{Device, FormatEntry, FormatKey, FormatTime, Known, Store};
use super::workload::numbers;
use crate::backend::Backend;
use crate::backend::LinearOperator;
use crate::backend::opencl::OpenClBackend;
use crate::cache::Digest;
use crate::device::DeviceVec;
use crate::error::{Error, Result};
use crate::kernels::Shape;
use crate::matrix::Csr;
use crate::operator::choice::{FormatCandidate, FormatChoice, Why, contenders, fastest};
use crate::operator::opencl::{DeviceBlock, target};
use crate::operator::plan::{Offer, Target, by_bytes};
use crate::operator::sell::moved::{Mover, can_be_scaled};
use crate::operator::{Exchange, Format};
use crate::partition::Part;
use crate::precond::scaling::Scaling;
use crate::real::Real;
use crate::timeline::stages::stage;
use crate::timing::{Timing, timing};

/// Entries of a block whose products are worth more than a look at its bytes.
const LEAST_ENTRIES: usize = 10_000;

/// Launches of a turn, of which the first finds what the format before has left in the caches and does not count.
const TURN: usize = 3;

/// Rounds in which formats take turns, and the time that they may take beyond the least number: a solve makes hundreds
/// of products, so that a dozen are within 5 % of it.
const ROUNDS: [usize; 2] = [2, 10];
const ROUNDS_TIME: Duration = Duration::from_millis(100);

/// When moving formats to the device, and their first products, have taken so long, there is nothing more to come.
pub(crate) const SET_UP_TIME: Duration = Duration::from_millis(500);

/// Elements of each array that the hash of a block sees, at most.
const SAMPLE: usize = 1 << 12;

/// Held while formats are measured: ranks that share a device, or the processor, would disturb each other.
static TURNS: Mutex<()> = Mutex::new(());

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The format.
    pub(crate) format: Format,
    /// Whether former runs have a say, and whether there may be measurements.
    pub(crate) tune: Tune,
    /// What former runs have found on the device, if that has a say.
    pub(crate) known: Option<&'a Known>,
    /// Where to keep what is found.
    pub(crate) store: &'a Store,
    /// Memory of the device for the block in all formats that are compared, in bytes.
    pub(crate) room: u64,
    /// How its halo is exchanged.
    pub(crate) exchange: Exchange,
    /// After so much of it, no more formats are prepared to be compared: [`SET_UP_TIME`].
    pub(crate) set_up: Duration,
    /// The scaling and its matrix, if the rows are not scaled yet.
    pub(crate) unscaled: Option<(&'a Scaling, &'a Csr)>,
}

/// A block on its device.
pub(crate) struct Uploaded<T: Real> {
    pub(crate) block: DeviceBlock<T>,
    pub(crate) choice: FormatChoice,
    /// Time that the comparison of formats took, without that of compilers.
    pub(crate) comparing: Duration,
}

/// Moves the block of `part`, times `factor`, to the device in the format that is wanted; with [`Format::Auto`] in what
/// was measured to be the fastest on it, now or in a former run, and else in what reads the fewest bytes.
///
/// Where formats are measured, all of those within a band of bytes lie on the device at once, and 8 to 32 products of
/// each are made.
///
/// # Errors
/// As [`Offer::of`] and [`DeviceBlock::alone`]; those of the formats that are compared make them fall out.
pub(crate) fn upload<T: Real, A: Real>(
    backend: &OpenClBackend<T, A>,
    part: &Part<'_>,
    factor: f64,
    wanted: Wanted<'_>,
) -> Result<Uploaded<T>> {
    let (ctx, mut comparing) = (&backend.ctx, Duration::ZERO);
    let target = target(ctx, &backend.kernels.tuning);
    let mover = (target.shape == Shape::Gpu).then(|| Mover::new(ctx, part, factor, wanted.room)).flatten();
    let scaled = |(scaling, a): (&Scaling, &Csr)| -> Result<Part<'_>> {
        let _scaling = stage("scale");
        let values = scaling.values(a, part.rows.clone())?.into();
        let (rows, col_idx) = (part.rows.clone(), part.col_idx.clone());
        Ok(Part { rows, row_ptr: part.row_ptr, col_idx, values, halo: part.halo.clone(), of: None })
    };
    let mut choose = |part: &Part<'_>, mover| {
        let comparison = Comparison { backend, part, factor, target, mover };
        comparison.choose(wanted, &mut comparing)
    };
    let mover = mover.filter(|_| wanted.unscaled.is_none() || can_be_scaled(part));
    let by_device = mover.map(|mover| choose(part, Some(mover.scaling(wanted.unscaled.map(|one| one.0.roots())))));
    if let Some(Err(e @ Error::OutOfDeviceMemory { .. })) = &by_device {
        log::info!("rows are laid out on the host: {e}");
    }
    let (block, choice) = match (by_device, wanted.unscaled) {
        (Some(Err(Error::OutOfDeviceMemory { .. })) | None, Some(unscaled)) => choose(&scaled(unscaled)?, None)?,
        (Some(Err(Error::OutOfDeviceMemory { .. })) | None, None) => choose(part, None)?,
        (Some(chosen), _) => chosen?,
    };
    log::debug!("{}: rows are there", ctx.info().name);
    block.compile(ctx, &backend.kernels)?;
    let block = block.join(ctx, &part.halo, wanted.exchange)?;
    Ok(Uploaded { block, choice, comparing })
}

/// The block and its device.
struct Comparison<'a, T: Real, A: Real> {
    backend: &'a OpenClBackend<T, A>,
    part: &'a Part<'a>,
    factor: f64,
    target: Target,
    /// What moves the rows as they are, where slices are made on the device.
    mover: Option<Mover<'a, T>>,
}

/// A block, and times of products with it in seconds.
type Timed<T> = (DeviceBlock<T>, Vec<f64>);

/// A block, and how it came to its format.
type Chosen<T> = (DeviceBlock<T>, FormatChoice);

impl<T: Real, A: Real> Comparison<'_, T, A> {
    fn choose(&self, wanted: Wanted<'_>, comparing: &mut Duration) -> Result<Chosen<T>> {
        let Self { part, factor, target, .. } = *self;
        if wanted.format != Format::Auto {
            let offer = Offer::on(part, factor, wanted.format, (target, self.mover.as_ref()))?;
            return Ok((self.alone(&offer)?, FormatChoice::only(Why::Forced, candidate(&offer))));
        }
        let is_large = part.nnz() > LEAST_ENTRIES;
        if let Some(known) = wanted.known
            && is_large
            && let Some(remembered) = self.remembered(known)?
        {
            return Ok(remembered);
        }
        let measures = is_large && wanted.tune == Tune::Full;
        let mut offers = Offer::all(part, factor, (target, self.mover.as_ref()), measures)?;
        if measures {
            let (start, compiled) = (Instant::now(), self.backend.ctx.compiled());
            let measured = self.measured(&offers, wanted);
            *comparing = start.elapsed().saturating_sub(self.backend.ctx.compiled() - compiled);
            if let Some(measured) = measured {
                return Ok(measured);
            }
        }
        let candidates = offers.iter().map(candidate).collect();
        let offer = offers.swap_remove(by_bytes(&offers, target));
        log::debug!("rows are laid out as {}", offer.format);
        Ok((self.alone(&offer)?, FormatChoice::new(Why::FewestBytes, offer.format, candidates)))
    }

    fn alone(&self, offer: &Offer<'_, T>) -> Result<DeviceBlock<T>> {
        DeviceBlock::alone(&self.backend.ctx, &self.backend.kernels.tuning, self.part, offer)
    }

    fn key(&self) -> FormatKey {
        let mut of = fingerprint(self.part, self.factor);
        if self.mover.as_ref().is_some_and(Mover::scales) {
            of.push_str(", scaled");
        }
        kept::format_key::<T, A>(self.backend.ctx.info(), self.part, of)
    }

    /// The block in the format that a former run has measured, if it did and the rows fit it.
    fn remembered(&self, known: &Known) -> Result<Option<Chosen<T>>> {
        let Some(entry) = known.format(&self.key()) else { return Ok(None) };
        let named = |name: &str| name.parse::<Format>().ok().filter(|format| *format != Format::Auto);
        let Some(format) = named(&entry.format) else { return Ok(None) };
        let offer = match Offer::on(self.part, self.factor, format, (self.target, self.mover.as_ref())) {
            Err(Error::Usage(_)) => return Ok(None),
            offer => offer?,
        };
        let candidate = |one: &FormatTime| {
            let time = one.timing.as_ref().and_then(|timing| Duration::try_from_secs_f64(timing.median).ok());
            Some(FormatCandidate { time, ..FormatCandidate::new(named(&one.format)?, one.bytes) })
        };
        let candidates = entry.candidates.iter().filter_map(candidate).collect();
        let format = offer.format;
        log::debug!("{}: {format} was measured in a former run; nothing is", self.backend.ctx.info().name);
        Ok(Some((self.alone(&offer)?, FormatChoice::new(Why::Remembered, format, candidates))))
    }

    /// The block in the fastest format, which is kept for later runs; `None` if there is nothing to measure, or it
    /// failed.
    fn measured(&self, offers: &[Offer<'_, T>], wanted: Wanted<'_>) -> Option<Chosen<T>> {
        let device = &self.backend.ctx.info().name;
        let rated: Vec<_> = offers.iter().map(|offer| offer.rated(self.target)).collect();
        let formats = contenders(&rated);
        if formats.len() < 2 {
            return None;
        }
        let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        // what is taken without a measurement comes first, so that there is something to take if there is no room for
        // others
        let usual = offers[by_bytes(offers, self.target)].format;
        let mut compared: Vec<_> = offers.iter().filter(|offer| formats.contains(&offer.format)).collect();
        compared.sort_by_key(|offer| (offer.format != usual, offer.bytes));
        let mut blocks =
            self.times(compared, wanted).map_err(|e| log::warn!("{device}: formats can't be compared: {e}")).ok()?;
        if blocks.len() < 2 {
            let choice = FormatChoice::new(Why::FewestBytes, usual, offers.iter().map(candidate).collect());
            return blocks.pop().filter(|(block, _)| block.format() == usual).map(|(block, _)| (block, choice));
        }
        let timing_of = |format: Format| {
            let (_, times) = blocks.iter().find(|(block, _)| block.format() == format)?;
            Some(timing(times.clone()))
        };
        let measured: Vec<_> = rated.iter().map(|one| (one.format, one.bytes, timing_of(one.format))).collect();
        let format = fastest(&measured)?;
        let time = |(format, bytes, timing): &(Format, u64, Option<Timing>)| FormatTime {
            format: format.name().into(),
            bytes: *bytes,
            timing: *timing,
        };
        let entry = FormatEntry::new(self.key(), format.name(), measured.iter().map(time).collect());
        wanted.store.insert_formats(&Device::from(self.backend.ctx.info()), [entry]);
        let candidates = measured.iter().map(|(format, bytes, timing)| {
            let time = timing.map(|timing| Duration::from_secs_f64(timing.median));
            if let Some(time) = time {
                log::debug!("{device}: a product of {bytes} bytes as {format} takes {time:?}");
            }
            FormatCandidate { time, ..FormatCandidate::new(*format, *bytes) }
        });
        let choice = FormatChoice::new(Why::Measured, format, candidates.collect());
        Some((blocks.into_iter().map(|(block, _)| block).find(|block| block.format() == format)?, choice))
    }

    /// Some formats on the device, and the times of products with each, which take turns. What fails, or finds no room
    /// or no time, is left out.
    fn times(&self, offers: Vec<&Offer<'_, T>>, wanted: Wanted<'_>) -> Result<Vec<Timed<T>>> {
        let (ctx, n, mut room) = (&self.backend.ctx, self.part.n_owned(), wanted.room);
        let p = DeviceVec::from_slice(ctx, &numbers::<T>(n + self.part.halo.len, 1), "p")?;
        let mut vectors = [p, self.backend.vector(0, "q")?];
        let mut sums = self.backend.product_sums()?;
        let mut product = |block: &DeviceBlock<T>| block.multiply(self.backend, &mut vectors, [0, 1], None, &mut sums);
        let (mut set_up, mut blocks, mut round) = (Duration::ZERO, Vec::new(), Duration::ZERO);
        for offer in offers {
            let format = offer.format;
            if offer.memory() > room || set_up > wanted.set_up {
                log::debug!("{}: no room, or no time, to measure {format}", ctx.info().name);
                continue;
            }
            // the first launch may pay for more than itself
            let mut warmed = || -> Result<(DeviceBlock<T>, Duration)> {
                let start = Instant::now();
                let block = self.alone(offer)?;
                set_up += start.elapsed();
                // its result is kept for later runs, so that this is no matter of this one
                block.compile(ctx, &self.backend.kernels)?;
                let first = Instant::now();
                product(&block)?;
                ctx.finish()?;
                let second = Instant::now();
                product(&block)?;
                ctx.finish()?;
                set_up += first.elapsed();
                Ok((block, second.elapsed()))
            };
            match warmed() {
                Ok((block, time)) => {
                    room -= offer.memory();
                    round += TURN as u32 * time;
                    blocks.push((block, Vec::new()));
                }
                Err(e) => log::debug!("{}: {format} is not measured: {e}", ctx.info().name),
            }
        }
        let count = blocks.len();
        if count > 1 {
            let rounds = (ROUNDS_TIME.as_secs_f64() / round.as_secs_f64()) as usize;
            let launches = rounds.clamp(ROUNDS[0], ROUNDS[1]) * count * TURN;
            let whose = |launch: usize| launch / TURN % count;
            let all = Stopwatch::default().times(ctx, launches, |launch| product(&blocks[whose(launch)].0))?;
            for (launch, time) in all.into_iter().enumerate().filter(|(launch, _)| launch % TURN > 0) {
                blocks[whose(launch)].1.push(time);
            }
        }
        Ok(blocks)
    }
}

fn candidate<T>(offer: &Offer<'_, T>) -> FormatCandidate {
    FormatCandidate::new(offer.format, offer.bytes)
}

/// A hash of a block, times `factor`: of its size, and of a sample of evenly spaced row pointers, columns and bits of
/// values. Blocks of equal hashes may differ in what is not seen; then a format was measured on another one, which
/// costs time at most.
pub(crate) fn fingerprint(part: &Part<'_>, factor: f64) -> String {
    fn sample<const N: usize>(len: usize, bytes: impl Fn(usize) -> [u8; N]) -> Vec<u8> {
        (0..len).step_by(len.div_ceil(SAMPLE).max(1)).flat_map(bytes).collect()
    }
    let base = part.row_ptr[0];
    let size = [part.n_owned(), part.nnz(), part.halo.len].map(|v| (v as u64).to_le_bytes());
    let row_ptr = sample(part.row_ptr.len(), |k| ((part.row_ptr[k] - base) as u64).to_le_bytes());
    let numbered = part.col_idx.numbered();
    let columns = sample(part.nnz(), |k| numbered.number(numbered.given[k]).to_le_bytes());
    let values = sample(part.nnz(), |k| part.values[k].to_bits().to_le_bytes());
    let factor = factor.to_bits().to_le_bytes();
    format!("{:.32}", Digest::of([size.as_flattened(), &factor, &row_ptr, &columns, &values]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::comm::Alone;
    use crate::device::{Context, list};
    use crate::kernels::{Kernels, Tuning};
    use crate::matrix::gallery;
    use crate::partition::{NewValues, Unscaled, part_alone, row_ranges, split};

    /// Rows that are of a few patterns by their columns, with values that are whole numbers, but take all bytes of a
    /// double.
    fn matrix(n: usize) -> Csr {
        let a = gallery::poisson3d([n, n, n]).unwrap();
        let values = (0..a.nnz()).map(|k| 33_554_433.0 - f64::from((k * k % 13) as u32)).collect();
        Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
    }

    fn backend(shape: Shape, rows: usize) -> OpenClBackend<f64, f64> {
        let device = list().devices.remove(0);
        let ctx = Arc::new(Context::open(&device).unwrap());
        let kernels = Kernels::build(&ctx, Tuning::default_for(&device, shape)).unwrap();
        OpenClBackend::new(ctx, kernels, rows, Box::new(Alone::default())).unwrap()
    }

    /// y = A x for whole numbers, with a halo that no other rank has filled.
    fn product(backend: &OpenClBackend<f64, f64>, block: &DeviceBlock<f64>, x: &[f64]) -> Vec<f64> {
        let mut x = DeviceVec::from_slice(&backend.ctx, x, "x").unwrap();
        let mut y = backend.vector(0, "y").unwrap();
        block.apply(backend, &mut x, &mut y).unwrap();
        let mut out = vec![0.0; backend.n_owned()];
        backend.read(&y, &mut out).unwrap();
        out
    }

    /// The fastest format, whatever it takes to find it.
    fn anything<'a>(known: &'a Known, store: &'a Store) -> Wanted<'a> {
        let (format, tune, known) = (Format::Auto, Tune::Full, Some(known));
        Wanted {
            format,
            tune,
            known,
            store,
            room: u64::MAX,
            exchange: Exchange::HostStaged,
            set_up: Duration::MAX,
            unscaled: None,
        }
    }

    fn numbers_of(len: usize) -> Vec<f64> {
        (0..len).map(|k| f64::from((k % 17) as u32) - 8.0).collect()
    }

    /// Rows in no pattern that are scaled by the device, and other values in their places: the same bits as scaled by the host.
    #[test]
    fn rows_are_scaled_where_they_go() {
        let a = Arc::new("tetrahedra:29".parse::<gallery::Spec>().unwrap().build().unwrap());
        let other = Arc::new(a.with_values(a.values().iter().map(|v| 3.0 * v).collect()));
        let scaling_of = |a: &Csr| Scaling::by(&a.diagonal(), 0.25, None);
        for rows in row_ranges(&a, 2) {
            let part = part_alone(&a, rows.clone());
            assert!(part.nnz() >= 1 << 20 && part.halo.len > 0 && can_be_scaled(&part));
            let backend = backend(Shape::Gpu, part.n_owned());
            let (store, x) = (Store::none(), numbers_of(part.n_owned() + part.halo.len));
            let nothing = store.load(&Device::from(backend.ctx.info()));
            let of = |part: &Part<'_>, room, unscaled| {
                let wanted = Wanted { tune: Tune::Off, known: None, room, unscaled, ..anything(&nothing, &store) };
                let Uploaded { block, choice, .. } = upload(&backend, part, 0.25, wanted).unwrap();
                assert_eq!((block.format(), choice.why), (Format::Sell, Why::FewestBytes));
                (product(&backend, &block, &x), block)
            };
            let by_host = |a: &Csr| {
                let values = scaling_of(a).values(a, rows.clone()).unwrap().into();
                of(&Part { values, of: None, ..part.clone() }, 0, None).0
            };
            let (expected, of_other) = (by_host(&a), by_host(&other));
            let (first, scaling) = (scaling_of(&a), scaling_of(&other));
            assert!(expected != of_other);
            // by the device, and by the host as there is no room for the rows besides
            for room in [u64::MAX, 0] {
                let (found, mut block) = of(&part, room, Some((&first, &a)));
                assert!(found == expected);
                let scale = || scaling.values(&other, rows.clone());
                let unscaled = Unscaled { roots: scaling.roots(), scale: &scale };
                let new = NewValues::unscaled(&other, rows.clone(), part.col_idx.clone(), unscaled, 0.25);
                assert!(block.take_values(&backend, &new).unwrap() && product(&backend, &block, &x) == of_other);
            }
        }
    }

    #[test]
    fn what_is_measured_is_remembered_and_multiplies_alike() {
        let a = matrix(14); // 2744 rows, 18,032 entries
        for (shape, others) in [(Shape::Cpu, 1), (Shape::Gpu, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path());
            let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            let backend = backend(shape, a.n_rows());
            let device = Device::from(backend.ctx.info());
            let choose = |format, tune, known: Option<&Known>, room| {
                let wanted = Wanted {
                    format,
                    tune,
                    known,
                    store: &store,
                    room,
                    exchange: Exchange::HostStaged,
                    set_up: Duration::MAX,
                    unscaled: None,
                };
                let Uploaded { block, choice, .. } = upload(&backend, &part, 1.0, wanted).unwrap();
                let x = numbers_of(a.n_cols());
                assert!(product(&backend, &block, &x) == a.mul_vec(&x), "{shape:?} {format} {tune}");
                (block.format(), choice)
            };
            let plenty = u64::MAX;
            let nothing = store.load(&device);
            for format in [Format::Csr, Format::Pattern, Format::Sell] {
                let (taken, choice) = choose(format, Tune::Quick, Some(&nothing), plenty);
                assert_eq!((taken, choice.why, choice.candidates.len()), (format, Why::Forced, 1));
            }
            // where nothing may be measured, or there is no room for two
            for (tune, room) in [(Tune::Off, plenty), (Tune::Quick, plenty), (Tune::Full, 0), (Tune::Full, 220_000)] {
                let known = (tune != Tune::Off).then_some(&nothing);
                let (taken, choice) = choose(Format::Auto, tune, known, room);
                let first = choice.candidates[0];
                assert_eq!((taken, choice.why, first.format, first.time), (taken, Why::FewestBytes, taken, None));
            }
            assert_eq!(store.list(), []);

            let (taken, measured) = choose(Format::Auto, Tune::Full, Some(&nothing), plenty);
            assert_eq!((measured.why, measured.candidates.len()), (Why::Measured, 1 + others), "{shape:?}");
            assert!(measured.candidates.iter().all(|one| one.time.is_some_and(|time| !time.is_zero())));
            assert_eq!(measured.candidates[0].format, taken);

            let known = store.load(&device);
            assert_eq!((known.entries.len(), known.formats.len()), (0, 1));
            for tune in [Tune::Stored, Tune::Quick, Tune::Full] {
                let (again, choice) = choose(Format::Auto, tune, Some(&known), plenty);
                assert_eq!((again, choice.why), (taken, Why::Remembered));
                let format = |one: &FormatCandidate| (one.format, one.bytes);
                let same = |choice: &FormatChoice| choice.candidates.iter().map(format).collect::<Vec<_>>();
                assert_eq!(same(&choice), same(&measured));
            }
            // a file that was edited: rows that do not fit the format are looked at anew
            let mut edited = known.clone();
            edited.formats[0].format = "dictionary".into();
            assert_eq!(choose(Format::Auto, Tune::Stored, Some(&edited), plenty).1.why, Why::FewestBytes);
            edited.formats[0].format = "csr".into();
            assert_eq!(choose(Format::Auto, Tune::Stored, Some(&edited), plenty).0, Format::Csr);
        }
    }

    #[test]
    fn blocks_with_a_halo_are_measured_alone() {
        let a = matrix(16);
        for part in split(&a, &row_ranges(&a, 2)) {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path());
            let backend = backend(Shape::Cpu, part.n_owned());
            let known = store.load(&Device::from(backend.ctx.info()));
            let wanted = anything(&known, &store);
            let Uploaded { block, choice, .. } = upload(&backend, &part, 1.0, wanted).unwrap();
            assert_eq!(choice.why, Why::Measured);
            assert_eq!(LinearOperator::<OpenClBackend<f64, f64>>::halo(&block), part.halo.len);
        }
    }

    #[test]
    fn small_blocks_are_not_measured() {
        let a = matrix(8); // 3136 entries
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        for n in [0, 1, a.n_rows()] {
            let part = split(&a, &[0..n, n..a.n_rows()]).remove(0);
            let backend = backend(Shape::Cpu, n);
            let known = store.load(&Device::from(backend.ctx.info()));
            let wanted = anything(&known, &store);
            assert_eq!(upload(&backend, &part, 1.0, wanted).unwrap().choice.why, Why::FewestBytes);
        }
        assert_eq!(store.list(), []);
    }

    #[test]
    fn blocks_that_differ_have_other_hashes() {
        let a = matrix(8);
        let whole = || split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        let same = fingerprint(&whole(), 1.0);
        assert_eq!((same.len(), &fingerprint(&whole(), 1.0)), (32, &same));
        let mut value = whole();
        value.values.to_mut()[77] += 1.0;
        let mut column = whole();
        let mut columns = column.col_idx.to_vec();
        columns[0] += 1;
        column.col_idx = columns.into();
        let mut halo = whole();
        halo.halo.len = 1;
        for other in
            [fingerprint(&value, 1.0), fingerprint(&column, 1.0), fingerprint(&halo, 1.0), fingerprint(&whole(), 2.0)]
        {
            assert_ne!(other, same);
        }
        // no more is looked at than a sample, whatever the size
        let empty = split(&a, &[0..0, 0..a.n_rows()]).remove(0);
        assert_ne!(fingerprint(&empty, 1.0), same);
    }
}
