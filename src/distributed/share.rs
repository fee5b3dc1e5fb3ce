//! One process's part of a system: its rows, and places for the elements of others that they need.
//!
//! The part is a square matrix of its own, the *window*, so that all that is done with matrices can be done with it: its rows are those of
//! the process and, before and behind them, those of others that its entries have columns of, in the order of their global numbers. These
//! have no entries. So the order of entries in a row, and the distances in grids, are those of the whole matrix.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use rayon::prelude::*;

use super::rows::Rows;
use crate::comm::Processes;
use crate::comm::among::Group;

use crate::comm::processes::{self, agreed, exchange, gathered};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::partition::{HaloPlan, Part, Receive, Receiver, columns_outside, parts};

/// Where this process's rows are among all.
pub(crate) struct Share {
    pub(crate) processes: Arc<dyn Processes>,
    /// Rows of all processes.
    pub(crate) n: u64,
    /// Entries of all.
    pub(crate) nnz: u64,
    /// The first row of each process, and the end of the last.
    pub(crate) starts: Vec<u64>,
    /// The rows of others that the window has, sorted.
    others: Vec<u64>,
    /// This process's, in the window.
    pub(crate) own: Range<usize>,
    /// Of each process, the places of its rows in the window, and what it needs of this one.
    from_each: Vec<Range<usize>>,
    to_each: Vec<Vec<u32>>,
}

/// Rows that processes need of each other.
pub(crate) struct Requests {
    /// Of each process, the places of its rows among all of others' that this one needs.
    pub(crate) needed: Vec<Range<usize>>,
    /// The rows that each needs of this one.
    pub(crate) wanted: Vec<Vec<u64>>,
}

impl Requests {
    /// Where this process needs these of others' rows, sorted; those of each process begin with `starts`. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn of(processes: &dyn Processes, starts: &[u64], others: &[u64]) -> Result<Self> {
        let place = |row: u64| others.partition_point(|other| *other < row);
        let needed: Vec<Range<usize>> = starts.windows(2).map(|rows| place(rows[0])..place(rows[1])).collect();
        let wanted = exchange(processes, needed.iter().map(|needed| others[needed.clone()].to_vec()).collect())?;
        Ok(Self { needed, wanted })
    }
}

impl Share {
    /// Of rows that each process has some of, and the window. Collective.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; a window beyond 32-bit indices; a failed process.
    pub(crate) fn new(processes: Arc<dyn Processes>, rows: Rows) -> Result<(Self, Csr)> {
        let Rows { n_rows, n_cols, starts, row_ptr, columns, values } = rows;
        if n_rows != n_cols {
            return Err(Error::NotSquare { rows: n_rows as usize, cols: n_cols as usize });
        }
        let process = processes.process();
        let rows = starts[process]..starts[process + 1];
        let mut others: Vec<u64> = columns.par_iter().copied().filter(|j| !rows.contains(j)).collect();
        others.par_sort_unstable();
        others.dedup();
        let before = others.partition_point(|j| *j < rows.start);
        let own = before..before + row_ptr.len() - 1;
        let order = own.len() + others.len();
        let fits = if order > Csr::MAX_DIM {
            Err(Error::Usage(format!(
                "process {process} has {} rows and needs elements of {} others, beyond 32-bit indices; use more processes",
                own.len(),
                others.len()
            )))
        } else {
            Ok(())
        };
        agreed(&*processes, fits)?;
        let place = |j: &u64| {
            if rows.contains(j) {
                return (j - rows.start) as u32 + before as u32;
            }
            let (Ok(k) | Err(k)) = others.binary_search(j);
            if k < before { k as u32 } else { (k + own.len()) as u32 }
        };
        let col_idx: Vec<u32> = columns.par_iter().map(place).collect();
        drop(columns);
        let (first, last) = (row_ptr.first().copied().unwrap_or(0), row_ptr.last().copied().unwrap_or(0));
        let mut ends = vec![first; before];
        ends.extend(row_ptr);
        ends.resize(order + 1, last);
        let a = agreed(&*processes, Csr::new(order, order, ends, col_idx, values))?;

        let Requests { needed, wanted } = Requests::of(&*processes, &starts, &others)?;
        let own_place = |j: &u64| (j - rows.start) as u32 + before as u32;
        let to_each = wanted.iter().map(|wanted| wanted.iter().map(own_place).collect()).collect();
        let in_window = |needed: Range<usize>| {
            if needed.start >= before { needed.start + own.len()..needed.end + own.len() } else { needed }
        };
        let nnz = gathered(&*processes, a.nnz() as u64)?.iter().sum();
        let from_each = needed.into_iter().map(in_window).collect();
        Ok((Self { processes, n: n_rows, nnz, starts, others, own, from_each, to_each }, a))
    }

