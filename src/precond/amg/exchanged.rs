//! What processes exchange of a level of which each has some rows: elements of vectors, and rows of matrices.
//!
//! A process has numbers of its own for rows and columns of a level: first its rows, then those of others that it needs, in the order of
//! their numbers among all.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::sparse::Sparse;
use crate::comm::Processes;
use crate::comm::processes::{Bytes, LEVELS, exchange};
use crate::distributed::share::Requests;
use crate::error::Result;

/// What is exchanged of a level's vectors.
pub(super) enum Exchanged {
    /// Nothing: this process has all, and makes all.
    Nothing,
    /// Elements of others, before a product: each process has some of the rows.
    Halo(Halo),
    /// All of b: each process makes some of it, and then goes on with all.
    All(Gather),
}

impl Exchanged {
    /// Elements of others that vectors have room for.
    pub(super) fn halo(&self) -> usize {
        match self {
            Self::Halo(halo) => halo.len - halo.n,
            Self::Nothing | Self::All(_) => 0,
        }
    }

    /// Brings the elements of others into a vector, if each process has some of its own.
    pub(super) fn fill(&self, v: &mut [f32]) -> Result<()> {
        match self {
            Self::Halo(halo) => halo.fill(v),
            Self::Nothing | Self::All(_) => Ok(()),
        }
    }

    /// Brings the rest of b, of which this process has made its own part, if it goes on with all.
    pub(super) fn gather(&self, b: &mut [f32]) -> Result<()> {
        match self {
            Self::All(gather) => gather.gather(b),
            Self::Nothing | Self::Halo(_) => Ok(()),
        }
    }

    /// The elements that this process makes, of a level of which it has `n` rows.
    pub(super) fn own(&self, n: usize) -> Range<usize> {
        match self {
            Self::All(gather) => gather.own(),
            Self::Nothing | Self::Halo(_) => 0..n,
        }
    }
}

/// Columns that a process has: its own, and others'.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns {
    /// Numbers among all.
    pub(super) own: Range<u64>,
    /// The same, sorted.
    pub(super) others: Vec<u64>,
}

impl Columns {
    /// Of these, some of which may be the process's own.
    pub(super) fn of(own: Range<u64>, all: impl IntoIterator<Item = u64>) -> Self {
        let mut others: Vec<u64> = all.into_iter().filter(|j| !own.contains(j)).collect();
        others.sort_unstable();
        others.dedup();
        Self { own, others }
    }

    pub(super) fn n_own(&self) -> usize {
        (self.own.end - self.own.start) as usize
    }

    pub(super) fn len(&self) -> usize {
        self.n_own() + self.others.len()
    }

    /// The number among all.
    pub(super) fn global(&self, place: u32) -> u64 {
        match (place as usize).checked_sub(self.n_own()) {
            Some(other) => self.others[other],
            None => self.own.start + u64::from(place),
        }
    }

    /// And back, of one that is there.
    pub(super) fn place(&self, global: u64) -> u32 {
        if self.own.contains(&global) {
            return (global - self.own.start) as u32;
        }
        (self.n_own() + self.others.partition_point(|other| *other < global)) as u32
    }

    /// The same of a matrix's columns, which get their places in `to`.
    pub(super) fn renumber(&self, a: &mut Sparse, to: &Self) {
        let places: Vec<u32> = (0..self.len() as u32).map(|j| to.place(self.global(j))).collect();
        a.renumber(to.len(), |j| places[j as usize]);
    }
}

/// Which elements of vectors a process exchanges with which others.
pub(super) struct Halo {
    pub(super) processes: Arc<dyn Processes>,
    /// Rows of its own, and all that its vectors have.
    n: usize,
    len: usize,
    /// Its rows that each process needs.
    to_each: Vec<Vec<u32>>,
    /// Where it has what it needs of each.
    from_each: Vec<Range<usize>>,
}

