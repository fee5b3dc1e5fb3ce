//! What tuning found, kept between runs: one file a device.
//!
//! A file holds entries, each the launch parameters of one kernel with their time, under a [`Key`] of all that they
//! depend on beside the device; the formats that were measured on blocks of rows ([`FormatEntry`]); and, of several devices
//! of which this is the first, how long they take to synchronise ([`LatencyEntry`]), how fast each was in a solve
//! ([`IterationTimeEntry`]), and how long methods took for a system ([`SolveEntry`]); and which tiles of dense products
//! ([`ProductEntry`]) and which methods for tridiagonal systems ([`TridiagonalEntry`]) were the fastest. It is JSON: sorted, so that it can
//! be read and compared. It is replaced whole, under a lock of the operating system that ends with its process. So it can be read without a lock; what processes insert at the same time is all kept; and one that
//! is killed leaves the former file or the new one.
//!
//! ```
//! # use declive::tune::store::{Device, Entry, Key, Size, Store, source_hash};
//! # use declive::tune::{Launch, Timing};
//! # let dir = std::env::temp_dir().join(format!("declive-doc-{}", std::process::id()));
//! let store = Store::at(&dir); // or Store::open(), in the user's cache directory
//! let device = Device { name: "GPU".into(), vendor: "maker".into(), platform: "OpenCL".into(), compute_units: 16 };
//! let key = Key {
//!     kernel: "spmv_csr".into(),
//!     element: "double".into(),
//!     sum: "double".into(),
//!     size: Size::of_matrix(1_000_000, 6_940_000),
//!     driver: "1.0".into(),
//!     sources: source_hash(["kernel void spmv_csr() {}"]),
//!     options: "-cl-std=CL1.2".into(),
//! };
//! let launch = Launch { group_size: 256, groups_per_unit: 8, block_nnz: 2048, items_per_row: 1 };
//! let timing = Timing { median: 4.1e-5, low: 4.0e-5, high: 4.3e-5, runs: 20 };
//! store.insert(&device, [Entry::new(key.clone(), launch, timing)]);
//!
//! let larger = Key { size: Size::of_matrix(1_100_000, 7_600_000), ..key };
//! let known = store.load(&device);
//! let hit = known.lookup(&larger).expect("sizes within a factor of two");
//! assert_eq!((hit.entry.launch, hit.exact), (launch, false));
//! # std::fs::remove_dir_all(dir).unwrap();
//! ```

mod device;
mod formats;
mod launches;
mod products;
mod ranks;
mod solves;
mod tridiagonal;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize};

pub use self::device::Device;
pub use self::formats::{FormatEntry, FormatKey, FormatTime};
pub use self::launches::{Entry, Hit, Key, Size, source_hash};
pub use self::products::{ProductEntry, ProductKey};
use self::ranks::Kept;
pub(crate) use self::ranks::unusual;
pub use self::ranks::{IterationTimeEntry, IterationTimeKey, LatencyEntry, LatencyKey, kind, kinds};
pub(crate) use self::solves::MOST_TIMES;
pub use self::solves::{SolveEntry, SolveKey, SolveTime};
pub use self::tridiagonal::{TridiagonalEntry, TridiagonalKey};
use crate::cache;

/// The version of the files.
const VERSION: u64 = 1;

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The device.
    pub device: Device,
    /// The entries, sorted by their keys, which are different.
    pub entries: Vec<Entry>,
    /// The formats of blocks, sorted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub formats: Vec<FormatEntry>,
    /// How long this device and others take to synchronise, sorted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub latencies: Vec<LatencyEntry>,
    /// How fast this device and others were in solves, sorted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub iteration_times: Vec<IterationTimeEntry>,
    /// How long methods took for systems, sorted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub solves: Vec<SolveEntry>,
    /// The tiles of products of dense matrices, sorted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub products: Vec<ProductEntry>,
    /// The fastest methods for batches of tridiagonal systems, sorted likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub tridiagonal: Vec<TridiagonalEntry>,
}

impl Known {
    /// With `entries` in the place of those of the same keys.
    #[must_use]
    pub fn with(mut self, entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut all: BTreeMap<Key, Entry> = self.entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        all.extend(entries.into_iter().map(|entry| (entry.key.clone(), entry)));
        self.entries = all.into_values().collect();
        self
    }

