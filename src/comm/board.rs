//! What ranks tell each other before they run, in the host's memory: those of a process, and of all processes if there are several.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use super::among::Group;
use super::processes::exchange;
use super::{Communicator, Failure, Threads};
use crate::error::{Error, Result};

/// Where a rank shows values to all. The ranks come to it in the same order, as with other collective operations.
pub(crate) struct Board {
    comm: Threads<()>,
    shared: Arc<Shared>,
    /// All ranks, if those of other processes are among them.
    group: Option<Group>,
}

/// What was shown last, and by whom.
type Slot = Mutex<Option<Arc<dyn Any + Send + Sync>>>;

struct Shared {
    slots: Vec<Slot>,
    failure: Arc<Failure>,
}

impl Board {
    /// Those of so many ranks, which are threads.
    pub(crate) fn of(size: usize) -> Vec<Self> {
        Self::all_of(size, None)
    }

    /// Those of this process's ranks, each with all ranks of other processes, too. The first of them speaks for the process.
    pub(crate) fn among(group: &Group) -> Vec<Self> {
        Self::all_of(group.own().len(), Some(group))
    }

    fn all_of(size: usize, group: Option<&Group>) -> Vec<Self> {
        let failure = Arc::new(Failure::default());
        let comms = Threads::new(&vec![0; size], &failure);
        let shared = Arc::new(Shared { slots: (0..size).map(|_| Slot::default()).collect(), failure });
        comms.into_iter().map(|comm| Self { comm, shared: Arc::clone(&shared), group: group.cloned() }).collect()
    }

    /// Whether ranks of other processes see it, too.
    pub(crate) fn spans_processes(&self) -> bool {
        self.group.is_some()
    }

    /// This rank's number.
    pub(crate) fn rank(&self) -> usize {
        self.group.as_ref().map_or(0, |group| group.own().start) + self.comm.rank()
    }

    /// Number of ranks.
    pub(crate) fn size(&self) -> usize {
        self.group.as_ref().map_or(self.comm.size(), Group::size)
    }

    /// What each rank of this process shows, in their order.
    fn shown<V: Any + Send + Sync>(&self, own: V) -> Result<Vec<Arc<V>>> {
        let slot = |rank: usize| self.shared.slots[rank].lock().unwrap_or_else(PoisonError::into_inner);
        *slot(self.comm.rank()) = Some(Arc::new(own));
        self.comm.sum(&mut [])?; // all is there
        let shown = |rank| slot(rank).clone().and_then(|shown| shown.downcast().ok()).ok_or(Error::PeerFailed);
        let all = (0..self.comm.size()).map(shown).collect();
        self.comm.sum(&mut [])?; // all have seen it
        all
    }

    /// What each rank shows, in the order of the ranks.
    ///
    /// # Errors
    /// [`Error::PeerFailed`] if another rank has left; a failed process.
    pub(crate) fn all<P: Pod + Send + Sync>(&self, own: Vec<P>) -> Result<Vec<Arc<Vec<P>>>> {
        let here = self.shown(own)?;
        let Some(group) = &self.group else { return Ok(here) };
        let arrived = self.across(group, |_| here.iter().map(|own| &own[..]).collect())?;
        let of_process = |process: usize| match process == group.processes.process() {
            true => here.clone(),
            false => {
                pieces(&arrived[process], group.ranks(process).len()).map(|piece| Arc::new(elements(piece))).collect()
            }
        };
        Ok((0..group.processes.count()).flat_map(of_process).collect())
    }

