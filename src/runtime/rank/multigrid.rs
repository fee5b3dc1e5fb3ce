//! Multigrid where a rank's rows are.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::{Engine, OnDevice, SHARED_LEVEL};
use crate::backend::basis::BasisBackend;
use crate::backend::host::HostBackend;
use crate::backend::opencl::OpenClBackend;
use crate::backend::pass_backend::PassBackend;
use crate::backend::{Backend, LinearOperator};
use crate::comm::Board;
use crate::error::{Error, Result};
use crate::krylov::Iterate;
use crate::operator::opencl::DeviceBlock;
use crate::partition::HaloPlan;
use crate::precond::OnRank;
use crate::precond::amg::on_device::ranks::Among;
use crate::precond::amg::on_device::{DeviceCycle, OfRanks};
use crate::precond::given::Given;
use crate::real::Real;
use crate::timeline::stages::stage;

/// What a rank makes its levels of.
pub(crate) struct Multigrid<'a> {
    /// The levels of all ranks, and which rows of their matrix are this rank's.
    pub(crate) given: &'a Arc<Given>,
    pub(crate) rows: &'a Range<usize>,
    /// What the ranks' matrix is multiplied by.
    pub(crate) factor: f64,
    /// What leads to the other ranks meanwhile, if there are several, and all are devices.
    pub(crate) board: Option<&'a Board>,
}

/// What it took a rank to go on with multigrid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WentOn {
    pub(crate) compile: Duration,
    /// Making the levels, but for that.
    pub(crate) precond: Duration,
    /// Whether its rows are scaled.
    pub(crate) is_scaled: bool,
}

/// A cycle in kernels, and the time that it took to make but for compiling.
pub(super) type Made<O> = (Option<Box<dyn OnRank<O>>>, Duration);

impl Multigrid<'_> {
    /// A cycle on the device, if all ranks are devices and these have room for it. The matrix of its levels has this halo.
    pub(super) fn on_device<T: Real, A: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        halo: &HaloPlan,
        of: OfRanks<'_, T>,
    ) -> Result<(OnDevice<T, A>, Duration)> {
        let none = (None, Duration::ZERO);
        let Self { given, rows, board, .. } = *self;
        let Some(levels) = given.levels() else { return Ok(none) };
        // of nodes with several unknowns, processes make levels on their hosts
        let is_by_hosts = levels.share.is_some() && !levels.near_null.is_constant();
        if is_by_hosts || board.is_none() && (levels.share.is_some() || rows.len() < levels.a.n_rows()) {
            return Ok(none);
        }
        let (first, of_all) = levels.among_all(rows.start);
        let (own, place, most) = ((first, rows.len()), rows.start, SHARED_LEVEL);
        let among = board.map(|board| Among { board, own, place, of_all, plan: halo, most });
        // who waits for another device to be opened is not making levels yet
        let are_open = board.map_or(Ok(0.0), |board| board.sum(0.0));
        let (making, compiled) = (stage("precond"), backend.compiled());
        let make = |_| DeviceCycle::new::<A>(&backend.ctx, &backend.kernels.tuning, levels, of, among);
        let made = are_open.and_then(make);
        // all ranks have one, or none
        let is_there = matches!(made, Ok(Some(_)));
        match board {
            // who can't have it ends the solve: others wait for what it has to tell
            Some(board) if board.spans_processes() => {}
            Some(board) if !is_there => board.leave(),
            Some(board) if board.sum(0.0).is_err() => return Ok(none),
            _ => {}
        }
        match made {
            Err(e @ (Error::OutOfDeviceMemory { .. } | Error::PeerFailed)) if levels.share.is_none() => {
                log::info!("the host keeps the levels of amg: {e}");
                Ok(none)
            }
            made => {
                let Some((cycle, hierarchy)) = made? else { return Ok(none) };
                hierarchy.into_iter().for_each(|hierarchy| levels.are_on_device(hierarchy));
                Ok((Some(Box::new(cycle)), making.end().saturating_sub(backend.compiled() - compiled)))
            }
        }
    }
}

/// A backend that may have levels beside rows of the kind `A`.
pub(super) trait HasLevels<A>: PassBackend {
    /// A cycle for rows of a matrix, if it can have one; the system may be scaled by this diagonal of `factor` times the matrix.
    ///
    /// # Errors
    /// A failing device or rank.
    fn levels(&self, a: &A, of: &Multigrid<'_>, scaled_by: Option<&Self::Vector>) -> Result<Made<Self>>
    where
        Self: Sized;
}

/// The host has its levels by [`Given`].
impl<T: Real, A> HasLevels<A> for HostBackend<T> {
    fn levels(&self, _: &A, _: &Multigrid<'_>, _: Option<&Self::Vector>) -> Result<Made<Self>> {
        Ok((None, Duration::ZERO))
    }
}

impl<T: Real, A: Real> HasLevels<DeviceBlock<T>> for OpenClBackend<T, A> {
    fn levels(&self, a: &DeviceBlock<T>, of: &Multigrid<'_>, scaled_by: Option<&Self::Vector>) -> Result<Made<Self>> {
        let rows = OfRanks { factor: of.factor, rows: Some(a.rows()), scaled_by };
        of.on_device(self, a.plan(), rows)
    }
}

impl<O: HasLevels<A> + BasisBackend, A: LinearOperator<O>, I: Iterate<O>> Engine<O, A, I> {
    /// As [`Rank::go_on_with`](super::Rank::go_on_with).
    pub(super) fn go_on_with(&mut self, of: &Multigrid<'_>) -> Result<Option<WentOn>> {
        let Self { backend, operators, scaling, .. } = self;
        let [a] = &operators[..] else { return Ok(None) };
        let compiled = backend.compiled();
        let scaled_by = scaling.as_ref().map(|scaling| &scaling.weights);
        let (Some(cycle), precond) = backend.levels(a, of, scaled_by)? else { return Ok(None) };
        let went_on = WentOn { compile: backend.compiled() - compiled, precond, is_scaled: scaling.is_some() };
        (self.on_rank, self.given) = (Some(cycle), Some((Arc::clone(of.given), of.rows.clone())));
        (self.precond, self.way, self.batch) = (None, None, None);
        Ok(Some(went_on))
    }
}
