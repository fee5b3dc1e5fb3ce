//! The solver of a matrix that is known by its products alone.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::any_operator::Operator;
use super::chain::{Candidate, Chain, Known, check_precond};
use super::operator_precond::Brought;
use super::outcome::Outcome;
use super::rounds;
use super::session::{check_tolerances, check_vector, nothing_to_do, setup_for_given};
use super::statistics::{Answer, Statistics};
use super::subject::Subject;
use crate::error::{Error, Result};
use crate::krylov::{Indefinite, Method, Reason};
use crate::matrix::Csr;
use crate::precond::given::Given;
use crate::precond::{HostPreconditioner, Precond};
use crate::runtime::{Control, RankInfo, Ranks, Setup, Stop};
use crate::timeline::stages::stage;
use crate::tune::Tune;

/// A matrix that is known by its products alone, ready to solve for many right-hand sides by the same methods as
/// [`Solver`](super::Solver): a function on the host; elements of [`fem`](crate::fem) on devices, too, several at
/// once, in any precision.
///
/// "Converged" is said only after b − A x has been formed once more on the host in double precision, by the function itself or by the
/// elements. That residual is as exact as these are; its [`backward_error`](crate::verify::Residual::backward_error) is NaN, as ‖A‖ is not known.
pub struct OperatorSolver<'a> {
    a: Operator<'a>,
    setup: Setup,
    brought: Brought,
    ranks: Ranks<'a>,
    note: Option<String>,
    /// What the diagonal shows, if it is known.
    obstacle: Option<Indefinite>,
    chain: Chain,
}

impl fmt::Debug for OperatorSolver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorSolver").field("a", &self.a).field("setup", &self.setup).finish_non_exhaustive()
    }
}

impl<'a> OperatorSolver<'a> {
    /// Makes `a` ready. Of `setup`, the method, the preconditioner, the precision and `assume_symmetric` count, and for operators of devices
    /// these and their shares. `jacobi` needs the diagonal: that of a function, [`HostOperator::with_diagonal`](crate::HostOperator::with_diagonal), and without it is as
    /// `none`. Unless the symmetry is to be assumed, two products of a function with random vectors test it, and that all elements are set;
    /// parts of A − Aᵀ below some 10⁻⁶ of A are not seen.
    ///
    /// With [`Choice::Auto`](crate::device::Choice::Auto), elements go to one GPU for each 4 million rows, the processor with OpenCL if there is none, or the host.
    ///
    /// # Errors
    /// [`Error::OperatorNotSymmetric`]; [`Error::NotFinite`] for products and the diagonal; [`Error::SizeMismatch`] for the latter; [`Error::Usage`] for
    /// what the operator does not have: of a function devices other than the host, or entries for a preconditioner; errors of devices.
    pub fn new(a: impl Into<Operator<'a>>, setup: &Setup) -> Result<Self> {
        Self::open(a.into(), setup, Brought::default())
    }

    /// The same with a preconditioner that is made of a matrix nearby in place of A: of lower order, without what couples hardly, or A itself
    /// where there is memory. So `amg`, `fsai`, `ilu0` and `block-jacobi` serve an operator that has no entries, and `jacobi` one whose diagonal
    /// is not known; `none` and `chebyshev` make nothing of it. For `amg` the matrix should be symmetric and positive definite.
    ///
    /// # Errors
    /// As [`OperatorSolver::new`]; [`Error::SizeMismatch`] for a matrix of another order.
    pub fn with_matrix(a: impl Into<Operator<'a>>, setup: &Setup, matrix: Csr) -> Result<Self> {
        let a = a.into();
        let expected = a.order();
        if let Some(found) = [matrix.n_rows(), matrix.n_cols()].into_iter().find(|&found| found != expected) {
            return Err(Error::SizeMismatch { what: "the matrix of the preconditioner".into(), expected, found });
        }
        Self::open(a, setup, Brought { matrix: Some(matrix), given: None })
    }

    /// The same with a preconditioner of the caller's own, as [`Solver::with_preconditioner`](super::Solver::with_preconditioner) has it.
    ///
    /// # Errors
    /// As [`OperatorSolver::new`]; [`Error::Usage`] for methods other than `auto`, `cg` and `gmres`.
    pub fn with_preconditioner(
        a: impl Into<Operator<'a>>,
        setup: &Setup,
        m: Arc<dyn HostPreconditioner>,
    ) -> Result<Self> {
        let (a, setup) = (a.into(), setup_for_given(setup)?);
        let given = Arc::new(Given::new(m, a.order(), None));
        Self::open(a, &setup, Brought { given: Some(given), matrix: None })
    }

    fn open(a: Operator<'a>, setup: &Setup, brought: Brought) -> Result<Self> {
        check_precond(setup)?;
        a.check(setup)?;
        setup.near_null.iter().try_for_each(|near_null| near_null.check(a.order()))?;
        let diagonal = a.to_ranks().diagonal();
        if let Some(diagonal) = &diagonal {
            check_vector("the diagonal", diagonal, a.order())?;
        }
        if let (Operator::Function(a), true, false) = (&a, setup.method.needs_symmetric(), setup.assume_symmetric) {
            a.check_symmetry()?;
        }
        let first = diagonal.as_ref().and_then(|diagonal| diagonal.iter().position(|d| *d <= 0.0));
        let value = |row: usize| diagonal.as_ref().map_or(0.0, |diagonal| diagonal[row]);
        let obstacle = first.map(|row| Indefinite::Diagonal { row: row + 1, value: value(row) });
        // an unsymmetric one is asked for by the name of its method
        let (method, chain) =
            Chain::of(setup, Known { is_symmetric: true, obstacle, may_have_levels: obstacle.is_none() })?;
        let mut setup = setup.clone().with_method(method).with_tune(Tune::Off);
        if !method.takes(setup.precond) {
            setup.precond = Precond::Jacobi; // auto has found another method
        }
        if diagonal.is_none() && brought.matrix.is_none() && setup.precond.is_diagonal() {
            setup.precond = Precond::None;
        }
        let (ranks, note) = a.ranks(&setup, &brought)?;
        Ok(Self { a, setup, brought, ranks, note, obstacle, chain })
    }

