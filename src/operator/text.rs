//! An operator of the caller's own: a row in OpenCL C for devices, and the same in Rust for the host.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::device_rows::DeviceRows;
use super::distributed::{Distributed, HostRows, OwnRows, ProductsIn};
use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::MAX_COUNT;
use crate::kernels::own_rows::{OwnArray, OwnTextRows, program};
use crate::real::Real;

/// Rows that are worth a thread's while.
const CHUNK: usize = 1 << 12;

/// Elements of x that a rank has, by their numbers among all.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'x> {
    rows: &'x Range<usize>,
    halo: &'x [u32],
    x: &'x [f64],
}

impl Columns<'_> {
    /// Element `j` of x.
    ///
    /// # Panics
    /// If the rank has not got it, as the operator did not say that its rows need it.
    #[must_use]
    pub fn at(&self, j: usize) -> f64 {
        if self.rows.contains(&j) {
            return self.x[j - self.rows.start];
        }
        match self.halo.binary_search(&(j as u32)) {
            Ok(k) => self.x[self.rows.len() + k],
            Err(_) => panic!("rows {:?} need element {j}, which the operator's halo does not name", self.rows),
        }
    }
}

type Row<'a> = dyn Fn(usize, Columns<'_>) -> f64 + Send + Sync + 'a;
type Halo<'a> = dyn Fn(Range<usize>) -> Vec<u32> + Send + Sync + 'a;

/// An array that a text names.
#[derive(Clone)]
enum Array {
    Numbers(Arc<Vec<f64>>),
    Indices(Arc<Vec<u32>>),
}

/// A square matrix whose rows are known as a text in OpenCL C, for devices, and as a function in Rust, which the host has for its own rows
/// and to verify answers. [`OperatorSolver`](crate::OperatorSolver) solves with it on devices and the host, several at once.
///
/// The text is the body of a function that returns the element of y = A x in its `row`, of `n` in all. It has element j of x as `X(j)`, the
/// type `real`, which is `double` or `float`, and the arrays that it was given by name. It is formed for all rows of a device at once, in
/// one launch together with the sums that a method needs.
///
/// ```
/// use declive::{DeviceOperator, OperatorSolver, Setup, Stop};
///
/// # fn main() -> declive::Result<()> {
/// // −(k u′)′ on a line, with k between neighbouring points
/// let n = 1000;
/// let k: Vec<f64> = (0..=n).map(|i| 1.0 + 0.5 * (0.01 * i as f64).sin()).collect();
/// let text = "real sum = (k[row] + k[row + 1]) * X(row);
///             if (row > 0) sum -= k[row] * X(row - 1);
///             if (row + 1 < n) sum -= k[row + 1] * X(row + 1);
///             return sum;";
/// let diagonal = k.windows(2).map(|k| k[0] + k[1]).collect();
/// let on_host = {
///     let k = k.clone();
///     move |row: usize, x: declive::Columns<'_>| {
///         let left = if row > 0 { k[row] * x.at(row - 1) } else { 0.0 };
///         let right = if row + 1 < n { k[row + 1] * x.at(row + 1) } else { 0.0 };
///         (k[row] + k[row + 1]) * x.at(row) - left - right
///     }
/// };
/// let a = DeviceOperator::new(n, text, on_host)?
///     .with_numbers("k", k)
///     .with_diagonal(diagonal)
///     // rows of several devices need the neighbours of their first and last
///     .with_halo(move |rows| [rows.start.wrapping_sub(1), rows.end].into_iter().filter(|&j| j < n).map(|j| j as u32).collect());
/// let outcome = OperatorSolver::new(a, &Setup::default())?.solve(&vec![1.0; n], None, &Stop::default(), Default::default())?;
/// assert!(outcome.reason.converged());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeviceOperator<'a> {
    n: usize,
    text: String,
    on_host: Arc<Row<'a>>,
    arrays: Vec<(String, Array)>,
    diagonal: Option<Arc<Vec<f64>>>,
    halo: Option<Arc<Halo<'a>>>,
}

