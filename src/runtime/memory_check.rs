//! Whether the blocks of a system fit into their devices, before anything is moved there.

use std::collections::BTreeMap;
use std::ops::Range;

use super::setup::Setup;
use crate::device::{Info, usable};
use crate::error::{Error, Result};
use crate::kernels::{MAX_COLUMNS, MAX_COUNT};
use crate::krylov::Method;
use crate::matrix::Csr;
use crate::operator::opencl::DeviceBlock;
use crate::partition::{Part, compressed_bytes, halo_sizes, row_ranges_by};
use crate::real::Precision;

/// What a block of rows takes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Demand {
    total: u64,
    /// The longest array that can't be cut into segments, as entries of the matrix can.
    largest_buffer: u64,
}

/// Bytes of the elements of a rank's matrices: in mixed precision, there are two.
fn matrices(setup: &Setup) -> &'static [u64] {
    match setup.precision {
        Precision::F64 => &[8],
        Precision::F32 => &[4],
        Precision::Mixed => &[4, 8],
    }
}

/// Bytes a row of the vectors that a rank keeps: see [`Workspace`](crate::krylov::Workspace) and
/// [`Iterate`](crate::krylov::Iterate); the diagonal, of which a scaling has the weights; and the columns of a basis.
fn vector_bytes(setup: &Setup) -> u64 {
    let weights = u64::from(setup.method.scales_by(setup.precond));
    let others = more_vectors(setup);
    let of_iterate = match setup.precision {
        Precision::F64 => 2 * 8,
        Precision::F32 => 2 * 4,
        Precision::Mixed => (4 + u64::from(setup.method.minimises())) * 8, // Aᵀ r, too
    };
    let columns = basis_columns(setup);
    (4 + others + weights + columns) * setup.precision.bytes() + of_iterate
}

/// Vectors of the method beside the usual four; with a preconditioner of the caller's own, z of `cg`, which is no text then.
fn more_vectors(setup: &Setup) -> u64 {
    match (setup.applies_given(), setup.method) {
        (true, Method::Gmres) => 0,
        (true, _) => 1,
        (false, method) => method.more_vectors(setup.precond),
    }
}

/// Columns of a basis.
fn basis_columns(setup: &Setup) -> u64 {
    setup.method.basis_columns(setup.precond, setup.applies_given(), setup.restart, setup.is_complex)
}

/// Bytes of the rows, compressed.
fn row_bytes(rows: u64, nnz: u64, setup: &Setup) -> u64 {
    matrices(setup).iter().map(|&real| compressed_bytes(rows, nnz, real)).sum()
}

/// For `rows` rows with `nnz` entries that exchange `halo` elements with others.
fn demand(rows: u64, nnz: u64, halo: u64, setup: &Setup) -> Demand {
    // indices and message of each matrix's vector, and of the iteration's vectors r, q and those by recurrence
    let vectors = (2 + more_vectors(setup)) * halo * setup.precision.bytes();
    let halos = matrices(setup).iter().map(|real| halo * (4 + 2 * real)).sum::<u64>() + vectors;
    let real = matrices(setup).iter().copied().max().unwrap_or_default();
    Demand {
        total: row_bytes(rows, nnz, setup) + vector_bytes(setup) * rows + halos,
        largest_buffer: ((rows + halo) * real).max(4 * (rows + 1)),
    }
}

/// What the matrices of the preconditioner take with these rows, about, before they are there.
fn of_preconditioner(rows: u64, nnz: u64, setup: &Setup) -> u64 {
    let entries = if setup.method.applies(setup.precond) { setup.precond.most_entries(rows, nnz) } else { Vec::new() };
    entries.into_iter().map(|entries| compressed_bytes(rows, entries, setup.precision.bytes())).sum()
}

/// For all rows, which no other rank has a part of: with those of Aᵀ, or of the preconditioner, if the method multiplies by them.
fn of_all(rows: u64, nnz: u64, setup: &Setup) -> Demand {
    let one = demand(rows, nnz, 0, setup);
    let transpose = if setup.method.minimises() { row_bytes(rows, nnz, setup) } else { 0 };
    Demand { total: one.total + transpose + of_preconditioner(rows, nnz, setup), ..one }
}

