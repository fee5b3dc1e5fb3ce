//! Iterations in one launch against the same iterations made of single kernels, on the same grid: the same bits, as all sums
//! are formed in the same order.

use super::super::resident::{Resident, Rows, Span, Sums, Vectors};
use super::*;

/// Iterations that the logs here have room for.
const LOG_LEN: u64 = 16;
/// Steps with at least that β put half of x off; both are among those here.
const LEAST: f64 = 0.5;
/// What no kernel has written.
const UNTOUCHED: u8 = 0xFF;

/// What iterations change, the weights aside.
struct State<T, A> {
    x: DeviceVec<T>,
    r: DeviceVec<T>,
    p: DeviceVec<T>,
    q: DeviceVec<T>,
    w: Option<DeviceVec<T>>,
    dots: DeviceVec<A>,
    /// The sums of the last iterate, and room for those of the next one.
    rho: [DeviceVec<A>; 2],
    rho_count: usize,
    rho_value: f64,
    log: Log<A>,
}

/// x, r, p as bits, and the log.
type Left = ([Vec<u64>; 3], Vec<u64>, [i32; 2]);

/// The rows of a block, all of which one launch takes.
fn rows<T: Real>(block: &DeviceBlock<T>) -> Rows<'_, T> {
    match block.layout() {
        Layout::Csr(block, sets) => Rows::Csr(block, &sets[0][0]),
        Layout::Stencil(block, sets) => Rows::Stencil(block, &sets[0][0]),
        Layout::Sell(block, sets) => Rows::Sell(block, &sets[0][0]),
    }
}

fn bits(v: &[f64]) -> Vec<u64> {
    v.iter().map(|v| v.to_bits()).collect()
}

impl<T: Real, A: Real> State<T, A> {
    /// x = 0, r = p of small integers.
    fn new(t: &Bench<T, A>, n: usize, is_weighted: bool, groups: usize) -> Self {
        let r: Vec<f64> = ints(n, 1).iter().map(|r| r + 0.5).collect();
        let w: Vec<f64> = ints(n, 2).iter().map(|w| w + 7.0).collect();
        let entries = DeviceVec::zeros(&t.ctx, Log::<A>::WIDTH * LOG_LEN as usize + 1, "the log").unwrap();
        entries.fill(&t.ctx, UNTOUCHED).unwrap();
        let states = [0, 1].map(|_| DeviceVec::zeros(&t.ctx, 1, "the state").unwrap());
        Self {
            x: t.up(&vec![0.0; n]),
            r: t.up(&r),
            p: t.up(&r),
            q: t.up(&vec![0.0; n]),
            w: is_weighted.then(|| t.up(&w)),
            dots: t.partials(2 * groups),
            rho: [0, 1].map(|_| t.partials(2 * groups)),
            rho_count: 0,
            rho_value: dot(&r, &r),
            log: Log { states, entries },
        }
    }

    /// So many iterations in one launch.
    fn at_once(&mut self, t: &Bench<T, A>, kernel: &Resident, rows: Rows<'_, T>, limit: f64, first: u64, count: u32) {
        let Self { x, r, p, q, w, dots, rho: [rho, rho_next], rho_count, rho_value, log } = self;
        let sums = Sums { dots, rho, rho_count: *rho_count, rho_value: *rho_value, rho_next };
        let span = Span { first, slot: (first % LOG_LEN) as u32, count };
        kernel
            .iterate(&t.ctx, rows, Vectors { x, r, p, q, w: w.as_ref() }, sums, limit, (first > 1, LEAST), log, span)
            .unwrap();
        if count % 2 == 1 {
            self.rho.swap(0, 1);
        }
        self.rho_count = kernel.groups();
    }

