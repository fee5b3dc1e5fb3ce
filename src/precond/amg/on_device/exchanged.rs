//! What ranks exchange of the vectors of a level while they apply it.

use crate::backend::opencl::OpenClBackend;
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::operator::Exchange;
use crate::operator::exchange::HaloExchange;
use crate::partition::HaloPlan;
use crate::real::Real;

/// What is exchanged of a level.
pub(super) enum Exchanged {
    /// Nothing: the device has all, and makes all.
    Nothing,
    /// Elements of the halo, before a product: each rank has some of the rows.
    Halo(HaloExchange<f32>),
    /// All of b: each rank makes some of it, and then goes on with all.
    All(Gather),
}

/// A vector of which each rank has a part, and then all of them the whole.
pub(super) struct Gather {
    /// What this rank has,
    pub(super) own: DeviceVec<f32>,
    /// and from which place on.
    first: usize,
    exchange: HaloExchange<f32>,
}

impl From<Option<Gather>> for Exchanged {
    fn from(gather: Option<Gather>) -> Self {
        gather.map_or(Self::Nothing, Self::All)
    }
}

impl Exchanged {
    /// Elements of others that vectors have room for.
    pub(super) fn halo(&self) -> usize {
        match self {
            Self::Halo(exchange) => exchange.halo(),
            Self::Nothing | Self::All(_) => 0,
        }
    }

    /// Fills the halo of a vector, if there is one.
    pub(super) fn fill<T: Real>(&self, backend: &OpenClBackend<f32, T>, v: &mut DeviceVec<f32>) -> Result<()> {
        let Self::Halo(exchange) = self else { return Ok(()) };
        exchange.pack(backend, v)?;
        exchange.send(backend, v)?;
        exchange.receive(backend, v)
    }
}

impl Gather {
    /// Of a vector of which this rank has so many elements from a place on.
    pub(super) fn new(ctx: &Context, (first, n): (usize, usize), plan: &HaloPlan) -> Result<Self> {
        let own = DeviceVec::uninit(ctx, n, "a part of a vector")?;
        Ok(Self { own, first, exchange: HaloExchange::new(ctx, 0, plan, Exchange::HostStaged)? })
    }

    /// All of it, as ranks have theirs in `own`.
    pub(super) fn gather<T: Real>(&self, backend: &OpenClBackend<f32, T>, all: &mut DeviceVec<f32>) -> Result<()> {
        let Self { own, first, exchange } = self;
        exchange.pack(backend, own)?;
        exchange.send(backend, own)?;
        exchange.receive(backend, all)?;
        own.copy_part(&backend.ctx, 0..own.len(), all, *first)
    }

    /// This rank's part of a vector that it has all of.
    pub(super) fn part(&mut self, ctx: &Context, all: &DeviceVec<f32>) -> Result<&DeviceVec<f32>> {
        let Self { own, first, .. } = self;
        all.copy_part(ctx, *first..*first + own.len(), own, 0)?;
        Ok(&self.own)
    }
}
