//! What a matrix may be that is known by its products alone.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::device::{self, Choice, Info, Kind, Pick};
use crate::error::{Error, Result};
use crate::operator::distributed::Distributed;
use crate::operator::{DeviceOperator, HostOperator};
use crate::partition::row_ranges_of;
use crate::precond::Precond;
use crate::precond::given::Given;
use crate::real::Precision;
use crate::runtime::{Placement, Ranks, Setup, ShareSource};
use crate::verify::Residual;

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

    /// Rows, and columns.
    #[must_use]
    pub fn order(&self) -> usize {
        match self {
            Self::Function(a) => a.order(),
            Self::Ranks(RanksOperator(a)) => a.order(),
        }
    }

    /// The diagonal, if it is known.
    pub(super) fn diagonal(&self) -> Option<Cow<'_, [f64]>> {
        match self {
            Self::Function(a) => a.diagonal().map(Cow::Borrowed),
            Self::Ranks(RanksOperator(a)) => a.diagonal().map(Cow::Owned),
        }
    }

    /// b − A x.
    pub(super) fn residual(&self, b: &[f64], x: &[f64]) -> Residual {
        match self {
            Self::Function(a) => a.residual(b, x),
            Self::Ranks(RanksOperator(a)) => a.residual(b, x),
        }
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
        if !has_devices && setup.precision != Precision::F64 {
            return refuse(format!(
                "works in double precision, not with precision = {}; use precision = f64",
                setup.precision
            ));
        }
        if !has_devices && setup.devices != Choice::Auto && setup.devices != Choice::List(vec![Pick::Host]) {
            let devices = &setup.devices;
            return refuse(format!("runs on the host, not with devices = {devices}; use devices = host or auto"));
        }
        let has_bound = match self {
            Self::Ranks(RanksOperator(a)) if setup.precond == Precond::Chebyshev => a.largest_of_scaled().is_some(),
            _ => false,
        };
        match setup.precond {
            Precond::Transversal => return refuse("has no transversal; use precond = jacobi".into()),
            Precond::Amg => return refuse("has no levels; use precond = jacobi".into()),
            precond if precond.multiplies() && !has_bound => {
                return refuse(format!("has no entries for precond = {precond}; use precond = jacobi"));
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

    /// Opens the ranks.
    ///
    /// # Errors
    /// [`Error::NoDevice`]; errors of devices.
    pub(super) fn ranks(&self, setup: &Setup, given: Option<&Arc<Given>>) -> Result<Ranks<'a>> {
        match self {
            Self::Function(a) => Ranks::of_function(a, setup, given),
            Self::Ranks(RanksOperator(a)) => {
                let placement = placement(&**a, setup)?;
                Ranks::of_operator(&**a, setup, given, placement).map_err(Error::from)
            }
        }
    }
}

/// Which devices get which rows.
fn placement(a: &dyn Distributed<'_>, setup: &Setup) -> Result<Placement> {
    let needs_f64 = setup.precision != Precision::F32;
    let mut devices = device::select(&setup.devices, needs_f64)?.ranks;
    let is_gpu = |device: &Option<Info>| device.as_ref().is_some_and(|device| device.kind == Kind::Gpu);
    if setup.devices == Choice::Auto {
        if devices.iter().any(is_gpu) {
            devices.retain(is_gpu);
        }
        devices.truncate((a.order() / ROWS_OF_A_GPU).max(1));
    }
    let even = vec![1.0; devices.len()];
    let (shares, source) = match &setup.shares {
        Some(shares) => (shares.of_ranks(devices.len())?, ShareSource::ByHand),
        None => (&*even, ShareSource::Even),
    };
    let unit = a.unit();
    let whole = |rows: Range<usize>| rows.start * unit..rows.end * unit;
    let rows = row_ranges_of(a.order() / unit, |row| row, shares).into_iter().map(whole).collect();
    Ok(Placement { devices, rows, source })
}
