//! Factors that are kept.

use std::time::Instant;

use serde::Serialize;

use super::condition;
use super::devices::{BLOCK, Blocks, Devices};
use super::element::Element;
use super::host::Host;
use super::matrix::Matrix;
use crate::device::{self, Choice, Info, Kind as DeviceKind};
use crate::error::{Error, Result};
use crate::named::named;

named! {
    /// A factorisation of a dense matrix.
    Kind, "factorisation":
    Lu = "lu", "A = Pᵀ L U with partial pivoting, of any square matrix.";
    Cholesky = "cholesky", "A = L Lᵀ, of a symmetric positive definite matrix, whose lower triangle alone is looked at.";
    Ldlt = "ldlt", "A = Pᵀ L D Lᵀ P with pivots of Bunch and Kaufman, of a symmetric matrix; on devices Uᵀ A U = L D Lᵀ without pivots, U random butterflies. The lower triangle alone is looked at.";
}

/// With [`Choice::Auto`], matrices of a smaller order stay on the host, which takes less for them than a device to open;
const LEAST_ON_GPU: usize = 2048;
/// larger ones go to a GPU for each of so many columns, as panels are made one after the other and travel in between,
const COLUMNS_OF_A_GPU: usize = 12_288;
/// or to as many more as have memory for them, of which so much is theirs.
const SHARE_OF_MEMORY: f64 = 0.8;

/// The factors of a dense matrix, on the host or on devices, for any number of right-hand sides.
pub struct Factor<T: Element> {
    n: usize,
    kind: Kind,
    norm_1: f64,
    host_seconds: f64,
    place: Place<T>,
}

/// Where the time of a factorisation went, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Times {
    /// Opening devices, compiling, and memory on them.
    pub open: f64,
    /// Butterflies on both sides of the matrix, on the host, before it goes to devices for [`Kind::Ldlt`].
    pub transform: f64,
    /// The matrix on its way to the devices.
    pub upload: f64,
    /// The factorisation.
    pub factorise: f64,
    /// What panels took of that, on devices and the host, while products went on or waited,
    pub panels: f64,
    /// and how long the host waited for devices.
    pub waits: f64,
}

enum Place<T: Element> {
    Host(Host<T>),
    Devices(Box<Devices<T>>),
}

impl<T: Element> Factor<T> {
    /// Factorises a matrix, in its place on the host, or on devices. With [`Choice::Auto`] these are GPUs, if the order is 2048 at least: one
    /// for each 12,288 columns, and as many more as its memory takes. On devices [`Kind::Ldlt`] has diagonal D, and no pivots but those that random
    /// butterflies make good ones, mostly: [`refine`](Self::refine) tells how well it went, and L U is what serves any matrix. Takes 8 n² bytes in double precision, on each of P devices
    /// 8 n² / P, and some 5 kB a row more.
    ///
    /// # Errors
    /// [`Error::SingularMatrix`], [`Error::NotDefinite`]; [`Error::NeedsPivots`] by [`Kind::Ldlt`] on devices; [`Error::NoDevice`], [`Error::OutOfDeviceMemory`]; a failing device.
    pub fn new(a: Matrix<T>, kind: Kind, devices: &Choice) -> Result<Self> {
        let devices = devices_for::<T>(a.order(), devices)?;
        Self::on(a, kind, &devices, BLOCK)
    }

    /// The same on these devices, or without any on the host, with blocks of so many columns, and tiles that may be given.
    pub(crate) fn on(a: Matrix<T>, kind: Kind, devices: &[Info], blocks: impl Into<Blocks>) -> Result<Self> {
        let (n, norm_1) = (a.order(), a.norm_1());
        let values = a.into_values();
        let start = Instant::now();
        let found = if devices.is_empty() || n == 0 {
            Host::new(n, values, kind).map(Place::Host)
        } else {
            Devices::new(n, values, kind, devices, blocks.into())?.map(|on| Place::Devices(Box::new(on)))
        };
        match found {
            Ok(place) => Ok(Self { n, kind, norm_1, host_seconds: start.elapsed().as_secs_f64(), place }),
            Err(column) => Err(without_pivot(kind, column, T::CL_NAME, devices.is_empty())),
        }
    }

