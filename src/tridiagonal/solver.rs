//! The solver.

use std::borrow::Cow;

use serde::Serialize;

use super::device::OnDevice;
use super::host;
use super::periodic::{Correction, Opened};
use super::pivoting;
use super::systems::{Shape, Systems};
use crate::device::{self, Choice, Info, Kind};
use crate::error::{Error, Result};
use crate::named::{as_text, named};
use crate::real::Real;
use crate::setters::setters;

named! {
    /// How systems are solved.
    Method, "method":
    Auto = "auto", "What suits their size and number.";
    Thomas = "thomas", "Elimination from the first row to the last and back, a thread or work-item for each system.";
    CyclicReduction = "cr", "Cyclic reduction in local memory, a work-group for each system (Hockney 1965).";
    ParallelCyclicReduction = "pcr", "Parallel cyclic reduction in local memory, a work-group for each system.";
    Hybrid = "hybrid", "Elimination in registers, and parallel cyclic reduction between them (Laszlo, Giles and Appleyard 2016).";
    Partition = "partition", "Parts of a system at a time, and a system between these (Wang 1981).";
    Pivoting = "pivoting", "Elimination with exchanges of rows, on the host.";
}

named! {
    /// Whether residuals are formed once systems are solved.
    Check, "check":
    Auto = "auto", "Where the coefficients don't tell that all is well, as diagonally dominant ones do.";
    Always = "always", "In any case.";
    Never = "never", "In no case.";
}

/// Backward errors above so many roundings are those of elimination that should have exchanged rows.
const ROUNDINGS: f64 = 100.0;

/// How systems are solved.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Options {
    /// The first of them works. With [`Choice::Auto`], a GPU; without one, the host's threads.
    #[serde(serialize_with = "as_text")]
    pub devices: Choice,
    /// The method.
    pub method: Method,
    /// Whether residuals are formed.
    pub check: Check,
}

impl Default for Options {
    fn default() -> Self {
        Self { devices: Choice::Auto, method: Method::Auto, check: Check::Auto }
    }
}

setters! {
    Options:
    with_devices = devices: Choice;
    with_method = method: Method;
    with_check = check: Check;
}

/// What a solve came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The method.
    pub method: Method,
    /// The largest backward error of a system, ‖d − A x‖ / (‖A‖ ‖x‖ + ‖d‖) by the largest rows, if residuals were formed.
    pub backward_error: Option<f64>,
    /// Systems that were solved by [`Method::Pivoting`] once more, as their backward errors told.
    pub repaired: usize,
}

/// A batch of systems that is prepared for any number of right-hand sides.
///
/// ```
/// use declive::tridiagonal::{Options, Shape, Solver, Systems};
///
/// # fn main() -> declive::Result<()> {
/// // three systems of five rows: −x_{i−1} + 4 x_i − x_{i+1} = d_i
/// let shape = Shape::new(3, 5);
/// let beside = [0.0, -1.0, -1.0, -1.0, -1.0].repeat(3);
/// let above: Vec<f64> = beside.iter().rev().copied().collect();
/// let systems = Systems::new(shape, [&beside, &[4.0; 15], &above])?;
///
/// let options = Options::default().with_devices("host".parse()?);
/// let mut solver = Solver::new(systems, &options)?;
/// let mut x = [0.0; 15];
/// solver.solve(&[3.0, 2.0, 2.0, 2.0, 3.0].repeat(3), &mut x)?;
/// assert!(x.iter().all(|x| (x - 1.0_f64).abs() < 1e-15));
/// # Ok(())
/// # }
/// ```
pub struct Solver<'a, T: Real> {
    systems: Systems<'a, T>,
    check: Check,
    backend: Backend<'a, T>,
    label: String,
}

enum Backend<'a, T: Real> {
    Host(Box<OnHost<'a, T>>),
    Device(Box<OnDevice<T>>),
}

impl<'a, T: Real> Solver<'a, T> {
    /// Prepares the systems: on a device the coefficients are uploaded, and memory for right-hand sides is made. Of periodic systems one solve is
    /// made here.
    ///
    /// # Errors
    /// [`Error::Usage`] for a method that the device, or the host, does not have, or one for smaller systems; [`Error::NoDevice`]; systems that
    /// the device can't hold; a failing device. [`Error::ZeroPivot`] for periodic systems.
    pub fn new(systems: Systems<'a, T>, options: &Options) -> Result<Self> {
        let selection = device::select(&options.devices, T::CL_NAME == f64::CL_NAME)?;
        let is_worth_it = |device: &&Info| options.devices != Choice::Auto || device.kind == Kind::Gpu;
        let device = selection.ranks.first().and_then(Option::as_ref).filter(is_worth_it);
        Self::on(systems, device, options)
    }