    /// The entry for `key`; or, where there is none, the one of the nearest size class, if it is one step away at most in
    /// rows and in entries: the newest of several, then the smallest. O(entries).
    #[must_use]
    pub fn lookup(&self, key: &Key) -> Option<Hit<'_>> {
        let steps = |entry: &Entry| key.size.steps(entry.key.size).filter(|_| key.differs_in_size_only(&entry.key));
        let near = self.entries.iter().filter_map(|entry| Some((steps(entry)?, entry)));
        let (steps, entry) = near.min_by_key(|(steps, entry)| (*steps, u64::MAX - entry.inserted, entry.key.size))?;
        Some(Hit { entry, exact: steps == 0 })
    }

    /// Nothing.
    fn nothing(device: &Device) -> Self {
        let (entries, formats, latencies, iteration_times, solves) = Default::default();
        let (products, tridiagonal) = Default::default();
        Self { device: device.clone(), entries, formats, latencies, iteration_times, solves, products, tridiagonal }
    }

    /// How long these devices take to synchronise. O(log latencies).
    #[must_use]
    pub fn latency(&self, key: &LatencyKey) -> Option<&LatencyEntry> {
        found(&self.latencies, key)
    }

    /// How fast these devices solved this system. O(log iteration times).
    #[must_use]
    pub fn iteration_time(&self, key: &IterationTimeKey) -> Option<&IterationTimeEntry> {
        found(&self.iteration_times, key)
    }

    /// How long methods took for this system. O(log solves).
    #[must_use]
    pub fn solve(&self, key: &SolveKey) -> Option<&SolveEntry> {
        found(&self.solves, key)
    }

    /// The tiles of products of dense matrices.
    #[must_use]
    pub fn product(&self, key: &ProductKey) -> Option<&ProductEntry> {
        found(&self.products, key)
    }

    /// The fastest method for such a batch of tridiagonal systems.
    #[must_use]
    pub fn tridiagonal(&self, key: &TridiagonalKey) -> Option<&TridiagonalEntry> {
        found(&self.tridiagonal, key)
    }

    /// What was measured on this very block. O(log formats).
    #[must_use]
    pub fn format(&self, key: &FormatKey) -> Option<&FormatEntry> {
        found(&self.formats, key)
    }
}

/// Among sorted entries, the one for `key`.
fn found<'a, E: Kept>(all: &'a [E], key: &E::Key) -> Option<&'a E> {
    let found = all.binary_search_by(|entry| entry.key().cmp(key)).ok()?;
    Some(&all[found])
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Content {
    version: u64,
    #[serde(flatten)]
    known: Known,
}

/// Entries of a kind that this version does not know are left out, whatever they are.
fn known<'de, D: Deserializer<'de>, E: Kept>(from: D) -> Result<Vec<E>, D::Error> {
    let all = match serde_json::Value::deserialize(from)? {
        serde_json::Value::Array(all) => all,
        _ => Vec::new(),
    };
    let known = all.into_iter().filter_map(|value| serde_json::from_value::<E>(value).ok());
    Ok(known.filter(E::makes_sense).collect())
}

/// Why a file gives no entries.
enum Unreadable {
    /// A later version of declive wrote it.
    Newer(u64),
    /// It is not what this module writes.
    Damaged(String),
    /// The system does not give it.
    Io(io::Error),
}

/// The files of all devices. No operation fails: what can't be read or written is warned of once, and the store goes on
/// as if it were empty.
#[derive(Debug, Clone)]
pub struct Store {
    dir: Option<PathBuf>,
}

impl Store {
    /// The store in the user's cache directory. Without one, it is empty, and forgets what it is given. The environment
    /// variable `DECLIVE_CACHE_DIR` names another directory, or if it is empty, none.
    #[must_use]
    pub fn open() -> Self {
        Self { dir: cache::directory().map(|dir| dir.join("tuning")) }
    }

    /// A store that has nothing, and forgets what it is given.
    #[must_use]
    pub fn none() -> Self {
        Self { dir: None }
    }