    /// The same of one value.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub(crate) fn gather<P: Pod + Send + Sync>(&self, own: P) -> Result<Vec<P>> {
        self.all(vec![own])?.iter().map(|one| one.first().copied().ok_or(Error::PeerFailed)).collect()
    }

    /// Gives each rank what is for it, and what came from each.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub(crate) fn exchange<P: Pod + Send + Sync>(&self, to_each: Vec<Vec<P>>) -> Result<Vec<Vec<P>>> {
        let (here, own) = (self.shown(to_each)?, self.rank());
        let Some(group) = &self.group else { return Ok(here.iter().map(|from| from[own].clone()).collect()) };
        let to_process = |process: usize| {
            let ranks = || group.ranks(process);
            here.iter().flat_map(|from| ranks().map(|to| &from[to][..])).collect()
        };
        let (arrived, count, place) = (self.across(group, to_process)?, here.len(), self.comm.rank());
        let of_process = |process: usize| -> Vec<Vec<P>> {
            if process == group.processes.process() {
                return here.iter().map(|from| from[own].clone()).collect();
            }
            let for_all = pieces(&arrived[process], count * group.ranks(process).len());
            for_all.skip(place).step_by(count).map(elements).collect()
        };
        Ok((0..group.processes.count()).flat_map(of_process).collect())
    }

    /// What arrives from each process, where the first rank gives each these pieces.
    fn across<'p, P: Pod>(
        &self,
        group: &Group,
        to_process: impl Fn(usize) -> Vec<&'p [P]>,
    ) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut arrived = Vec::new();
        if self.comm.rank() == 0 {
            let own = group.processes.process();
            let message = |to: usize| if to == own { Vec::new() } else { packed(&to_process(to)) };
            let sent = (0..group.processes.count()).map(message).collect();
            arrived = exchange(&*group.processes, sent).inspect_err(|_| self.leave())?;
        }
        Ok(self.shown(arrived)?.swap_remove(0))
    }

    /// The sum over all ranks, added in their order.
    ///
    /// # Errors
    /// [`Error::PeerFailed`] if another rank has left.
    pub(crate) fn sum(&self, own: f64) -> Result<f64> {
        Ok(self.gather(own)?.into_iter().sum())
    }

    /// This rank comes no more: others don't wait for it. Nor do they for one whose board is gone.
    pub(crate) fn leave(&self) {
        self.shared.failure.report(self.rank(), Error::PeerFailed);
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Bytes of some arrays: how long each is, and then all of them.
fn packed<P: Pod>(pieces: &[&[P]]) -> Vec<u8> {
    let lengths: Vec<u64> = pieces.iter().map(|piece| size_of_val(*piece) as u64).collect();
    let mut message = bytemuck::cast_slice(&lengths).to_vec();
    pieces.iter().for_each(|piece| message.extend_from_slice(bytemuck::cast_slice(piece)));
    message
}

/// These bytes, array by array, of which there are so many.
fn pieces(message: &[u8], count: usize) -> impl Iterator<Item = &[u8]> {
    let (lengths, mut rest) = message.split_at(message.len().min(count * size_of::<u64>()));
    let lengths: Vec<u64> = bytemuck::pod_collect_to_vec(lengths);
    lengths.into_iter().map(move |length| {
        let piece;
        (piece, rest) = rest.split_at(rest.len().min(length as usize));
        piece
    })
}

fn elements<P: Pod>(bytes: &[u8]) -> Vec<P> {
    bytemuck::pod_collect_to_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::simulated::processes;

    #[test]
    fn ranks_of_several_processes() {
        for ranks in [vec![1], vec![1, 1], vec![2, 1], vec![1, 3, 2]] {
            let size: usize = ranks.iter().sum();
            processes(ranks.len(), |all| {
                let group = Group::new(all, &ranks).unwrap();
                std::thread::scope(|scope| {
                    for board in Board::among(&group) {
                        scope.spawn(move || {
                            let own = board.rank();
                            assert!(board.spans_processes() && board.size() == size);
                            for round in 0..10 {
                                let shown = board.all(vec![own as u32; own + round]).unwrap();
                                for (rank, shown) in shown.iter().enumerate() {
                                    assert_eq!(**shown, vec![rank as u32; rank + round]);
                                }
                                // none to rank 0
                                let to_each = (0..size).map(|to| vec![(10 * own + to) as f64; to]).collect();
                                for (from, arrived) in board.exchange(to_each).unwrap().iter().enumerate() {
                                    assert_eq!(*arrived, vec![(10 * from + own) as f64; own]);
                                }
                                let pairs: Vec<[u64; 2]> = (0..size as u64).map(|rank| [rank, 7]).collect();
                                assert_eq!(board.gather([own as u64, 7]).unwrap(), pairs);
                                assert_eq!(board.sum(0.5).unwrap(), 0.5 * size as f64);
                            }
                        });
                    }
                });
            });
        }
    }

    #[test]
    fn all_see_what_each_shows() {
        std::thread::scope(|scope| {
            for board in Board::of(3) {
                scope.spawn(move || {
                    for round in 0..50 {
                        let own = vec![round; board.rank()];
                        let all = board.all(own).unwrap();
                        assert!((0..3).all(|rank| *all[rank] == vec![round; rank]));
                        assert_eq!(board.sum(board.rank() as f64).unwrap(), 3.0);
                        let to_each = (0..3).map(|to| vec![board.rank() + to; to]).collect();
                        assert_eq!(board.exchange(to_each).unwrap()[1], vec![1 + board.rank(); board.rank()]);
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_who_has_left() {
        let boards = Board::of(2);
        boards[1].leave();
        assert!(matches!(boards[0].all(vec![1]), Err(Error::PeerFailed)));
        assert!(matches!(boards[0].sum(1.0), Err(Error::PeerFailed)));
    }
}
