//! A system as all ranks share it, whoever they are: what ranks are opened from, at first and anew.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use rayon::prelude::*;

use super::least_squares::LeastSquares;
use super::memory_check;
use super::setup::{OnFailure, Setup};
use crate::backend::text::OF_PRECONDITIONER;
use crate::comm::Processes;
use crate::comm::among::Group;
use crate::comm::processes::{self, agreed, any, gathered, numbers};
use crate::device::Info;
use crate::distributed::share::Share;
use crate::error::Result;
use crate::krylov::Method;
use crate::matrix::equivalent::is_real_form;
use crate::matrix::reorder::{Permutation, permuted};
use crate::matrix::{Csr, Equilibration};
use crate::memory::{copied, copy};
use crate::operator::Exchange;
use crate::partition::{Part, cost_of, part_alone, row_ranges_of, split};
use crate::precond::amg;
use crate::precond::amg::levels::Levels;
use crate::precond::given::Given;
use crate::precond::near_null::NearNull;
use crate::precond::scaling::Scaling;
use crate::precond::{Needs, Precond};
use crate::tune::formats::fingerprint;
use crate::tune::store::{IterationTimeKey, Store, kinds, unusual};
use crate::verify::{self, Residual};

/// A matrix, and what ranks make of it before they have it.
pub(crate) struct Whole {
    /// As given.
    pub(crate) a: Arc<Csr>,
    /// The order of the rows on the ranks, if it is not that given.
    pub(crate) order: Option<Permutation>,
    /// In the order of the ranks, as long as somebody has it.
    rows: Weak<Csr>,
    /// How the system is permuted and scaled before it is put in that order, if it is.
    pub(crate) equilibration: Option<Equilibration>,
    /// What a method has that minimises ‖b − A x‖.
    pub(crate) least_squares: Option<LeastSquares>,
    /// Where the rows are among those of other processes, if `a` is the window of one of these.
    pub(crate) share: Option<Arc<Share>>,
    /// A preconditioner of the caller's own.
    pub(crate) given: Option<Arc<Given>>,
    /// What the ranks' matrix is multiplied by.
    pub(crate) factor: f64,
    /// Whether it is symmetric, or is to be taken for it: if not, rows may be multiplied by −1.
    pub(crate) is_symmetric: bool,
    /// Whether all of A's diagonal is known to be the same, so that there is nothing to scale by.
    pub(crate) has_even_diagonal: bool,
    /// How it is to be solved: by a method that ranks know, and never by [`Method::Auto`].
    pub(crate) setup: Setup,
    /// What is kept of devices together.
    pub(crate) store: Store,
    /// A hash of the rows in the order of the ranks, once it was asked for.
    hash: OnceLock<String>,
    /// Whether multigrid has [levels of a lattice](Self::is_on_lattice), once that was asked for.
    on_lattice: OnceLock<bool>,
    /// Whether it [may have levels](Self::may_have_levels), once that was asked for.
    near_m: OnceLock<bool>,
    /// Whether kernels of ranks have missed each other.
    have_missed: AtomicBool,
}

impl Whole {
    /// Of `a`, which the ranks get as `rows`, in the order `order`. [`Method::Auto`] is `cg`, and `a`
    /// symmetric: whoever knows better says so.
    pub(crate) fn new(
        a: Arc<Csr>,
        rows: &Arc<Csr>,
        order: Option<Permutation>,
        factor: f64,
        setup: &Setup,
        store: Store,
    ) -> Self {
        let method = if setup.method == Method::Auto { Method::Cg } else { setup.method };
        // incomplete factors of a real form are none of a complex matrix: scalars are real then
        let is_complex = setup.precond != Precond::Ilu0 && is_real_form(&a);
        let setup = Setup { method, is_complex, ..setup.clone() };
        let rows = Arc::downgrade(rows);
        let have_missed = AtomicBool::new(false);
        let (equilibration, least_squares, share) = (None, None, None);
        let (is_symmetric, has_even_diagonal, hash) = (true, false, OnceLock::new());
        let (on_lattice, near_m) = (OnceLock::new(), OnceLock::new());
        Self {
            a,
            order,
            rows,
            equilibration,
            least_squares,
            share,
            given: None,
            factor,
            is_symmetric,
            has_even_diagonal,
            setup,
            store,
            hash,
            on_lattice,
            near_m,
            have_missed,
        }
    }

