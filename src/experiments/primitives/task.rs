//! What is timed.

use std::fmt;

use serde::{Serialize, Serializer};

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
    /// Keys with so many significant bits, sorted.
    Keys(Key, u32),
    /// Keys with so many significant bits, sorted with a number of 32 bits that belongs to each.
    Pairs(Key, u32),
    /// The permutation that sorts keys with so many significant bits.
    Permutation(Key, u32),
}

/// The type of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
}

impl Task {
    /// All that are timed.
    pub const ALL: [Self; 11] = [
        Self::Scan,
        Self::WideScan,
        Self::Indices,
        Self::Values,
        Self::Keys(Key::U32, 32),
        Self::Pairs(Key::U32, 8),
        Self::Pairs(Key::U32, 16),
        Self::Pairs(Key::U32, 32),
        Self::Permutation(Key::U32, 32),
        Self::Pairs(Key::U64, 48),
        Self::Pairs(Key::U64, 64),
    ];
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U32 => "u32",
            Self::U64 => "u64",
        })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scan => f.write_str("scan to u32"),
            Self::WideScan => f.write_str("scan to u64"),
            Self::Indices => f.write_str("indices of flags"),
            Self::Values => f.write_str("values at flags"),
            Self::Keys(key, bits) => write!(f, "sort {key} keys, {bits} bits"),
            Self::Pairs(key, bits) => write!(f, "sort {key} pairs, {bits} bits"),
            Self::Permutation(key, bits) => write!(f, "order of {key}, {bits} bits"),
        }
    }
}

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
