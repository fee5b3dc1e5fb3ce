//! The host's part in iterations that ranks make without each other's hosts: what a device's pass does that is launched ahead
//! (`source::ahead`), step by step, and told as late.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use super::HostBackend;
use super::passes::{Left, run};
use crate::backend::column::Column;
use crate::backend::log::{Looks, records};
use crate::backend::program::{Pass, Program};
use crate::backend::source::Columns;
use crate::backend::text::{Check, Line, Slot};
use crate::backend::{Backend, Record};
use crate::comm::live::halos::Places;
use crate::comm::live::membership::Membership;
use crate::comm::live::relaying::Member;
use crate::error::Result;
use crate::partition::HaloPlan;
use crate::real::Real;

/// The host's part, and what it knows of a run.
pub(super) struct Together {
    program: Arc<Program>,
    membership: Membership,
    /// Rows whose elements others need, in their order.
    send: Vec<u32>,
    /// The scalars of the iteration,
    column: Column,
    /// their values, as far as they are known,
    values: Vec<f64>,
    /// and what is deferred of x.
    pub(super) deferred: f64,
    /// What iterations have formed and nobody was told, by rows of these columns.
    rows: BTreeMap<u64, Vec<f64>>,
    columns: Columns,
    looks: Looks,
    /// What the next look will tell, as devices' reads of their logs come one look later.
    coming: Option<Range<u64>>,
}

impl Together {
    /// Of a rank with this halo.
    pub(super) fn new(program: &Program, halo: &HaloPlan) -> Self {
        let places = Places::new(halo.send.len(), &halo.receive);
        let memory: Vec<AtomicU64> = (0..places.room()).map(|_| AtomicU64::new(0)).collect();
        let (receive, name) = (halo.receive.clone(), "the host".into());
        Self {
            membership: Membership::new(Member { memory: Arc::new(memory), places, receive, device: None, name }),
            send: halo.send.clone(),
            column: Column::new(program),
            values: Vec::new(),
            deferred: 0.0,
            rows: BTreeMap::new(),
            columns: Columns::of(program),
            looks: Looks::new(),
            coming: None,
            program: Arc::new(program.clone()),
        }
    }

    /// Begins a run, before the first iteration of which carried scalars have these values; whether there is somebody who relays.
    ///
    /// # Errors
    /// A failed rank.
    pub(super) fn begin<T: Real>(&mut self, backend: &HostBackend<T>, carried: &[f64]) -> Result<bool> {
        (self.column, self.looks, self.coming) = (Column::new(&self.program), Looks::new(), None);
        self.column.carried = carried.to_vec();
        self.deferred = self.program.deferred.map_or(0.0, |deferred| carried[deferred.carried]);
        self.rows.clear();
        self.membership.begin(backend.comm())
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        self.membership.end();
    }

    /// Does a pass, before which the halo of a product may be `arriving`, unless what it needs ends the run.
    ///
    /// # Errors
    /// A rank that has failed, or did not come in time.
    pub(super) fn pass<T: Real>(
        &mut self,
        backend: &HostBackend<T>,
        left: &mut Left,
        pass: &Pass,
        (iteration, limit): (u64, f64),
        (v, arriving): (&mut [Vec<T>], Option<Slot>),
    ) -> Result<()> {
        let (n, program) = (backend.n, Arc::clone(&self.program));
        if let Some(y) = arriving {
            self.membership.send(self.send.iter().map(|row| v[y][*row as usize].to_word()));
        }
        let mut goes_on = self.form(backend, left, pass, (iteration, limit))?;
        if goes_on {
            let sums = run(pass, &self.factors(pass), v, &pass.vectors(), 0..n);
            pass.sums().into_iter().zip(sums).for_each(|(k, sum)| left.parts[k] = sum);
            if let Some(y) = arriving {
                let start = Instant::now();
                let halo = &mut v[y][n..];
                self.membership.take(backend.comm(), |place, word| halo[place] = T::of_word(word))?;
                backend.halos.set(backend.halos.get() + start.elapsed());
            }
            let (on_halo, halo) = (pass.on_halo(&program.has_halo), self.membership.places().halo);
            run(&on_halo, &self.factors(&on_halo), v, &on_halo.vectors(), n..n + halo);
            goes_on = self.let_go_on(&pass.after, limit);
        }
        backend.is_over.set(!goes_on);
        Ok(())
    }

