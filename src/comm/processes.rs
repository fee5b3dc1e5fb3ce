//! Processes that solve a system together: what ranks need of MPI, and what is made of it.

#[cfg(feature = "mpi")]
pub(crate) mod mpi;
#[cfg(test)]
pub(crate) mod simulated;

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;

use super::HostMemory;
use crate::error::{Error, ErrorKind, Result};

/// The processes of a job, as one of them sees them. Any thread may call it.
///
/// Collective calls are made by all processes in the same order, by one thread of each. Whoever waits for a process that has
/// [failed](Self::fail) gets an error.
pub trait Processes: Send + Sync {
    /// This process's number.
    fn process(&self) -> usize;

    /// Number of processes.
    fn count(&self) -> usize;

    /// This process's number among those of its host, and how many those are.
    fn on_host(&self) -> [usize; 2];

    /// What all processes bring, in their order: as much each, so that `all` is [`count`](Self::count) times as long as `own`. Collective.
    ///
    /// # Errors
    /// [`Error::ProcessFailed`].
    fn gather(&self, own: &[u64], all: &mut [u64]) -> Result<()>;

    /// Starts to send bytes to another process, and holds them until they are gone. Those of one tag arrive in the order in
    /// which they are sent. `stream` keeps threads apart: below 2¹⁶.
    ///
    /// # Errors
    /// [`Error::ProcessFailed`].
    fn send(&self, to: usize, stream: u32, bytes: Bytes) -> Result<()>;

    /// Waits for the next bytes of a process in that stream, which are as many as `into` has room for.
    ///
    /// # Errors
    /// [`Error::ProcessFailed`].
    fn receive(&self, from: usize, stream: u32, into: &mut [u8]) -> Result<()>;

    /// Tells all others that this process can't go on, and why.
    fn fail(&self, why: &str);

    /// An error if another process has failed, or all is [revoked](Self::revoke).
    ///
    /// # Errors
    /// [`Error::ProcessFailed`]; [`Error::PeerFailed`].
    fn check(&self) -> Result<()>;

    /// Lets what is under way among the processes come to nothing: whoever waits for another one gets [`Error::PeerFailed`], and so does
    /// whoever begins anything before all is [restored](Self::restore).
    fn revoke(&self);

    /// Waits for all processes, forgets what was under way, and lets all go on. Nothing else of this process may be under way. Collective.
    ///
    /// # Errors
    /// [`Error::ProcessFailed`].
    fn restore(&self) -> Result<()>;
}

/// Bytes that are sent: a part of memory that others hold, too, and leave alone meanwhile.
pub struct Bytes(Arc<dyn HostMemory<u8>>);

impl Bytes {
    /// Those of some elements.
    pub(crate) fn of<T: Pod + Send + Sync>(memory: Arc<dyn HostMemory<T>>, elements: Range<usize>) -> Self {
        Self(Arc::new(Elements { memory, elements }))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Some of an array, as bytes.
struct Elements<T> {
    memory: Arc<dyn HostMemory<T>>,
    elements: Range<usize>,
}

impl<T: Pod> Deref for Elements<T> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.memory[self.elements.clone()])
    }
}

/// The streams of [`exchange`], of vectors on their way to and from the first process, which goes on beside all else, and of multigrid levels.
const EXCHANGE: u32 = 0;
pub(crate) const VECTORS: u32 = 1;
pub(crate) const LEVELS: u32 = 2;

/// Elements of one message at the most, so that no memory is needed for more than that at a time beside what arrives.
const PIECE: usize = 1 << 24;

/// What all processes bring, in their order. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn gathered(processes: &dyn Processes, own: u64) -> Result<Vec<u64>> {
    let mut all = vec![0; processes.count()];
    processes.gather(&[own], &mut all)?;
    Ok(all)
}

/// The same for numbers.
///
/// # Errors
/// A failed process.
pub(crate) fn numbers(processes: &dyn Processes, own: f64) -> Result<Vec<f64>> {
    Ok(gathered(processes, own.to_bits())?.into_iter().map(f64::from_bits).collect())
}

/// The sum over all processes, added in their order.
///
/// # Errors
/// A failed process.
pub(crate) fn sum(processes: &dyn Processes, own: f64) -> Result<f64> {
    Ok(numbers(processes, own)?.into_iter().sum())
}

/// The largest number of all processes.
///
/// # Errors
/// A failed process.
pub(crate) fn largest(processes: &dyn Processes, own: f64) -> Result<f64> {
    Ok(numbers(processes, own)?.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// Whether it is so on any process.
///
/// # Errors
/// A failed process.
pub(crate) fn any(processes: &dyn Processes, own: bool) -> Result<bool> {
    Ok(gathered(processes, own.into())?.contains(&1))
}

/// Sends to each process what is for it, and gives what came from each. Collective. Beside what is sent and what arrives, it
/// takes no memory.
///
/// # Errors
/// A failed process.
pub(crate) fn exchange<T: Pod + Send + Sync>(processes: &dyn Processes, to_each: Vec<Vec<T>>) -> Result<Vec<Vec<T>>> {
    let (own, count) = (processes.process(), processes.count());
    let sent: Vec<u64> = to_each.iter().map(|elements| elements.len() as u64).collect();
    let mut all = vec![0; count * count];
    processes.gather(&sent, &mut all)?;
    let mut received: Vec<Vec<T>> = Vec::new();
    received.resize_with(count, Vec::new);
    for (to, elements) in to_each.into_iter().enumerate() {
        if to == own {
            received[own] = elements;
            continue;
        }
        let elements: Arc<dyn HostMemory<T>> = Arc::new(elements);
        for begin in (0..elements.len()).step_by(PIECE) {
            let piece = begin..elements.len().min(begin + PIECE);
            processes.send(to, EXCHANGE, Bytes::of(Arc::clone(&elements), piece))?;
        }
    }
    for from in (0..count).filter(|from| *from != own) {
        let len = all[from * count + own] as usize;
        let mut elements = vec![T::zeroed(); len];
        for piece in elements.chunks_mut(PIECE) {
            processes.receive(from, EXCHANGE, bytemuck::cast_slice_mut(piece))?;
        }
        received[from] = elements;
    }
    Ok(received)
}

/// What all processes have, if none has an error: else its own, or that of the first other one. Collective.
///
/// # Errors
/// Those; a failed process.
pub fn agreed<R>(processes: &dyn Processes, own: Result<R>) -> Result<R> {
    let failed = gathered(processes, own.is_err().into())?;
    let Some(first) = failed.iter().position(|failed| *failed == 1) else { return own };
    let is_input = |error: &Error| u8::from(error.kind() == ErrorKind::Input);
    let words = own.as_ref().err().map(|error| [vec![is_input(error)], error.to_string().into_bytes()].concat());
    let told = told(processes, first, words.unwrap_or_default())?;
    own?;
    let kind = if told.first() == Some(&1) { ErrorKind::Input } else { ErrorKind::Runtime };
    let why = String::from_utf8_lossy(told.get(1..).unwrap_or_default()).into_owned();
    Err(Error::ProcessFailed { process: first, why, kind })
}

/// What process `from` has to say, given by it as `own`. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn told(processes: &dyn Processes, from: usize, own: Vec<u8>) -> Result<Vec<u8>> {
    let tells = from == processes.process();
    let to_each = (0..processes.count()).map(|_| if tells { own.clone() } else { Vec::new() }).collect();
    Ok(exchange(processes, to_each)?.swap_remove(from))
}
