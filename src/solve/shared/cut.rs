//! Which rows each process has, and which of them each of its ranks: as fast as all devices are, or as was asked for.

use std::ops::Range;
use std::sync::Arc;

use super::super::chain::check_precond;
use super::{check_setup, own_devices};
use crate::cache::Digest;
use crate::comm::Processes;
use crate::comm::processes::{agreed, any, exchange};
use crate::device::{Info, Selection};
use crate::distributed::Rows;
use crate::distributed::balance::balanced;
use crate::distributed::nodes::{between, unknowns};
use crate::error::Result;
use crate::runtime::{Setup, ShareSource, Whole};
use crate::schedule::{Speed, shared, speeds, steadied};
use crate::timeline::stages::stage;
use crate::tune::Tune;
use crate::tune::store::{Store, kind};

/// Entries of the rows that devices are timed on.
const SAMPLE: usize = 32 << 20;

/// The work of an iteration below which nothing is measured: a device opens more slowly than that could ever make up for.
const LEAST_WORK: u64 = 100_000;

/// Rows that each of several processes has, with the devices that are to work on them, for [`SharedSolver::of_cut`](super::SharedSolver::of_cut).
#[derive(Debug)]
pub struct Cut {
    pub(super) rows: Rows,
    pub(super) selection: Selection,
    /// What part of this process's rows each of its ranks gets.
    pub(super) shares: Vec<f64>,
    pub(super) source: ShareSource,
}

impl Cut {
    /// The rows as each process has them; those of a process are shared by its ranks alike, or as `setup` says. Collective.
    ///
    /// # Errors
    /// Those of devices, and what several processes can't be asked for.
    pub fn as_given(processes: &dyn Processes, rows: Rows, setup: &Setup) -> Result<Self> {
        let _listing = stage("list");
        let possible = check_setup(setup).and_then(|()| check_precond(setup)).and_then(|()| {
            let selection = own_devices(processes, setup)?;
            let count = selection.ranks.len();
            let even = || Ok(vec![1.0; count]);
            let shares = setup.shares.as_ref().map_or_else(even, |shares| shares.of_ranks(count).map(<[f64]>::to_vec));
            Ok((selection, shares?))
        });
        let (selection, shares) = agreed(processes, possible)?;
        let source = if setup.shares.is_some() { ShareSource::ByHand } else { ShareSource::Even };
        Ok(Self { rows, selection, shares, source })
    }

