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

    /// The least and the largest number of all ranks, of which this one has these.
    pub(super) fn range(&self, own: [f64; 2]) -> Result<[f64; 2]> {
        let all = self.board.gather(own)?;
        Ok(all.iter().fold([f64::INFINITY, 0.0], |[low, high], range| [low.min(range[0]), high.max(range[1])]))
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

    /// The exchange after which each rank has all of a vector, of which it has so many elements from a place on.
    pub(super) fn all_of(&self, own: (usize, usize)) -> Result<(Range<usize>, HaloPlan)> {
        let parts = self.parts(own)?;
        let all = parts.last().map_or(0, |part| part.end);
        Ok((own.0..own.0 + own.1, windows(self.board.rank(), &parts, &vec![0..all; parts.len()])))
    }

    /// The elements that each rank has of a vector, of which this one has so many from a place on.
    pub(super) fn parts(&self, own: (usize, usize)) -> Result<Vec<Range<usize>>> {
        let all = self.board.gather([own.0 as u64, own.1 as u64])?;
        Ok(all.into_iter().map(|[first, n]| first as usize..(first + n) as usize).collect())
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

/// The exchange after which each rank has a window of a vector of which the ranks have these parts, in order, each in its window. Places are those of
/// windows.
pub(super) fn windows(rank: usize, parts: &[Range<usize>], windows: &[Range<usize>]) -> HaloPlan {
    let common = |from: usize, to: usize| {
        let (part, window) = (&parts[from], &windows[to]);
        let start = part.start.max(window.start);
        start..part.end.min(window.end).max(start)
    };
    // all of a part that some other rank needs, once
    let message = |from: usize| {
        let others = (0..parts.len()).filter(|to| *to != from);
        let mut needed: Vec<Range<usize>> = others.map(|to| common(from, to)).filter(|one| !one.is_empty()).collect();
        needed.sort_by_key(|one| one.start);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for one in needed {
            match runs.last_mut() {
                Some(last) if one.start <= last.end => last.end = last.end.max(one.end),
                _ => runs.push(one),
            }
        }
        runs
    };
    let segment = |runs: &[Range<usize>], needed: &Range<usize>| {
        let before = |run: &Range<usize>| run.end.min(needed.start).saturating_sub(run.start);
        let begin: usize = runs.iter().map(before).sum();
        begin..begin + needed.len()
    };
    let (window, runs) = (&windows[rank], message(rank));
    let peers = || (0..parts.len()).filter(|other| *other != rank);
    let receive = peers().map(|from| {
        let needed = common(from, rank);
        let halo = if needed.is_empty() { 0..0 } else { needed.start - window.start..needed.end - window.start };
        Receive { from, segment: segment(&message(from), &needed), halo }
    });
    let receivers = peers().map(|to| Receiver { to, segment: segment(&runs, &common(rank, to)) });
    HaloPlan {
        len: window.len(),
        receive: receive.collect(),
        send: runs.iter().flat_map(|run| run.clone().map(|i| (i - window.start) as u32)).collect(),
        receivers: receivers.collect(),
        is_mutual: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each rank has after an exchange of the numbers of elements.
    fn exchanged(parts: &[Range<usize>], of_ranks: &[Range<usize>]) -> Vec<Vec<usize>> {
        let plans: Vec<HaloPlan> = (0..parts.len()).map(|rank| windows(rank, parts, of_ranks)).collect();
        let arrived = |(rank, plan): (usize, &HaloPlan)| {
            let mut to = vec![usize::MAX; of_ranks[rank].len()];
            for Receive { from, segment, halo } in &plan.receive {
                let sent = plans[*from].receivers.iter().find(|one| one.to == rank).unwrap();
                assert_eq!(sent.segment, *segment);
                for (place, i) in halo.clone().zip(&plans[*from].send[segment.clone()]) {
                    to[place] = of_ranks[*from].start + *i as usize;
                }
            }
            let own = parts[rank].start.max(of_ranks[rank].start)..parts[rank].end.min(of_ranks[rank].end);
            own.for_each(|i| to[i - of_ranks[rank].start] = i);
            to
        };
        plans.iter().enumerate().map(arrived).collect()
    }

    #[test]
    fn windows_are_filled() {
        let parts = [0..10, 10..10, 10..25, 25..30];
        for of_ranks in [
            [0..30, 0..30, 0..30, 0..30],
            [0..13, 10..10, 7..28, 22..30],
            [0..10, 8..12, 10..25, 25..30],
            [0..30, 3..10, 2..26, 24..30],
        ] {
            let expected: Vec<Vec<usize>> = of_ranks.iter().map(|window| window.clone().collect()).collect();
            assert_eq!(exchanged(&parts, &of_ranks), expected);
        }
        // all that is sent to several ranks goes once
        assert_eq!(windows(0, &[0..3, 3..5, 5..6], &[0..6, 0..6, 1..6]).send, [0, 1, 2]);
    }
}
