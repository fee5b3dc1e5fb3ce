//! What ranks exchange of the vectors of a level while they apply it.

use std::ops::Range;

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
    /// What a rank needs of b, all of it or as much as its slab has: each makes some of it.
    All(Gather),
}

/// A vector of which this rank makes a part, and gets the rest from the others that make it.
pub(super) struct Gather {
    /// The part that it makes.
    pub(super) own: Range<usize>,
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

    /// Which elements of a vector this rank makes, of which it has so many rows.
    pub(super) fn own(&self, rows: usize) -> Range<usize> {
        match self {
            Self::All(gather) => gather.own.clone(),
            Self::Nothing | Self::Halo(_) => 0..rows,
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
    /// Of a vector of which this rank makes this part.
    pub(super) fn new(ctx: &Context, own: Range<usize>, plan: &HaloPlan) -> Result<Self> {
        Ok(Self { own, exchange: HaloExchange::new(ctx, 0, plan, Exchange::HostStaged)? })
    }

    /// Fills what others make of a vector.
    pub(super) fn fill<T: Real>(&self, backend: &OpenClBackend<f32, T>, all: &mut DeviceVec<f32>) -> Result<()> {
        self.exchange.pack(backend, all)?;
        self.exchange.send(backend, all)?;
        self.exchange.receive(backend, all)
    }
}
