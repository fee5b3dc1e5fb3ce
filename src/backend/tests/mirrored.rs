//! Launches of several iterations that several ranks make together, with one device: it is ranks that have the same rows, on a torus of
//! which each has an equal part, so that what others send is what this one does. So no two kernels run at once, and it does not
//! matter how a runtime shares the processor among them.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::*;
use crate::backend::source::persistent::meetings;
use crate::comm::live::ROOM;
use crate::comm::live::relaying::{Crew, Member, Relaying};
use crate::comm::{Message, NewMemory};
use crate::device::Grid;
use crate::error::{Error, Result};
use crate::kernels::live::IMPATIENCE;
use crate::kernels::products::TOGETHER_BYTES;
use crate::matrix::Complex64;
use crate::matrix::equivalent::{is_real_form, real_form};
use crate::operator::Exchange;
use crate::operator::opencl::target;
use crate::operator::plan::Offer;
use crate::partition::Receiver;

/// The other ranks are as this one, or never come to what kernels do together.
pub(super) struct Mirror<T> {
    pub(super) ranks: usize,
    pub(super) comes: bool,
    /// Whether what ranks say is relayed,
    pub(super) relays: bool,
    /// and how late.
    pub(super) late: Duration,
    /// What others say at most if asked for a number.
    pub(super) most: f64,
    pub(super) message: RefCell<Option<Message<T>>>,
}

impl<T: Send + Sync + 'static> Communicator<T> for Mirror<T> {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.ranks
    }

    fn sum(&self, values: &mut [f64]) -> Result<()> {
        values.iter_mut().for_each(|value| *value = (1..self.ranks).fold(*value, |sum, _| sum + *value));
        Ok(())
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>> {
        let mut all = vec![value.min(self.most); self.ranks];
        all[0] = value;
        Ok(all)
    }

    fn post(&self, message: Message<T>, _: &[Receiver]) -> Result<()> {
        self.message.replace(Some(message));
        Ok(())
    }

    fn fetch(&self, _: usize, segment: &Range<usize>, _: NewMemory<'_, T>) -> Result<(Message<T>, Range<usize>)> {
        Ok((self.message.borrow().clone().ok_or(Error::PeerFailed)?, segment.clone()))
    }

    fn relay(&self, member: Member) -> Result<Option<Arc<Relaying>>> {
        let mut other = Member { receive: Vec::new(), name: "the other one".into(), ..member.clone() };
        if !self.comes {
            let words: Vec<_> = (0..member.memory.len().max(ROOM)).map(|_| Default::default()).collect();
            other.memory = Arc::new(words);
        }
        let mut crew = Crew::default();
        crew.sleep(self.late);
        let mut all = vec![other; self.ranks];
        all[0] = member;
        let relaying = Relaying::with_threads(&all, &mut crew, 1).map(Arc::new);
        relaying.iter().filter(|_| !self.relays).for_each(|relaying| relaying.fail());
        Ok(relaying)
    }

    fn request_stop(&self, _: u32) {}

    fn stop_request(&self) -> u32 {
        0
    }
}

/// A positive definite matrix on a torus of `[w, h]` points, which have so many neighbours each.
pub(super) fn torus([w, h]: [usize; 2]) -> Csr {
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (i, j) in (0..h).flat_map(|i| (0..w).map(move |j| (i, j))) {
        let place = |i: usize, j: usize| i % h * w + j % w;
        for (to, value) in [
            (place(i, j), 4.5),
            (place(i + 1, j), -1.0),
            (place(i + h - 1, j), -1.0),
            (place(i, j + 1), -1.0),
            (place(i, j + w - 1), -1.0),
        ] {
            rows.push(place(i, j) as u32);
            columns.push(to as u32);
            values.push(value);
        }
    }
    Csr::from_triplets(w * h, w * h, &rows, &columns, &values).unwrap()
}

/// One test at a time: kernels that wait take the processor's threads, of which others need one to answer in time.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`alone`], in kernels that soon give up.
struct Impatient<'a>(#[expect(dead_code, reason = "held")] MutexGuard<'a, ()>);

impl Impatient<'_> {
    fn new() -> Self {
        let alone = alone();
        IMPATIENCE.store(32, Ordering::Relaxed);
        Self(alone)
    }
}