    /// The store in `dir`, which is made when it is needed.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()) }
    }

    /// What is known of `device`. Reads its file.
    #[must_use]
    pub fn load(&self, device: &Device) -> Known {
        let nothing = || Known::nothing(device);
        self.path(device).map_or_else(nothing, |path| {
            read_of(&path, device).unwrap_or_else(|why| {
                why.warn(&path);
                nothing()
            })
        })
    }

    /// Adds `entries`, in the place of those with the same keys, and returns the file that has them now: `None` if they
    /// could not be kept. An entry without a finite time or with an impossible size of groups is left out.
    ///
    /// A device has 512 entries at most. Beyond, the oldest go; first of those that are of other drivers or sources than
    /// the new ones.
    ///
    /// Waits while another process inserts. A damaged file is replaced, one of a later version of declive is not.
    pub fn insert(&self, device: &Device, entries: impl IntoIterator<Item = Entry>) -> Option<PathBuf> {
        self.add(Known { entries: entries.into_iter().collect(), ..Known::nothing(device) })
    }

    /// The same for the formats of blocks, of which a device has 256 at most: beyond, the oldest go.
    pub fn insert_formats(&self, device: &Device, formats: impl IntoIterator<Item = FormatEntry>) -> Option<PathBuf> {
        self.add(Known { formats: formats.into_iter().collect(), ..Known::nothing(device) })
    }

    /// The same for how long `device` and others take to synchronise, of which a device has 64 at most.
    pub fn insert_latency(&self, device: &Device, latency: LatencyEntry) -> Option<PathBuf> {
        self.add(Known { latencies: vec![latency], ..Known::nothing(device) })
    }

    /// The same for how fast `device` and others were in a solve, of which a device has 256 at most.
    pub fn insert_iteration_time(&self, device: &Device, time: IterationTimeEntry) -> Option<PathBuf> {
        self.add(Known { iteration_times: vec![time], ..Known::nothing(device) })
    }

    /// The same for how long methods took for a system, of which a device has 256 at most.
    pub fn insert_solve(&self, device: &Device, solve: SolveEntry) -> Option<PathBuf> {
        self.add(Known { solves: vec![solve], ..Known::nothing(device) })
    }

    /// The same for the tiles of products of dense matrices, of which a device has 16 at most.
    pub fn insert_product(&self, device: &Device, product: ProductEntry) -> Option<PathBuf> {
        self.add(Known { products: vec![product], ..Known::nothing(device) })
    }

    /// The same for the fastest method for a batch of tridiagonal systems, of which a device has 256 at most.
    pub fn insert_tridiagonal(&self, device: &Device, fastest: TridiagonalEntry) -> Option<PathBuf> {
        self.add(Known { tridiagonal: vec![fastest], ..Known::nothing(device) })
    }

    fn add(&self, new: Known) -> Option<PathBuf> {
        let path = self.path(&new.device)?;
        match self.locked(|| merge(&path, new)) {
            Ok(Ok(())) => Some(path),
            Ok(Err(why)) => {
                why.warn(&path);
                None
            }
            Err((place, e)) => {
                warn_unwritable(&place, &e);
                None
            }
        }
    }

    /// What is known of all devices, sorted.
    #[must_use]
    pub fn list(&self) -> Vec<Known> {
        let mut all: Vec<_> = self
            .files()
            .iter()
            .filter_map(|path| match read(path) {
                Ok(Some(known)) => Some(known),
                Ok(None) => None, // removed meanwhile
                Err(why) => {
                    why.warn(path);
                    None
                }
            })
            .collect();
        all.sort_by(|one, other| one.device.cmp(&other.device));
        all
    }

    /// Forgets everything, also what can't be read; returns the number of files that were removed.
    pub fn clear(&self) -> usize {
        if self.files().is_empty() {
            return 0;
        }
        let remove = |path: &PathBuf| match fs::remove_file(path) {
            Ok(()) => true,
            Err(e) => {
                warn_unwritable(path, &e);
                false
            }
        };
        match self.locked(|| self.files().iter().filter(|path| remove(path)).count()) {
            Ok(count) => count,
            Err((place, e)) => {
                warn_unwritable(&place, &e);
                0
            }
        }
    }

    /// The file for `device`, whether it is there or not.
    #[must_use]
    pub fn path(&self, device: &Device) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(device.file_name()))
    }

    /// All files of devices.
    fn files(&self) -> Vec<PathBuf> {
        let Some(dir) = &self.dir else { return Vec::new() };
        let files = match fs::read_dir(dir) {
            Ok(files) => files,
            Err(e) if is_absent(&e) => return Vec::new(),
            Err(e) => {
                Unreadable::Io(e).warn(dir);
                return Vec::new();
            }
        };
        files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
    }

    /// Does `work` while no other process or thread does such work here; or says what could not be locked, and why.
    fn locked<R>(&self, work: impl FnOnce() -> R) -> Result<R, (PathBuf, io::Error)> {
        let Some(dir) = &self.dir else { return Ok(work()) };
        let fail = |e| (dir.clone(), e);
        fs::create_dir_all(dir).map_err(fail)?;
        // The file stays: who removes it may part two processes that believe to have the same lock.
        let file = OpenOptions::new().create(true).append(true).open(dir.join("lock")).map_err(fail)?;
        let mut lock = fd_lock::RwLock::new(file);
        let _guard = lock.write().map_err(fail)?;
        Ok(work())
    }
}

impl Unreadable {
    fn warn(&self, path: &Path) {
        match self {
            Self::Newer(version) => cache::warn_once(
                path,
                format_args!(
                    "tuning of version {version}, where this declive knows {VERSION}, is not used; update declive, or \
                     set DECLIVE_CACHE_DIR to another directory"
                ),
            ),
            Self::Damaged(why) => cache::warn_once(
                path,
                format_args!("damaged tuning is not used: {why}; tune again, which replaces the file, or remove it"),
            ),
            Self::Io(e) => cache::warn_once(
                path,
                format_args!(
                    "tuning can't be read or written: {e}; mend its permissions, or set DECLIVE_CACHE_DIR to another \
                     directory"
                ),
            ),
        }
    }
}

