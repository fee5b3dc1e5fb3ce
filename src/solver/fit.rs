//! Whether the blocks of a system fit into their devices, before anything is moved there.

use std::collections::BTreeMap;

use super::{Method, Precision, Precond, Setup};
use crate::device::{Choice, Info, Pick, Selection, select};
use crate::error::{Error, Result};
use crate::kernels::MAX_COUNT;
use crate::operator::opencl::DeviceBlock;
use crate::partition::Part;

/// What a block of rows takes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Demand {
    total: u64,
    /// The longest array that can't be cut into bands, as entries of the matrix can.
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

/// Bytes a row of the vectors that a rank keeps: see [`Workspace`](super::workspace::Workspace) and
/// [`Iterate`](super::iterate::Iterate); and the diagonal.
fn vector_bytes(setup: &Setup) -> u64 {
    let jacobi = u64::from(setup.precond == Precond::Jacobi);
    let others = match setup.method {
        Method::CgClassic => jacobi, // z
        method => method.recurrences(),
    };
    let of_iterate = match setup.precision {
        Precision::F64 => 2 * 8,
        Precision::F32 => 2 * 4,
        Precision::Mixed => 4 * 8,
    };
    (4 + others + jacobi) * setup.precision.bytes() + of_iterate
}

/// Bytes of the rows, compressed.
fn row_bytes(rows: u64, nnz: u64, setup: &Setup) -> u64 {
    matrices(setup).iter().map(|real| nnz * (4 + real) + 4 * (rows + 1)).sum()
}

/// For `rows` rows with `nnz` entries that exchange `halo` elements with others.
fn demand(rows: u64, nnz: u64, halo: u64, setup: &Setup) -> Demand {
    // indices and message of each matrix's vector, and of the iteration's vectors r, q and those by recurrence
    let vectors = (2 + setup.method.recurrences()) * halo * setup.precision.bytes();
    let halos = matrices(setup).iter().map(|real| halo * (4 + 2 * real)).sum::<u64>() + vectors;
    let real = matrices(setup).iter().copied().max().unwrap_or_default();
    Demand {
        total: row_bytes(rows, nnz, setup) + vector_bytes(setup) * rows + halos,
        largest_buffer: ((rows + halo) * real).max(4 * (rows + 1)),
    }
}

fn of_part(part: &Part<'_>, setup: &Setup) -> Demand {
    demand(part.n_owned() as u64, part.nnz() as u64, part.halo.len.max(part.halo.send.len()) as u64, setup)
}

/// Memory that a system of `rows` rows and `nnz` entries takes on a device that holds all of it, in bytes: the
/// matrix, the preconditioner and the vectors of the method.
///
/// ```
/// use declive::Setup;
/// use declive::solver::device_bytes;
///
/// // an entry's column and value, a row's pointer, and six vectors
/// assert_eq!(device_bytes(10, 50, &Setup::default()), 50 * 12 + 11 * 4 + 6 * 10 * 8);
/// ```
#[must_use]
pub fn device_bytes(rows: usize, nnz: usize, setup: &Setup) -> u64 {
    demand(rows as u64, nnz as u64, 0, setup).total
}

/// Memory that the rank of `part` takes beside its rows: vectors, and what belongs to the halo.
pub(super) fn beside_rows(part: &Part<'_>, setup: &Setup) -> u64 {
    let (rows, nnz) = (part.n_owned() as u64, part.nnz() as u64);
    of_part(part, setup).total - row_bytes(rows, nnz, setup)
}

fn fits(demand: Demand, device: &Info) -> bool {
    demand.total <= device.memory_bytes && demand.largest_buffer <= device.max_buffer_bytes
}