/// For a rank's parts of the matrices that it multiplies by: A, and Aᵀ or those of the preconditioner, which are in the precision of the
/// iteration.
fn of_parts<'p>(parts: impl IntoIterator<Item = &'p Part<'p>>, setup: &Setup) -> Demand {
    let size =
        |part: &Part<'_>| [part.n_owned(), part.nnz(), part.halo.len.max(part.halo.send.len())].map(|size| size as u64);
    let mut all = Demand::default();
    let of_iteration = Setup { precision: setup.precision.of_vectors(), ..setup.clone() };
    for (k, part) in parts.into_iter().enumerate() {
        let setup = if k == 0 || setup.method.minimises() { setup } else { &of_iteration };
        let [rows, nnz, halo] = size(part);
        let one = demand(rows, nnz, halo, setup);
        let vectors = if k == 0 { 0 } else { vector_bytes(setup) * rows }; // which are there already
        all.total += one.total - vectors;
        all.largest_buffer = all.largest_buffer.max(one.largest_buffer);
    }
    all
}

/// Memory that a system of `rows` rows and `nnz` entries takes on a device that holds all of it, in bytes: the
/// matrix, the preconditioner and the vectors of the method.
///
/// ```
/// use declive::Setup;
/// use declive::solve::device_bytes;
///
/// // an entry's column and value, a row's pointer, six vectors, and the diagonal
/// assert_eq!(device_bytes(10, 50, &Setup::default()), 50 * 12 + 11 * 4 + 7 * 10 * 8);
/// ```
#[must_use]
pub fn device_bytes(rows: usize, nnz: usize, setup: &Setup) -> u64 {
    of_all(rows as u64, nnz as u64, setup).total
}

/// Memory that the rank of these parts takes beside its rows: vectors, and what belongs to halos.
pub(crate) fn beside_rows<'p>(parts: impl IntoIterator<Item = &'p Part<'p>> + Clone, setup: &Setup) -> u64 {
    let of_iteration = Setup { precision: setup.precision.of_vectors(), ..setup.clone() };
    let rows = |(k, part): (usize, &Part<'_>)| {
        let setup = if k == 0 || setup.method.minimises() { setup } else { &of_iteration };
        row_bytes(part.n_owned() as u64, part.nnz() as u64, setup)
    };
    of_parts(parts.clone(), setup).total - parts.into_iter().enumerate().map(rows).sum::<u64>()
}

/// The most columns, up to those that the set-up wants, for which there is room on a device, with vectors of so many elements each. While some
/// columns are taken over into narrower vectors, there are both.
pub(crate) fn most_columns(elements: u64, room: u64, largest_buffer: u64, setup: &Setup) -> usize {
    let column = 3 * (5 + setup.method.more_vectors(setup.precond)) * elements * setup.precision.bytes() / 2;
    let most = [
        room / column.max(1),
        largest_buffer / (setup.precision.bytes() * elements).max(1),
        MAX_COUNT as u64 / elements.max(1),
    ];
    most.into_iter().fold(setup.columns.min(MAX_COLUMNS) as u64, u64::min) as usize
}

/// The same where columns lie one behind the other, with a log for each.
pub(crate) fn most_in_batch(elements: u64, room: u64, largest_buffer: u64, setup: &Setup) -> usize {
    let column = (5 + setup.method.more_vectors(setup.precond)) * elements * setup.precision.bytes() + BATCH_LOG;
    let most = [
        room / 2 / column,
        largest_buffer / (setup.precision.bytes() * elements).max(BATCH_LOG),
        MAX_COUNT as u64 / elements.max(1),
    ];
    most.into_iter().fold(setup.columns as u64, u64::min) as usize
}

/// What a column has of logs and sums, at the most.
const BATCH_LOG: u64 = 64 << 10;

