//! What a device has to do with other ranks in launches of several iterations: see `cl/together.cl`.

use std::sync::Arc;

use crate::backend::source::persistent::Meetings;
use crate::comm::Communicator;
use crate::comm::live::MOST_VALUES;
use crate::comm::live::halos::Places;
use crate::comm::live::membership::Membership;
use crate::comm::live::relaying::Member;
use crate::comm::live::sending::SentRows;
use crate::device::{Context, DeviceVec, Kind, LiveMemory};
use crate::error::{Error, Result};
use crate::kernels::live::LiveKernels;
use crate::kernels::persistent::Shared;
use crate::kernels::products::Sending;
use crate::partition::HaloPlan;
use crate::real::Real;

/// Answers of a running kernel that show that memory is live.
const ANSWERS: u32 = 10;

/// A device's part in launches of several ranks.
pub(super) struct Together {
    membership: Membership,
    memory: Arc<LiveMemory>,
    /// The first elements of the pieces in which the halo arrives, and its end; then the places of rows that are sent.
    indices: Arc<DeviceVec<u32>>,
    /// Rows that are not, of so many.
    kept: [u32; 2],
    rows: usize,
    has_halo: Vec<bool>,
    meetings: Meetings,
}

impl Together {
    /// What a rank with so many rows and this halo needs, if the device answers while it runs.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(super) fn new<A: Real>(
        ctx: &Context,
        rows: usize,
        halo: &HaloPlan,
        has_halo: &[bool],
        meetings: Meetings,
    ) -> Result<Option<Self>> {
        let info = ctx.info();
        if size_of::<A>() < size_of::<f64>() || !info.has_f64 || info.max_work_group < 2 * MOST_VALUES {
            return Ok(None);
        }
        let places = Places::new(halo.send.len(), &halo.receive);
        let memory = Arc::new(LiveMemory::zeros(ctx, places.room())?);
        let membership = Membership::new(Member {
            memory: Arc::clone(&memory) as _,
            places,
            receive: halo.receive.clone(),
            device: (info.kind != Kind::Cpu).then_some(info.index),
            name: info.label(),
        });
        let firsts = membership.pieces().iter().map(|piece| piece.halo.start as u32).chain([halo.len as u32]);
        let SentRows { kept, places: of_rows } = SentRows::new(rows, &halo.send);
        let indices: Vec<u32> = firsts.chain(of_rows).collect();
        assert!(places.halo == halo.len && indices[..=places.pieces].is_sorted());
        if LiveKernels::build(ctx)?.answers(ctx, &memory, ANSWERS)?.is_none() {
            log::info!("{}: what a running kernel writes is not seen on the host", info.name);
            return Ok(None);
        }
        Ok(Some(Self {
            membership,
            memory,
            indices: Arc::new(DeviceVec::from_slice(ctx, &indices, "the halo's indices")?),
            kept: [kept.start, kept.end].map(|row| row as u32),
            rows,
            has_halo: has_halo.to_vec(),
            meetings,
        }))
    }

    /// Begins a run, as all ranks do; whether there is somebody who relays. Nothing is under way on the device.
    ///
    /// # Errors
    /// A failed rank.
    pub(super) fn begin<T>(&mut self, comm: &dyn Communicator<T>) -> Result<bool> {
        self.membership.begin(comm)
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        self.membership.end();
    }

    /// Whether a run is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.membership.is_under_way()
    }

    fn places(&self) -> Places {
        self.membership.places()
    }

    /// What a launch is told.
    pub(super) fn shared(&self, ranks: usize) -> Shared<'_> {
        let Self { memory, indices, kept, has_halo, .. } = self;
        let (places, next) = (self.places(), self.membership.next());
        Shared { memory, places, has_halo, indices, kept: *kept, next, ranks: ranks as u32 }
    }

    /// Where the next product puts what other ranks need of it.
    pub(super) fn sending(&self) -> Sending {
        let Self { memory, indices, kept, rows, .. } = self;
        let (places, [_, exchange]) = (self.places(), self.membership.next());
        let (memory, indices, slot) =
            (Arc::clone(memory), Arc::clone(indices), places.sent_at(exchange.wrapping_add(1)));
        Sending {
            memory: memory as _,
            slot: slot as u32,
            indices,
            first_place: places.pieces as u32 + 1,
            kept: *kept,
            rows: *rows,
        }
    }

    /// Counts what a launch of so many iterations does, unless the run is over before: then nothing comes after it.
    pub(super) fn launched(&mut self, iterations: u32) {
        let Meetings { of_iteration, of_end, exchanges } = self.meetings;
        self.membership.met([1 + iterations * of_iteration + of_end, iterations * exchanges]);
    }

    /// Counts what ranks do in a pass: a sum, an exchange of halos.
    pub(super) fn met(&mut self, sums_and_exchanges: [bool; 2]) {
        self.membership.met(sums_and_exchanges.map(u32::from));
    }

    /// That a rank did not come in time.
    pub(super) fn lost(&self) -> Error {
        self.membership.lost()
    }
}
