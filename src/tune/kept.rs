//! From what was found to the store, and from the store to a solve.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::store::{Device, Entry, FormatKey, Key, Known, Size, Store, source_hash};
use super::{Found, Launch, MAX_SEARCHED_PER_UNIT, Search, Tune, Watch};
use crate::device::Info;
use crate::kernels::{self, BASIS, CONVERSIONS, FAMILIES, PRODUCT_FILES, PRODUCTS, Shape, Tuning, general_options};
use crate::partition::Part;
use crate::real::{Precision, Real};

/// Keeps what was found on a device for later solves; tells where, or `None` if it could not be kept.
pub fn keep(store: &Store, device: &Info, found: &Found) -> Option<PathBuf> {
    store.insert(&Device::from(device), entries(device, found))
}

/// What was found, as the store has it.
fn entries(device: &Info, found: &Found) -> Vec<Entry> {
    let precision = if found.precision == Precision::F32.name() { Precision::F32 } else { Precision::F64 };
    let key = |kernel: &str| key_in(precision, device, kernel, found.order, found.nnz);
    found.kernels.iter().map(|k| Entry::new(key(&k.kernel), k.chosen.launch, k.chosen.timing)).collect()
}

/// What is known of the launch parameters of each rank's device: nothing of the host's, nor with [`Tune::Off`]. With
/// [`Tune::Full`] that is all that tuning on the rank's block finds, now or in a former run; now, it takes seconds a
/// kind of device, one after the other, and what it finds is kept. A device that fails at it is warned of, and so is an
/// end by `cancel`, after which nothing more is tuned.
pub(crate) fn of_ranks<'p>(
    devices: &[Option<Info>],
    parts: impl Iterator<Item = &'p Part<'p>>,
    (tune, precision): (Tune, Precision),
    cancel: Option<&AtomicBool>,
) -> Vec<Option<Known>> {
    if tune == Tune::Off {
        return vec![None; devices.len()];
    }
    let store = Store::open();
    let watch = Watch { cancel, progress: None };
    let mut all: BTreeMap<Device, Known> = BTreeMap::new();
    let of_rank = |(info, part): (&Option<Info>, &Part<'_>)| {
        let info = info.as_ref()?;
        let device = Device::from(info);
        let mut known = all.remove(&device).unwrap_or_else(|| store.load(&device));
        let is_cancelled = cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if tune == Tune::Full && !is_cancelled && part.n_owned() > 0 && !is_searched(&known, info, part, precision) {
            log::info!("{}: tuning all kernels on {} rows", info.name, part.n_owned());
            match super::device::block(info, part, "a solve", precision, Search::Refine, watch) {
                Ok(found) => {
                    keep(&store, info, &found);
                    known = known.with(entries(info, &found));
                }
                Err(e) => log::warn!("{}: not tuned: {e}", info.name),
            }
        }
        all.insert(device, known.clone());
        Some(known)
    };
    devices.iter().zip(parts).map(of_rank).collect()
}

/// Whether all kernels were tuned for blocks of this size but for those that not every block can have.
fn is_searched(known: &Known, device: &Info, part: &Part<'_>, precision: Precision) -> bool {
    let is_of_some =
        |kernel: &str| CONVERSIONS.contains(&kernel) || PRODUCT_FILES.iter().any(|file| file.contains(&kernel));
    let is_used = |kernel: &&str| PRODUCTS.contains(kernel) || !is_of_some(kernel);
    kernel_names()
        .filter(is_used)
        .all(|kernel| known.lookup(&key_in(precision, device, kernel, part.n_owned(), part.nnz())).is_some())
}

/// Those of a basis are not tuned.
fn kernel_names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().filter(|(_, _, kernels)| *kernels != BASIS).flat_map(|(_, _, kernels)| *kernels).copied()
}

/// How kernels are launched on a block of so many rows and entries: as is known, and as usual where it isn't.
pub(crate) fn tuning<T: Real, A: Real>(known: &Known, device: &Info, rows: usize, nnz: usize) -> Tuning {
    let mut tuning = Tuning::default_for(device, Shape::of(device));
    let launch = |kernel: &str| {
        let launch = known.lookup(&key::<T, A>(device, kernel, rows, nnz))?.entry.launch;
        is_possible::<T>(device, launch).then_some(launch)
    };
    // row blocks are cut once for all products: those that are part of an iteration decide how
    if let Some(product) = launch("spmv_dot_csr") {
        tuning.block_nnz = product.block_nnz.max(1);
        tuning.items_per_row = product.items_per_row;
    }
    let mut count = 0;
    let mut all = 0;
    for kernel in kernel_names() {
        all += 1;
        let same_blocks = |launch: &Launch| {
            (launch.block_nnz.max(1), launch.items_per_row) == (tuning.block_nnz, tuning.items_per_row)
        };
        let fits = |launch: &Launch| !PRODUCTS.contains(&kernel) || same_blocks(launch);
        if let Some(launch) = launch(kernel).filter(fits) {
            let units = device.compute_units.max(1) as usize;
            let max_groups = launch.groups_per_unit * units;
            tuning.set(kernel, kernels::Launch { group_size: launch.group_size, max_groups });
            count += 1;
        }
    }
    log::debug!("{}: {count} of {all} kernels are launched as was found in former runs", device.name);
    tuning
}

/// Whether the device can do it: files can be edited.
fn is_possible<T>(device: &Info, launch: Launch) -> bool {
    let local_bytes = launch.block_nnz.max(launch.group_size) * size_of::<T>();
    launch.group_size <= device.max_work_group
        && launch.group_size.is_power_of_two()
        && (1..=MAX_SEARCHED_PER_UNIT).contains(&launch.groups_per_unit)
        && (1..=launch.group_size).contains(&launch.items_per_row)
        && local_bytes as u64 <= device.local_memory_bytes
}