/// Checks every rank that is a device; a device of several ranks must hold them all.
///
/// # Errors
/// [`Error::TooManyElements`] for a block beyond 32-bit indices; [`Error::OutOfDeviceMemory`] for the first device that is too
/// small, with a choice of devices that would do.
pub(super) fn check(parts: &[Part<'_>], selection: &Selection, setup: &Setup) -> Result<()> {
    let mut on_device: BTreeMap<usize, Demand> = BTreeMap::new();
    for (part, device) in parts.iter().zip(&selection.ranks) {
        let Some(device) = device else { continue };
        let elements = [
            ("rows, with its halo,", part.n_owned() + part.halo.len, MAX_COUNT),
            ("entries", part.nnz(), DeviceBlock::<f64>::MAX_NNZ),
        ];
        if let Some((what, count, limit)) = elements.into_iter().find(|(_, count, limit)| count > limit) {
            let (device, what) = (device.name.clone(), format!("a share of {count} {what}"));
            return Err(Error::TooManyElements { device, what, limit });
        }
        let here = of_part(part, setup);
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
            device: device.name.clone(),
            what: format!(
                "{} a share of {} rows and {} entries",
                if in_all { "in all," } else { "a vector of" },
                part.n_owned(),
                part.nnz()
            ),
            need_bytes,
            limit,
            have_bytes,
            hint: hint(parts, selection, setup),
        });
    }
    Ok(())
}

/// A choice that would do.
fn hint(parts: &[Part<'_>], selection: &Selection, setup: &Setup) -> String {
    let rows: u64 = parts.iter().map(|p| p.n_owned() as u64).sum();
    let nnz: u64 = parts.iter().map(|p| p.nnz() as u64).sum();
    let shared_by = |devices: &[Info], setup: &Setup| {
        let k = devices.len().max(1) as u64;
        let halo = if k == 1 { 0 } else { rows.div_ceil(k) };
        devices.iter().all(|d| fits(demand(rows.div_ceil(k), nnz.div_ceil(k), halo, setup), d))
    };
    let used: Vec<Info> = selection.ranks.iter().flatten().cloned().collect();
    let all = select(&Choice::List(vec![Pick::All]), setup.precision.needs_f64());
    let all: Vec<Info> = all.map(|s| s.ranks.into_iter().flatten().collect()).unwrap_or_default();
    let single = Setup { precision: Precision::F32, ..setup.clone() };
    if all.len() > used.len() && shared_by(&all, setup) {
        let numbers: Vec<_> = all.iter().map(|d| d.index.to_string()).collect();
        format!("it would fit with --devices {}", numbers.join(","))
    } else if setup.precision.needs_f64() && shared_by(&used, &single) {
        "it would fit with --precision f32, or with --devices host".into()
    } else {
        "no choice of the devices here is large enough; --devices host works in the host's memory".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_by_hand() {
        // 10 rows, 50 entries, no halo: 50·12 + 4·11 + 6 vectors·10·8
        let d = demand(10, 50, 0, &Setup::default());
        assert_eq!(d, Demand { total: 600 + 44 + 480, largest_buffer: 80 });
        let single = Setup { precision: Precision::F32, precond: Precond::Jacobi, ..Setup::default() };
        assert_eq!(demand(10, 50, 5, &single).total, 400 + 44 + 7 * 10 * 4 + 5 * (12 + 8));
        let recurrent = Setup { method: Method::CgSingleReduction, ..single.clone() };
        assert_eq!(demand(10, 50, 5, &recurrent).total, 400 + 44 + 8 * 10 * 4 + 5 * (12 + 12));
        let recurrent = Setup { method: Method::CgPipelined, ..recurrent };
        assert_eq!(demand(10, 50, 5, &recurrent).total, 400 + 44 + 10 * 10 * 4 + 5 * (12 + 20));
        // both matrices and halos, those of r and q, too; x, r, p, q and the diagonal in single, b, x, r and the x kept in double precision
        let mixed = Setup { precision: Precision::Mixed, ..single };
        let both = 400 + 44 + 600 + 44 + 10 * (5 * 4 + 4 * 8) + 5 * (12 + 20 + 8);
        assert_eq!(demand(10, 50, 5, &mixed), Demand { total: both, largest_buffer: 15 * 8 });
    }
}