impl fmt::Debug for DeviceOperator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceOperator").field("order", &self.n).finish_non_exhaustive()
    }
}

impl<'a> DeviceOperator<'a> {
    /// The matrix of order `n` whose rows `text` forms on devices, and `on_host` on the host: see [above](Self).
    ///
    /// # Errors
    /// [`Error::Usage`] for an order above 2³¹ − 1.
    pub fn new(
        n: usize,
        text: impl Into<String>,
        on_host: impl Fn(usize, Columns<'_>) -> f64 + Send + Sync + 'a,
    ) -> Result<Self> {
        if n > MAX_COUNT {
            return Err(Error::Usage(format!("an order of {n} is more than devices count: {MAX_COUNT}")));
        }
        let (text, on_host) = (text.into(), Arc::new(on_host));
        Ok(Self { n, text, on_host, arrays: Vec::new(), diagonal: None, halo: None })
    }

    /// With an array of numbers of this name in the text, in the precision of vectors; each device has all of it.
    #[must_use]
    pub fn with_numbers(mut self, name: &str, values: Vec<f64>) -> Self {
        self.arrays.push((name.into(), Array::Numbers(Arc::new(values))));
        self
    }

    /// With an array of indices (`uint`) of this name in the text; each device has all of it.
    #[must_use]
    pub fn with_indices(mut self, name: &str, values: Vec<u32>) -> Self {
        self.arrays.push((name.into(), Array::Indices(Arc::new(values))));
        self
    }

    /// With its diagonal, which [`Precond::Jacobi`](crate::solve::Precond::Jacobi) needs.
    #[must_use]
    pub fn with_diagonal(mut self, diagonal: Vec<f64>) -> Self {
        self.diagonal = Some(Arc::new(diagonal));
        self
    }

    /// With the columns that some rows need beside their own. Without it, rows on several devices need all others.
    #[must_use]
    pub fn with_halo(mut self, halo: impl Fn(Range<usize>) -> Vec<u32> + Send + Sync + 'a) -> Self {
        self.halo = Some(Arc::new(halo));
        self
    }
}

/// Rows on the host, in double precision.
struct TextRows<'a> {
    own: OwnRows,
    on_host: Arc<Row<'a>>,
    x: Vec<f64>,
}

impl<T: Real> HostRows<T> for TextRows<'_> {
    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let Self { own, on_host, x: wide } = self;
        wide.clear();
        wide.par_extend(x.par_iter().map(|x| x.to_f64()));
        let columns = Columns { rows: &own.rows, halo: &own.halo, x: wide };
        let first = own.rows.start;
        y.par_iter_mut()
            .enumerate()
            .with_min_len(CHUNK)
            .for_each(|(i, y)| *y = T::from_f64(on_host(first + i, columns)));
    }

    fn bytes(&self) -> u64 {
        ((self.own.rows.len() * 2 + self.own.halo.len()) * size_of::<T>()) as u64
    }
}

