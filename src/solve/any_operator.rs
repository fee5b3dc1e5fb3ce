//! What a matrix may be that is known by its products alone.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::operator_precond::Brought;
use crate::device::{self, Choice, Info, Kind, Pick, Selection};
use crate::error::{Error, Result};
use crate::operator::distributed::Distributed;
use crate::operator::{DeviceOperator, HostOperator};
use crate::partition::row_ranges_of;
use crate::precond::Precond;
use crate::real::Precision;
use crate::runtime::{Placement, Ranks, Setup, ShareSource, by_speed, rows_a_second};

/// With [`Choice::Auto`], a GPU more gets rows if each has so many: for fewer, waiting for the others takes longer than they save.
const ROWS_OF_A_GPU: usize = 4_000_000;

/// A matrix that is known by its products alone: a [function](HostOperator) on the host, or an operator of ranks, as
/// [`ElementOperator`](crate::fem::ElementOperator) and [`DeviceOperator`] are.
#[derive(Clone)]
#[non_exhaustive]
pub enum Operator<'a> {
    /// A function on the host.
    Function(HostOperator<'a>),
    /// Products by ranks, on devices and the host.
    Ranks(RanksOperator<'a>),
}

/// An operator of ranks.
#[derive(Clone)]
pub struct RanksOperator<'a>(Arc<dyn Distributed<'a> + 'a>);

impl fmt::Debug for Operator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("order", &self.order()).finish_non_exhaustive()
    }
}

impl<'a> From<HostOperator<'a>> for Operator<'a> {
    fn from(a: HostOperator<'a>) -> Self {
        Self::Function(a)
    }
}

impl<'a> From<DeviceOperator<'a>> for Operator<'a> {
    fn from(a: DeviceOperator<'a>) -> Self {
        Self::of_ranks(a)
    }
}

impl<'a> Operator<'a> {
    /// An operator of ranks.
    pub(crate) fn of_ranks(a: impl Distributed<'a> + 'a) -> Self {
        Self::Ranks(RanksOperator(Arc::new(a)))
    }

    /// What it is to ranks.
    pub(super) fn to_ranks(&self) -> &dyn Distributed<'a> {
        match self {
            Self::Function(a) => a,
            Self::Ranks(RanksOperator(a)) => &**a,
        }
    }

    /// Rows, and columns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.to_ranks().order()
    }

    /// What a setup asks for can be had.
    ///
    /// # Errors
    /// [`Error::Usage`] with what can't.
    pub(super) fn check(&self, setup: &Setup) -> Result<()> {
        let (what, has_devices) = match self {
            Self::Function(_) => ("a function in place of a matrix", false),
            Self::Ranks(_) => ("an operator that is no matrix", true),
        };
        let refuse = |why: String| Err(Error::Usage(format!("{what} {why}")));
        if !has_devices && setup.devices != Choice::Auto && setup.devices != Choice::List(vec![Pick::Host]) {
            let devices = &setup.devices;
            return refuse(format!("runs on the host, not with devices = {devices}; use devices = host or auto"));
        }
        match setup.precond {
            Precond::Transversal => return refuse("has no transversal; use precond = jacobi".into()),
            Precond::Chebyshev if self.to_ranks().largest_of_scaled().is_none() => {
                return refuse("has no bound of its eigenvalues for precond = chebyshev; use precond = jacobi".into());
            }
            _ => {}
        }
        if setup.method.factorises() {
            return refuse("has no factors; use another method".into());
        }
        if setup.method.minimises() {
            return refuse("has no transpose; use another method".into());
        }
        Ok(())
    }

    /// Opens the ranks; and a line for the user about their choice, if there is something to tell.
    ///
    /// # Errors
    /// [`Error::NoDevice`]; errors of devices; those of the preconditioner.
    pub(super) fn ranks(&self, setup: &Setup, brought: &Brought) -> Result<(Ranks<'a>, Option<String>)> {
        let a = self.to_ranks();
        let (placement, note) = match self {
            Self::Function(_) => {
                let rows = std::iter::once(0..a.order()).collect();
                (Placement { devices: vec![None], rows, source: ShareSource::ByHand }, None)
            }
            Self::Ranks(_) => placement(a, setup)?,
        };
        let of_precond = brought.for_ranks(self, setup, &placement.devices)?;
        Ok((Ranks::of_operator(a, setup, &of_precond, placement).map_err(Error::from)?, note))
    }
}

/// Which devices get which rows, and what there is to tell of that.
fn placement(a: &dyn Distributed<'_>, setup: &Setup) -> Result<(Placement, Option<String>)> {
    let needs_f64 = setup.precision != Precision::F32;
    let Selection { ranks: mut devices, mut note, .. } = device::select(&setup.devices, needs_f64)?;
    let is_gpu = |device: &Option<Info>| device.as_ref().is_some_and(|device| device.kind == Kind::Gpu);
    if setup.devices == Choice::Auto {
        if devices.iter().any(is_gpu) {
            devices.retain(is_gpu);
        }
        let (all, few) = (devices.len(), (a.order() / ROWS_OF_A_GPU).max(1));
        if few < all {
            devices.truncate(few);
            let unknowns = (few + 1) * ROWS_OF_A_GPU;
            note = Some(format!(
                "{few} of {all} GPUs: with fewer than {unknowns} unknowns, to wait for one more takes longer than it saves"
            ));
        }
    }
    let speed = |device: Option<&Info>| rows_a_second(a, setup.precision, device);
    let (shares, source) = by_speed(&devices, setup.shares.as_ref(), speed)?;
    let unit = a.unit();
    let whole = |rows: Range<usize>| rows.start * unit..rows.end * unit;
    let rows = row_ranges_of(a.order() / unit, |row| row, &shares).into_iter().map(whole).collect();
    Ok((Placement { devices, rows, source }, note))
}
