//! Where things are in the memory in which a panel travels.

use std::ops::Range;

use crate::kernels::lu_panel::HEAD;

/// Room for a panel of m rows and w columns, and what belongs to its diagonal block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) m: usize,
    pub(super) w: usize,
}

impl Room {
    /// What a device tells of its factorisation.
    pub(super) fn told(self) -> Range<usize> {
        0..HEAD + self.w
    }

    /// The diagonal block, w × w.
    pub(super) fn block(self) -> Range<usize> {
        self.behind(HEAD + self.w, self.w * self.w)
    }

    /// The inverse of L there,
    pub(super) fn lower(self) -> Range<usize> {
        self.behind(self.block().end, self.w * self.w)
    }

    /// that of U, or of Lᵀ,
    pub(super) fn upper(self) -> Range<usize> {
        self.behind(self.lower().end, self.w * self.w)
    }

    /// and the panel, m × w.
    pub(super) fn panel(self) -> Range<usize> {
        self.behind(self.upper().end, self.m * self.w)
    }

    fn behind(self, start: usize, len: usize) -> Range<usize> {
        start..start + len
    }
}