fn warn_unwritable(path: &Path, e: &io::Error) {
    cache::warn_once(
        path,
        format_args!(
            "tuning can't be changed: {e}; mend the directory's permissions, or set DECLIVE_CACHE_DIR to another directory"
        ),
    );
}

/// Whether there is nothing, rather than something that can't be read. Whoever writes there will hear more.
fn is_absent(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The content of the file `path`, if there is one.
fn read(path: &Path) -> Result<Option<Known>, Unreadable> {
    #[derive(Deserialize)]
    struct Head {
        version: u64,
    }
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if is_absent(&e) => return Ok(None),
        Err(e) => return Err(Unreadable::Io(e)),
    };
    let damaged = |e: serde_json::Error| Unreadable::Damaged(e.to_string());
    match serde_json::from_slice::<Head>(&text).map_err(damaged)?.version {
        VERSION => {}
        newer if newer > VERSION => return Err(Unreadable::Newer(newer)),
        older => return Err(Unreadable::Damaged(format!("its version is {older}"))),
    }
    let Content { mut known, .. } = serde_json::from_slice(&text).map_err(damaged)?;
    if let Some(entry) = known.entries.iter().find(|entry| !entry.makes_sense()) {
        return Err(Unreadable::Damaged(format!("the entry for {} makes no sense", entry.key.kernel)));
    }
    // Files can be edited.
    sort(&mut known.entries);
    sort(&mut known.formats);
    sort(&mut known.latencies);
    sort(&mut known.iteration_times);
    sort(&mut known.solves);
    sort(&mut known.products);
    sort(&mut known.tridiagonal);
    Ok(Some(known))
}

fn sort<E: Kept>(entries: &mut Vec<E>) {
    entries.sort_by(|one, other| one.key().cmp(other.key()));
    entries.dedup_by(|one, other| one.key() == other.key());
}

/// What is in the file `path`, which must be of `device`.
fn read_of(path: &Path, device: &Device) -> Result<Known, Unreadable> {
    match read(path)? {
        Some(known) if known.device == *device => Ok(known),
        Some(other) => Err(Unreadable::Damaged(format!("it is of another device, {}", other.device.name))),
        None => Ok(Known::nothing(device)),
    }
}

/// Writes what is in the file `path` and what is new.
fn merge(path: &Path, new: Known) -> Result<(), Unreadable> {
    let device = new.device;
    let old = match read_of(path, &device) {
        Ok(known) => known,
        Err(why @ Unreadable::Damaged(_)) => {
            why.warn(path);
            Known::nothing(&device)
        }
        Err(why) => return Err(why),
    };
    let made_from = |entry: &Entry| (entry.key.driver.clone(), entry.key.sources.clone());
    let in_use: BTreeSet<_> = new.entries.iter().filter(|entry| entry.makes_sense()).map(made_from).collect();
    let entries = merged(old.entries, new.entries, |entry| in_use.contains(&made_from(entry)));
    let formats = merged(old.formats, new.formats, |_| true);
    let latencies = merged(old.latencies, new.latencies, |_| true);
    let iteration_times = merged(old.iteration_times, new.iteration_times, |_| true);
    let solves = merged(old.solves, new.solves, |_| true);
    let products = merged(old.products, new.products, |_| true);
    let tridiagonal = merged(old.tridiagonal, new.tridiagonal, |_| true);
    let known = Known { device, entries, formats, latencies, iteration_times, solves, products, tridiagonal };
    let content = Content { version: VERSION, known };
    let mut text = serde_json::to_vec_pretty(&content).map_err(|e| Unreadable::Io(e.into()))?;
    text.push(b'\n');
    cache::write(path, &text).map_err(Unreadable::Io)
}

/// Entries with new ones in the place of those of equal keys. Of too many, the newest stay, and first of all those that are in
/// use.
fn merged<E: Kept>(old: Vec<E>, new: Vec<E>, is_in_use: impl Fn(&E) -> bool) -> Vec<E> {
    let mut all: BTreeMap<_, _> = old.into_iter().map(|entry| (entry.key().clone(), entry)).collect();
    // Not older than any other, even if the clock was set back.
    let inserted = all.values_mut().map(|entry| *entry.inserted()).fold(now(), u64::max);
    for mut entry in new.into_iter().filter(E::makes_sense) {
        *entry.inserted() = inserted;
        all.insert(entry.key().clone(), entry);
    }
    let mut all: Vec<_> = all.into_values().collect();
    if all.len() > E::MOST {
        all.sort_by_cached_key(|entry| (is_in_use(entry), *entry.clone().inserted()));
        all.drain(..all.len() - E::MOST);
        sort(&mut all);
    }
    all
}