    /// Solves `A x = b` from `x0`, or from zero: [`solve_into`](Self::solve_into) with a vector for x.
    ///
    /// # Errors
    /// As [`solve_into`](Self::solve_into), for `x0` in place of `x`.
    pub fn solve(&mut self, b: &[f64], x0: Option<&[f64]>, stop: &Stop, control: Control<'_>) -> Result<Outcome> {
        if let Some(x0) = x0 {
            check_vector("x0", x0, self.a.order())?;
        }
        let mut x = x0.map_or_else(|| vec![0.0; b.len()], <[f64]>::to_vec);
        let (statistics, answer) = self.run(b, &mut x, stop, control)?;
        Ok(statistics.outcome(x, answer, self.bytes_per_iteration()))
    }

    /// Solves `A x = b` from and to `x`, as [`Solver::solve_into`](super::Solver::solve_into) does.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] and [`Error::NotFinite`] for `b` and `x`; [`Error::Usage`] for a tolerance below 0 or NaN; [`Error::RankPanicked`] if the function panics in the
    /// iteration, after which the solver can't be used any more. Not converging is not an error: see [`Outcome::reason`].
    pub fn solve_into(&mut self, b: &[f64], x: &mut [f64], stop: &Stop, control: Control<'_>) -> Result<Outcome<()>> {
        let (statistics, answer) = self.run(b, x, stop, control)?;
        Ok(statistics.outcome((), answer, self.bytes_per_iteration()))
    }

    fn run(&mut self, b: &[f64], x: &mut [f64], stop: &Stop, control: Control<'_>) -> Result<(Statistics, Answer)> {
        let n = self.a.order();
        check_vector("b", b, n)?;
        check_vector("x", x, n)?;
        check_tolerances(stop)?;
        if stop.backward_error > 0.0 {
            return Err(Error::Usage(
                "a function in place of a matrix has no known norm, and so no backward error; use rtol".into(),
            ));
        }
        if let Some(reason) = self.settled(b, stop, control) {
            if reason.converged() {
                x.fill(0.0);
            }
            let verifying = stage("verify");
            let residual = self.a.to_ranks().residual(b, x);
            let statistics = Statistics::of_none(control.done, 1, &residual, verifying.end());
            return Ok((statistics, (reason, residual)));
        }
        let (mut statistics, started) = (Statistics::after(control.done), Instant::now());
        let answer = loop {
            let Self { a, setup, ranks, .. } = self;
            let residual = |b: &[f64], x: &[f64]| a.to_ranks().residual(b, x);
            let subject = Subject::Function { n, setup, residual: &residual };
            let of_solve = (&mut statistics, started);
            let answer = rounds::solve(subject, ranks, &mut Vec::new(), b, x, (stop, control), of_solve)?;
            let to = self.chain.after(self.setup.method, &answer.0, true).filter(|to| to.method != Method::Direct);
            let Some(to) = to else { break answer };
            self.switch(to, answer.0, &mut statistics)?;
        };
        Ok((statistics, answer))
    }

    fn bytes_per_iteration(&self) -> u64 {
        self.ranks.bytes_per_iteration(&self.setup, self.a.order())
    }

    /// Lets the rank go on by another method, as the present one has ended.
    fn switch(&mut self, to: Candidate, why: Reason, statistics: &mut Statistics) -> Result<()> {
        let (start, from) = (Instant::now(), self.setup.method);
        log::info!("{from} has ended ({why}); {to} goes on");
        self.setup.method = to.method;
        if !self.setup.precond.is_diagonal() {
            self.setup.precond = to.precond;
        }
        self.ranks.close(); // there may be no room for both
        (self.ranks, _) = self.a.ranks(&self.setup, &self.brought)?;
        statistics.switched(from, to, why, (start.elapsed(), Default::default()));
        Ok(())
    }

    /// What is known without an iteration.
    fn settled(&self, b: &[f64], stop: &Stop, control: Control<'_>) -> Option<Reason> {
        let needs_definite = self.setup.method.needs_definite();
        let obstacle = self.obstacle.filter(|_| needs_definite).map(Reason::IndefiniteOperator);
        nothing_to_do(b, stop, control).or(obstacle)
    }

    /// The ranks, and the rows of each.
    #[must_use]
    pub fn ranks(&self) -> &[RankInfo] {
        &self.ranks.infos
    }

    /// A line for the user about the choice of devices, if there is something to tell.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The method that is followed: never [`Method::Auto`].
    #[must_use]
    pub fn method(&self) -> Method {
        self.setup.method
    }

    /// The preconditioner.
    #[must_use]
    pub fn precond(&self) -> Precond {
        self.setup.precond
    }

    /// Why [`Method::Auto`] did not begin with `cg`, if it did not: what shows that the matrix is not positive definite.
    #[must_use]
    pub fn method_reason(&self) -> Option<Indefinite> {
        self.chain.why()
    }
}
