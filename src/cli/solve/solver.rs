//! The solver of a system, real or complex.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use declive::solve::{ComplexSolver, Control, Indefinite, Setup, Stop};
use declive::{Error, Outcome, Solver};

use super::system::System;

/// A solver, real or complex.
#[derive(Debug)]
pub(super) enum AnySolver {
    Real(Solver),
    Complex(ComplexSolver),
}

impl AnySolver {
    /// Distributes the matrix of `system`.
    pub(super) fn new(system: &System, setup: &Setup, cancel: &AtomicBool) -> Result<Self, Error> {
        let a = Arc::clone(&system.a);
        match &system.complex {
            None => Solver::cancellable(a, setup, cancel).map(Self::Real),
            Some(complex) => ComplexSolver::cancellable(Arc::clone(&complex.a), a, setup, cancel).map(Self::Complex),
        }
    }

    /// Solves for one right-hand side; complex vectors are real and imaginary parts by turns.
    pub(super) fn solve(
        &mut self,
        b: &[f64],
        x0: Option<&[f64]>,
        stop: &Stop,
        control: Control<'_>,
    ) -> Result<Outcome, Error> {
        match self {
            Self::Real(solver) => solver.solve(b, x0, stop, control),
            Self::Complex(solver) => solver.solve_by_turns(b, x0, stop, control),
        }
    }

    /// Solves for several right-hand sides, from and to `x`.
    pub(super) fn solve_each(
        &mut self,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        stop: &Stop,
        control: Control<'_>,
        done: &mut dyn FnMut(usize, &Outcome<()>),
    ) -> Result<Vec<Outcome<()>>, Error> {
        match self {
            Self::Real(solver) => solver.solve_each(b, x, stop, control, done),
            Self::Complex(solver) => solver.solve_each_by_turns(b, x, stop, control, done),
        }
    }

    /// What solves the real system, which may be the form of a complex one.
    pub(super) fn real(&self) -> &Solver {
        match self {
            Self::Real(solver) => solver,
            Self::Complex(solver) => solver.real(),
        }
    }

    /// Estimates the condition number of a matrix that was factorised as a dense one; of a complex one, that of its real form.
    pub(super) fn estimate_condition(&mut self) -> declive::Result<Option<f64>> {
        match self {
            Self::Real(solver) => solver.estimate_condition(),
            Self::Complex(solver) => solver.estimate_condition(),
        }
    }

    /// Why the method is not `cg`, if that was chosen for the matrix.
    pub(super) fn method_reason(&self) -> Option<Indefinite> {
        match self {
            Self::Real(solver) => solver.method_reason(),
            Self::Complex(solver) => solver.method_reason(),
        }
    }
}
