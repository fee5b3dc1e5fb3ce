//! What `auto` remembers of a system: how long methods took for it by their preconditioners. It begins with the one that took the least.
//!
//! A solve that has met its test tells of its last method: of one that took over, what it would have taken from the start, by the decades
//! that it has made the residual smaller. What was asked for by name tells, too, once `auto` has: else a method might be taken for the
//! fastest that was never compared with any. The first solve also leaves a forecast of what may take less: where it does, the next one tries
//! that, and then the time of both is known. The choice depends on numbers in the store alone, so that equal runs decide alike.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::chain::{Candidate, Known};
use super::statistics::{Answer, Statistics};
use crate::cache::Digest;
use crate::device::Info;
use crate::krylov::Method;
use crate::matrix::Csr;
use crate::partition::part_alone;
use crate::precond::{NearNull, Precond};
use crate::runtime::Setup;
use crate::tune::Tune;
use crate::tune::formats::fingerprint;
use crate::tune::store::{Device, MOST_TIMES, SolveEntry, SolveKey, SolveTime, Store, kinds, unusual};

/// Rows below which anything will do.
pub(super) const FEW_ROWS: usize = 2000;

/// Seconds of a solve below which nothing is kept of the first one.
const LITTLE: f64 = 0.01;

/// A part by which what is known may differ from what was measured.
const SAME: f64 = 0.2;

/// Fewer decades tell nothing of a method.
const FEW_DECADES: f64 = 1.0;

/// What a time has to be of that by the diagonal, which is as good as any where there is little to gain.
const GAIN: f64 = 0.9;

/// What the time of multigrid is forecast to be, of that of the iterations by the diagonal which it takes at worst.
const HOPED: f64 = 0.5;

/// The same of two methods for any matrix: BiCGSTAB(2) moves fewer vectors than IDR(4), but more often needs more products.
const FEWER_VECTORS: f64 = 0.7;

/// Methods that `auto` may begin with, beside factors: not others that do the same.
const METHODS: [Method; 5] = [Method::Cg, Method::Minres, Method::Idr, Method::Bicgstab2, Method::Gmres];

/// Elements of near-null vectors that tell them from others.
const SAMPLE: usize = 1 << 12;

/// What a method took in a former solve, or would have taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Took {
    /// The method and its preconditioner.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// Iterations.
    pub iterations: u64,
    /// Seconds of the preconditioner's set-up and the iterations.
    pub seconds: f64,
    /// Whether nobody has tried it: it is expected to take that.
    pub is_forecast: bool,
}

/// What is remembered of a system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remembered {
    /// What took the least: less by a tenth than the diagonal, if it isn't that.
    #[serde(flatten)]
    pub best: Took,
    /// The others, in order.
    pub others: Vec<Took>,
}

