//! How fast scans, compaction and sorting by key are on a device, and the host's own way beside them.

mod case;
mod on_device;

use std::fmt;

use serde::{Serialize, Serializer};

pub use case::Case;
pub use on_device::{Launch, Measured, OnDevice};

/// Something to do with an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// Prefix sums of 32 bits.
    Scan,
    /// Prefix sums of 64 bits, of numbers of 32 bits.
    WideScan,
    /// The indices of flags that are set, half of them.
    Indices,
    /// The values at flags that are set, half of them.
    Values,
    /// Keys with so many significant bits, sorted. They are numbers of 64 bits if that is more than 32, else of 32.
    Keys(u32),
    /// Keys with so many significant bits, sorted with a number of 32 bits that belongs to each.
    Pairs(u32),
    /// The permutation that sorts keys with so many significant bits.
    Permutation(u32),
}

impl Task {
    /// All that are timed.
    pub const ALL: [Self; 11] = [
        Self::Scan,
        Self::WideScan,
        Self::Indices,
        Self::Values,
        Self::Keys(32),
        Self::Pairs(8),
        Self::Pairs(16),
        Self::Pairs(32),
        Self::Permutation(32),
        Self::Pairs(48),
        Self::Pairs(64),
    ];

    /// Whether keys are sorted.
    fn is_sort(self) -> bool {
        matches!(self, Self::Keys(_) | Self::Pairs(_) | Self::Permutation(_))
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = |bits| if bits > 32 { "u64" } else { "u32" };
        match *self {
            Self::Scan => f.write_str("scan to u32"),
            Self::WideScan => f.write_str("scan to u64"),
            Self::Indices => f.write_str("indices of flags"),
            Self::Values => f.write_str("values at flags"),
            Self::Keys(bits) => write!(f, "sort {} keys, {bits} bits", key(bits)),
            Self::Pairs(bits) => write!(f, "sort {} pairs, {bits} bits", key(bits)),
            Self::Permutation(bits) => write!(f, "order of {}, {bits} bits", key(bits)),
        }
    }
}

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
