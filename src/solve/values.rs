//! Other values in the same pattern.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::chain::{Chain, Known};
use super::facts::Facts;
use super::session::{Solver, check_vector};
use crate::error::Result;
use crate::matrix::equivalent::is_real_form;
use crate::matrix::stats::Stats;
use crate::memory;
use crate::operator::Format;
use crate::runtime::SetupTimes;
use crate::timeline::stages::stage;

impl Solver {
    /// Gives the matrix other values in the same pattern, row by row in the order of the columns, as for a next step in time or of a
    /// nonlinear solve; a slice is copied. What the values decide is looked at anew: symmetry, the diagonal, the null space, the range of numbers. If it is as
    /// before, devices, shares, the order of the rows, halo plans, formats and vectors stay, and values go to where the former are.
    ///
    /// All is decided anew, and nothing stays but opened devices and compiled kernels, if it is not as before; if rows are stored by
    /// their values ([`Format::Dictionary`]), or these are no more the numbers of few bytes that [`Format::Sell`] found; for methods with
    /// factors, a transversal, or Aᵀ; and once a device has failed, or another method has gone on. The memory on devices is freed before.
    ///
    /// ```
    /// use declive::matrix::gallery;
    /// use declive::{Control, Setup, Solver, Stop};
    ///
    /// # fn main() -> declive::Result<()> {
    /// let a = gallery::poisson2d([30, 30])?;
    /// let values: Vec<f64> = a.values().iter().map(|v| 2.0 * v).collect();
    /// let mut solver = Solver::new(a, &Setup::default())?;
    /// let b = vec![1.0; 900];
    /// let first = solver.solve(&b, None, &Stop::default(), Control::default())?;
    /// solver.update_values(values)?;
    /// // not far from half of the former
    /// let half: Vec<f64> = first.x.iter().map(|x| 0.5 * x).collect();
    /// let second = solver.solve(&b, Some(&half), &Stop::default(), Control::default())?;
    /// assert!(second.reason.converged() && second.iterations <= 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeMismatch`](crate::Error::SizeMismatch) and [`Error::NotFinite`](crate::Error::NotFinite) for the values, which leave
    /// the solver as it was. Those of [`Solver::new`], after which each solve ends with [`Error::SolverBroken`](crate::Error::SolverBroken)
    /// until other values are there.
    pub fn update_values<'v>(&mut self, values: impl Into<Cow<'v, [f64]>>) -> Result<()> {
        let values = values.into();
        check_vector("the values", &values, self.whole.a.nnz())?;
        let values = match values {
            Cow::Owned(values) => values,
            Cow::Borrowed(values) => memory::copied(values),
        };
        self.whole.replace(Arc::new(self.whole.a.with_values(values)));
        let taken = self.take_values();
        if let Err(e) = &taken {
            log::debug!("values are not taken: {e}");
        }
        if !taken.unwrap_or(false) {
            // an error comes again, if it is not of a device that others stand in for
            self.ranks.close();
            (self.factorised, self.obstacle) = (None, None); // of the former values
            let given =
                self.whole.given.as_ref().filter(|_| self.asked.has_given).and_then(|given| given.preconditioner());
            *self = Self::open(Arc::clone(&self.whole.a), &self.asked.clone(), None, given)?;
        }
        self.memory = None; // values that change are hardly met again
        Ok(())
    }

    /// Gives the ranks the values that the matrix has now, if these decide nothing anew; tells whether that is so.
    fn take_values(&mut self) -> Result<bool> {
        let start = Instant::now();
        let checking = stage("check");
        if !self.is_as_begun() || is_real_form(&self.whole.a) != self.whole.setup.is_complex {
            return Ok(false);
        }
        drop(checking);
        let ordering = stage("reorder");
        let rows = self.whole.rows()?;
        drop(ordering);
        let checking = stage("check");
        let a = &self.whole.a;
        let facts = Facts::of(a, Stats::of_reordered(a, &rows), &self.asked, false)?;
        let Facts { stats, factor, is_symmetric, obstacle, null_space } = facts;
        let known = Known::new(a, is_symmetric, obstacle, &stats.diagonal);
        let (method, chain) = Chain::of(&self.asked, known)?;
        let decided = (is_symmetric, obstacle.is_some(), null_space.is_some(), method);
        drop(checking);
        if decided != (self.whole.is_symmetric, self.obstacle.is_some(), self.null_space.is_some(), self.method())
            || stats.asymmetry.is_some() != self.stats.asymmetry.is_some()
        {
            return Ok(false);
        }
        (self.whole.factor, self.whole.has_even_diagonal) = (factor, stats.diagonal.uneven.is_none());
        let prepare = start.elapsed();
        if !self.ranks.take_values(&self.whole, &rows)? {
            return Ok(false);
        }
        self.times = SetupTimes { prepare, upload: start.elapsed().saturating_sub(prepare), ..SetupTimes::default() };
        (self.stats, self.obstacle, self.null_space, self.chain) = (stats, obstacle, null_space, chain);
        (self.is_structurally_singular, self.remembered) = (OnceLock::new(), None);
        Ok(true)
    }

    /// Whether the ranks are those that the solver began with, of a kind that can go on with other values.
    fn is_as_begun(&self) -> bool {
        let (method, precond, whole) = (self.method(), self.precond(), &self.whole);
        let is_as_given = whole.equilibration.is_none() && whole.least_squares.is_none() && self.shortage.is_none();
        is_as_given
            && precond == self.asked.precond
            && !method.applies(precond)
            && !method.factorises()
            && self.factorised.is_none()
            && self.failures.is_empty()
            && self.ranks().iter().all(|rank| rank.format != Format::Dictionary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, gallery};
    use crate::runtime::Setup;

    /// Whether other values are taken where the former are.
    fn is_taken(a: &Csr, setup: &Setup, value: impl Fn(f64) -> f64) -> bool {
        let mut solver = Solver::new(a.clone(), setup).unwrap();
        let values = a.values().iter().map(|v| value(*v)).collect();
        solver.whole.replace(Arc::new(a.with_values(values)));
        solver.take_values().unwrap()
    }

    #[test]
    fn who_takes_values() {
        let a = "variable:14".parse::<gallery::Spec>().unwrap().build().unwrap();
        for devices in ["host", "0", "0,host,0"] {
            let setup = Setup::default().with_devices(devices.parse().unwrap());
            for format in [Format::Csr, Format::Pattern, Format::Sell] {
                let setup = setup.clone().with_format(format);
                assert!(is_taken(&a, &setup, |v| 1.5 * v), "{setup:?}");
                assert!(!is_taken(&a, &setup, |v| -v), "{setup:?}");
            }
            let grid = gallery::poisson2d([40, 40]).unwrap();
            assert!(!is_taken(&grid, &setup.with_format(Format::Dictionary), |v| 1.5 * v));
        }
    }

    #[test]
    fn wider_values_are_not_taken() {
        let grid = gallery::poisson2d([40, 40]).unwrap();
        let setup = Setup::default().with_devices("0".parse().unwrap()).with_format(Format::Sell);
        assert!(is_taken(&grid, &setup, |v| 2.0 * v), "4 bits or 8");
        assert!(!is_taken(&grid, &setup, |v| 0.1 * v), "not a number of few bytes");
    }
}