    /// Turns this into the system of a method that minimises ‖b − A x‖; gives the matrix as the ranks have it, in the order given.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn minimise(&mut self) -> Result<Arc<Csr>> {
        let least_squares = LeastSquares::new(&self.a, self.setup.precond)?;
        let rows = least_squares.matrix(&self.a)?;
        if self.setup.precond.is_diagonal() {
            self.factor = 1.0; // columns have norm 1
        }
        (self.rows, self.hash, self.order, self.equilibration) = (Arc::downgrade(&rows), OnceLock::new(), None, None);
        self.least_squares = Some(least_squares);
        Ok(rows)
    }

    /// Takes the same matrix with other values, which the ranks have yet to get.
    pub(crate) fn replace(&mut self, a: Arc<Csr>) {
        (self.a, self.rows, self.hash) = (a, Weak::new(), OnceLock::new());
        (self.on_lattice, self.near_m) = (OnceLock::new(), OnceLock::new());
    }

    /// Permutes and scales the system from now on, before it is put in the order of the ranks, which are to be opened anew.
    pub(crate) fn equilibrate(&mut self, equilibration: Equilibration) {
        (self.rows, self.hash) = (Weak::new(), OnceLock::new());
        (self.is_symmetric, self.factor) = (false, 1.0); // no entry is much larger than 1
        self.equilibration = Some(equilibration);
    }

    /// Elements of the ranks' vectors, all together.
    pub(crate) fn order_of_ranks(&self) -> usize {
        self.least_squares.as_ref().map_or(self.a.n_rows(), LeastSquares::order)
    }

    /// The matrices that the ranks multiply by, A first, where `rows` is that, and those of the preconditioner last.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn matrices(&self, rows: Arc<Csr>, of_preconditioner: Vec<Csr>) -> Result<Vec<Arc<Csr>>> {
        let transpose = self.least_squares.as_ref().map(LeastSquares::transposed).transpose()?;
        Ok([rows].into_iter().chain(transpose).chain(of_preconditioner.into_iter().map(Arc::new)).collect())
    }

    /// What the preconditioner multiplies by beside A, which is `rows`; ranks will have these devices.
    ///
    /// # Errors
    /// What may be wrong with A for that preconditioner.
    pub(crate) fn of_preconditioner(&self, rows: &Csr, devices: &[Option<Info>]) -> Result<Vec<Csr>> {
        let Setup { method, precond, ref near_null, .. } = self.setup;
        if !method.applies(precond) || precond.most_entries(1, 1).is_empty() {
            return Ok(Vec::new());
        }
        let unknowns = near_null.as_ref().map(NearNull::unknowns);
        let needs = Needs { is_definite: method.needs_symmetric(), is_complex: self.setup.is_complex, unknowns };
        if let Some(share) = &self.share {
            // blocks and incomplete factors stay within a process
            let made = share.own_block(rows).and_then(|own| {
                let made = precond.matrices(&own, self.factor, needs, devices.iter().flatten())?;
                made.iter().map(|matrix| share.embedded(matrix)).collect()
            });
            return agreed(&*share.processes, made);
        }
        precond.matrices(rows, self.factor, needs, devices.iter().flatten())
    }

    /// How many entries its matrices have, among all.
    pub(crate) fn entries_of_preconditioner(&self, matrices: &[Arc<Csr>]) -> Vec<usize> {
        let of_system = if self.setup.method.applies(self.setup.precond) { OF_PRECONDITIONER } else { matrices.len() };
        matrices[of_system..].iter().map(|matrix| matrix.nnz()).collect()
    }

    /// How many rows of the matrix as given are in these places of the ranks' vectors.
    pub(crate) fn rows_in(&self, places: &Range<usize>) -> usize {
        self.least_squares.as_ref().map_or(places.len(), |least_squares| least_squares.rows_in(places))
    }

    /// The work of an iteration on these rows, as [`cost`](crate::partition::cost) counts it.
    pub(crate) fn cost(&self, rows: &Csr, own: &Range<usize>) -> usize {
        let before = |row| {
            let transposed = self.least_squares.as_ref().map_or(0, |of| of.transposed_entries_before(row));
            cost_of(row, rows.row_ptr()[row] + transposed)
        };
        before(own.end) - before(own.start)
    }

    /// Cuts `rows` by shares of the work, as the memory of the devices allows; of several processes, those of this one. With a transpose,
    /// or several processes, memory is not looked at: there is an error later if it is not enough.
    pub(crate) fn row_ranges(&self, rows: &Csr, shares: &[f64], devices: &[Option<Info>]) -> Vec<Range<usize>> {
        match (&self.least_squares, &self.share) {
            (Some(_), _) => row_ranges_of(rows.n_rows(), |row| self.cost(rows, &(0..row)), shares),
            (None, Some(share)) => {
                let first = share.own.start;
                let ranges = row_ranges_of(share.own.len(), |row| self.cost(rows, &(first..first + row)), shares);
                ranges.into_iter().map(|rows| rows.start + first..rows.end + first).collect()
            }
            (None, None) => self.whole_pairs(memory_check::row_ranges(rows, shares, devices, &self.setup)),
        }
    }

    /// These ranges, cut between pairs of rows if A is the real form of a complex matrix: no rank has half a number.
    pub(crate) fn whole_pairs(&self, ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
        let cut = |row: usize| if self.setup.is_complex { row / 2 * 2 } else { row };
        ranges.into_iter().map(|rows| cut(rows.start)..cut(rows.end)).collect()
    }

    /// How ranks are opened: by the host alone, once their kernels have missed each other, and where there are matrices beside A.
    pub(crate) fn setup_of_ranks(&self) -> Setup {
        let mut setup = self.setup.clone();
        // kernels that run exchange the halos of one matrix
        let Setup { method, precond, .. } = self.setup;
        let is_applied = method.applies(precond);
        let has_others = self.least_squares.is_some() || is_applied && !precond.most_entries(1, 1).is_empty();
        let is_by_host = self.have_missed.load(Ordering::Relaxed) || has_others;
        if is_by_host && setup.exchange.is_live() {
            setup.exchange = Exchange::HostStaged;
        }
        setup
    }

    /// Kernels of ranks have missed each other.
    pub(crate) fn set_missed(&self) {
        self.have_missed.store(true, Ordering::Relaxed);
    }

    /// The matrix in the order and units of the ranks. If these are others than given and nobody has the result any more, it is made
    /// again: to keep it would double the memory of the matrix.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the reordered matrix.
    pub(crate) fn rows(&self) -> Result<Arc<Csr>> {
        match (self.rows.upgrade(), &self.order) {
            (Some(rows), _) => Ok(rows),
            (None, _) if let Some(least_squares) = &self.least_squares => least_squares.matrix(&self.a),
            (None, Some(order)) => Ok(Arc::new(permuted(&*self.equilibrated()?, order)?)),
            (None, None) => self.equilibrated(),
        }
    }

    /// What multigrid levels of the rows that the ranks have interpolate.
    pub(crate) fn near_null(&self, rows: &Csr) -> NearNull {
        match (&self.setup.near_null, &self.order) {
            (Some(given), Some(order)) => given.in_order(order),
            (Some(given), None) => given.clone(),
            (None, _) if self.share.is_some() => NearNull::default(), // who shares rows knows of nodes
            (None, _) if !self.is_symmetric => NearNull::default(),
            (None, _) => NearNull::of_matrix(rows),
        }
    }

    /// Multigrid levels of the rows that the ranks have, which none of them has made yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn levels(&self, rows: &Arc<Csr>) -> Result<Given> {
        Ok(Given::of_levels(match &self.share {
            Some(share) => Levels::among(share, Csr::clone(rows), self.near_null(rows))?,
            None => Levels::new(Csr::clone(rows), self.near_null(rows), self.is_symmetric)?,
        }))
    }

    /// Whether multigrid for this system has levels of a lattice, which take hardly any time to be made.
    pub(crate) fn is_on_lattice(&self) -> bool {
        let is_as_given = self.order.is_none() && self.equilibration.is_none() && self.share.is_none();
        let may_be = is_as_given && self.is_symmetric && self.setup.near_null.is_none();
        *self.on_lattice.get_or_init(|| may_be && amg::is_on_lattice(&self.a))
    }

    /// Whether multigrid may be of use: for a symmetric matrix, or one that is near an M-matrix.
    pub(crate) fn may_have_levels(&self) -> bool {
        self.is_symmetric || *self.near_m.get_or_init(|| amg::unsymmetric::is_near_m(&self.a))
    }

    /// The matrix before it is put in another order.
    fn equilibrated(&self) -> Result<Arc<Csr>> {
        match &self.equilibration {
            Some(equilibration) => Ok(Arc::new(equilibration.matrix(&self.a)?)),
            None => Ok(Arc::clone(&self.a)),
        }
    }

    /// b − A x, in the order and units given.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn residual(&self, b: &[f64], x: &[f64]) -> Result<Residual> {
        let Some(share) = &self.share else { return Ok(self.residual_alone(b, x)) };
        let mut x = copied(x);
        share.fill(&mut x)?;
        verify::residual_among(&*share.processes, &self.a, b, &x)
    }

    /// The same where there are no other processes.
    pub(crate) fn residual_alone(&self, b: &[f64], x: &[f64]) -> Residual {
        match &self.least_squares {
            Some(least_squares) => verify::least_squares_residual(&self.a, &least_squares.transpose, b, x),
            None => verify::residual(&self.a, b, x),
        }
    }

    /// The sum of a number of each process.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn sum(&self, own: f64) -> Result<f64> {
        self.share.as_ref().map_or(Ok(own), |share| processes::sum(&*share.processes, own))
    }

    /// Whether it is so on all processes.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn all(&self, own: bool) -> Result<bool> {
        self.share.as_ref().map_or(Ok(own), |share| any(&*share.processes, !own).map(|not| !not))
    }

    /// The processes that solve this together, if they go on when a device of one of them fails.
    pub(crate) fn going_on_together(&self) -> Option<&dyn Processes> {
        let share = self.share.as_ref().filter(|_| self.setup.on_failure == OnFailure::Continue)?;
        Some(&*share.processes)
    }

    /// The largest number of iterations that any process has, if all have one.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn slowest(&self, own: Option<u64>) -> Result<Option<u64>> {
        let Some(share) = &self.share else { return Ok(own) };
        let of_all = gathered(&*share.processes, own.unwrap_or(0))?;
        Ok(if of_all.contains(&0) { None } else { of_all.into_iter().max() })
    }

    /// Rows of the whole system, of all processes.
    pub(crate) fn order_of_all(&self) -> usize {
        self.share.as_ref().map_or(self.a.n_rows(), |share| share.n as usize)
    }

    /// The parts of this process's ranks, and all ranks if there are other processes.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn split<'m>(
        &self,
        matrices: &'m [Arc<Csr>],
        ranges: &[Range<usize>],
    ) -> Result<(Vec<Vec<Part<'m>>>, Option<Group>)> {
        let Some(share) = &self.share else {
            return Ok((matrices.iter().map(|a| split(a, ranges)).collect(), None));
        };
        let counts = gathered(&*share.processes, ranges.len() as u64)?;
        let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
        let group = Group::new(Arc::clone(&share.processes), &counts)?;
        let parts = matrices.iter().map(|a| share.split(a, ranges, &group)).collect::<Result<_>>()?;
        Ok((parts, Some(group)))
    }

    /// A right-hand side in the order and units of the ranks.
    pub(crate) fn rhs_of_ranks<'v>(&self, b: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match (&self.least_squares, &self.equilibration) {
            (Some(least_squares), _) => least_squares.rhs_of_ranks(&b),
            (None, Some(equilibration)) => self.in_order(equilibration.of_rhs(&b).into()),
            (None, None) => self.in_order(b),
        }
    }

    /// An iterate in the order and units of the ranks.
    pub(crate) fn iterate_of_ranks<'v>(&self, x: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match (&self.least_squares, &self.equilibration) {
            (Some(least_squares), _) => least_squares.iterate_of_ranks(&x),
            (None, Some(equilibration)) => self.in_order(equilibration.of_iterate(&x).into()),
            (None, None) => self.in_order(x),
        }
    }

    fn in_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.apply(&v)),
            None => v,
        }
    }

    /// And back, into `x`.
    pub(crate) fn iterate_as_given(&self, y: &[f64], x: &mut [f64]) {
        match (&self.least_squares, &self.order) {
            (Some(least_squares), _) => least_squares.iterate_as_given(y, x),
            (None, Some(order)) => order.undo_into(y, x),
            (None, None) => copy(y, x),
        }
        self.equilibration.iter().for_each(|equilibration| equilibration.undo(x));
    }

    /// What the store knows the times of ranks on these devices by; `rows` are in the order of the ranks.
    pub(crate) fn iteration_time_key(&self, devices: &[Option<Info>], rows: &Csr) -> IterationTimeKey {
        let hash = || fingerprint(&part_alone(rows, 0..rows.n_rows()), self.factor);
        self.key(devices, self.hash.get_or_init(hash))
    }

    /// The same, if somebody has asked for it before.
    pub(crate) fn known_iteration_time_key(&self, devices: &[Option<Info>]) -> Option<IterationTimeKey> {
        Some(self.key(devices, self.hash.get()?))
    }

    fn key(&self, devices: &[Option<Info>], hash: &str) -> IterationTimeKey {
        let Setup { method, restart, precond, precision, format, exchange, .. } = self.setup;
        let cycles = if method.facts().restarts { format!("({restart})") } else { String::new() };
        IterationTimeKey {
            system: hash.into(),
            rows: self.a.n_rows() as u64,
            entries: self.a.nnz() as u64,
            method: format!("{method}{cycles}, {precond}, {precision}, {format}{}", unusual(exchange)),
            devices: kinds(devices),
            declive: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// The diagonal of `rows`, if the method asks for it, or what stands for it [where it need not be positive](stand_in). Of a window,
    /// that of others' rows is theirs.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn diagonal(&self, rows: &Csr) -> Result<Vec<f64>> {
        let Some(share) = &self.share else { return Ok(self.own_diagonal(rows)) };
        // what stands for it needs that of neighbours
        let has_stand_in = !self.setup.method.needs_definite() && self.setup.precond.is_diagonal();
        let mut diagonal = match has_stand_in {
            true => self.own_diagonal(&share.with_others(rows)?),
            false => self.own_diagonal(rows),
        };
        if any(&*share.processes, !diagonal.is_empty())? {
            share.fill(&mut diagonal)?;
        }
        Ok(diagonal)
    }

    fn own_diagonal(&self, rows: &Csr) -> Vec<f64> {
        if !self.setup.precond.is_diagonal() || self.least_squares.is_some() {
            return Vec::new();
        }
        if self.has_even_diagonal && self.equilibration.is_none() && self.setup.method.needs_definite() {
            return Vec::new(); // nothing to scale by
        }
        let mut diagonal = rows.diagonal();
        if self.setup.method.needs_definite() {
            return diagonal;
        }
        let is_complex = self.setup.is_complex && self.setup.method.facts().is_complex;
        if is_complex {
            diagonal = moduli(rows, &diagonal);
        }
        let mut stand_in = stand_in(rows, &diagonal, !self.is_symmetric);
        if is_complex {
            // both parts alike, whatever rounding did to their signs
            stand_in.as_chunks_mut::<2>().0.iter_mut().for_each(|[re, im]| *im = *re);
        }
        stand_in
    }

    /// What the system is scaled by, if that changes anything.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn scaling(&self, diagonal: &[f64]) -> Result<Option<Scaling>> {
        if !self.setup.method.scales_by(self.setup.precond) {
            return Ok(None);
        }
        if let Some(share) = &self.share {
            // one number if all are the same; none where there are no rows
            let first = diagonal.first().copied().unwrap_or(f64::INFINITY);
            let own = if diagonal.par_iter().all(|d| *d == first) { first } else { f64::NAN };
            let mut of_all = numbers(&*share.processes, own)?;
            of_all.retain(|d| *d != f64::INFINITY);
            let is_even = of_all.iter().all(|d| *d == of_all[0]);
            return Ok((!is_even).then(|| Scaling::by(diagonal, self.factor, None)));
        }
        Ok(match &self.equilibration {
            Some(equilibration) => {
                let units = self.in_order(equilibration.weights().into()).into_owned();
                Some(Scaling::in_units(diagonal.to_vec(), units))
            }
            None => Scaling::of(diagonal, self.factor),
        })
    }
}