    /// Rows, and columns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.n
    }

    /// Which factors they are.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The devices that have them; none where it is the host.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        match &self.place {
            Place::Host(_) => Vec::new(),
            Place::Devices(devices) => devices.names(),
        }
    }

    /// Where the time of the factorisation went.
    #[must_use]
    pub fn times(&self) -> Times {
        match &self.place {
            Place::Host(_) => Times { factorise: self.host_seconds, ..Times::default() },
            Place::Devices(devices) => devices.times,
        }
    }

    /// x = A⁻¹ b in the place of b, for any number of right-hand sides one behind the other: 2 n² flops for each. On devices by products
    /// with inverted triangles of 128 rows.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if these are no multiple of n elements; a failing device.
    pub fn solve(&mut self, x: &mut [T]) -> Result<()> {
        let n = self.n;
        if x.is_empty() {
            return Ok(());
        }
        if n == 0 || !x.len().is_multiple_of(n) {
            let expected = x.len().div_ceil(n.max(1)) * n;
            return Err(Error::SizeMismatch { what: "the right-hand sides".into(), expected, found: x.len() });
        }
        match &mut self.place {
            Place::Host(host) => host.solve(x),
            Place::Devices(devices) => devices.solve(x)?,
        }
        Ok(())
    }

    /// About κ₁ = ‖A‖₁ ‖A⁻¹‖₁, and mostly not below a third of it: a solution may be off by κ₁ times its backward error. Some ten solves with
    /// one column, on the host, where factors of devices are copied to for it.
    ///
    /// N. J. Higham, ACM Trans. Math. Softw. 14 (1988), doi 10.1145/50063.214386, after W. W. Hager.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; a failing device.
    pub fn condition(&self) -> Result<f64> {
        Ok(self.norm_1 * self.by_host(|host| condition::inverse_norm_1(self.n, host))?)
    }

    /// The column of A, counted from 1, that has the smallest pivot, if that is no more than rounding can leave where there is none: n u ‖A‖₁
    /// with the unit u of the factors' precision. Factors of devices are copied to the host for it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; a failing device.
    pub fn column_without_pivot(&self) -> Result<Option<usize>> {
        let unit = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let least = self.by_host(Host::least_pivot)?;
        Ok(least.filter(|(_, size)| *size <= self.n as f64 * unit * self.norm_1).map(|(column, _)| column + 1))
    }

    /// Something of the factors on the host, where those of devices are copied to.
    fn by_host<R>(&self, look: impl FnOnce(&Host<T>) -> R) -> Result<R> {
        Ok(match &self.place {
            Place::Host(host) => look(host),
            Place::Devices(devices) => look(&devices.on_host()?),
        })
    }

    /// The factors by columns: L and U, or L and D or Lᵀ; of [`Kind::Ldlt`] on devices L and D Lᵀ, those of Uᵀ A U.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; a failing device.
    pub fn values(&self) -> Result<Vec<T>> {
        self.by_host(|host| host.values().to_vec())
    }
}

/// What it means that a column, counted from 0, has no pivot.
fn without_pivot(kind: Kind, column: usize, element: &str, is_on_host: bool) -> Error {
    let (column, precision) = (column + 1, if element == "float" { "single" } else { "double" });
    match kind {
        Kind::Cholesky => Error::NotDefinite { column, precision },
        Kind::Ldlt if !is_on_host => Error::NeedsPivots { column, precision },
        Kind::Lu | Kind::Ldlt => Error::SingularMatrix { column, precision },
    }
}

/// The devices for a matrix of this order; none is the host.
fn devices_for<T: Element>(n: usize, choice: &Choice) -> Result<Vec<Info>> {
    let is_auto = *choice == Choice::Auto;
    if is_auto && n < LEAST_ON_GPU {
        return Ok(Vec::new());
    }
    let needs_f64 = T::CL_NAME == "double";
    let selection = device::select(choice, needs_f64)?;
    let mut devices: Vec<Info> = selection.ranks.into_iter().flatten().collect();
    if is_auto {
        devices.retain(|device| device.kind == DeviceKind::Gpu);
        // columns are dealt out evenly, and those of a device are one buffer
        let bytes = (n * n * size_of::<T>()) as f64;
        let room = |device: &Info| (SHARE_OF_MEMORY * device.memory_bytes as f64).min(device.max_buffer_bytes as f64);
        let fit =
            |count: &usize| devices[..*count].iter().map(room).fold(f64::INFINITY, f64::min) * *count as f64 >= bytes;
        let enough = (n / COLUMNS_OF_A_GPU).max(1).min(devices.len());
        devices.truncate((enough..=devices.len()).find(fit).unwrap_or(usize::MAX));
    }
    Ok(devices)
}