    /// One iteration from two kernels.
    fn one(&mut self, t: &Bench<T, A>, grid: Grid, rows: Rows<'_, T>, limit: f64, iteration: u64) {
        let (ctx, kernels) = (&t.ctx, &t.kernels);
        let Self { x, r, p, q, w, dots, rho: [rho, rho_next], rho_count, rho_value, log } = self;
        let done = log.state(iteration);
        let n = match rows {
            Rows::Csr(block, set) => {
                kernels.csr.spmv_dot_csr(ctx, grid, *set, block, p, q, dots, 0, done).unwrap();
                block.n_rows
            }
            Rows::Stencil(block, set) => {
                let stencil = kernels.stencil(ctx, block.main_len).unwrap();
                stencil.spmv_dot(ctx, grid, *set, block, p, q, dots, 0, done).unwrap();
                block.n_rows
            }
            Rows::Sell(block, set) => {
                kernels.sell(ctx).unwrap().spmv_dot(ctx, grid, *set, block, p, q, dots, 0, done).unwrap();
                block.n_rows
            }
        };
        let dots = SumArg { partials: dots, count: grid.groups as u32, value: 0.0 };
        let rho = SumArg { partials: rho, count: *rho_count as u32, value: *rho_value };
        let (v, slots) = (StepVectors { x, r, p, q, w: w.as_ref() }, [iteration, iteration - 1].map(|i| i % LOG_LEN));
        let slots = slots.map(|slot| slot as u32);
        kernels
            .cg
            .cg_step(
                ctx,
                grid,
                count(n),
                v,
                &dots,
                &rho,
                limit,
                rho_next,
                log,
                iteration,
                slots,
                (iteration > 1, LEAST),
            )
            .unwrap();
        self.rho.swap(0, 1);
        self.rho_count = grid.groups;
    }

    fn entries(&self, t: &Bench<T, A>) -> Vec<f64> {
        let mut entries = vec![A::default(); self.log.entries.len()];
        self.log.entries.read(&t.ctx, 0, &mut entries).unwrap();
        entries.into_iter().map(A::to_f64).collect()
    }

    fn left(&self, t: &Bench<T, A>) -> Left {
        let states = [0, 1].map(|k| {
            let mut state = [0];
            self.log.state(k).read(&t.ctx, 0, &mut state).unwrap();
            state[0]
        });
        ([&self.x, &self.r, &self.p].map(|v| bits(&t.down(v))), bits(&self.entries(t)), states)
    }

    /// Whether a launch was refused.
    fn is_refused(&self, t: &Bench<T, A>) -> bool {
        self.entries(t).last().is_some_and(|slot| !slot.is_nan())
    }
}

