//! Levels of several ranks: the products that they should be, and the cycle that they make.

use std::ops::Range;
use std::sync::Arc;

use super::super::super::levels::Levels;
use super::super::super::sparse::Sparse;
use super::super::super::tests::{constant, first, rigid, system};
use super::super::ranks::Among;
use super::super::set_up::{Descent, Made, SetUp};
use super::super::{DeviceCycle, OfRanks};
use crate::backend::opencl::OpenClBackend;
use crate::comm::among::Group;
use crate::comm::processes::simulated::processes;
use crate::comm::{Board, Communicator, Failure, Links};
use crate::device::{Context, DeviceVec, list};
use crate::distributed::rows::tests::divided;
use crate::distributed::share::Share;
use crate::kernels::{Shape, Tuning};
use crate::matrix::{Csr, gallery};
use crate::operator::Format;
use crate::operator::exchange::Exchange;
use crate::operator::opencl::{DeviceBlock, target};
use crate::operator::plan::Offer;
use crate::partition::{Part, split};
use crate::precond;
use crate::precond::near_null::NearNull;
use crate::precond::scaling::Scaling;

/// A rank, and what it has.
struct OnRank<'a> {
    ctx: &'a Arc<Context>,
    block: &'a DeviceBlock<f64>,
    levels: &'a Levels,
    among: Among<'a>,
    comm: Box<dyn Communicator<f32>>,
}

/// Ranks with the rows between cuts, in processes that have so many each, if there are several.
#[derive(Clone, Copy)]
struct Cuts<'a>(&'a [usize], &'a [usize]);

/// What each rank, with a device of its own, makes of its rows.
fn on_ranks<R: Send>(
    (a, near_null): (&Csr, &NearNull),
    Cuts(cuts, of_processes): Cuts<'_>,
    (format, scaling): (Format, Option<&Scaling>),
    most: usize,
    body: impl Fn(OnRank<'_>) -> R + Sync,
) -> Vec<R> {
    let rows: Vec<Range<usize>> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
    let device = list().devices.remove(0);
    let run = |levels: &Levels, mut part: Part<'_>, board: Board, comm: Box<dyn Communicator<f32>>| {
        if let Some(scaling) = scaling {
            (part.values, part.of) = (scaling.values(a, part.rows.clone()).unwrap().into(), None);
        }
        let ctx = Arc::new(Context::open(&device).unwrap());
        let tuning = Tuning::default_for(&device, Shape::Gpu);
        let offer = Offer::of(&part, 2.0, format, target(&ctx, &tuning)).unwrap();
        let block = DeviceBlock::alone(&ctx, &tuning, &part, &offer).unwrap();
        let block = block.join(&ctx, &part.halo, Exchange::HostStaged).unwrap();
        let (place, (first, of_all)) = (part.rows.start, levels.among_all(part.rows.start));
        let own = (first, part.rows.len());
        let among = Among { board: &board, own, place, of_all, plan: block.plan(), most };
        body(OnRank { ctx: &ctx, block: &block, levels, among, comm })
    };
    let run_all =
        |levels: &Levels, parts: Vec<Part<'_>>, boards: Vec<Board>, comms: Vec<Box<dyn Communicator<f32>>>| {
            let run = &run;
            std::thread::scope(|scope| {
                let of_ranks = parts.into_iter().zip(boards).zip(comms);
                let threads: Vec<_> =
                    of_ranks.map(|((part, board), comm)| scope.spawn(move || run(levels, part, board, comm))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<R>>()
            })
        };
    let failure = Arc::new(Failure::default());
    if of_processes.is_empty() {
        let links = Links::new(&vec![rows.len() - 1; rows.len()], &failure);
        let levels = Levels::new(a.clone(), near_null.clone(), true).unwrap();
        let comms = links.into_iter().map(|links| links.precond).collect();
        return run_all(&levels, split(a, &rows), Board::of(rows.len()), comms);
    }
    let ends = of_processes.iter().scan(0, |before, ranks| {
        *before += ranks;
        Some(*before)
    });
    let firsts: Vec<usize> = [0].into_iter().chain(ends).collect();
    let starts: Vec<u64> = firsts.iter().map(|&rank| cuts[rank] as u64).collect();
    let of_all = processes(of_processes.len(), |all| {
        let process = all.process();
        let group = Group::new(Arc::clone(&all), of_processes).unwrap();
        let (share, window) = Share::new(all, divided(a, &starts).swap_remove(process)).unwrap();
        let share = Arc::new(share);
        let levels = Levels::among(&share, window, constant()).unwrap();
        let place = |row: usize| row - starts[process] as usize + share.own.start;
        let own = &rows[group.own()];
        let own: Vec<Range<usize>> = own.iter().map(|rows| place(rows.start)..place(rows.end)).collect();
        let parts = share.split(&levels.a, &own, &group).unwrap();
        let links = Links::among(&vec![own.len() - 1; own.len()], &group, &Arc::new(Failure::default()));
        let comms = links.into_iter().map(|links| links.precond).collect();
        run_all(&levels, parts, Board::among(&group), comms)
    });
    of_all.into_iter().flatten().collect()
}

