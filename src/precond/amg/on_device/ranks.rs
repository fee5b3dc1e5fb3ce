//! What ranks exchange while they make levels together, through the host's memory.

use std::ops::Range;

use bytemuck::Pod;

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
    /// Its rows: their first number among those of all ranks, and how many.
    pub(crate) own: (usize, usize),
    /// Where these begin in the matrix that the process has.
    pub(crate) place: usize,
    /// Rows and entries of all ranks.
    pub(crate) of_all: (usize, usize),
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
    /// The exchange of the first level's vectors: that of the rows on the device, with all ranks as peers.
    pub(super) fn first_halo(&self, ctx: &Context) -> Result<Halo> {
        let HaloPlan { len, receive, send, receivers, is_mutual } = self.plan.clone();
        let peers = || (0..self.board.size()).filter(|&other| other != self.board.rank());
        let none = |from| Receive { from, segment: 0..0, halo: 0..0 };
        let of = |from| receive.iter().find(|one| one.from == from).cloned().unwrap_or_else(|| none(from));
        let to_none = |to| Receiver { to, segment: 0..0 };
        let to = |to| receivers.iter().find(|one| one.to == to).cloned().unwrap_or_else(|| to_none(to));
        let (receive, receivers) = (peers().map(of).collect(), peers().map(to).collect());
        let plan = HaloPlan { len, receive, send, receivers, is_mutual };
        let first = self.own.0 as u32;
        let others = self.exchanged(&plan, plan.send.iter().map(|i| i + first).collect())?;
        let list = DeviceVec::from_slice(ctx, &plan.send, "what others need")?;
        Ok(Halo { own: self.own, others, plan, list })
    }

    /// The halo of what each rank has of the elements that it sends.
    pub(super) fn exchanged<P: Pod + Default + Send + Sync>(&self, plan: &HaloPlan, sent: Vec<P>) -> Result<Vec<P>> {
        let mut to_each = vec![Vec::new(); self.board.size()];
        for Receiver { to, segment } in &plan.receivers {
            to_each[*to] = sent[segment.clone()].to_vec();
        }
        let arrived = self.board.exchange(to_each)?;
        let mut halo = vec![P::default(); plan.len];
        for Receive { from, halo: places, .. } in &plan.receive {
            halo[places.clone()].copy_from_slice(&arrived[*from]);
        }
        Ok(halo)
    }

    /// How many rows the ranks before this one have, and all together, where it has so many.
    pub(super) fn places(&self, own: usize) -> Result<(usize, usize)> {
        let all = self.board.gather(own as u64)?;
        let sum = |counts: &[u64]| counts.iter().sum::<u64>() as usize;
        Ok((sum(&all[..self.board.rank()]), sum(&all)))
    }

    /// The sum over all ranks of a number of things.
    pub(super) fn sum(&self, count: usize) -> Result<usize> {
        self.places(count).map(|(_, all)| all)
    }

    /// The exchange of a level's vectors, of which this rank has so many elements, and needs `others`, which are sorted.
    pub(super) fn halo(&self, ctx: &Context, own: (usize, usize), others: Vec<u32>) -> Result<Halo> {
        let firsts = self.board.gather([own.0 as u64, (own.0 + own.1) as u64])?;
        let place = |row: u64| others.partition_point(|&j| u64::from(j) < row);
        let needed: Vec<Range<usize>> = firsts.iter().map(|[first, end]| place(*first)..place(*end)).collect();
        let wanted = self.board.exchange(needed.iter().map(|needed| others[needed.clone()].to_vec()).collect())?;
        let (mut send, mut receivers, mut begins) = (Vec::new(), Vec::new(), Vec::new());
        for (to, wanted) in wanted.iter().enumerate() {
            begins.push(vec![send.len() as u64]);
            if to != self.board.rank() {
                let begin = send.len();
                send.extend(wanted.iter().map(|&j| j - own.0 as u32));
                receivers.push(Receiver { to, segment: begin..send.len() });
            }
        }
        // where each has them in its message
        let begins = self.board.exchange(begins)?;
        let receive = needed.into_iter().zip(begins).enumerate().filter(|(from, _)| *from != self.board.rank());
        let receive = receive.map(|(from, (halo, begin))| {
            let begin = begin.first().map_or(0, |begin| *begin as usize);
            Receive { from, segment: begin..begin + halo.len(), halo }
        });
        let plan = HaloPlan { len: others.len(), receive: receive.collect(), send, receivers, is_mutual: true };
        let list = DeviceVec::from_slice(ctx, &plan.send, "what others need")?;
        Ok(Halo { own, others, plan, list })
    }

    /// The exchange after which each rank has all of a vector, of which it has so many elements from a place on: what it sends is a vector of
    /// these alone.
    pub(super) fn all_of(&self, own: (usize, usize)) -> Result<((usize, usize), HaloPlan)> {
        let all = self.board.gather([own.0 as u64, own.1 as u64])?;
        let all: Vec<[usize; 2]> = all.into_iter().map(|own| own.map(|n| n as usize)).collect();
        let peers = (0..self.board.size()).filter(|&to| to != self.board.rank());
        let receivers = peers.map(|to| Receiver { to, segment: 0..own.1 }).collect();
        let ranks = all.iter().enumerate().filter(|&(from, _)| from != self.board.rank());
        let receive = ranks.map(|(from, [first, n])| Receive { from, segment: 0..*n, halo: *first..first + n });
        let plan = HaloPlan {
            len: all.iter().map(|own| own[1]).sum(),
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
        let of_others = self.exchanged(&halo.plan, on.kernels.at(&on.ctx, &halo.list, v)?)?;
        v.write(&on.ctx, halo.own.1, &of_others)
    }

    /// A matrix with the rows of the halo behind its own. Columns are numbers among those of all ranks.
    pub(super) fn with_halo_rows<T: Real, A: Real>(
        &self,
        on: &SetUp<T, A>,
        halo: &Halo,
        a: &DeviceSparse,
    ) -> Result<DeviceSparse> {
        let (starts, columns, values) = on.kernels.listed(&on.ctx, &halo.list, a)?;
        let size = self.board.size();
        let (mut lengths, mut columns_to, mut values_to) = (vec![vec![]; size], vec![vec![]; size], vec![vec![]; size]);
        for Receiver { to, segment } in &halo.plan.receivers {
            let starts = &starts[segment.start..=segment.end];
            let entries = starts[0] as usize..starts[segment.len()] as usize;
            lengths[*to] = starts.windows(2).map(|ends| ends[1] - ends[0]).collect();
            columns_to[*to] = columns[entries.clone()].to_vec();
            values_to[*to] = values[entries].to_vec();
        }
        // ranks in order are the halo in order
        let lengths: Vec<u32> = self.board.exchange(lengths)?.concat();
        let (columns, values) = (self.board.exchange(columns_to)?.concat(), self.board.exchange(values_to)?.concat());
        on.kernels.with_rows(&on.ctx, a, (&lengths, &columns, &values))
    }
}
