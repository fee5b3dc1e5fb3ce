//! How ranks synchronise: global sums and halos. The only places where one rank waits for another.
//!
//! The ranks of a solve run the same program text. They call the collective operations in the same order, as with MPI.

mod alone;
pub(crate) mod among;
mod board;
mod failure;
mod gate;
mod links;
pub(crate) mod live;
pub(crate) mod processes;
mod spawn;
mod threads;

use std::any::Any;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use self::live::relaying::{Member, Relaying};
use crate::error::Result;
use crate::partition::Receiver;

pub use alone::Alone;
pub(crate) use board::Board;
pub use failure::{Failed, Failure};
pub use links::Links;
pub use processes::{Bytes, Processes};
pub use spawn::in_threads;
pub use threads::Threads;

/// What a rank sends: memory that it leaves alone as long as others hold it.
pub enum Message<T> {
    /// Elements in the host's memory.
    Host(Arc<dyn HostMemory<T>>),
    /// An array in an OpenCL context that all ranks share: only its devices know what this is.
    Device(Arc<dyn Any + Send + Sync>),
}

impl<T> Clone for Message<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Host(elements) => Self::Host(Arc::clone(elements)),
            Self::Device(array) => Self::Device(Arc::clone(array)),
        }
    }
}

/// Elements in the host's memory: pinned or not.
pub trait HostMemory<T>: Deref<Target = [T]> + Send + Sync {}
impl<T, M: Deref<Target = [T]> + Send + Sync> HostMemory<T> for M {}

/// The same that something can arrive in.
pub trait WritableMemory<T>: HostMemory<T> + DerefMut {}
impl<T, M: DerefMut<Target = [T]> + Send + Sync> WritableMemory<T> for M {}

/// Makes memory for so many elements, which a message of another process arrives in.
pub type NewMemory<'a, T> = &'a dyn Fn(usize) -> Result<Arc<dyn WritableMemory<T>>>;

/// The collective operations of one rank. `T` is the element of halo messages.
pub trait Communicator<T>: Send {
    /// This rank's number.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Whether this rank is the first one of its process, which speaks for it.
    fn is_first_of_process(&self) -> bool {
        self.rank() == 0
    }

    /// Replaces each value by its sum over all ranks, added in the order of the ranks, so that every rank gets the same
    /// bits. At most [`MAX_SUMS`] values.
    ///
    /// # Errors
    /// [`Error::PeerFailed`](crate::Error::PeerFailed) if another rank has failed.
    fn sum(&self, values: &mut [f64]) -> Result<()>;

    /// The value of each rank, in the order of the ranks.
    ///
    /// # Errors
    /// [`Error::PeerFailed`](crate::Error::PeerFailed) if another rank has failed.
    fn gather(&self, value: f64) -> Result<Vec<f64>>;

    /// Starts a round of messages with this rank's, once all have fetched its former one. These receive a part of it each.
    ///
    /// # Errors
    /// A failed rank.
    fn post(&self, message: Message<T>, receivers: &[Receiver]) -> Result<()>;

    /// Waits for that part of the message of rank `from` in this round, and tells where it is in what this gives. Each receiver
    /// fetches each message once. What comes from another process arrives in memory that `new` makes, and which serves again.
    ///
    /// # Errors
    /// A failed rank.
    fn fetch(&self, from: usize, segment: &Range<usize>, new: NewMemory<'_, T>) -> Result<(Message<T>, Range<usize>)>;

    /// Lets sums and halos among running kernels be relayed, as long as some rank keeps what it is given, if there are processors to do
    /// it. Collective: all ranks bring what is to be relayed, and get the same answer.
    ///
    /// # Errors
    /// A failed rank.
    fn relay(&self, member: Member) -> Result<Option<Arc<Relaying>>> {
        let _ = member;
        Ok(None)
    }

    /// An error if another rank is known to have failed, for those who wait by themselves.
    ///
    /// # Errors
    /// [`Error::PeerFailed`](crate::Error::PeerFailed).
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Asks all ranks to stop for `request`, or to do what it stands for; 0 takes that back. They learn of it, together, in
    /// their next sum.
    fn request_stop(&self, request: u32);

    /// The request that all ranks learnt of in the last sum (the largest, if there were several), or 0.
    fn stop_request(&self) -> u32;
}

/// The most values that one [`Communicator::sum`] takes: with the request to stop, two lines of a cache.
pub const MAX_SUMS: usize = 31;