/// The entries of a rank's rows by their numbers among all, each row sorted.
type Entries = Vec<Vec<(usize, f32)>>;

fn entries(a: &Sparse, column: impl Fn(usize) -> usize) -> Entries {
    let row = |i| {
        let mut row: Vec<(usize, f32)> = a.rows().row(i).map(|(j, v)| (column(j), v)).collect();
        row.sort_by_key(|&(j, _)| j);
        row
    };
    (0..a.n_rows()).map(row).collect()
}

/// A rank's rows of A, −P and its transpose of the levels that are shared, and of the first that is not A alone.
fn levels(a: &Csr, cuts: Cuts<'_>, format: Format, most: usize) -> Vec<[Entries; 3]> {
    let of_ranks =
        on_ranks((a, &constant()), cuts, (format, None), most, |OnRank { ctx, block, levels, among, .. }| {
            let on = SetUp::<f64, f64>::new(ctx, &Tuning::default_for(ctx.info(), Shape::Gpu)).unwrap().unwrap();
            let mut descent = Descent::new();
            let of = OfRanks { factor: 2.0, rows: Some(block.rows()), scaled_by: None };
            let (first, _) = on.first_among(levels, of, among).unwrap();
            let top = on.descend_among(first, &mut descent, among).unwrap();
            let number = |(first, n): (usize, usize), others: Vec<u32>| {
                move |j: usize| if j < n { first + j } else { others[j - n] as usize }
            };
            let mut places = Vec::new();
            for Made { a, halo, .. } in &descent.made {
                let own = (among.places(a.n_rows).unwrap().0, a.n_rows);
                let plan = halo.as_ref().unwrap();
                let others = among.exchanged(plan, plan.send.iter().map(|i| i + own.0 as u32).collect()).unwrap();
                places.push(number(own, others));
            }
            let of_level = |(k, Made { a, transfer, .. }): (usize, &Made)| {
                let [p, restriction] = transfer.as_ref().unwrap();
                let p = on.read(p).unwrap();
                let p = match places.get(k + 1) {
                    Some(number) => entries(&p, number),
                    None => entries(&p, |j| j),
                };
                [entries(&on.read(a).unwrap(), &places[k]), p, entries(&on.read(restriction).unwrap(), &places[k])]
            };
            let mut made: Vec<[Entries; 3]> = descent.made.iter().enumerate().map(of_level).collect();
            let last =
                if among.board.rank() == 0 { entries(&on.read(&top.matrix).unwrap(), |j| j) } else { Vec::new() };
            made.push([last, Vec::new(), Vec::new()]);
            made
        });
    let count = of_ranks[0].len();
    (0..count).map(|k| [0, 1, 2].map(|m| of_ranks.iter().flat_map(|made| made[k][m].clone()).collect())).collect()
}

/// Σ_k a_ik b_kj, in double precision.
fn product(a: &Entries, b: &Entries) -> Vec<std::collections::BTreeMap<usize, f64>> {
    let row = |row: &Vec<(usize, f32)>| {
        let mut sums = std::collections::BTreeMap::new();
        for &(k, v) in row {
            b[k].iter().for_each(|&(j, w)| *sums.entry(j).or_insert(0.0) += f64::from(v) * f64::from(w));
        }
        sums
    };
    a.iter().map(row).collect()
}