fn key_in(precision: Precision, device: &Info, kernel: &str, rows: usize, nnz: usize) -> Key {
    match (precision, device.has_f64) {
        (Precision::F64, _) => key::<f64, f64>(device, kernel, rows, nnz),
        (Precision::F32 | Precision::Mixed, true) => key::<f32, f64>(device, kernel, rows, nnz),
        (Precision::F32 | Precision::Mixed, false) => key::<f32, f32>(device, kernel, rows, nnz),
    }
}

fn key<T: Real, A: Real>(device: &Info, kernel: &str, rows: usize, nnz: usize) -> Key {
    Key {
        kernel: kernel.into(),
        element: T::CL_NAME.into(),
        sum: A::CL_NAME.into(),
        size: if PRODUCT_FILES.iter().any(|products| products.contains(&kernel)) {
            Size::of_matrix(rows, nnz)
        } else {
            Size::of_vector(rows)
        },
        driver: device.driver.clone(),
        sources: source_hash(kernels::sources(kernel)),
        options: general_options::<T, A>(device),
    }
}

/// What the formats of a block were measured on, whose hash is `block`.
pub(crate) fn format_key<T: Real, A: Real>(device: &Info, part: &Part<'_>, block: String) -> FormatKey {
    let products = ["spmv_dot_csr", "spmv_dot_sell", "spmv_dot_dictionary"];
    FormatKey {
        element: T::CL_NAME.into(),
        sum: A::CL_NAME.into(),
        rows: part.n_owned() as u64,
        entries: part.nnz() as u64,
        block,
        driver: device.driver.clone(),
        sources: source_hash(products.into_iter().flat_map(kernels::sources)),
        options: general_options::<T, A>(device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::timing::Timing;

    fn timing() -> Timing {
        Timing { median: 1e-4, low: 0.9e-4, high: 1.2e-4, runs: 10 }
    }

    fn entry(device: &Info, kernel: &str, launch: (usize, usize, usize)) -> Entry {
        with(device, kernel, launch, 1)
    }

    fn with(
        device: &Info,
        kernel: &str,
        (group_size, groups_per_unit, block_nnz): (usize, usize, usize),
        items_per_row: usize,
    ) -> Entry {
        let launch = Launch { group_size, groups_per_unit, block_nnz, items_per_row };
        Entry::new(key::<f64, f64>(device, kernel, 1000, 7000), launch, timing())
    }

    #[test]
    fn row_blocks_are_kept_too() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let device = list().devices.remove(0);
        let entries = [
            with(&device, "spmv_dot_csr", (64, 5, 512), 4),
            with(&device, "spmv_csr", (32, 6, 512), 4),
            with(&device, "residual_csr", (64, 7, 512), 1),
            with(&device, "next_iterate", (64, 2, 0), 1),
            with(&device, "dot_partial", (64, 2, 0), 128),
        ];
        store.insert(&Device::from(&device), entries).unwrap();
        let usual = Tuning::default_for(&device, Shape::of(&device));
        let tuning = tuning::<f64, f64>(&store.load(&Device::from(&device)), &device, 1000, 7000);
        let of = |kernel| tuning.launch(kernel).group_size;
        assert_eq!([of("spmv_dot_csr"), of("spmv_csr"), of("next_iterate")], [64, 32, 64]);
        assert_eq!((tuning.items_per_row, tuning.row_block()), (4, tuning.row_block().map(|_| (8, 512))));
        // cut for other row blocks; more work-items for a row than there are
        for other in ["residual_csr", "dot_partial"] {
            assert_eq!(tuning.launch(other), usual.launch(other), "{other}");
        }
    }

    #[test]
    fn what_is_kept_is_used_if_the_device_can() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let device = list().devices.remove(0);
        let units = device.compute_units as usize;
        let entries = [
            entry(&device, "dot_partial", (64, 3, 0)),
            entry(&device, "next_iterate", (1 << 30, 3, 0)),
            entry(&device, "next_residual", (64, MAX_SEARCHED_PER_UNIT + 1, 0)),
            entry(&device, "spmv_dot_csr", (64, 5, 512)),
            entry(&device, "spmv_csr", (32, 6, 512)),
            entry(&device, "residual_csr", (64, 7, 1024)),
        ];
        store.insert(&Device::from(&device), entries).unwrap();
        let usual = Tuning::default_for(&device, Shape::of(&device));
        let known = store.load(&Device::from(&device));
        let tuning = tuning::<f64, f64>(&known, &device, 1000, 7000);
        let of = |kernel| (tuning.launch(kernel).group_size, tuning.launch(kernel).max_groups);
        assert_eq!(
            (of("dot_partial"), of("spmv_dot_csr"), of("spmv_csr")),
            ((64, 3 * units), (64, 5 * units), (32, 6 * units))
        );
        assert_eq!(tuning.block_nnz, 512);
        for other in ["next_iterate", "next_residual", "next_direction"] {
            assert_eq!(tuning.launch(other), usual.launch(other), "{other}");
        }
        // cut for other row blocks
        assert_eq!(tuning.launch("residual_csr"), usual.launch("residual_csr"));
        // other precision, other size, an empty store
        for tuning in [
            super::tuning::<f32, f64>(&known, &device, 1000, 7000),
            super::tuning::<f64, f64>(&known, &device, 1 << 20, 1 << 23),
            super::tuning::<f64, f64>(
                &Store::at(dir.path().join("none")).load(&Device::from(&device)),
                &device,
                1000,
                7000,
            ),
        ] {
            assert_eq!(tuning, usual);
        }
    }
}