/// Positive definite ones of all sizes that matter, and one that is not, as its fourth direction shows.
fn systems() -> Vec<(Matrix, &'static [Format])> {
    const ALL: &[Format] = &[Format::Csr, Format::Sell, Format::Pattern, Format::Stencil];
    const ANY: &[Format] = &[Format::Csr, Format::Sell];
    let mut all: Vec<(Matrix, &[Format])> =
        [1, 65].map(|n| (gallery::tridiagonal(n).unwrap(), ANY)).into_iter().collect();
    all.push((gallery::poisson2d([31, 33]).unwrap(), ALL));
    all.push((gallery::elasticity3d([3, 3, 3]).unwrap(), &[Format::Sell]));
    let a = gallery::tridiagonal(500).unwrap();
    let values = a.values().iter().enumerate().map(|(k, v)| if k == 1300 { -40.0 } else { *v }).collect();
    all.push((Matrix::new(500, 500, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap(), ANY));
    all
}

/// The same from one launch, from two, and from as many as there are iterations; weighted or not; also where the end comes
/// within a launch.
pub(super) fn resident_iterations<T: Real, A: Real>(t: &Bench<T, A>) {
    let Launch { group_size, .. } = t.kernels.tuning.launch("any");
    if group_size != 64 {
        return; // this is for the shape of GPUs, and another size shows nothing more
    }
    // Oclgrind runs one group after the other, so that two never meet; what its compiler makes of slices it does not simulate
    // rightly (scripts/kernels-check), and it is slow
    let is_simulated = t.ctx.info().platform.contains("Oclgrind");
    let most_groups = if is_simulated { 1 } else { 2 };
    let cuts: &[&[u32]] = if is_simulated { &[&[3, 2, 1]] } else { &[&[6], &[3, 2, 1], &[1, 1, 4]] };
    let mut ends = 0;
    for (a, formats) in systems() {
        let (n, part) = (a.n_rows(), whole(&a));
        for &format in formats.iter().filter(|&&format| !(is_simulated && format == Format::Sell)) {
            let block = DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, &part, 1.0, format).unwrap();
            for (groups, is_weighted) in [(1, true), (most_groups, false)] {
                let rows = rows(&block);
                let build = || Resident::build::<T, A>(&t.ctx, &t.kernels.tuning, rows, group_size, groups).unwrap();
                let mut kernel = build();
                let grid = Grid { groups: kernel.groups(), group_size };
                let run = |limit: f64| {
                    let mut state = State::new(t, n, is_weighted, grid.groups);
                    let after: Vec<Left> = (1..=6)
                        .map(|iteration| {
                            state.one(t, grid, rows, limit, iteration);
                            state.left(t)
                        })
                        .collect();
                    (after, state.entries(t))
                };
                let (endless, entries) = run(0.0);
                let rr_of_third = entries[3 * Log::<A>::WIDTH + 2];
                for (limit, expected) in [(0.0, endless), (rr_of_third, run(rr_of_third).0)] {
                    ends += u32::from(expected[5].2 != [0, 0]);
                    for launches in cuts {
                        let what =
                            format!("n = {n}, {format:?}, {groups} groups, {launches:?}, {:?}", t.kernels.tuning);
                        let (mut state, mut next) = (State::new(t, n, is_weighted, grid.groups), 1);
                        let mut before = state.left(t);
                        for &count in *launches {
                            state.at_once(t, &kernel, rows, limit, next, count);
                            let left = state.left(t);
                            if state.is_refused(t) {
                                assert!(grid.groups > 1 && left.0 == before.0 && left.2 == before.2, "{what}");
                                kernel = build();
                                break;
                            }
                            next += u64::from(count);
                            let (vectors, log, states) = &expected[next as usize - 2];
                            assert!(left.0 == *vectors, "x, r or p after {}, {what}", next - 1);
                            assert!(left.1 == *log, "the log after {}, {what}", next - 1);
                            // once the end is known, both say so, to whomever comes next
                            assert_eq!(left.2, [states[0].max(states[1]); 2], "{what}");
                            before = left;
                        }
                    }
                }
            }
        }
    }
    assert!(ends > 10, "{ends}");
}

/// More groups than run at once: a launch changes nothing but the log, and neither do later ones.
pub(super) fn refused_iterations<T: Real, A: Real>(t: &Bench<T, A>) {
    const GROUPS: usize = 64;
    let Launch { group_size, .. } = t.kernels.tuning.launch("any");
    if group_size != 64 || t.ctx.info().compute_units as usize >= GROUPS {
        return; // of a device that can run so many, nothing is known
    }
    let a = gallery::poisson2d([128, 129]).unwrap();
    let (n, part) = (a.n_rows(), whole(&a));
    for format in [Format::Csr, Format::Stencil] {
        let block = DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, &part, 1.0, format).unwrap();
        let kernel = Resident::build::<T, A>(&t.ctx, &t.kernels.tuning, rows(&block), group_size, GROUPS).unwrap();
        assert_eq!(kernel.groups(), GROUPS);
        let mut state = State::new(t, n, false, GROUPS);
        let before = state.left(t);
        for (first, count) in [(3, 2), (5, 1)] {
            state.at_once(t, &kernel, rows(&block), 0.0, first, count);
            let (vectors, log, states) = state.left(t);
            assert!(vectors == before.0 && states == before.2);
            assert!(log[..log.len() - 1] == before.1[..log.len() - 1] && log.last() == Some(&3_f64.to_bits()));
            assert!(t.down(&state.q).iter().all(|&q| q == 0.0));
            for sums in [&state.dots, &state.rho[0], &state.rho[1]] {
                assert_eq!(t.down(sums), vec![99.0; 2 * GROUPS]);
            }
        }
    }
}
