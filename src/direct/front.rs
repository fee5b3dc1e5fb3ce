//! The front of a supernode, and what has to be done with it.

/// The size of a front: columns of its own, and rows and columns below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) own: usize,
    pub(super) below: usize,
}

impl Size {
    /// Rows of the front.
    pub(super) fn order(self) -> usize {
        self.own + self.below
    }
}

/// The front of a supernode: a dense matrix, of which each kind of elimination keeps what it needs, in an order of its own.
pub(super) struct Front<'a> {
    pub(super) size: Size,
    /// What becomes of the own columns, and of the own rows where these are others: a part of the factor.
    pub(super) values: &'a mut [f64],
    /// What is left to the parent.
    pub(super) rest: &'a mut [f64],
}

/// Dense elimination of the own columns of fronts.
pub(super) trait Elimination {
    /// What is told of each own column.
    type Pivot: Copy + Default + std::fmt::Debug;

    /// Elements of the factor that come of a front.
    fn elements(size: Size) -> usize;

    /// Elements that are left to its parent.
    fn rest(size: Size) -> usize;

    /// Multiplications and additions to eliminate its columns.
    fn flops(size: Size) -> f64;

    /// The element at these places within the front.
    fn at<'f>(front: &'f mut Front<'_>, i: usize, j: usize) -> &'f mut f64;

    /// Adds what another front has left, whose rows and columns have these places here, rising.
    fn add(front: &mut Front<'_>, rest: &[f64], places: &[u32]);

    /// Eliminates the own columns; what is left of the others is the Schur complement. `perturbed` is told columns whose pivots were
    /// replaced.
    fn eliminate(&mut self, front: &mut Front<'_>, pivots: &mut [Self::Pivot], perturbed: impl FnMut(usize));

    /// The row, within its supernode, with which the one of this pivot changed places.
    fn row_of(pivot: Self::Pivot) -> usize;
}