impl Drop for Impatient<'_> {
    fn drop(&mut self) {
        IMPATIENCE.store(1, Ordering::Relaxed);
    }
}

/// How ranks iterate: in launches of several iterations, one by one, or each with the host's part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Several,
    One,
    /// One by one, as the other one can't do several.
    Less,
    /// One by one, but nobody relays.
    Unheard,
    /// In launches of several iterations, but whoever relays comes late.
    Late,
    /// By the host, but such as would be launches of several iterations,
    Host,
    /// as there are too many bytes for these,
    HostOfMany,
    /// or as the other one can't do several.
    HostOfLess,
}

/// The first of so many equal parts of a torus.
pub(super) fn part_of(a: &Csr, ranks: usize) -> Part<'_> {
    let n = a.n_rows() / ranks;
    let rows: Vec<_> = (0..ranks).map(|rank| rank * n..(rank + 1) * n).collect();
    let mut part = split(a, &rows).remove(0);
    if let [next, .., last] = &mut part.halo.receive[..] {
        // what this rank sends to the one behind it is what it gets of the one before, and the other way round
        (next.segment, last.segment) = (next.halo.len()..next.halo.len() + last.halo.len(), 0..next.halo.len());
    }
    part
}

/// What half of a torus comes to; ranks are to iterate in such launches.
fn half<T: Real>(a: &Csr, how: (Method, Format, By), b: &[f64], limit: f64, comes: bool) -> Ran {
    one_of::<T>(2, a, how, b, limit, comes)
}

/// The same for one of so many equal parts.
fn one_of<T: Real>(
    ranks: usize,
    a: &Csr,
    (method, format, by): (Method, Format, By),
    b: &[f64],
    limit: f64,
    comes: bool,
) -> Ran {
    let n = a.n_rows() / ranks;
    let part = part_of(a, ranks);
    let ctx = Arc::new(Context::open(&device()).unwrap());
    let kernels = Kernels::build(&ctx, tuning(Shape::Gpu, 1)).unwrap();
    let most = match by {
        By::Less => 7.0, // meets between launches
        By::HostOfLess => 0.0,
        _ => f64::MAX,
    };
    let relays = by != By::Unheard;
    let late = if by == By::Late { Duration::from_millis(200) } else { Duration::ZERO };
    let comm = Mirror { ranks, comes, relays, late, most, message: RefCell::default() };
    let backend = OpenClBackend::<T, f64>::new(ctx.clone(), kernels, n, Box::new(comm)).unwrap();
    let tuning = &backend.kernels.tuning;
    let offer = Offer::of(&part, 1.0, format, target(&ctx, tuning)).unwrap();
    let block = DeviceBlock::alone(&ctx, tuning, &part, &offer).unwrap();
    let is_by_host = matches!(by, By::Host | By::HostOfMany | By::HostOfLess);
    let exchange = if is_by_host { Exchange::HostStaged } else { Exchange::Live };
    let block = block.join(&ctx, &part.halo, exchange).unwrap();
    // where it is to be as in launches of several iterations, the grid alone decides that rows are one launch
    let block = if by == By::Host { block } else { block.whole() };
    let has_many = matches!(by, By::One | By::Unheard | By::HostOfMany);
    let block = if has_many { block.with_bytes(12 * TOGETHER_BYTES) } else { block };
    let mut several = 0_u64;
    let program = method.program(Kind { is_complex: is_real_form(a), ..Kind::PLAIN }, None).unwrap();
    let ran = run_counting(&backend, &block, program, (b, limit, 200), true, &mut several);
    if comes {
        assert_eq!(
            (ran.is_together, several > 0),
            (!is_by_host, matches!(by, By::Several | By::Late)),
            "{method}, {format}, {by:?}"
        );
    }
    let grid = if by == By::Host { Some(Grid { groups: 1, group_size: 512 }) } else { None };
    assert!(!comes || backend.as_several() == grid, "{method}, {format}, {by:?}: {:?}", backend.as_several());
    ran
}

/// Whether kernels whose groups wait for each other may have wrong sums: see `docs/measurements.md`.
pub(super) fn is_pocl_3() -> bool {
    let device = device();
    device.platform.contains("Portable Computing Language") && device.driver.starts_with("3.")
}