    /// The rows moved from process to process so that the ranks of all end at about the same time. Ranks of one kind of device have as much
    /// each. Unlike ones have as much as they are fast: as was kept of former solves of the same rows, or is measured now on a sample if `setup`
    /// lets devices be measured; each as much as others where neither is known. Shares by hand are those of the ranks of all processes, in
    /// one unit. All processes decide by the same numbers. Collective.
    ///
    /// # Errors
    /// As [`as_given`](Self::as_given); errors of moving rows.
    pub fn by_speed(processes: &dyn Processes, rows: Rows, setup: &Setup) -> Result<Self> {
        let Self { rows, selection, shares, source } = Self::as_given(processes, rows, setup)?;
        let of_each = exchange(processes, vec![shares.clone(); processes.count()])?;
        let (of_all, source) = if any(processes, source == ShareSource::ByHand)? {
            (of_each.concat(), ShareSource::ByHand)
        } else {
            measured(processes, &rows, &selection.ranks, setup)?.unwrap_or((of_each.concat(), source))
        };
        let counts: Vec<usize> = of_each.iter().map(Vec::len).collect();
        let (rows, shares) = cut(processes, rows, &of_all, &counts)?;
        Ok(Self { rows, selection, shares, source })
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// The rows by the shares of all ranks, of which each process has so many; and the shares of this one's ranks.
fn cut(processes: &dyn Processes, rows: Rows, shares: &[f64], counts: &[usize]) -> Result<(Rows, Vec<f64>)> {
    let process = processes.process();
    let before: usize = counts[..process].iter().sum();
    let own = shares[before..before + counts[process]].to_vec();
    let sums: Vec<f64> = counts
        .iter()
        .scan(0, |first, count| {
            let ranks = *first..*first + count;
            *first = ranks.end;
            Some(shares[ranks].iter().sum())
        })
        .collect();
    if sums.iter().all(|sum| *sum == sums[0]) {
        return Ok((rows, own)); // they have as much each
    }
    let starts = between(&balanced(processes, &rows, &sums)?, unknowns(processes, &rows)?);
    Ok((rows.moved(processes, starts)?, own))
}

/// The shares of the ranks of all processes by their speeds, if there are several kinds of them and all speeds are known. Collective.
fn measured(
    processes: &dyn Processes,
    rows: &Rows,
    devices: &[Option<Info>],
    setup: &Setup,
) -> Result<Option<(Vec<f64>, ShareSource)>> {
    let count = processes.count();
    let hash = |device: &Option<Info>| {
        let Digest(bytes) = Digest::of([kind(device).as_bytes()]);
        u64::from_le_bytes(std::array::from_fn(|k| bytes[k]))
    };
    // each rank: whether speeds are wanted, the kind, the device among those of the process, and the work of the process
    let work = rows.cost();
    let own: Vec<[u64; 4]> = devices
        .iter()
        .map(|device| {
            let index = device.as_ref().map_or(u64::MAX, |device| device.index as u64);
            [u64::from(setup.tune != Tune::Off), hash(device), index, work]
        })
        .collect();
    let of_each = exchange(processes, vec![own; count])?;
    let all: Vec<[u64; 4]> = of_each.concat();
    let work: u64 = of_each.iter().filter_map(|ranks| ranks.first()).map(|rank| rank[3]).sum();
    if all.iter().any(|rank| rank[0] == 0) || all.iter().all(|rank| rank[1] == all[0][1]) || work < LEAST_WORK {
        return Ok(None);
    }
    let known = agreed(processes, own_speeds(processes.process(), rows, devices, setup))?;
    let words = |speed: &Option<(Speed, bool)>| {
        speed.as_ref().map_or([f64::NAN; 7], |(Speed { measured: [a, b, c] }, is_remembered)| {
            [a.0, a.1, b.0, b.1, c.0, c.1, f64::from(u8::from(*is_remembered))]
        })
    };
    let told = exchange(processes, vec![known.iter().map(words).collect::<Vec<_>>(); count])?.concat();
    if told.iter().flatten().any(|word| word.is_nan()) {
        log::info!("the speed of some devices is not known: all ranks have as many rows");
        return Ok(None);
    }
    let all_speeds: Vec<Speed> =
        told.iter().map(|w| Speed { measured: [(w[0], w[1]), (w[2], w[3]), (w[4], w[5])] }).collect();
    let kinds: Vec<u64> = all.iter().map(|rank| rank[1]).collect();
    // no two processes have a device in common, as far as this is concerned
    let devices: Vec<Option<usize>> = of_each
        .iter()
        .enumerate()
        .flat_map(|(k, ranks)| ranks.iter().map(move |rank| device_number(k, rank[2])))
        .collect();
    let (shares, _) = shared(work as f64, &all_speeds);
    let source = if told.iter().all(|w| w[6] == 1.0) { ShareSource::Remembered } else { ShareSource::Measured };
    let shares = steadied(&shares, &kinds, &devices);
    log::info!("the ranks of all processes have shares {shares:?}, {source}");
    Ok(Some((shares, source)))
}

fn device_number(process: usize, index: u64) -> Option<usize> {
    let index = if index == u64::MAX { 0xFFFF } else { index as usize & 0x7FFF };
    Some((process << 16) + index)
}

/// How fast this process's devices are on a sample of its rows.
fn own_speeds(
    process: usize,
    rows: &Rows,
    devices: &[Option<Info>],
    setup: &Setup,
) -> Result<Vec<Option<(Speed, bool)>>> {
    if rows.len() == 0 {
        return Ok(vec![None; devices.len()]);
    }
    let sample = Arc::new(rows.excerpt(process, middle(rows))?);
    let whole = Whole::new(Arc::clone(&sample), &sample, None, 1.0, setup, Store::open());
    Ok(speeds(&whole, &sample, devices))
}

/// Rows from the middle with as many entries as a sample needs.
fn middle(rows: &Rows) -> Range<usize> {
    let (nnz, centre) = (rows.nnz(), rows.len() / 2);
    if nnz <= SAMPLE {
        return 0..rows.len();
    }
    let half = (rows.len() as f64 * SAMPLE as f64 / nnz as f64 / 2.0) as usize;
    centre - half.min(centre)..(centre + half + 1).min(rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::distributed::rows::tests::divided;
    use crate::krylov::Method;
    use crate::matrix::gallery::{poisson2d, random_vector};
    use crate::runtime::{Control, Stop};
    use crate::solve::SharedSolver;
    use crate::verify::residual;

    #[test]
    fn shares_by_hand_are_those_of_all_ranks() {
        let a = poisson2d([40, 40]).unwrap();
        let b = random_vector(1600, 3);
        // with processes that have nothing at first
        for starts in [[0, 533, 1066, 1600], [0, 0, 1, 1600]] {
            let found = processes(3, |all| {
                let process = all.process();
                let rows = divided(&a, &starts).swap_remove(process);
                let (devices, shares) = [("host", "1"), ("host,host", "2:1"), ("host", "4")][process];
                let setup = Setup { method: Method::Cg, devices: devices.parse().unwrap(), ..Setup::default() };
                let setup = setup.with_shares(shares.parse().unwrap());
                let cut = Cut::by_speed(&*all, rows, &setup).unwrap();
                let own = cut.rows().own(&*all);
                let mut solver = SharedSolver::of_cut(all, cut, &setup).unwrap();
                let of_ranks: Vec<usize> = solver.solver().ranks().iter().map(|rank| rank.rows).collect();
                let b = &b[own.start as usize..own.end as usize];
                (of_ranks, solver.solve(b, None, &Stop::default(), Control::default()).unwrap().x)
            });
            let rows: Vec<usize> = found.iter().flat_map(|found| found.0.iter().copied()).collect();
            for (rows, expected) in rows.iter().zip([200, 400, 200, 800]) {
                assert!(rows.abs_diff(expected) <= 5, "{rows} in place of {expected}");
            }
            let x: Vec<f64> = found.into_iter().flat_map(|found| found.1).collect();
            assert!(residual(&a, &b, &x).relative_2 <= 1e-8);
        }
    }

    #[test]
    fn ranks_of_one_kind_have_as_much_each() {
        let a = poisson2d([60, 60]).unwrap();
        let rows = processes(2, |all| {
            let process = all.process();
            let rows = divided(&a, &[0, 1800, 3600]).swap_remove(process);
            let setup = Setup { devices: ["host", "host,host"][process].parse().unwrap(), ..Setup::default() };
            Cut::by_speed(&*all, rows, &setup).unwrap().rows().starts().to_vec()
        });
        assert!(rows.iter().all(|starts| *starts == rows[0] && starts[1].abs_diff(1200) <= 5), "{rows:?}");
    }

    /// Rows that have neighbours on both sides, in a matrix of their own.
    #[test]
    fn an_excerpt_has_the_same_rows() {
        let a = poisson2d([9, 8]).unwrap();
        let rows = divided(&a, &[0, 20, 60, 72]).swap_remove(1);
        let excerpt = rows.excerpt(1, 3..30).unwrap();
        let at = excerpt.row_ptr().windows(2).position(|ends| ends[0] < ends[1]).unwrap();
        for row in 0..27 {
            let (columns, values) = excerpt.row(at + row);
            let (expected, of_a) = a.row(23 + row);
            assert_eq!(values, of_a);
            assert_eq!(columns.len(), expected.len());
            let own = |j: &&u32| (23..50).contains(*j);
            let kept: Vec<u32> = expected.iter().filter(own).map(|j| j - 23 + at as u32).collect();
            assert!(kept.iter().all(|j| columns.contains(j)));
        }
        assert_eq!(excerpt.nnz(), a.row_ptr()[50] - a.row_ptr()[23]);
    }

    #[test]
    fn speeds_decide_alike() {
        // a device of OpenCL beside the host, measured or not
        let a = poisson2d([150, 150]).unwrap();
        for tune in [Tune::Off, Tune::Stored, Tune::Quick] {
            let found = processes(2, |all| {
                let process = all.process();
                let rows = divided(&a, &[0, 11_250, 22_500]).swap_remove(process);
                let setup = Setup { devices: ["host", "0"][process].parse().unwrap(), tune, ..Setup::default() };
                let cut = Cut::by_speed(&*all, rows, &setup).unwrap();
                (cut.rows().starts().to_vec(), cut.source)
            });
            assert!(found[0] == found[1] && found[0].0[2] == 22_500, "{found:?}");
            assert!(tune != Tune::Off || found[0].0[1] == 11_250, "{found:?}");
        }
    }
}