/// How often a cut is mended until all ranks can hold what they get.
const CUTS: usize = 30;

/// A device that would be too full gets so much less than it seems to hold, as rows can't be divided.
const SLACK: f64 = 0.98;

/// Cuts the rows of `a` by `shares`; a device that can't hold its share gets what it can hold, and the others the rest.
/// If all together can't hold the system, some rank gets more than it can hold, which [`check`] reports.
pub(crate) fn row_ranges(a: &Csr, shares: &[f64], devices: &[Option<Info>], setup: &Setup) -> Vec<Range<usize>> {
    let whole: f64 = shares.iter().sum();
    let mut shares: Vec<f64> = shares.iter().map(|share| share / whole).collect();
    let mut is_full = vec![false; shares.len()];
    for _ in 0..CUTS {
        let ranges = row_ranges_by(a, &shares);
        let loads = loads(a, &ranges, devices, setup);
        let mut is_over = false;
        for (k, load) in loads.into_iter().enumerate().filter(|(_, load)| *load > 1.0) {
            (is_over, is_full[k]) = (true, true);
            shares[k] *= SLACK / load;
        }
        if !is_over {
            return ranges;
        }
        let of = |full: bool| shares.iter().zip(&is_full).filter(|(_, f)| **f == full).map(|(s, _)| s).sum::<f64>();
        let (held, free) = (of(true), of(false));
        if free <= 0.0 {
            break; // nobody is left who could take it
        }
        for (share, _) in shares.iter_mut().zip(&is_full).filter(|(_, full)| !**full) {
            *share *= (1.0 - held) / free;
        }
    }
    row_ranges_by(a, &shares)
}

/// Whether a device, or the host, can hold all rows.
pub(crate) fn holds(a: &Csr, device: Option<&Info>, setup: &Setup) -> bool {
    let (rows, nnz) = (a.n_rows(), a.nnz());
    let is_addressed = rows <= MAX_COUNT && nnz <= DeviceBlock::<f64>::MAX_NNZ;
    device.is_none_or(|device| is_addressed && fits(of_all(rows as u64, nnz as u64, setup), device))
}

/// Whether these devices together can hold all rows.
pub(crate) fn can_hold(a: &Csr, devices: &[Option<Info>], setup: &Setup) -> bool {
    let ranges = row_ranges(a, &vec![1.0; devices.len()], devices, setup);
    loads(a, &ranges, devices, setup).iter().all(|load| *load <= 1.0)
}

/// Of each rank, what part of its device's memory or of another limit its device would need: above 1, it does not fit.
fn loads(a: &Csr, ranges: &[Range<usize>], devices: &[Option<Info>], setup: &Setup) -> Vec<f64> {
    let sizes = |rows: &Range<usize>| [rows.len(), a.row_ptr()[rows.end] - a.row_ptr()[rows.start]].map(|v| v as u64);
    // as many as there can be; they are counted only where that matters
    let bound = |rows: &Range<usize>| if ranges.len() == 1 { 0 } else { sizes(rows)[1].min(a.n_rows() as u64) };
    let with = |halo: &dyn Fn(usize) -> u64| -> Vec<f64> {
        let of_rank = |(k, rows): (usize, &Range<usize>)| {
            let [rows, nnz] = sizes(rows);
            let one = demand(rows, nnz, halo(k), setup);
            Demand { total: one.total + of_preconditioner(rows, nnz, setup), ..one }
        };
        let demands: Vec<Demand> = ranges.iter().enumerate().map(of_rank).collect();
        let load = |(k, device): (usize, &Option<Info>)| {
            let Some(device) = device else { return 0.0 };
            let shares_it = |other: &Option<Info>| other.as_ref().is_some_and(|other| other.index == device.index);
            let total: u64 =
                demands.iter().zip(devices).filter(|(_, other)| shares_it(other)).map(|(demand, _)| demand.total).sum();
            let [rows, nnz] = sizes(&ranges[k]);
            let parts = [
                (total, device.memory_bytes),
                (demands[k].largest_buffer, device.max_buffer_bytes),
                (rows + halo(k), MAX_COUNT as u64),
                (nnz, DeviceBlock::<f64>::MAX_NNZ as u64),
            ];
            parts.into_iter().map(|(need, have)| need as f64 / have.max(1) as f64).fold(0.0, f64::max)
        };
        devices.iter().enumerate().map(load).collect()
    };
    let at_most = with(&|k| bound(&ranges[k]));
    if at_most.iter().all(|load| *load <= 1.0) {
        return at_most;
    }
    let halos = halo_sizes(a, ranges);
    with(&|k| halos[k].into_iter().max().unwrap_or(0) as u64)
}