    /// The same on a device, or on the host.
    ///
    /// # Errors
    /// As [`Solver::new`].
    pub fn on(systems: Systems<'a, T>, device: Option<&Info>, options: &Options) -> Result<Self> {
        let method = if device.is_some() { options.method } else { of_host(&systems, options.method)? };
        let is_for_pivots = method == Method::Pivoting;
        let mut opened = (systems.shape.periodic && !is_for_pivots).then(|| Opened::new(&systems));
        let mut correction = opened.as_mut().and_then(|opened| opened.correction.take());
        let shape = systems.shape;
        let label = device.map_or_else(|| "host".into(), Info::label);
        let backend = match device {
            Some(device) => {
                let own = opened.as_ref().map_or(systems.coefficients, |opened| {
                    let [a, b, c] = &opened.coefficients;
                    [a, b, c]
                });
                let mut on_device = OnDevice::new(device, shape, own, method)?;
                if shape.periodic {
                    on_device.close_by(shape, systems.coefficients, correction.as_mut())?;
                }
                Backend::Device(Box::new(on_device))
            }
            None => {
                let coefficients = match opened {
                    Some(Opened { coefficients, .. }) => coefficients.map(Cow::Owned),
                    None => systems.coefficients.map(Cow::Borrowed),
                };
                Backend::Host(Box::new(OnHost::new(systems, coefficients, correction, method)?))
            }
        };
        Ok(Self { systems, check: options.check, backend, label })
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        match &self.backend {
            Backend::Host(on_host) => on_host.method,
            Backend::Device(on_device) => on_device.method,
        }
    }

    /// The device that solves, or `host`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.label
    }

    /// Solves all systems for the right-hand sides `d`. Where [`Options::check`] has residuals formed, systems whose backward error is more
    /// than 100 roundings are solved again on the host, with exchanges of rows. Without that, x of systems that need such may have any
    /// errors, and infinities or NaN.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`]; [`Error::ZeroPivot`], by thomas and partition on the host; [`Error::SingularSystem`] where exchanges don't help
    /// either; a failing device.
    pub fn solve(&mut self, d: &[T], x: &mut [T]) -> Result<Outcome> {
        let shape = self.systems.shape;
        for (what, found) in [("the right-hand side", d.len()), ("x", x.len())] {
            if found != shape.len() {
                return Err(Error::SizeMismatch { what: what.into(), expected: shape.len(), found });
            }
        }
        let method = self.method();
        match &mut self.backend {
            Backend::Host(on_host) => on_host.solve(d, x)?,
            Backend::Device(on_device) => {
                on_device.write(d)?;
                on_device.run()?;
                on_device.read(x)?;
            }
        }
        let is_known = self.systems.is_dominant && !shape.periodic || method == Method::Pivoting;
        if self.check == Check::Never || self.check == Check::Auto && is_known {
            return Ok(Outcome { method, backward_error: None, repaired: 0 });
        }
        let mut errors = match &mut self.backend {
            Backend::Host(_) => pivoting::backward_errors(&self.systems, d, x),
            Backend::Device(on_device) => on_device.backward_errors()?,
        };
        let bound = ROUNDINGS * if T::CL_NAME == f64::CL_NAME { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let failed: Vec<usize> = (0..errors.len()).filter(|&system| errors[system] > bound).collect();
        let repaired = if method == Method::Pivoting { 0 } else { failed.len() };
        if repaired > 0 {
            log::info!("{repaired} of {} tridiagonal systems are solved with exchanges of rows", shape.systems);
            pivoting::some(&self.systems, &failed, d, x)?;
            errors = pivoting::backward_errors(&self.systems, d, x);
        }
        let backward_error = Some(errors.into_iter().fold(0.0, f64::max));
        Ok(Outcome { method, backward_error, repaired })
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.systems.shape
    }
}

/// The method of the host.
fn of_host<T: Real>(systems: &Systems<'_, T>, method: Method) -> Result<Method> {
    let Shape { systems: count, size, .. } = systems.shape;
    match method {
        Method::Auto if !systems.is_dominant => Ok(Method::Pivoting),
        Method::Auto if count < rayon::current_num_threads() && size >= 4 * host::LEAST_ROWS => Ok(Method::Partition),
        Method::Auto => Ok(Method::Thomas),
        Method::Thomas | Method::Partition | Method::Pivoting => Ok(method),
        other => Err(Error::Usage(format!(
            "method = {other} is for OpenCL devices; the host has thomas, partition and pivoting"
        ))),
    }
}

/// Systems on the host.
struct OnHost<'a, T: Real> {
    given: Systems<'a, T>,
    /// Those that are not periodic.
    coefficients: [Cow<'a, [T]>; 3],
    correction: Option<Correction<T>>,
    method: Method,
}

impl<'a, T: Real> OnHost<'a, T> {
    fn new(
        given: Systems<'a, T>,
        coefficients: [Cow<'a, [T]>; 3],
        correction: Option<Correction<T>>,
        method: Method,
    ) -> Result<Self> {
        let mut all = Self { given, coefficients, correction: None, method };
        if let Some(mut correction) = correction {
            let ends = std::mem::take(&mut correction.z);
            correction.z = vec![T::default(); ends.len()];
            all.solve(&ends, &mut correction.z)?;
            correction.solved(given.shape);
            all.correction = Some(correction);
        }
        Ok(all)
    }

    fn solve(&self, d: &[T], x: &mut [T]) -> Result<()> {
        let shape = Shape { periodic: false, ..self.given.shape };
        let [a, b, c] = &self.coefficients;
        let systems = Systems { shape, coefficients: [a, b, c], is_dominant: self.given.is_dominant };
        match self.method {
            Method::Pivoting => pivoting::solve(&self.given, d, x)?,
            Method::Partition => host::partition(&systems, d, x)?,
            _ => host::thomas(&systems, d, x)?,
        }
        if let Some(correction) = &self.correction {
            correction.close(shape, x);
        }
        Ok(())
    }
}