/// Methods of which the device can make several iterations in one launch. PoCL 3.1 makes 0 of sums of passes that another sum of an iteration
/// comes before there; PoCL 5, Intel's runtime and NVIDIA's don't.
fn methods_in_one_launch() -> Vec<Method> {
    let is_pocl_3 = is_pocl_3();
    let is_right = |method: &Method| {
        let meetings = meetings(&method.program(Kind::PLAIN, None).unwrap()).unwrap();
        !(is_pocl_3 && meetings.of_iteration > 1)
    };
    Method::FORCED.iter().copied().filter(|method| method.facts().text.is_some()).filter(is_right).collect()
}

#[test]
fn ranks_iterate_together() {
    let _alone = alone();
    let a = torus([17, 40]);
    let half_b = gallery::random_vector(a.n_rows() / 2, 5);
    let b = [&half_b[..], &half_b].concat();
    let in_one_launch = methods_in_one_launch();
    for method in Method::FORCED.iter().copied().filter(|method| method.facts().text.is_some()) {
        let expected = {
            let program = method.program(Kind::PLAIN, None).unwrap();
            let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            on_host(&Arc::new(a.clone()), part, Box::new(Alone::default()), program, &b, 1e-20, 200).history
        };
        let check = |ran: Ran, tolerance: f64, (format, by): (Format, By)| {
            let what = format!("{method}, {format}, {by:?}, {tolerance:e}");
            let x = [&ran.x[..], &ran.x].concat();
            assert!(residual(&a, &x, &b) < 1.1 * tolerance * norm(&b), "{what}");
            let limit = (tolerance * norm(&b)).powi(2);
            let count = 1 + expected.iter().take_while(|rr| **rr > limit).count();
            assert!(ran.history.len().abs_diff(count) <= 1, "{what}: {}, {count}", ran.history.len());
        };
        let limit = |tolerance: f64| (tolerance * norm(&b)).powi(2);
        let formats = [Format::Csr, Format::Sell, Format::Dictionary];
        for how in formats.map(|format| (format, By::Several)).into_iter().chain([(Format::Sell, By::One)]) {
            if how.1 == By::One || in_one_launch.contains(&method) {
                check(half::<f64>(&a, (method, how.0, how.1), &half_b, limit(1e-8), true), 1e-8, how);
                if matches!(how, (Format::Csr, By::Several) | (_, By::One)) {
                    check(half::<f32>(&a, (method, how.0, how.1), &half_b, limit(1e-4), true), 1e-4, how);
                }
            }
        }
    }
}

/// Parts of complex numbers arrive by themselves, and are then taken in pairs: in pieces that have flags, and as words.
#[test]
fn ranks_iterate_together_in_complex_arithmetic() {
    let _alone = alone();
    for shape in [[9, 40], [600, 6]] {
        let (a, turn) = (torus(shape), Complex64::from_polar(1.0, 1.2));
        let number = |v: &f64| turn * *v * if *v > 0.0 { Complex64::ONE } else { Complex64::new(0.9, 0.3) };
        let (rows, columns, values) = a.to_triplets();
        let values: Vec<Complex64> = values.iter().map(number).collect();
        let a = real_form(&Csr::from_triplets(a.n_rows(), a.n_rows(), &rows, &columns, &values).unwrap()).unwrap();
        let half_b = gallery::random_vector(a.n_rows() / 2, 5);
        let b = [&half_b[..], &half_b].concat();
        let limit = (1e-8 * norm(&b)).powi(2);
        // PoCL 3.1 does not come to an end with the kernel of several iterations
        let ran = half::<f64>(&a, (Method::Bicgstab, Format::Csr, By::One), &half_b, limit, true);
        let x = [&ran.x[..], &ran.x].concat();
        assert!(residual(&a, &x, &b) < 1.1e-8 * norm(&b), "{shape:?}, after {}", ran.history.len());
    }
}