impl fmt::Display for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |took: &Took| format!("{} by {}", took.candidate.method, took.candidate.precond);
        let (best, seconds) = (name(&self.best), Seconds(self.best.seconds));
        if self.best.is_forecast {
            write!(f, "{best}, which was never tried and may take {seconds}")?;
        } else {
            write!(f, "{best}, which took {seconds} last time")?;
        }
        if !self.others.is_empty() {
            let guess = |took: &Took| if took.is_forecast { "perhaps " } else { "" };
            let others =
                self.others.iter().map(|took| format!("{}: {}{}", name(took), guess(took), Seconds(took.seconds)));
            write!(f, " ({})", others.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// Seconds with three digits.
struct Seconds(f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.0 > 0.0 { (2.0 - self.0.log10().floor()).clamp(0.0, 6.0) } else { 0.0 };
        write!(f, "{:.*} s", digits as usize, self.0)
    }
}

impl Remembered {
    /// What an entry tells, if anything.
    fn of(entry: &SolveEntry) -> Option<Self> {
        let mut all: Vec<Took> = entry.times.iter().filter_map(|time| took(time, entry.decades)).collect();
        let handicap =
            |took: &Took| if took.candidate.precond == Precond::Jacobi { took.seconds * GAIN } else { took.seconds };
        all.sort_by(|one, other| handicap(one).total_cmp(&handicap(other)));
        let mut all = all.into_iter();
        Some(Self { best: all.next()?, others: all.collect() })
    }
}

/// Whether `auto` may begin with it.
fn is_begun_with(method: Method) -> bool {
    METHODS.contains(&method) || method == Method::Direct
}

/// Names may be unknown.
fn took(time: &SolveTime, decades: f64) -> Option<Took> {
    let candidate = Candidate { method: time.method.parse().ok()?, precond: time.precond.parse().ok()? };
    let Candidate { method, precond } = candidate;
    let is_possible = is_begun_with(method) && method.takes(precond);
    let (iterations, seconds) = time.scaled_to(decades);
    is_possible.then_some(Took { candidate, iterations, seconds, is_forecast: time.is_forecast })
}

/// Whether a matrix of which this is known can have the method and its preconditioner.
pub(super) fn suits(Candidate { method, precond }: Candidate, known: Known, is_complex: bool) -> bool {
    let is_definite = known.is_symmetric && known.obstacle.is_none();
    (known.is_symmetric || !method.needs_symmetric())
        && (is_definite || !method.needs_definite())
        && (known.may_have_levels || precond != Precond::Amg)
        && !(is_complex && precond == Precond::Ilu0)
}

/// Where the times of a system are kept.
pub(super) struct Memory {
    store: Store,
    owner: Device,
    key: SolveKey,
    /// Whether it was left to `auto` what to begin with.
    is_free: bool,
    /// Whether anything may be measured.
    measures: bool,
}

impl Memory {
    /// That of a system which is solved by one of these devices or several; `None` if nothing is remembered of such a one.
    pub(super) fn of(a: &Csr, setup: &Setup, devices: &[Option<Info>], store: &Store) -> Option<Self> {
        let is_method = (METHODS.contains(&setup.method) || setup.method == Method::Auto) && !setup.has_given;
        let is_remembered = is_method && setup.tune != Tune::Off && setup.shares.is_none();
        if !is_remembered || a.n_rows() < FEW_ROWS || a.n_rows() != a.n_cols() {
            return None;
        }
        let is_free = setup.method == Method::Auto && setup.precond == Precond::Jacobi && setup.may_change;
        let owner = devices.iter().flatten().next().map_or_else(Device::host, Device::from);
        let measures = matches!(setup.tune, Tune::Quick | Tune::Full);
        Some(Self { store: store.clone(), owner, key: key(a, setup, kinds(devices)), is_free, measures })
    }

    /// What is known, if `auto` is free to begin with it.
    pub(super) fn remembered(&self) -> Option<Remembered> {
        let known = self.store.load(&self.owner);
        Remembered::of(known.solve(&self.key).filter(|_| self.is_free)?)
    }

    /// Keeps what an attempt has taken that met the test, and forgets one that failed. Of the first solve it keeps a forecast, too, where
    /// multigrid takes at worst as long as so many iterations of this one.
    pub(super) fn keep(self, met: Option<(SolveTime, f64)>, failed: Option<Candidate>, multigrid: Option<u64>) {
        if !self.measures {
            return;
        }
        let known = self.store.load(&self.owner);
        let old = known.solve(&self.key);
        if old.is_none() && !self.is_free {
            return;
        }
        let untried = met.as_ref().filter(|_| old.is_none()).and_then(|(time, _)| untried(time, multigrid));
        if let Some(mut new) = updated(old, self.key, met, failed) {
            new.times.splice(0..0, untried);
            self.store.insert_solve(&self.owner, new);
        }
    }
}

/// What is kept of a system, by the devices that have solved it: what [`Method::Auto`] would begin with on them, and what others took.
#[must_use]
pub fn remembered(a: &Csr, setup: &Setup) -> Vec<(Vec<String>, Remembered)> {
    let wanted = key(a, setup, Vec::new());
    let all = Store::open().list().into_iter().flat_map(|known| known.solves);
    let of_system = all.filter(|entry| SolveKey { devices: Vec::new(), ..entry.key.clone() } == wanted);
    of_system.filter_map(|entry| Some((entry.key.devices.clone(), Remembered::of(&entry)?))).collect()
}

/// What the times of a system are found by.
fn key(a: &Csr, setup: &Setup, devices: Vec<String>) -> SolveKey {
    let Setup { precision, format, reorder, exchange, .. } = setup;
    let near_null = setup.near_null.as_ref().map_or_else(String::new, |near_null| format!(", {}", hash(near_null, a)));
    SolveKey {
        system: fingerprint(&part_alone(a, 0..a.n_rows()), 1.0),
        rows: a.n_rows() as u64,
        entries: a.nnz() as u64,
        options: format!("{precision}, {format}, {reorder}{}{near_null}", unusual(*exchange)),
        devices,
        declive: env!("CARGO_PKG_VERSION").into(),
    }
}

/// A hash of a sample of near-null vectors.
fn hash(near_null: &NearNull, a: &Csr) -> String {
    let step = a.n_rows().div_ceil(SAMPLE).max(1);
    let rows = (0..a.n_rows()).step_by(step);
    let elements = rows.flat_map(|row| (0..near_null.width()).map(move |k| near_null.at(row, k).to_le_bytes()));
    let sizes = [near_null.unknowns(), near_null.width()].map(|size| (size as u64).to_le_bytes());
    format!("{:.16}", Digest::of([sizes.as_flattened(), elements.collect::<Vec<_>>().as_flattened()]))
}

/// What may take less than this, and how long.
fn untried(time: &SolveTime, multigrid: Option<u64>) -> Option<SolveTime> {
    let (method, precond, part) = match time.method.as_str() {
        "cg" if time.precond == Precond::Jacobi.name() => {
            (Method::Cg, Precond::Amg.name(), HOPED * multigrid? as f64 / time.iterations.max(1) as f64)
        }
        "idr" => (Method::Bicgstab2, time.precond.as_str(), FEWER_VECTORS),
        _ => return None,
    };
    Some(SolveTime {
        method: method.name().into(),
        precond: precond.into(),
        solve: time.solve * part,
        is_forecast: true,
        ..time.clone()
    })
}

/// The entry after a solve; `None` if nothing new is worth keeping.
fn updated(
    old: Option<&SolveEntry>,
    key: SolveKey,
    met: Option<(SolveTime, f64)>,
    failed: Option<Candidate>,
) -> Option<SolveEntry> {
    let of = |time: &SolveTime, method: &str, precond: &str| {
        (time.method.as_str(), time.precond.as_str()) == (method, precond)
    };
    let mut times = old.map_or_else(Vec::new, |old| old.times.clone());
    let before = times.len();
    if let Some(Candidate { method, precond }) = failed {
        times.retain(|time| !of(time, method.name(), precond.name()));
    }
    let has_failed = times.len() < before;
    let mut decades = old.map_or(1.0, |old| old.decades);
    let mut is_new = has_failed;
    if let Some((time, whole)) = met {
        let is_near = |one: f64, other: f64| (one - other).abs() <= SAME * one.abs().max(other.abs());
        let seconds = time.scaled_to(whole).1;
        let is_same =
            |known: &SolveTime| of(known, &time.method, &time.precond) && is_near(known.scaled_to(whole).1, seconds);
        let is_known = times.iter().any(is_same) && is_near(whole, decades);
        is_new |= !is_known && (old.is_some() || seconds > LITTLE);
        times.retain(|known| !of(known, &time.method, &time.precond));
        times.push(time);
        times.drain(..times.len().saturating_sub(MOST_TIMES));
        decades = whole;
    }
    is_new.then(|| SolveEntry::new(key, decades, times))
}

/// A part of a solve by one method with its preconditioner, and where it began.
pub(super) struct Attempt {
    candidate: Candidate,
    set_up: f64,
    began: Instant,
    compile: Duration,
    iterations: u64,
    /// Residuals that were known before.
    known: usize,
}

impl Attempt {
    /// One that begins now, after `statistics`, whose preconditioner took so long to set up.
    pub(super) fn begun(candidate: Candidate, set_up: Duration, statistics: &Statistics) -> Self {
        let &Statistics { compile, iterations, .. } = statistics;
        let (set_up, known) = (set_up.as_secs_f64(), statistics.history().len());
        Self { candidate, set_up, began: Instant::now(), compile, iterations, known }
    }

    /// What it took, and the decades of the whole solve, if it has met the test and tells something: not of least squares.
    pub(super) fn ended(&self, (reason, residual): &Answer, statistics: &Statistics) -> Option<(SolveTime, f64)> {
        let history = statistics.history();
        let end = residual.relative_2.max(f64::MIN_POSITIVE);
        let decades =
            |k: usize| history.get(k).map(|first| (first / end).log10()).filter(|decades| decades.is_finite());
        let (own, whole) = (decades(self.known.saturating_sub(1))?, decades(0)?);
        (is_begun_with(self.candidate.method) && reason.converged() && own >= FEW_DECADES).then(|| {
            let time = SolveTime {
                method: self.candidate.method.name().into(),
                precond: self.candidate.precond.name().into(),
                set_up: self.set_up,
                solve: self.began.elapsed().saturating_sub(statistics.compile - self.compile).as_secs_f64(),
                iterations: statistics.iterations - self.iterations,
                decades: own,
                is_forecast: false,
            };
            (time, whole)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::krylov::Indefinite;
    use crate::matrix::gallery;

    fn time(method: &str, precond: &str, set_up: f64, solve: f64) -> SolveTime {
        SolveTime {
            method: method.into(),
            precond: precond.into(),
            set_up,
            solve,
            iterations: 100,
            decades: 8.0,
            is_forecast: false,
        }
    }

    fn system() -> SolveKey {
        key(&gallery::poisson2d([50, 50]).unwrap(), &Setup::default(), vec!["GPU".into()])
    }

    fn entry(decades: f64, times: Vec<SolveTime>) -> SolveEntry {
        SolveEntry::new(system(), decades, times)
    }

    const BY_AMG: Candidate = Candidate { method: Method::Cg, precond: Precond::Amg };
    const BY_JACOBI: Candidate = Candidate { method: Method::Cg, precond: Precond::Jacobi };

    #[test]
    fn the_least_time_is_the_best() {
        let of = |decades| {
            let times =
                vec![time("cg", "jacobi", 0.0, 0.4), time("cg", "amg", 0.2, 0.1), time("idr", "ilu0", 1.0, 1.0)];
            Remembered::of(&entry(decades, times)).unwrap()
        };
        let eight = of(8.0);
        assert_eq!((eight.best.candidate, eight.best.iterations), (BY_AMG, 100));
        assert_eq!(
            eight.to_string(),
            "cg by amg, which took 0.300 s last time (cg by jacobi: 0.400 s, idr by ilu0: 2.00 s)"
        );
        // for fewer decades the set-up doesn't pay; nor is a bit less than by the diagonal worth it
        assert_eq!([6.0, 6.4].map(|decades| of(decades).best.candidate), [BY_JACOBI, BY_AMG]);
        assert_eq!((of(2.0).best.candidate, of(2.0).best.iterations), (BY_JACOBI, 25));
    }

    #[test]
    fn what_is_not_possible_is_left_out() {
        let of = |times| Remembered::of(&entry(8.0, times));
        let unknown = [
            ("cg", "magic"),
            ("magic", "jacobi"),
            ("minres", "amg"),
            ("auto", "jacobi"),
            ("lsmr", "jacobi"),
            ("cg-pipelined", "jacobi"),
        ];
        assert_eq!(of(unknown.map(|(method, precond)| time(method, precond, 0.0, 0.1)).into()), None);
        let definite = Known { is_symmetric: true, obstacle: None, may_have_levels: true };
        let indefinite =
            Known { obstacle: Some(Indefinite::Diagonal { row: 1, value: 0.0 }), may_have_levels: false, ..definite };
        let any = Known { is_symmetric: false, ..indefinite };
        let candidates = [BY_AMG, Candidate { method: Method::Minres, precond: Precond::Jacobi }];
        let suited = |known| candidates.map(|candidate| suits(candidate, known, false));
        assert_eq!([definite, indefinite, any].map(suited), [[true; 2], [false, true], [false; 2]]);
        let by_factors = Candidate { method: Method::Idr, precond: Precond::Ilu0 };
        assert_eq!([false, true].map(|is_complex| suits(by_factors, any, is_complex)), [true, false]);
    }

    #[test]
    fn what_is_kept() {
        let amg = || Some((time("cg", "amg", 0.2, 0.1), 8.0));
        let first = updated(None, system(), amg(), None).unwrap();
        assert_eq!((first.times.len(), first.decades), (1, 8.0));
        assert_eq!(
            updated(None, system(), Some((time("cg", "jacobi", 0.0, 0.001), 8.0)), None),
            None,
            "it hardly took time"
        );
        assert_eq!(updated(Some(&first), system(), amg(), None), None, "nothing new");
        let slower = updated(Some(&first), system(), Some((time("cg", "amg", 0.2, 0.3), 8.0)), None).unwrap();
        assert_eq!((slower.times.len(), slower.times[0].solve), (1, 0.3));
        let both = updated(Some(&first), system(), Some((time("cg", "jacobi", 0.0, 0.1), 4.0)), None).unwrap();
        assert_eq!((both.times.len(), both.decades), (2, 4.0));
        // what has failed is not begun with again
        let without = updated(Some(&both), system(), None, Some(BY_AMG)).unwrap();
        assert_eq!((without.times.len(), without.times[0].precond.as_str()), (1, "jacobi"));
        assert_eq!(updated(Some(&without), system(), None, Some(BY_AMG)), None);
        let nothing = updated(Some(&first), system(), None, Some(BY_AMG)).unwrap();
        assert_eq!((nothing.times.len(), Remembered::of(&nothing)), (0, None));
        // the oldest of too many goes
        let many = (0..MOST_TIMES).map(|k| time(&format!("method {k}"), "jacobi", 0.0, 1.0)).collect();
        let newest = updated(Some(&entry(8.0, many)), system(), amg(), None).unwrap();
        assert_eq!((newest.times.len(), newest.times[0].method.as_str()), (MOST_TIMES, "method 1"));
    }

    #[test]
    fn what_was_never_tried() {
        let by_diagonal = time("cg", "jacobi", 0.0, 0.4);
        let multigrid = untried(&by_diagonal, Some(50)).unwrap();
        assert_eq!((multigrid.precond.as_str(), multigrid.solve, multigrid.is_forecast), ("amg", 0.1, true));
        assert_eq!(untried(&by_diagonal, None), None);
        assert_eq!(untried(&time("cg", "amg", 0.1, 0.1), Some(50)), None);
        let other = untried(&time("idr", "ilu0", 0.1, 1.0), None).unwrap();
        assert_eq!((other.method.as_str(), other.precond.as_str(), other.solve), ("bicgstab2", "ilu0", 0.7));
        // it is begun with, unless it hardly takes less; then what it takes is known
        let of = |forecast: SolveTime| Remembered::of(&entry(8.0, vec![forecast, by_diagonal.clone()])).unwrap();
        let begun = of(multigrid);
        assert_eq!(begun.to_string(), "cg by amg, which was never tried and may take 0.100 s (cg by jacobi: 0.400 s)");
        let slow = of(untried(&by_diagonal, Some(190)).unwrap());
        assert_eq!(slow.best.candidate, BY_JACOBI);
        assert_eq!(slow.to_string(), "cg by jacobi, which took 0.400 s last time (cg by amg: perhaps 0.380 s)");
        let known = entry(8.0, vec![untried(&by_diagonal, Some(50)).unwrap(), by_diagonal.clone()]);
        let tried = updated(Some(&known), system(), Some((time("cg", "amg", 0.2, 0.3), 8.0)), None).unwrap();
        assert_eq!(tried.times.iter().filter(|time| time.is_forecast).count(), 0);
        assert_eq!(Remembered::of(&tried).unwrap().best.candidate, BY_JACOBI);
    }

    #[test]
    fn whose_times_these_are() {
        let a = gallery::poisson2d([50, 50]).unwrap();
        let of = |setup: &Setup| key(&a, setup, Vec::new());
        let usual = of(&Setup::default());
        assert_eq!(usual, of(&Setup::default().with_method(Method::Cg).with_precond(Precond::Amg)));
        let others = [
            Setup::default().with_precision(crate::real::Precision::Mixed),
            Setup::default().with_near_null(NearNull::of_unknowns(1).unwrap()),
            Setup::default().with_near_null(NearNull::of_unknowns(2).unwrap()),
            Setup::default().with_format(crate::operator::Format::Csr),
        ];
        let keys: std::collections::BTreeSet<_> = others.iter().map(of).chain([usual.clone()]).collect();
        assert_eq!(keys.len(), 5);
        let mut values = a.values().to_vec();
        values[0] *= 2.0;
        assert_ne!(key(&a.with_values(values), &Setup::default(), Vec::new()), usual);
        let of = |setup: &Setup| Memory::of(&a, setup, &[None], &Store::none()).map(|memory| memory.is_free);
        assert_eq!(of(&Setup::default()), Some(true));
        assert_eq!(of(&Setup::default().with_precond(Precond::Jacobi)), Some(false));
        assert_eq!(of(&Setup::default().with_tune(Tune::Off)), None);
        let others = [Method::Direct, Method::Lsmr, Method::CgPipelined];
        assert!(others.iter().all(|method| of(&Setup::default().with_method(*method)).is_none()));
    }
}