#[test]
fn levels_are_products() {
    for (spec, cuts, format, most) in [
        ("poisson3d:12", &[0, 800, 1728][..], Format::Dictionary, 1000),
        ("poisson3d:12", &[0, 576, 1152, 1728], Format::Csr, 1000),
        ("variable:11,sigma=2", &[0, 600, 1331], Format::Pattern, 400),
        ("jumps:9,seed=3", &[0, 100, 300, 301, 700, 729], Format::Sell, 200),
        ("circuit:30", &[0, 400, 400, system("circuit:30").n_rows()], Format::Csr, 300),
        ("tridiagonal:90", &[0, 1, 41, 90], Format::Csr, 30),
    ] {
        let a = system(spec);
        let made = levels(&a, Cuts(cuts, &[]), format, most);
        // and in processes
        let size = cuts.len() - 1;
        for of_processes in [vec![1, size - 1], vec![1; size]] {
            let others = levels(&a, Cuts(cuts, &of_processes), format, most);
            assert!(made == others, "{spec}: not the same in processes of {of_processes:?} ranks");
        }
        assert!(made.len() > 1, "{spec}: no level is shared");
        let (expected, _) = first(&a, &NearNull::default());
        assert_eq!(made[0][0], entries(&expected, |j| j), "{spec}");
        for (k, pair) in made.windows(2).enumerate() {
            let ([a, p, restriction], next) = (&pair[0], &pair[1][0]);
            // Pᵀ, with the other sign, to the bit
            let mut transpose: Entries = vec![Vec::new(); restriction.len()];
            p.iter().enumerate().for_each(|(i, row)| row.iter().for_each(|&(j, v)| transpose[j].push((i, -v))));
            assert_eq!(&transpose, restriction, "{spec}, level {k}");
            if spec.starts_with("poisson") {
                assert!(p.iter().all(|p| !p.is_empty()), "{spec}, level {k}: rows that are not interpolated");
            }
            let mut ap: Entries = Vec::new();
            for row in product(a, p) {
                ap.push(row.into_iter().map(|(j, v)| (j, v as f32)).collect());
            }
            for (i, (row, found)) in product(restriction, &ap).iter().zip(next).enumerate() {
                let columns: Vec<usize> = row.keys().copied().collect();
                assert_eq!(columns, found.iter().map(|&(j, _)| j).collect::<Vec<_>>(), "{spec}, level {k}, row {i}");
                for (&(j, v), expected) in found.iter().zip(row.values()) {
                    assert!((f64::from(v) + expected).abs() <= 1e-5, "{spec}, level {k}: {v} at {i}, {j}");
                }
            }
        }
    }
}

/// Iterations of cg with the cycle of these ranks until ‖r‖ is 1e-8 of what it was, and the last x. Ranks may have scaled rows.
fn iterations(
    (a, scaling): (&Csr, Option<&Scaling>),
    near_null: &NearNull,
    cuts: Cuts<'_>,
    most: usize,
) -> (usize, Vec<f64>) {
    let size = cuts.0.len() - 1;
    let s = |i: usize| scaling.map_or(1.0, |scaling| scaling.roots()[i].recip());
    let how = (Format::Auto, scaling);
    let results = on_ranks((a, near_null), cuts, how, most, |OnRank { ctx, block, levels, among, comm }| {
        let tuning = Tuning::default_for(ctx.info(), Shape::Gpu);
        let of_all = (size > 1).then_some(among);
        let (first, n) = among.own;
        let weights: Vec<f64> = (first..first + n).map(|i| s(i).powi(-2)).collect();
        let weights = DeviceVec::from_slice(ctx, &weights, "the diagonal").unwrap();
        let of = OfRanks { factor: 2.0, rows: Some(block.rows()), scaled_by: scaling.map(|_| &weights) };
        let made = DeviceCycle::<f64>::new::<f64>(ctx, &tuning, levels, of, of_all).unwrap();
        let (mut cycle, hierarchy) = made.unwrap();
        assert_eq!(hierarchy.unwrap().levels[0].rows, a.n_rows());
        let m: &mut dyn precond::OnRank<OpenClBackend<f64, f64>> = &mut cycle;
        m.connect(comm);
        let (mut from, mut to) =
            (DeviceVec::<f64>::zeros(ctx, n, "r").unwrap(), DeviceVec::<f64>::zeros(ctx, n, "z").unwrap());
        let mut apply = |r: &[f64]| {
            let own: Vec<f64> = (first..first + n).map(|i| s(i) * r[i]).collect();
            from.write(ctx, 0, &own).unwrap();
            m.apply(&from, &mut to).unwrap();
            let mut own = vec![0.0; n];
            to.read(ctx, 0, &mut own).unwrap();
            own.iter_mut().enumerate().for_each(|(k, z)| *z *= s(first + k));
            among.board.all(own).unwrap().iter().flat_map(|part| part.to_vec()).collect::<Vec<f64>>()
        };
        let dot = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(v, w)| v * w).sum::<f64>();
        // M is symmetric, but for rounding
        let [u, v] = [1, 2].map(|seed| gallery::random_vector(a.n_rows(), seed));
        let [mu, mv] = [apply(&u), apply(&v)];
        assert_eq!(apply(&u), mu, "not the same bits");
        let (uv, vu) = (dot(&u, &mv), dot(&v, &mu));
        assert!((uv - vu).abs() <= 1e-4 * dot(&u, &mu).max(dot(&v, &mv)), "{uv} and {vu}");
        let times = |v: &[f64]| {
            (0..a.n_rows())
                .map(|i| {
                    let (columns, values) = a.row(i);
                    columns.iter().zip(values).map(|(&j, w)| w * v[j as usize]).sum::<f64>()
                })
                .collect::<Vec<f64>>()
        };
        let b = times(&u);
        let (mut x, mut r, mut count) = (vec![0.0; b.len()], b.clone(), 0);
        let mut z = apply(&r);
        let (mut p, mut rho) = (z.clone(), dot(&r, &z));
        while dot(&r, &r) > 1e-16 * dot(&b, &b) && count < 100 {
            let q = times(&p);
            let alpha = rho / dot(&p, &q);
            x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p);
            r.iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
            z = apply(&r);
            let next = dot(&r, &z);
            p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + next / rho * *p);
            (rho, count) = (next, count + 1);
        }
        let residual: Vec<f64> = b.iter().zip(times(&x)).map(|(b, ax)| b - ax).collect();
        assert!(dot(&residual, &residual) <= 1.1e-16 * dot(&b, &b), "{count} iterations");
        (count, x)
    });
    assert!(results.iter().all(|result| *result == results[0]), "ranks differ");
    results.into_iter().next().unwrap()
}

