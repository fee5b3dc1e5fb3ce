//! What a rank can do with its slab, on whatever device.

use std::ops::Range;

use super::grid::{Component, Half};
use super::slab::{LayerName, Slab};
use crate::comm::Message;
use crate::error::Result;
use crate::real::Real;

/// A source in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Driven {
    /// Its place among all sources.
    pub(crate) number: usize,
    pub(crate) component: Component,
    /// First and last cell.
    pub(crate) from: [usize; 3],
    pub(crate) to: [usize; 3],
    pub(crate) hard: bool,
    pub(crate) value: f64,
}

/// Cells of a slab in a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) first: usize,
    pub(crate) size: [usize; 3],
    strides: [usize; 3],
}

impl Cells {
    /// Where they are.
    pub(crate) fn all(self) -> impl Iterator<Item = usize> {
        let [nx, ny, nz] = self.size;
        let [sx, sy, sz] = self.strides;
        (0..nz)
            .flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| self.first + x * sx + y * sy + z * sz)))
    }
}

impl Driven {
    /// Its cells in these planes of a slab, if there are any.
    pub(crate) fn in_planes(&self, slab: &Slab, planes: &Range<usize>) -> Option<Cells> {
        let across = slab.grid.slab_axis();
        let (mut from, mut to) = (self.from, self.to);
        let [first, end] = [planes.start, planes.end].map(|plane| plane + slab.planes.start);
        from[across] = from[across].max(first);
        to[across] = to[across].min(end.checked_sub(1)?);
        if from[across] > to[across] {
            return None;
        }
        from[across] -= slab.planes.start;
        to[across] -= slab.planes.start;
        let strides = [0, 1, 2].map(|axis| slab.grid.stride(axis));
        let first = from.iter().zip(strides).map(|(at, stride)| at * stride).sum();
        Some(Cells { first, size: [0, 1, 2].map(|axis| to[axis] - from[axis] + 1), strides })
    }
}

/// A probe in a rank's slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnProbe {
    /// Its place among all probes.
    pub(crate) number: usize,
    pub(crate) component: Component,
    /// Its cell in the slab.
    pub(crate) cell: usize,
}

/// A rank's slab on its device.
pub(crate) trait Backend<T: Real>: Send {
    /// Its planes.
    fn slab(&self) -> &Slab;

    /// Updates a half in some of its planes: curls, layers, then sources.
    ///
    /// # Errors
    /// A failing device.
    fn update(&mut self, half: Half, planes: Range<usize>, driven: &[Driven]) -> Result<()>;

    /// Begins to bring the plane that a neighbour needs to the host, as it is after the updates so far.
    ///
    /// # Errors
    /// A failing device.
    fn send(&mut self, half: Half) -> Result<()>;

    /// Waits for it.
    ///
    /// # Errors
    /// A failing device.
    fn sent(&mut self, half: Half) -> Result<Message<T>>;

    /// Takes the halo, for the updates that come after this.
    ///
    /// # Errors
    /// A failing device.
    fn receive(&mut self, half: Half, message: Message<T>) -> Result<()>;

    /// Remembers what these probes see: always the same ones, and not more than [`LOG_STEPS`] times before [`recorded`](Self::recorded).
    ///
    /// # Errors
    /// A failing device.
    fn record(&mut self, probes: &[OwnProbe]) -> Result<()>;

    /// Waits for all that was begun, and hands out what each probe has seen since the last time.
    ///
    /// # Errors
    /// A failing device.
    fn recorded(&mut self) -> Result<Vec<Vec<f64>>>;

    /// Copies a component of its own cells.
    ///
    /// # Errors
    /// A failing device.
    fn read(&mut self, component: Component, to: &mut [T]) -> Result<()>;

    /// Sets it.
    ///
    /// # Errors
    /// A failing device.
    fn write(&mut self, component: Component, from: &[T]) -> Result<()>;

    /// Elements of ψ in each of its layers, in the order of [`corrections`](super::slab::corrections).
    fn layers(&self) -> Vec<(LayerName, usize)>;

    /// Copies the ψ of a layer.
    ///
    /// # Errors
    /// A failing device.
    fn read_layer(&mut self, k: usize, to: &mut [T]) -> Result<()>;

    /// Sets it.
    ///
    /// # Errors
    /// A failing device.
    fn write_layer(&mut self, k: usize, from: &[T]) -> Result<()>;
}

/// Steps that are made without a stop, at the most.
pub(crate) const LOG_STEPS: usize = 256;