impl Halo {
    /// Of vectors with these elements, of which each process owns those from its place in `starts` on. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn new(processes: &Arc<dyn Processes>, starts: &[u64], columns: &Columns) -> Result<Self> {
        let Columns { own, others } = columns;
        let Requests { needed, wanted } = Requests::of(&**processes, starts, others)?;
        let own_places = |rows: Vec<u64>| rows.into_iter().map(|row| (row - own.start) as u32).collect();
        let n = columns.n_own();
        Ok(Self {
            processes: Arc::clone(processes),
            n,
            len: columns.len(),
            to_each: wanted.into_iter().map(own_places).collect(),
            from_each: needed.into_iter().map(|needed| needed.start + n..needed.end + n).collect(),
        })
    }

    /// Brings the elements of others into a vector: one message from and to each process that has some.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn fill<T: Pod + Send + Sync>(&self, v: &mut [T]) -> Result<()> {
        for (to, places) in self.to_each.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let elements: Vec<T> = places.iter().map(|&i| v[i as usize]).collect();
            let all = 0..elements.len();
            self.processes.send(to, LEVELS, Bytes::of(Arc::new(elements), all))?;
        }
        for (from, places) in self.from_each.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            self.processes.receive(from, LEVELS, bytemuck::cast_slice_mut(&mut v[places.clone()]))?;
        }
        Ok(())
    }

    /// The same for a vector of this process's elements alone.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn extend<T: Pod + Send + Sync>(&self, v: &mut Vec<T>) -> Result<()> {
        v.resize(self.len, T::zeroed());
        self.fill(v)
    }

    /// The same for an element of each node, whose rows are so many.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn extend_nodes<T: Pod + Send + Sync>(&self, v: &mut Vec<T>, unknowns: usize) -> Result<()> {
        let mut of_rows: Vec<T> = v.iter().flat_map(|element| vec![*element; unknowns]).collect();
        self.extend(&mut of_rows)?;
        *v = of_rows.into_iter().step_by(unknowns).collect();
        Ok(())
    }

    /// The same for so many elements of each row.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn extend_rows(&self, v: &mut Vec<f32>, width: usize) -> Result<()> {
        let n = v.len() / width;
        v.resize(self.len * width, 0.0);
        for k in 0..width {
            let mut column: Vec<f32> = (0..n).map(|i| v[i * width + k]).collect();
            self.extend(&mut column)?;
            (n..self.len).for_each(|i| v[i * width + k] = column[i]);
        }
        Ok(())
    }

    /// A matrix with the rows of others behind its own, and the columns that these all have. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn with_rows(&self, mut a: Sparse, columns: &Columns) -> Result<(Sparse, Columns)> {
        let (mut lengths, mut numbers, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for places in &self.to_each {
            let rows = || places.iter().map(|&i| a.rows().arrays(i as usize));
            lengths.push(rows().map(|row| row.0.len() as u64).collect());
            numbers.push(rows().flat_map(|row| row.0.iter().map(|&j| columns.global(j))).collect());
            values.push(rows().flat_map(|row| row.1.iter().copied()).collect::<Vec<f32>>());
        }
        // in the order of the processes, as the halo has them
        let lengths = exchange::<u64>(&*self.processes, lengths)?.concat();
        let numbers = exchange::<u64>(&*self.processes, numbers)?.concat();
        let values = exchange::<f32>(&*self.processes, values)?.concat();
        let all = Columns::of(columns.own.clone(), columns.others.iter().chain(&numbers).copied());
        columns.renumber(&mut a, &all);
        let numbers: Vec<u32> = numbers.into_iter().map(|j| all.place(j)).collect();
        a.append(lengths.into_iter().map(|len| len as usize), &numbers, &values);
        Ok((a, all))
    }
}

/// Vectors of which each process makes a part, and then has the whole.
pub(super) struct Gather {
    processes: Arc<dyn Processes>,
    /// Where each begins.
    starts: Vec<usize>,
}

impl Gather {
    /// Of vectors of which each process makes the elements from its place in `starts` on.
    pub(super) fn new(processes: &Arc<dyn Processes>, starts: &[u64]) -> Self {
        Self { processes: Arc::clone(processes), starts: starts.iter().map(|start| *start as usize).collect() }
    }

    fn part(&self, process: usize) -> Range<usize> {
        self.starts[process]..self.starts[process + 1]
    }

    fn own(&self) -> Range<usize> {
        self.part(self.processes.process())
    }

    /// Brings the elements that others have made.
    fn gather(&self, v: &mut [f32]) -> Result<()> {
        let (own, processes) = (self.own(), &*self.processes);
        let others = || (0..processes.count()).filter(|other| *other != processes.process());
        let elements = Arc::new(v[own.clone()].to_vec());
        for to in others().filter(|_| !own.is_empty()) {
            processes.send(to, LEVELS, Bytes::of(Arc::clone(&elements) as _, 0..own.len()))?;
        }
        for from in others().filter(|from| !self.part(*from).is_empty()) {
            processes.receive(from, LEVELS, bytemuck::cast_slice_mut(&mut v[self.part(from)]))?;
        }
        Ok(())
    }
}