impl<'a, T: Real> ProductsIn<'a, T> for DeviceOperator<'a> {
    fn on_host(&self, own: &OwnRows) -> Box<dyn HostRows<T> + 'a> {
        Box::new(TextRows { own: own.clone(), on_host: Arc::clone(&self.on_host), x: Vec::new() })
    }

    fn on_device(&self, ctx: &Context, own: &OwnRows, scale: Option<&[T]>) -> Result<(DeviceRows<T>, u64)> {
        let what = "arrays of the operator";
        let not_empty = |values: Cow<'_, [T]>| if values.is_empty() { vec![T::default()] } else { values.into_owned() };
        let upload = |(_, array): &(String, Array)| -> Result<OwnArray<T>> {
            Ok(match array {
                Array::Numbers(values) => {
                    OwnArray::Numbers(DeviceVec::from_slice(ctx, &not_empty(T::scaled(values, 1.0)), what)?)
                }
                Array::Indices(values) if values.is_empty() => {
                    OwnArray::Indices(DeviceVec::from_slice(ctx, &[0], what)?)
                }
                Array::Indices(values) => OwnArray::Indices(DeviceVec::from_slice(ctx, values, what)?),
            })
        };
        let names: Vec<(&str, bool)> =
            self.arrays.iter().map(|(name, array)| (&**name, matches!(array, Array::Numbers(_)))).collect();
        let of_array = |(_, array): &(String, Array)| match array {
            Array::Numbers(values) => values.len() * size_of::<T>(),
            Array::Indices(values) => 4 * values.len(),
        };
        let memory = self.arrays.iter().map(of_array).sum::<usize>() + 4 * own.halo.len();
        let halo = if own.halo.is_empty() { &[0][..] } else { &own.halo };
        let rows = Arc::new(OwnTextRows {
            program: program(&self.text, &names, scale.is_some(), ctx.info().max_work_group),
            sizes: [self.n, own.rows.start, own.rows.len(), own.halo.len()].map(|size| size as u32),
            halo: DeviceVec::from_slice(ctx, halo, what)?,
            scale: DeviceVec::from_slice(ctx, &not_empty(scale.unwrap_or(&[]).into()), "the scaling")?,
            arrays: self.arrays.iter().map(upload).collect::<Result<_>>()?,
        });
        let bytes = memory + (2 * own.rows.len() + own.halo.len()) * size_of::<T>();
        let all = || -> Vec<Box<dyn crate::kernels::products::ProductRows<T>>> { vec![Box::new(Arc::clone(&rows))] };
        let sets = if own.halo.is_empty() { [all(), Vec::new()] } else { [Vec::new(), all()] };
        Ok((DeviceRows::new(memory, sets, all()), bytes as u64))
    }
}

