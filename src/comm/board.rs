//! What ranks tell each other before they run: values of any type, in the host's memory.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Communicator, Failure, Threads};
use crate::error::{Error, Result};

/// Where a rank shows values to all. The ranks come to it in the same order, as with other collective operations.
pub(crate) struct Board {
    comm: Threads<()>,
    shared: Arc<Shared>,
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
        let failure = Arc::new(Failure::default());
        let comms = Threads::new(&vec![0; size], &failure);
        let shared = Arc::new(Shared { slots: (0..size).map(|_| Slot::default()).collect(), failure });
        comms.into_iter().map(|comm| Self { comm, shared: Arc::clone(&shared) }).collect()
    }

    /// This rank's number.
    pub(crate) fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Number of ranks.
    pub(crate) fn size(&self) -> usize {
        self.comm.size()
    }

    /// What each rank shows, in the order of the ranks.
    ///
    /// # Errors
    /// [`Error::PeerFailed`] if another rank has left.
    pub(crate) fn all<V: Any + Send + Sync>(&self, own: V) -> Result<Vec<Arc<V>>> {
        let slot = |rank: usize| self.shared.slots[rank].lock().unwrap_or_else(PoisonError::into_inner);
        *slot(self.rank()) = Some(Arc::new(own));
        self.comm.sum(&mut [])?; // all is there
        let shown = |rank| slot(rank).clone().and_then(|shown| shown.downcast().ok()).ok_or(Error::PeerFailed);
        let all = (0..self.size()).map(shown).collect();
        self.comm.sum(&mut [])?; // all have seen it
        all
    }

    /// The sum over all ranks, added in their order.
    ///
    /// # Errors
    /// [`Error::PeerFailed`] if another rank has left.
    pub(crate) fn sum(&self, own: f64) -> Result<f64> {
        Ok(self.comm.gather(own)?.into_iter().sum())
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

#[cfg(test)]
mod tests {
    use super::*;

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
                        assert_eq!(*board.all("what else").unwrap()[2], "what else");
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_who_has_left() {
        let boards = Board::of(2);
        boards[1].leave();
        assert!(matches!(boards[0].all(1), Err(Error::PeerFailed)));
        assert!(matches!(boards[0].sum(1.0), Err(Error::PeerFailed)));
    }
}
