//! What is kept of kernels: their best launch parameters.

use serde::{Deserialize, Serialize};

use super::now;
use super::ranks::Kept;
use crate::cache::Digest;
use crate::timing::Timing;
use crate::tune::Launch;

/// The class of a size: sizes of one class differ by less than a factor of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Size {
    /// ⌊log₂⌋ of the number of rows, or of elements of a vector; 0 for none.
    pub rows_log2: u32,
    /// ⌊log₂⌋ of the number of entries, for products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_log2: Option<u32>,
}

impl Size {
    /// The class of a vector.
    #[must_use]
    pub fn of_vector(elements: usize) -> Self {
        Self { rows_log2: elements.max(1).ilog2(), entries_log2: None }
    }

    /// The class of a matrix.
    #[must_use]
    pub fn of_matrix(rows: usize, entries: usize) -> Self {
        Self { entries_log2: Some(entries.max(1).ilog2()), ..Self::of_vector(rows) }
    }

    /// Whether what was found for this size is used for `other`, unless something nearer is known: one step away at most in
    /// rows and in entries.
    #[must_use]
    pub fn serves(self, other: Self) -> bool {
        self.steps(other).is_some()
    }

    /// The sum of the steps in rows and in entries, if neither has more than one.
    pub(super) fn steps(self, other: Self) -> Option<u32> {
        let entries = match (self.entries_log2, other.entries_log2) {
            (Some(one), Some(other)) => one.abs_diff(other),
            (None, None) => 0,
            _ => return None,
        };
        let rows = self.rows_log2.abs_diff(other.rows_log2);
        (rows <= 1 && entries <= 1).then_some(rows + entries)
    }
}

/// All that the best launch parameters of a kernel depend on, beside the device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Name of the kernel.
    pub kernel: String,
    /// Type of the elements in OpenCL C.
    pub element: String,
    /// Type of the sums in OpenCL C.
    pub sum: String,
    /// How much there is to do.
    #[serde(flatten)]
    pub size: Size,
    /// Version of the device's driver.
    pub driver: String,
    /// [`source_hash`] of what the kernel is compiled from.
    pub sources: String,
    /// Options of the compiler, but for those that set launch parameters.
    pub options: String,
}

impl Key {
    pub(super) fn differs_in_size_only(&self, other: &Self) -> bool {
        self.all_but_size() == other.all_but_size()
    }

    fn all_but_size(&self) -> [&str; 6] {
        let Self { kernel, element, sum, size: _, driver, sources, options } = self;
        [kernel, element, sum, driver, sources, options]
    }
}

/// A hash of kernel sources for [`Key::sources`]: the first 16 hexadecimal digits of SHA-256 over the length and text of
/// each part.
#[must_use]
pub fn source_hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    format!("{:.16}", Digest::of(parts.into_iter().map(str::as_bytes)))
}

/// What is known of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it holds.
    #[serde(flatten)]
    pub key: Key,
    /// The best launch parameters. They come from a file: whoever uses them checks them against the device's limits.
    pub launch: Launch,
    /// The time with them.
    pub timing: Timing,
    /// When it was inserted, in seconds since 1970.
    pub inserted: u64,
}

impl Entry {
    /// An entry of now.
    #[must_use]
    pub fn new(key: Key, launch: Launch, timing: Timing) -> Self {
        Self { key, launch, timing, inserted: now() }
    }
}

impl Kept for Entry {
    type Key = Key;
    const MOST: usize = 512;

    fn key(&self) -> &Key {
        &self.key
    }

    fn inserted(&mut self) -> &mut u64 {
        &mut self.inserted
    }

    fn makes_sense(&self) -> bool {
        let times = [self.timing.low, self.timing.median, self.timing.high];
        self.launch.group_size.is_power_of_two()
            && self.launch.groups_per_unit > 0
            && self.launch.items_per_row.is_power_of_two()
            && times.iter().all(|time| time.is_finite() && *time >= 0.0)
    }
}

/// An entry that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Whether it is of the size class asked for, rather than of a neighbour.
    pub exact: bool,
}
