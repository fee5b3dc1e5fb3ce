//! What ranks exchange while they make levels together, through the host's memory.

use std::ops::Range;

use super::set_up::SetUp;
use crate::comm::Board;
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::Argument;
use crate::kernels::amg::DeviceSparse;
use crate::kernels::amg::ranks::Listed;
use crate::partition::{HaloPlan, Receive, Receiver};
use crate::real::Real;

/// The other ranks, and what this one has of the matrix.
#[derive(Clone, Copy)]
pub(crate) struct Among<'a> {
    pub(crate) board: &'a Board,
    /// Its rows: their first number, and how many.
    pub(crate) own: (usize, usize),
    /// The exchange of the rows that the device has.
    pub(crate) plan: &'a HaloPlan,
    /// Ranks share levels of more entries than that, and all have those of fewer.
    pub(crate) most: usize,
}

/// What this rank exchanges of a level's vectors.
pub(super) struct Halo {
    /// Its rows: their first number among those of all ranks, and how many.
    pub(super) own: (usize, usize),
    /// The numbers of others' rows that it needs, in the order of its halo.
    pub(super) others: Vec<u32>,
    pub(super) plan: HaloPlan,
    /// What it sends, as its own places.
    list: DeviceVec<u32>,
}

impl Among<'_> {
    /// The numbers of others' rows that the rows on the device need.
    pub(super) fn others(&self) -> Result<Vec<u32>> {
        let first = self.own.0 as u32;
        let sent = self.board.all(self.plan.send.iter().map(|i| i + first).collect::<Vec<u32>>())?;
        let mut others = vec![0; self.plan.len];
        for Receive { from, segment, halo } in &self.plan.receive {
            others[halo.clone()].copy_from_slice(&sent[*from][segment.clone()]);
        }
        Ok(others)
    }

    /// How many rows the ranks before this one have, and all together, where it has so many.
    pub(super) fn places(&self, own: usize) -> Result<(usize, usize)> {
        let all = self.board.all(own)?;
        let before = all[..self.board.rank()].iter().map(|count| **count).sum();
        Ok((before, all.iter().map(|count| **count).sum()))
    }

    /// The sum over all ranks of a number of things.
    pub(super) fn sum(&self, count: usize) -> Result<usize> {
        self.places(count).map(|(_, all)| all)
    }

    /// The exchange of a level's vectors, of which this rank has so many elements, and needs `others`, which are sorted.
    pub(super) fn halo(&self, ctx: &Context, own: (usize, usize), others: Vec<u32>) -> Result<Halo> {
        let all = self.board.all((own, others.clone()))?;
        let rows = |rank: usize| all[rank].0.0..all[rank].0.0 + all[rank].0.1;
        // what a rank needs of another, as places among what it needs
        let needs = |to: usize, from: usize| -> Range<usize> {
            let place = |row: usize| all[to].1.partition_point(|&j| (j as usize) < row);
            place(rows(from).start)..place(rows(from).end)
        };
        let (rank, size) = (self.board.rank(), self.board.size());
        let peers = |rank: usize| (0..size).filter(move |&other| other != rank);
        let receive = peers(rank).map(|from| {
            let before: usize = peers(from).take_while(|&to| to < rank).map(|to| needs(to, from).len()).sum();
            let halo = needs(rank, from);
            Receive { from, segment: before..before + halo.len(), halo }
        });
        let (mut send, mut receivers) = (Vec::new(), Vec::new());
        for to in peers(rank) {
            let (begin, needed) = (send.len(), &all[to].1[needs(to, rank)]);
            send.extend(needed.iter().map(|&j| j - own.0 as u32));
            receivers.push(Receiver { to, segment: begin..send.len() });
        }
        let list = DeviceVec::from_slice(ctx, &send, "what others need")?;
        let plan = HaloPlan { len: others.len(), receive: receive.collect(), send, receivers, is_mutual: true };
        Ok(Halo { own, others, plan, list })
    }

    /// The exchange after which each rank has all of a vector, of which it has so many elements from a place on: what it sends is a vector of
    /// these alone.
    pub(super) fn all_of(&self, own: (usize, usize)) -> Result<((usize, usize), HaloPlan)> {
        let all = self.board.all(own)?;
        let peers = (0..self.board.size()).filter(|&to| to != self.board.rank());
        let receivers = peers.map(|to| Receiver { to, segment: 0..own.1 }).collect();
        let ranks = all.iter().enumerate().filter(|&(from, _)| from != self.board.rank());
        let receive = ranks.map(|(from, own)| Receive { from, segment: 0..own.1, halo: own.0..own.0 + own.1 });
        let plan = HaloPlan {
            len: all.iter().map(|own| own.1).sum(),
            receive: receive.collect(),
            send: (0..own.1 as u32).collect(),
            receivers,
            is_mutual: true,
        };
        Ok((own, plan))
    }

    /// Fills the halo of a vector.
    pub(super) fn fill<V: Listed, T: Real, A: Real>(
        &self,
        on: &SetUp<T, A>,
        halo: &Halo,
        v: &mut DeviceVec<V>,
    ) -> Result<()>
    where
        DeviceVec<V>: Argument,
    {
        let sent = self.board.all(on.kernels.at(&on.ctx, &halo.list, v)?)?;
        let mut of_others = vec![V::default(); halo.plan.len];
        for Receive { from, segment, halo } in &halo.plan.receive {
            of_others[halo.clone()].copy_from_slice(&sent[*from][segment.clone()]);
        }
        v.write(&on.ctx, halo.own.1, &of_others)
    }

    /// A matrix with the rows of the halo behind its own. Columns are numbers among those of all ranks.
    pub(super) fn with_halo_rows<T: Real, A: Real>(
        &self,
        on: &SetUp<T, A>,
        halo: &Halo,
        a: &DeviceSparse,
    ) -> Result<DeviceSparse> {
        let sent = self.board.all(on.kernels.listed(&on.ctx, &halo.list, a)?)?;
        let listed = halo.plan.receive.iter().map(|receive| (&*sent[receive.from], receive.segment.clone()));
        on.kernels.with_rows(&on.ctx, a, &listed.collect::<Vec<_>>())
    }
}