/// The moduli of a complex diagonal, with the signs of its real parts, of the rows of a real form; O(n log(longest row)).
fn moduli(rows: &Csr, real_parts: &[f64]) -> Vec<f64> {
    let imaginary = |row: usize| rows.get(row | 1, row & !1).unwrap_or(0.0);
    let modulus = |(row, re): (usize, &f64)| re.hypot(imaginary(row)).copysign(*re);
    real_parts.par_iter().enumerate().map(modulus).collect()
}

/// A diagonal entry below this part of the largest of its row keeps the matrix from being singular, and says nothing of scale.
const HARDLY: f64 = 1e-4;

/// The absolute value of a diagonal that need not be positive. Where it is 0, or hardly more, |a_ii| + Σ a_ij² / |a_jj| over the
/// columns where it is not: in a saddle point problem [H Bᵀ; B 0] that is the diagonal of B D⁻¹ Bᵀ, with D that of H, which stands
/// for the Schur complement (Benzi, Golub and Liesen 2005, section 10.1, doi 10.1017/S0962492904000212). Where there are none, the
/// largest |a_ij|. O(entries).
///
/// `with_signs`: the diagonal has its sign, and what stands for it that of a_ii − Σ a_ij a_ji / a_jj: −1 in such a problem, where H is
/// positive definite, so that [H Bᵀ; −B 0] has its eigenvalues in the right half of the plane (section 3.4 there).
fn stand_in(rows: &Csr, diagonal: &[f64], with_signs: bool) -> Vec<f64> {
    let entries = |row: usize| {
        let entries = rows.row_ptr()[row]..rows.row_ptr()[row + 1];
        rows.col_idx()[entries.clone()].iter().map(|&j| j as usize).zip(&rows.values()[entries])
    };
    let largest = |row: usize| entries(row).fold(0.0, |m: f64, (_, v)| m.max(v.abs()));
    let counts: Vec<bool> =
        (0..diagonal.len()).into_par_iter().map(|row| diagonal[row].abs() > HARDLY * largest(row)).collect();
    let size = |row: usize| {
        if counts[row] {
            return diagonal[row].abs();
        }
        let sum: f64 = entries(row).filter(|(j, _)| counts[*j]).map(|(j, v)| v * (v / diagonal[j].abs())).sum();
        let d = diagonal[row].abs() + sum;
        if sum > 0.0 && d.is_finite() { d } else { largest(row) }
    };
    let schur = |row: usize| {
        let mirror = |j: usize| rows.get(j, row).unwrap_or(0.0);
        let sum: f64 = entries(row).filter(|(j, _)| counts[*j]).map(|(j, v)| v * (mirror(j) / diagonal[j])).sum();
        diagonal[row] - sum
    };
    let is_negative = |row: usize| if counts[row] { diagonal[row] < 0.0 } else { schur(row) < 0.0 };
    let of_row = |row: usize| if with_signs && is_negative(row) { -size(row) } else { size(row) };
    (0..diagonal.len()).into_par_iter().map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    /// [2 0 1 4; 0 4 2 0; 1 2 d 0; 4 0 0 0], whose third and fourth row stand for constraints, and the same times −1.
    #[test]
    fn what_stands_for_a_diagonal_that_is_hardly_there() {
        for (d, third) in [(0.0, 1.5), (-1e-8, 1e-8 + 1.5), (-1.0, 1.0)] {
            for sign in [1.0, -1.0] {
                let values = [2.0, 1.0, 4.0, 4.0, 2.0, 1.0, 2.0, d, 4.0].map(|v| sign * v).to_vec();
                let a = Csr::new(4, 4, vec![0, 3, 5, 8, 9], vec![0, 2, 3, 1, 2, 0, 1, 2, 0], values).unwrap();
                assert_eq!(stand_in(&a, &a.diagonal(), false), [2.0, 4.0, third, 8.0]);
                let signs = [sign, sign, -sign, -sign];
                let signed: Vec<f64> = [2.0, 4.0, third, 8.0].iter().zip(signs).map(|(d, sign)| d * sign).collect();
                assert_eq!(stand_in(&a, &a.diagonal(), true), signed);
            }
        }
        // none that counts, and no entry at all
        let a = Csr::new(3, 3, vec![0, 1, 2, 2], vec![1, 0], vec![-3.0, -3.0]).unwrap();
        assert_eq!(stand_in(&a, &a.diagonal(), true), [3.0, 3.0, 0.0]);
    }

    #[test]
    fn rows_are_there_again() {
        let a = Arc::new(gallery::poisson2d([7, 5]).unwrap());
        let order = Permutation::new((0..35).rev().collect()).unwrap();
        let rows = Arc::new(permuted(&a, &order).unwrap());
        let expected = (*rows).clone();
        let whole = Whole::new(Arc::clone(&a), &rows, Some(order), 1.0, &Setup::default(), Store::none());
        assert!(Arc::ptr_eq(&whole.rows().unwrap(), &rows));
        drop(rows);
        assert_eq!(*whole.rows().unwrap(), expected);
        let same = Whole::new(Arc::clone(&a), &a, None, 1.0, &Setup::default(), Store::none());
        assert!(Arc::ptr_eq(&same.rows().unwrap(), &a));
    }
}