impl<'a> Distributed<'a> for DeviceOperator<'a> {
    fn order(&self) -> usize {
        self.n
    }

    fn unit(&self) -> usize {
        1
    }

    fn halo(&self, rows: &Range<usize>) -> Vec<u32> {
        if rows.len() == self.n || rows.is_empty() {
            return Vec::new();
        }
        match &self.halo {
            Some(halo) => {
                let is_other = |j: &u32| (*j as usize) < self.n && !rows.contains(&(*j as usize));
                let mut columns: Vec<u32> = halo(rows.clone()).into_iter().filter(is_other).collect();
                columns.sort_unstable();
                columns.dedup();
                columns
            }
            None => (0..rows.start as u32).chain(rows.end as u32..self.n as u32).collect(),
        }
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        self.diagonal.as_ref().map(|diagonal| diagonal.to_vec())
    }

    fn largest_of_scaled(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::krylov::Method;
    use crate::precond::Precond;
    use crate::real::Precision;
    use crate::{Control, Csr, OperatorSolver, Setup, Stop};

    const TEXT: &str = "real sum = (k[row] + k[row + 1]) * X(row);
        if (row > 0) sum -= k[row] * X(row - 1) * (real)turn[0];
        if (row + 1 < n) sum -= k[row + 1] * X(row + 1);
        return sum;";

    /// A line of n points with k between them, and its matrix. What is below the diagonal is multiplied by `turn`.
    fn line(n: usize, turn: u32) -> (DeviceOperator<'static>, Csr) {
        let k: Vec<f64> = (0..=n).map(|i| 1.0 + (i * 7 % 5) as f64).collect();
        let own = k.clone();
        let on_host = move |row: usize, x: Columns<'_>| {
            let left = if row > 0 { own[row] * x.at(row - 1) * f64::from(turn) } else { 0.0 };
            let right = if row + 1 < n { own[row + 1] * x.at(row + 1) } else { 0.0 };
            (own[row] + own[row + 1]) * x.at(row) - left - right
        };
        let operator = DeviceOperator::new(n, TEXT, on_host).unwrap();
        let operator = operator
            .with_numbers("k", k.clone())
            .with_indices("turn", vec![turn])
            .with_diagonal(k.windows(2).map(|k| k[0] + k[1]).collect())
            .with_halo(|rows| vec![rows.end as u32, rows.start.wrapping_sub(1) as u32]);
        let entries = (0..n).flat_map(|row| {
            let mut entries = vec![(row, row, k[row] + k[row + 1])];
            entries.extend((row > 0).then(|| (row, row.wrapping_sub(1), -k[row] * f64::from(turn))));
            entries.extend((row + 1 < n).then(|| (row, row + 1, -k[row + 1])));
            entries
        });
        let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (row, column, value) in entries {
            rows.push(row as u32);
            columns.push(column as u32);
            values.push(value);
        }
        (operator, Csr::from_triplets(n, n, &rows, &columns, &values).unwrap())
    }

    #[test]
    fn answers_are_those_of_the_matrix() {
        for (n, turn, method) in
            [(1, 1, Method::Auto), (2, 1, Method::Cg), (300, 1, Method::Cg), (300, 0, Method::Bicgstab)]
        {
            let (operator, a) = line(n, turn);
            let b: Vec<f64> = (0..n).map(|i| (i % 3) as f64 - 0.5).collect();
            for devices in ["host", "0", "0,0", "0,host,0"] {
                for (precond, precision, rtol) in [
                    (Precond::Jacobi, Precision::F64, 1e-10),
                    (Precond::None, Precision::F64, 1e-8),
                    (Precond::Jacobi, Precision::Mixed, 1e-10),
                ] {
                    if precision == Precision::Mixed && turn == 0 {
                        continue;
                    }
                    let setup = Setup::default().with_devices(devices.parse().unwrap()).with_method(method);
                    let setup = setup.with_precond(precond).with_precision(precision);
                    let mut solver = OperatorSolver::new(operator.clone(), &setup).unwrap();
                    let outcome = solver.solve(&b, None, &Stop::default().with_rtol(rtol), Control::default()).unwrap();
                    let residual = crate::verify::residual(&a, &b, &outcome.x).relative_2;
                    let what = format!("{n} {turn} {devices} {precond} {precision}");
                    assert!(
                        outcome.reason.converged() && residual <= 1.1 * rtol,
                        "{what}: {} {residual}",
                        outcome.reason
                    );
                    assert_eq!(solver.ranks().len(), devices.split(',').count());
                }
            }
        }
    }

    #[test]
    fn rows_on_a_device() {
        for n in [1, 127, 129] {
            let (operator, a) = line(n, 1);
            let b = vec![1.0; n];
            let setup = Setup::default().with_devices("0".parse().unwrap()).with_method(Method::CgTextbook);
            let mut solver = OperatorSolver::new(operator, &setup).unwrap();
            let outcome = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            assert!(outcome.reason.converged() && crate::verify::residual(&a, &b, &outcome.x).relative_2 <= 1.1e-8);
        }
    }

    /// Without a word about what rows need, they need all.
    #[test]
    fn all_columns_are_there_by_default() {
        let (mut operator, _) = line(40, 1);
        operator.halo = None;
        let setup = Setup::default().with_devices("0,0,0".parse().unwrap());
        let mut solver = OperatorSolver::new(operator, &setup).unwrap();
        assert!(solver.ranks().iter().all(|rank| rank.halo == 40 - rank.rows && rank.rows > 12));
        assert!(solver.solve(&[1.0; 40], None, &Stop::default(), Control::default()).unwrap().reason.converged());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let on_host = |row: usize, x: Columns<'_>| x.at(row);
        let bad = DeviceOperator::new(5, "return Y(row);", on_host).unwrap();
        let setup = Setup::default().with_devices("0".parse().unwrap());
        let error = OperatorSolver::new(bad, &setup).err().unwrap();
        let Error::KernelBuild { log, .. } = &error else { panic!("{error}") };
        assert!(log.contains("operator.cl:1"), "{log}");
        let (operator, _) = line(9, 1);
        let setup = setup.with_precond(Precond::Chebyshev);
        let error = OperatorSolver::new(operator, &setup).err().unwrap().to_string();
        assert!(error.contains("no bound of its eigenvalues for precond = chebyshev"), "{error}");
        assert!(DeviceOperator::new(1 << 31, "return 0;", on_host).is_err());
    }
}