    /// Forms what a pass needs of sums over ranks; says whether it is to be done.
    fn form<T: Real>(
        &mut self,
        backend: &HostBackend<T>,
        left: &Left,
        pass: &Pass,
        (iteration, limit): (u64, f64),
    ) -> Result<bool> {
        let program = Arc::clone(&self.program);
        let [former, own] = program.awaited_by(pass);
        let has_former = iteration > 1 && program.is_first(pass);
        let of_former = former.iter().map(|sum| if has_former { left.of(*sum, 1)[0] } else { 0.0 });
        let parts = of_former.chain(own.iter().map(|sum| left.of(*sum, 1)[0])).collect();
        let totals = self.sum(backend, parts)?;
        let (of_former, of_pass) = totals.split_at(former.len());
        let mut goes_on = true;
        if has_former {
            if let Some(last) = &program.last {
                self.take_in(last, iteration - 1, of_former);
                goes_on = self.let_go_on(last.before.iter().chain(&last.after), limit);
            }
            self.column.carry(&program);
        }
        self.take_in(pass, iteration, of_pass);
        goes_on &= self.let_go_on(&pass.before, limit);
        let defers = pass.lines.iter().any(|line| matches!(line, Line::Defer(_)));
        if let Some(deferred) = program.deferred.filter(|_| goes_on && defers) {
            self.deferred = self.values[deferred.next.0];
        }
        Ok(goes_on)
    }

    /// The factors of a pass for which all was formed.
    fn factors(&self, pass: &Pass) -> Vec<f64> {
        pass.factors().iter().map(|node| self.values[node.0]).collect()
    }

    /// Whether checks let the iteration go on.
    fn let_go_on<'a>(&self, checks: impl IntoIterator<Item = &'a Check>, limit: f64) -> bool {
        checks.into_iter().all(|check| check.lets_go_on(self.values[check.node.0], limit))
    }

    /// Adds to `records` what is told of iterations up to this one, as [`PassBackend::look`](crate::backend::pass_backend::PassBackend::look),
    /// at the time at which devices tell it.
    ///
    /// # Errors
    /// A rank that has failed, or did not come in time.
    pub(super) fn look<T: Real>(
        &mut self,
        backend: &HostBackend<T>,
        left: &Left,
        (iteration, drain): (u64, bool),
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let program = Arc::clone(&self.program);
        let mut end = iteration + 1;
        match &program.last {
            Some(last) if drain && self.looks.has_news(end) && !backend.is_over() => {
                let totals = self.sum(backend, last.awaits.iter().map(|sum| left.of(*sum, 1)[0]).collect())?;
                self.take_in(last, iteration, &totals);
            }
            Some(_) if !drain => end = iteration, // the next iteration forms what is told of this one
            _ => {}
        }
        if let Some(iterations) = self.looks.next(end, drain) {
            let former = self.coming.replace(iterations);
            self.tell(former, records);
            self.looks.grow();
        }
        if drain {
            let coming = self.coming.take();
            self.tell(coming, records);
        }
        Ok(())
    }

    /// Sums over ranks, if there are any.
    fn sum<T: Real>(&mut self, backend: &HostBackend<T>, parts: Vec<f64>) -> Result<Vec<f64>> {
        if parts.is_empty() {
            return Ok(parts);
        }
        let start = Instant::now();
        let totals = self.membership.sum(backend.comm(), &parts)?.to_vec();
        backend.sums.set(backend.sums.get() + start.elapsed());
        Ok(totals)
    }

    /// Forms what a pass of this iteration forms of these sums.
    fn take_in(&mut self, pass: &Pass, iteration: u64, totals: &[f64]) {
        pass.awaits.iter().zip(totals).for_each(|(sum, total)| self.column.sums[*sum] = *total);
        self.values = self.column.values(&self.program);
        let row = self.rows.entry(iteration).or_insert_with(|| vec![f64::NAN; self.columns.width]);
        for node in &pass.forms {
            self.columns.column(*node).into_iter().for_each(|column| row[column] = self.values[node.0]);
        }
    }

    /// Tells of these iterations. What was not formed, as the run was over, is no number.
    fn tell(&mut self, iterations: Option<Range<u64>>, records: &mut Vec<Record>) {
        for iteration in iterations.into_iter().flatten() {
            let row = self.rows.remove(&iteration).unwrap_or_else(|| vec![f64::NAN; self.columns.width]);
            records.extend(self::records(&self.program, &self.columns, &row, iteration));
        }
    }
}