/// The bits do not depend on who was late; nor, where launches are the same, on whether the host has a part in it. Ranks do as the one that
/// can do least.
#[test]
fn equal_runs_together_have_equal_bits() {
    let _alone = alone();
    let a = torus([17, 40]);
    let b = gallery::random_vector(a.n_rows() / 2, 6);
    for by in [By::Several, By::One] {
        let of = || half::<f64>(&a, (Method::Cg, Format::Dictionary, by), &b, 1e-12, true);
        let first = of();
        assert!((0..3).all(|_| of() == first), "{by:?}");
    }
    let [on_time, late] =
        [By::Several, By::Late].map(|by| half::<f64>(&a, (Method::Cg, Format::Csr, by), &b, 1e-12, true));
    assert!(on_time == late);
    for method in Method::FORCED.iter().copied().filter(|method| method.facts().text.is_some()) {
        let format = if method == Method::Cg { Format::Csr } else { Format::Dictionary };
        let [one, host] = [By::One, By::HostOfMany].map(|by| half::<f64>(&a, (method, format, by), &b, 1e-12, true));
        assert!(one.x == host.x && one.history == host.history, "{method}, {format}");
        if method == Method::Cg {
            let [less, host] =
                [By::Less, By::HostOfLess].map(|by| half::<f64>(&a, (method, format, by), &b, 1e-12, true));
            assert!(less == one && host.x == one.x);
        }
    }
}

/// Where ranks would make several iterations in one launch, products of the host's way add as these do: in other groups than usual.
#[test]
fn the_host_has_the_bits_of_launches_of_several_iterations() {
    let _alone = alone();
    let mut compared = 0;
    for (ranks, sides) in [(2, [17, 38]), (3, [19, 51]), (5, [21, 85])] {
        let a = torus(sides);
        let b = gallery::random_vector(a.n_rows() / ranks, 8);
        let formats = [Format::Csr, Format::Dictionary, Format::Pattern, Format::Sell];
        for (k, method) in methods_in_one_launch().into_iter().enumerate() {
            let own = if method == Method::Cg { &formats[..] } else { &formats[(k + ranks) % formats.len()..][..1] };
            for &format in own {
                compared += 1;
                same_bits::<f64>(&a, ranks, method, format, &b, 1e-12);
                if format == Format::Csr {
                    same_bits::<f32>(&a, ranks, method, format, &b, 1e-4);
                }
            }
        }
    }
    assert!(compared >= 18, "{compared}");
}

fn same_bits<T: Real>(a: &Csr, ranks: usize, method: Method, format: Format, b: &[f64], limit: f64) {
    let of = |by| one_of::<T>(ranks, a, (method, format, by), b, limit, true);
    let [several, host, usual] = [By::Several, By::Host, By::HostOfMany].map(of);
    let what = format!("{method}, {format}, {ranks} ranks of {} rows, {}", b.len(), T::CL_NAME);
    assert!(several.x == host.x && several.history == host.history, "{what}");
    assert!(several.history.len() > 5, "{what}");
    // it tells grids apart: products of this one leave sums
    assert!(method != Method::Cg || usual.history != host.history, "{what}");
}

/// Who waits in vain for a sum says so, and the run ends.
#[test]
fn a_rank_or_a_relay_that_does_not_come_is_missed() {
    let _alone = Impatient::new();
    let a = torus([12, 10]);
    let b = gallery::random_vector(a.n_rows() / 2, 7);
    for (by, comes, missed) in [(By::One, false, "the other one"), (By::Unheard, true, "the relay")] {
        let run = || half::<f64>(&a, (Method::Cg, Format::Csr, by), &b, 1e-12, comes);
        let error = std::thread::scope(|scope| scope.spawn(run).join().map(|_| ()).unwrap_err());
        let message = *error.downcast::<String>().unwrap();
        assert!(message.contains(&format!("{missed} did not come in time")), "{message}");
    }
}

/// Nothing has changed then: the host goes on, one iteration after the other.
#[test]
fn a_launch_to_which_a_rank_does_not_come_is_refused() {
    let _alone = Impatient::new();
    let a = torus([17, 40]);
    let half_b = gallery::random_vector(a.n_rows() / 2, 7);
    let b = [&half_b[..], &half_b].concat();
    let ran = half::<f64>(&a, (Method::Cg, Format::Dictionary, By::Several), &half_b, (1e-8 * norm(&b)).powi(2), false);
    let x = [&ran.x[..], &ran.x].concat();
    assert!(residual(&a, &x, &b) < 1.1e-8 * norm(&b));
}