fn fits(demand: Demand, device: &Info) -> bool {
    demand.total <= device.memory_bytes && demand.largest_buffer <= device.max_buffer_bytes
}

/// Checks every rank that is a device; a device of several ranks must hold them all. `matrices` has the parts of the ranks, for each
/// matrix that they multiply by.
///
/// # Errors
/// [`Error::TooManyElements`] for a block beyond 32-bit indices; [`Error::OutOfDeviceMemory`] for the first device that is too
/// small, with a choice of devices that would do.
pub(crate) fn check(matrices: &[Vec<Part<'_>>], devices: &[Option<Info>], setup: &Setup) -> Result<()> {
    let mut on_device: BTreeMap<usize, Demand> = BTreeMap::new();
    for (rank, device) in devices.iter().enumerate() {
        let Some(device) = device else { continue };
        let parts = matrices.iter().map(|parts| &parts[rank]);
        let elements = parts.clone().flat_map(|part| {
            [
                ("rows, with its halo,", part.n_owned() + part.halo.len, MAX_COUNT),
                ("entries", part.nnz(), DeviceBlock::<f64>::MAX_NNZ),
            ]
        });
        if let Some((what, count, limit)) = elements.into_iter().find(|(_, count, limit)| count > limit) {
            let (device, what) = (device.label(), format!("a share of {count} {what}"));
            return Err(Error::TooManyElements { device, what, limit });
        }
        let [rows, nnz] = [parts.clone().map(Part::n_owned).max(), Some(parts.clone().map(Part::nnz).sum())]
            .map(Option::unwrap_or_default);
        let here = of_parts(parts, setup);
        let all = on_device.entry(device.index).or_default();
        all.total += here.total;
        all.largest_buffer = all.largest_buffer.max(here.largest_buffer);
        if fits(*all, device) {
            continue;
        }
        let in_all = all.total > device.memory_bytes;
        let (need_bytes, limit, have_bytes) = if in_all {
            (all.total, "its memory", device.memory_bytes)
        } else {
            (all.largest_buffer, "its largest buffer", device.max_buffer_bytes)
        };
        return Err(Error::OutOfDeviceMemory {
            device: device.label(),
            what: format!(
                "{} a share of {} rows and {} entries",
                if in_all { "in all," } else { "a vector of" },
                rows,
                nnz
            ),
            need_bytes,
            limit,
            have_bytes,
            hint: hint(matrices, devices, setup),
        });
    }
    Ok(())
}

/// A choice that would do.
fn hint(matrices: &[Vec<Part<'_>>], devices: &[Option<Info>], setup: &Setup) -> String {
    let rows: u64 = matrices.first().into_iter().flatten().map(|p| p.n_owned() as u64).sum();
    let nnz: u64 = matrices.iter().flatten().map(|p| p.nnz() as u64).sum();
    let shared_by = |devices: &[Info], setup: &Setup| {
        let k = devices.len().max(1) as u64;
        let halo = if k == 1 { 0 } else { rows.div_ceil(k) };
        devices.iter().all(|d| fits(demand(rows.div_ceil(k), nnz.div_ceil(k), halo, setup), d))
    };
    let used: Vec<Info> = devices.iter().flatten().cloned().collect();
    let all = usable(setup.precision.needs_f64());
    let single = Setup { precision: Precision::F32, ..setup.clone() };
    let has_basis = basis_columns(setup) > 0;
    let restarts = 1..if has_basis { setup.restart } else { 1 };
    let shorter = restarts.rev().find(|&restart| shared_by(&used, &Setup { restart, ..setup.clone() }));
    if all.len() > used.len() && shared_by(&all, setup) {
        let numbers: Vec<_> = all.iter().map(|d| d.index.to_string()).collect();
        format!("it would fit with devices = {}", numbers.join(","))
    } else if let Some(restart) = shorter {
        format!("it would fit with restart = {restart}")
    } else if setup.precision.needs_f64() && shared_by(&used, &single) {
        "it would fit with precision = f32, or with devices = host".into()
    } else {
        "no choice of the devices here is large enough; devices = host works in the host's memory".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::krylov::Method;
    use crate::precond::Precond;

    /// A device of `memory` bytes.
    fn device(index: usize, memory: u64) -> Option<Info> {
        let mut info = crate::device::list().devices.into_iter().next().expect("the tests need an OpenCL device");
        (info.index, info.memory_bytes, info.max_buffer_bytes) = (index, memory, memory);
        Some(info)
    }

    #[test]
    fn what_is_too_much_for_one_goes_to_the_others() {
        let a = crate::matrix::gallery::poisson2d([100, 100]).unwrap();
        let setup = Setup::default();
        let whole = device_bytes(a.n_rows(), a.nnz(), &setup);
        let cut = |shares: &[f64], devices: &[Option<Info>]| {
            let ranges = row_ranges(&a, shares, devices, &setup);
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, a.n_rows()));
            assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
            ranges
        };
        let fits = |ranges: &[Range<usize>], devices: &[Option<Info>]| {
            check(&[crate::partition::split(&a, ranges)], devices, &setup).is_ok()
        };
        // plenty for all: the even cut
        let plenty = [device(0, 9 * whole), device(1, 9 * whole), None];
        assert_eq!(cut(&[1.0; 3], &plenty), crate::partition::row_ranges(&a, 3));
        // a tenth for the first: it is nearly full, the others have equal parts of the rest
        let small = [device(0, whole / 10), device(1, 9 * whole), None];
        let ranges = cut(&[1.0; 3], &small);
        assert!(fits(&ranges, &small) && (700..1000).contains(&ranges[0].len()), "{ranges:?}");
        assert!(ranges[1].len().abs_diff(ranges[2].len()) < 100, "{ranges:?}");
        // what the second has no room for either goes to the third, whatever shares say; none for a share of 0
        let two = [device(0, whole / 10), device(1, whole / 5), device(2, whole), None];
        let ranges = cut(&[5.0, 5.0, 1.0, 0.0], &two);
        assert!(fits(&ranges, &two) && ranges[3].is_empty() && ranges[2].len() > 6500, "{ranges:?}");
        // one device as two ranks: both together must fit
        let shared = [device(0, whole / 2), device(0, whole / 2), None];
        let ranges = cut(&[1.0, 1.0, 0.1], &shared);
        assert!(fits(&ranges, &shared) && ranges[2].len() > 4000, "{ranges:?}");
        // all together are too small
        let tiny = [device(0, whole / 10), device(1, whole / 3)];
        assert!(!fits(&cut(&[1.0; 2], &tiny), &tiny));
        let alone = [device(0, whole / 2)];
        assert!(!fits(&cut(&[1.0], &alone), &alone));
    }

    /// An arrow: the last row needs all of x, whoever has it.
    #[test]
    fn halos_count() {
        let n = 2000u32;
        let arrow = (0..n - 1).flat_map(|i| [(i, i, 4.0), (i, n - 1, 0.001), (n - 1, i, 0.001)]);
        let t: Vec<_> = arrow.chain([(n - 1, n - 1, 4.0)]).collect();
        let column = |f: fn(&(u32, u32, f64)) -> u32| t.iter().map(f).collect::<Vec<_>>();
        let values: Vec<f64> = t.iter().map(|e| e.2).collect();
        let a = Csr::from_triplets(n as usize, n as usize, &column(|e| e.0), &column(|e| e.1), &values).unwrap();
        let setup = Setup::default();
        let half = device_bytes(1000, 3000, &setup);
        // room for half of the rows, but not for the halo that goes with the last row
        let devices = [device(0, 9 * half), device(1, half + half / 10)];
        let ranges = row_ranges(&a, &[1.0; 2], &devices, &setup);
        check(&[crate::partition::split(&a, &ranges)], &devices, &setup).unwrap();
        assert!(ranges[1].len() < 900, "{ranges:?}");
    }

    /// What is too much of a basis is said before anything is moved, with what would fit.
    #[test]
    fn a_basis_counts() {
        let a = crate::matrix::gallery::poisson2d([100, 100]).unwrap();
        let of = |restart| Setup { method: Method::Gmres, precond: Precond::None, restart, ..Setup::default() };
        let bytes = |restart| device_bytes(a.n_rows(), a.nnz(), &of(restart));
        assert_eq!(bytes(30) - bytes(10), 20 * 8 * 10_000);
        let parts = crate::partition::split(&a, std::slice::from_ref(&(0..a.n_rows())));
        let devices = [device(0, bytes(17) + 8)];
        assert!(check(std::slice::from_ref(&parts), &devices, &of(17)).is_ok());
        let error = check(&[parts], &devices, &of(30)).unwrap_err().to_string();
        assert!(error.contains("it would fit with restart = 17"), "{error}");
    }

    #[test]
    fn demand_by_hand() {
        // 10 rows, 50 entries, no halo: 50·12 + 4·11 + 6 vectors·10·8
        let d = demand(10, 50, 0, &Setup { precond: Precond::None, ..Setup::default() });
        assert_eq!(d, Demand { total: 600 + 44 + 480, largest_buffer: 80 });
        let single = Setup { precision: Precision::F32, precond: Precond::Jacobi, ..Setup::default() };
        assert_eq!(demand(10, 50, 5, &single).total, 400 + 44 + 7 * 10 * 4 + 5 * (12 + 8));
        // the rows of the transpose, too, and three vectors more
        let twice = Setup { method: Method::Lsmr, ..Setup::default() };
        assert_eq!(device_bytes(10, 50, &twice), 2 * (600 + 44) + 9 * 10 * 8);
        let a = crate::matrix::gallery::poisson2d([9, 9]).unwrap();
        let parts = [crate::partition::part_alone(&a, 0..81), crate::partition::part_alone(&a, 0..81)];
        assert_eq!(of_parts(&parts, &twice).total, device_bytes(81, a.nnz(), &twice));
        assert_eq!(beside_rows(&parts, &twice), 9 * 81 * 8);
        let recurrent = Setup { method: Method::CgSingleReduction, ..single.clone() };
        assert_eq!(demand(10, 50, 5, &recurrent).total, 400 + 44 + 8 * 10 * 4 + 5 * (12 + 12));
        let recurrent = Setup { method: Method::CgPipelined, ..recurrent };
        assert_eq!(demand(10, 50, 5, &recurrent).total, 400 + 44 + 10 * 10 * 4 + 5 * (12 + 20));
        // both matrices and halos, those of r and q, too; x, r, p, q and the diagonal in single, b, x, r and the x kept in double precision
        let mixed = Setup { precision: Precision::Mixed, ..single };
        let both = 400 + 44 + 600 + 44 + 10 * (5 * 4 + 4 * 8) + 5 * (12 + 20 + 8);
        assert_eq!(demand(10, 50, 5, &mixed), Demand { total: both, largest_buffer: 15 * 8 });
        // A and Aᵀ in both; x, r, p, q, v, h and h̄ in single, b, x, r, Aᵀ r and the x kept in double precision
        let mixed = Setup { method: Method::Lsmr, ..mixed };
        assert_eq!(device_bytes(10, 50, &mixed), 2 * (400 + 44 + 600 + 44) + 10 * (7 * 4 + 5 * 8));
    }
}