#[test]
fn cycles_of_ranks() {
    for (spec, cuts, near_null) in [
        ("jumps:14,contrast=10", &[0, 1300, 2744][..], constant()),
        ("jumps:14,contrast=10", &[0, 500, 500, 1300, 2700, 2744], constant()),
        ("variable:11,sigma=2", &[0, 400, 900, 1331], constant()),
        ("elasticity3d-jumps:6", &[0, 300, system("elasticity3d-jumps:6").n_rows()], rigid([6; 3])),
    ] {
        let a = system(spec);
        let (alone, _) = iterations((&a, None), &near_null, Cuts(&[0, a.n_rows()], &[]), 0);
        let scaling = Scaling::by(&a.diagonal(), 2.0, None);
        let scaled = |cuts, most| iterations((&a, Some(&scaling)), &near_null, Cuts(cuts, &[]), most).0;
        let ends = [0, a.n_rows()];
        let alone_scaled = scaled(&ends, 0);
        assert!(alone_scaled.abs_diff(alone) <= 1, "{spec}: {alone_scaled} iterations, as they are {alone}");
        // shared as far as there are many rows, and all of it by all
        for most in [1000, usize::MAX] {
            let (shared, _) = iterations((&a, None), &near_null, Cuts(cuts, &[]), most);
            let of_scaled = scaled(cuts, most);
            assert!(of_scaled.abs_diff(shared) <= 1, "{spec}: {of_scaled} iterations, as they are {shared}");
            assert!(shared <= alone + 3, "{spec}: {shared} iterations, alone {alone}");
            if most == usize::MAX {
                assert_eq!(shared, alone, "{spec}");
            }
            if near_null.is_constant() && most == 1000 {
                let size = cuts.len() - 1;
                for of_processes in [vec![size], vec![1, size - 1], vec![1; size]] {
                    let (several, _) = iterations((&a, None), &near_null, Cuts(cuts, &of_processes), most);
                    assert_eq!(several, shared, "{spec}, {of_processes:?}");
                }
            }
        }
    }
}

/// Ranks share slabs of a lattice's levels, or have all of them: to the bit as one alone.
#[test]
fn cycles_of_a_lattice() {
    for spec in ["poisson3d:7x6x60", "poisson2d:20x150", "anisotropic:12x10x26"] {
        let a = system(spec);
        let (n, scaling) = (a.n_rows(), Scaling::by(&a.diagonal(), 2.0, None));
        let [(alone, x), (scaled, _)] =
            [None, Some(&scaling)].map(|scaling| iterations((&a, scaling), &constant(), Cuts(&[0, n], &[]), 0));
        assert!(alone <= 12 && alone == scaled, "{spec}: {alone} iterations, scaled {scaled}");
        // all shared, some, and none, as one rank has no rows
        for (cuts, most) in [(&[0, n / 2 + 3, n][..], 0), (&[0, n / 3, 2 * n / 3 - 7, n], 3000), (&[0, 500, 500, n], 0)]
        {
            let (shared, same) = iterations((&a, None), &constant(), Cuts(cuts, &[]), most);
            assert!(shared == alone && same == x, "{spec}, {cuts:?}, {most}: {shared} iterations");
        }
        assert_eq!(iterations((&a, Some(&scaling)), &constant(), Cuts(&[0, n / 2 + 3, n], &[]), 0).0, alone);
    }
}
