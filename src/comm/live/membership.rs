//! A rank's part in what is relayed, from run to run.

use std::sync::Arc;

use super::halos::{Places, pieces};
use super::relaying::{Member, Relaying};
use crate::comm::Communicator;
use crate::error::{Error, Result};
use crate::partition::Receive;

/// A rank's part.
pub(crate) struct Membership {
    member: Member,
    /// The pieces in which the halo arrives.
    pieces: Vec<Receive>,
    /// As long as a run is under way.
    relaying: Option<Arc<Relaying>>,
    /// The numbers of the next sum, and of the last exchange.
    next: [u32; 2],
}

impl Membership {
    /// Of a rank that has not yet begun a run.
    pub(crate) fn new(member: Member) -> Self {
        let pieces = pieces(&member.receive);
        Self { member, pieces, relaying: None, next: [1, 0] }
    }

    /// Begins a run, as all ranks do; whether there is somebody who relays. Nobody looks at the memory.
    ///
    /// # Errors
    /// A failed rank.
    pub(crate) fn begin<T>(&mut self, comm: &dyn Communicator<T>) -> Result<bool> {
        self.relaying = None;
        self.places().clear(&self.member.memory);
        self.next = [1, 0];
        self.relaying = comm.relay(self.member.clone())?;
        Ok(self.relaying.is_some())
    }

    /// Ends it.
    pub(crate) fn end(&mut self) {
        self.relaying = None;
    }

    /// Whether a run is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.relaying.is_some()
    }

    /// What the rank's memory has.
    pub(crate) fn places(&self) -> Places {
        self.member.places
    }

    /// The pieces in which the halo arrives.
    pub(crate) fn pieces(&self) -> &[Receive] {
        &self.pieces
    }

    /// The numbers of the next sum, and of the last exchange.
    pub(crate) fn next(&self) -> [u32; 2] {
        self.next
    }

    /// Counts sums, and exchanges of halos.
    pub(crate) fn met(&mut self, [sums, exchanges]: [u32; 2]) {
        let [sum, exchange] = &mut self.next;
        *sum = sum.wrapping_add(sums);
        *exchange = exchange.wrapping_add(exchanges);
    }

    /// That a rank did not come in time.
    pub(crate) fn lost(&self) -> Error {
        self.relaying.as_ref().map_or(Error::PeerFailed, |relaying| relaying.lost())
    }
}