    /// The global number of a row of the window.
    pub(crate) fn global(&self, place: usize) -> u64 {
        match place {
            before if before < self.own.start => self.others[before],
            own if own < self.own.end => self.starts[self.processes.process()] + (own - self.own.start) as u64,
            behind => self.others[behind - self.own.len()],
        }
    }

    /// Rows of the window.
    pub(crate) fn order(&self) -> usize {
        self.own.len() + self.others.len()
    }

    /// A vector of this process's elements in the window, with zeros for those of others.
    pub(crate) fn padded(&self, own: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; self.order()];
        all[self.own.clone()].copy_from_slice(own);
        all
    }

    /// Brings the elements of others into a vector of the window. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn fill<T: Pod + Send + Sync>(&self, v: &mut [T]) -> Result<()> {
        let of_places = |places: &Vec<u32>| places.iter().map(|&i| v[i as usize]).collect();
        let arrived = exchange(&*self.processes, self.to_each.iter().map(of_places).collect())?;
        for (places, elements) in self.from_each.iter().zip(arrived) {
            v[places.clone()].copy_from_slice(&elements);
        }
        Ok(())
    }

    /// The other way: what a vector of the window has at the places of others goes to them. Gives, of each process in order, the places of
    /// this process's rows and what it has for them. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn handed_over<T: Pod + Send + Sync>(&self, v: &[T]) -> Result<impl Iterator<Item = (&[u32], Vec<T>)>> {
        let of_places = |places: &Range<usize>| v[places.clone()].to_vec();
        let arrived = exchange(&*self.processes, self.from_each.iter().map(of_places).collect())?;
        Ok(self.to_each.iter().map(Vec::as_slice).zip(arrived))
    }

    /// This process's rows of a matrix in the window, with the columns of these rows alone.
    pub(crate) fn own_block(&self, a: &Csr) -> Result<Csr> {
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in self.own.clone() {
            let (columns, of_row) = a.row(row);
            let [begin, end] =
                [self.own.start, self.own.end].map(|end| columns.partition_point(|&j| (j as usize) < end));
            col_idx.extend(columns[begin..end].iter().map(|j| j - self.own.start as u32));
            values.extend(&of_row[begin..end]);
            row_ptr.push(col_idx.len());
        }
        Csr::new(self.own.len(), self.own.len(), row_ptr, col_idx, values)
    }

    /// A matrix of this process's rows and columns alone, in the window.
    pub(crate) fn embedded(&self, own: &Csr) -> Result<Csr> {
        let mut row_ptr = vec![0; self.own.start];
        row_ptr.extend(own.row_ptr());
        row_ptr.resize(self.order() + 1, own.nnz());
        let col_idx = own.col_idx().iter().map(|j| j + self.own.start as u32).collect();
        Csr::new(self.order(), self.order(), row_ptr, col_idx, own.values().to_vec())
    }

    /// The window with the entries of others' rows, as far as their columns are in it. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn with_others(&self, a: &Csr) -> Result<Csr> {
        let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for places in &self.to_each {
            let rows = || places.iter().map(|&i| a.row(i as usize));
            lengths.push(rows().map(|row| row.0.len() as u64).collect());
            columns.push(rows().flat_map(|row| row.0.iter().map(|&j| self.global(j as usize))).collect());
            values.push(rows().flat_map(|row| row.1.iter().copied()).collect());
        }
        let lengths: Vec<Vec<u64>> = exchange(&*self.processes, lengths)?;
        let columns: Vec<Vec<u64>> = exchange(&*self.processes, columns)?;
        let values: Vec<Vec<f64>> = exchange(&*self.processes, values)?;
        let mut others: Vec<(Vec<u32>, Vec<f64>)> = vec![Default::default(); self.order()];
        for (process, places) in self.from_each.iter().enumerate() {
            let mut entry = 0;
            for (row, len) in places.clone().zip(&lengths[process]) {
                let entries = entry..entry + *len as usize;
                entry = entries.end;
                let here = columns[process][entries.clone()].iter().zip(&values[process][entries]);
                others[row] = here.filter_map(|(&j, &v)| Some((self.place(j)? as u32, v))).unzip();
            }
        }
        let (mut row_ptr, mut col_idx, mut all) = (vec![0], Vec::new(), Vec::new());
        for (row, (other_columns, other_values)) in others.iter().enumerate() {
            let (own_columns, own_values) = a.row(row);
            col_idx.extend(own_columns.iter().chain(other_columns));
            all.extend(own_values.iter().chain(other_values));
            row_ptr.push(col_idx.len());
        }
        Csr::new(self.order(), self.order(), row_ptr, col_idx, all)
    }

    /// The process that has a row.
    pub(crate) fn process_of(&self, row: u64) -> usize {
        // of processes without rows, the last one that begins there has it
        self.starts.partition_point(|first| *first <= row) - 1
    }

    /// The row of the window that has this global number.
    pub(crate) fn place(&self, row: u64) -> Option<usize> {
        let process = self.processes.process();
        if (self.starts[process]..self.starts[process + 1]).contains(&row) {
            return Some((row - self.starts[process]) as usize + self.own.start);
        }
        let k = self.others.binary_search(&row).ok()?;
        Some(if k < self.own.start { k } else { k + self.own.len() })
    }

    /// The parts of this process's ranks, which own the rows `ranges` of a matrix in the window, and the exchange with all others.
    /// Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn split<'a>(&self, a: &'a Csr, ranges: &[Range<usize>], group: &Group) -> Result<Vec<Part<'a>>> {
        let halo: Vec<Vec<u32>> = ranges.par_iter().map(|rows| columns_outside(a, rows)).collect();
        let plans = self.plans(ranges, &halo, group)?;
        Ok(parts(a, ranges, &halo, plans))
    }

    /// The exchange of this process's ranks, which own the rows `ranges` and need the columns `halo`, sorted.
    fn plans(&self, ranges: &[Range<usize>], halo: &[Vec<u32>], group: &Group) -> Result<Vec<HaloPlan>> {
        let count = self.processes.count();
        let firsts = self.first_rows(ranges, group)?;
        let own = group.own();
        let mut plans: Vec<HaloPlan> =
            halo.iter().map(|halo| HaloPlan { len: halo.len(), ..HaloPlan::default() }).collect();
        // of each rank that needs something of another: both, how much, and the rows
        let mut asked: Vec<Vec<u64>> = vec![Vec::new(); count];
        for (to, (halo, plan)) in halo.iter().zip(&mut plans).enumerate() {
            let rows: Vec<u64> = halo.iter().map(|&j| self.global(j as usize)).collect();
            let mut begin = 0;
            while begin < rows.len() {
                // of ranks without rows, the last one that begins there has them
                let from = firsts.partition_point(|first| *first <= rows[begin]) - 1;
                let end = rows.partition_point(|row| *row < firsts[from + 1]);
                let message = &mut asked[group.place(from).0];
                message.extend([(own.start + to) as u64, from as u64, (end - begin) as u64]);
                message.extend(&rows[begin..end]);
                plan.receive.push(Receive { from, segment: 0..end - begin, halo: begin..end });
                begin = end;
            }
        }
        // in the order of the processes, and of their ranks
        for message in exchange(&*self.processes, asked)? {
            let mut rest = &message[..];
            while let [to, from, len, after @ ..] = rest {
                let (rows, others) = after.split_at(*len as usize);
                rest = others;
                let (to, from) = (*to as usize, *from as usize);
                let plan = &mut plans[from - own.start];
                let segment = plan.send.len()..plan.send.len() + rows.len();
                plan.send.extend(rows.iter().map(|row| (row - firsts[from]) as u32));
                plan.receivers.push(Receiver { to, segment: segment.clone() });
                // ranks of this process see the whole message
                if own.contains(&to) {
                    let receive = &mut plans[to - own.start].receive;
                    receive.iter_mut().filter(|one| one.from == from).for_each(|one| one.segment = segment.clone());
                }
            }
        }
        Ok(plans)
    }

    /// The first row of each rank of all processes, and the end of the last.
    fn first_rows(&self, ranges: &[Range<usize>], group: &Group) -> Result<Vec<u64>> {
        let most = group.first.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let mut own: Vec<u64> = ranges.iter().map(|rows| self.row_before(rows.start)).collect();
        own.resize(most, 0);
        let mut all = vec![0; most * self.processes.count()];
        self.processes.gather(&own, &mut all)?;
        let of_process =
            |(process, firsts): (usize, &[u64])| firsts[..group.first[process + 1] - group.first[process]].to_vec();
        let mut firsts: Vec<u64> = all.chunks_exact(most.max(1)).enumerate().flat_map(of_process).collect();
        firsts.push(self.n);
        Ok(firsts)
    }

    /// The global number of the row at a boundary of this process's rows.
    pub(crate) fn row_before(&self, place: usize) -> u64 {
        self.starts[self.processes.process()] + (place - self.own.start) as u64
    }

    /// The largest of a number of each process.
    pub(crate) fn largest(&self, own: f64) -> Result<f64> {
        processes::largest(&*self.processes, own)
    }
}

#[cfg(test)]
mod tests;
