//! What a device has to do with other ranks in launches of several iterations: see `cl/together.cl`.

use std::sync::Arc;

use crate::backend::source::persistent::Meetings;
use crate::comm::Communicator;
use crate::comm::live::MOST_VALUES;
use crate::comm::live::halos::{Places, pieces};
use crate::comm::live::relaying::{Member, Relaying};
use crate::comm::live::sending::SentRows;
use crate::device::{Context, DeviceVec, Kind, LiveMemory};
use crate::error::{Error, Result};
use crate::kernels::live::LiveKernels;
use crate::kernels::persistent::Shared;
use crate::kernels::products::Sending;
use crate::partition::{HaloPlan, Receive};
use crate::real::Real;

/// Answers of a running kernel that show that memory is live.
const ANSWERS: u32 = 10;

/// A device's part in launches of several ranks.
pub(super) struct Together {
    memory: Arc<LiveMemory>,
    places: Places,
    receive: Vec<Receive>,
    /// The first elements of the pieces in which the halo arrives, and its end; then the places of rows that are sent.
    indices: Arc<DeviceVec<u32>>,
    /// Rows that are not, of so many.
    kept: [u32; 2],
    rows: usize,
    has_halo: Vec<bool>,
    meetings: Meetings,
    name: String,
    /// If no other rank may be of it: the device's number.
    device: Option<usize>,
    /// As long as a run is under way.
    relaying: Option<Arc<Relaying>>,
    /// The numbers of the next sum, and of the last exchange.
    next: [u32; 2],
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
        let (places, pieces) = (Places::new(halo.send.len(), &halo.receive), pieces(&halo.receive));
        let firsts = pieces.iter().map(|piece| piece.halo.start as u32).chain([halo.len as u32]);
        let SentRows { kept, places: of_rows } = SentRows::new(rows, &halo.send);
        let indices: Vec<u32> = firsts.chain(of_rows).collect();
        assert!(places.halo == halo.len && indices[..=places.pieces].is_sorted());
        let memory = LiveMemory::zeros(ctx, places.room())?;
        if LiveKernels::build(ctx)?.answers(ctx, &memory, ANSWERS)?.is_none() {
            log::info!("{}: what a running kernel writes is not seen on the host", info.name);
            return Ok(None);
        }
        Ok(Some(Self {
            memory: Arc::new(memory),
            places,
            receive: halo.receive.clone(),
            indices: Arc::new(DeviceVec::from_slice(ctx, &indices, "the halo's indices")?),
            kept: [kept.start, kept.end].map(|row| row as u32),
            rows,
            has_halo: has_halo.to_vec(),
            meetings,
            name: info.label(),
            device: (info.kind != Kind::Cpu).then_some(info.index),
            relaying: None,
            next: [1, 0],
        }))
    }

    /// Begins a run, as all ranks do; whether there is somebody who relays. Nothing is under way on the device.
    ///
    /// # Errors
    /// A failed rank.
    pub(super) fn begin<T>(&mut self, comm: &dyn Communicator<T>) -> Result<bool> {
        self.relaying = None; // nor does anybody look
        self.places.clear(&self.memory);
        self.next = [1, 0];
        let member = Member {
            memory: Arc::clone(&self.memory) as _,
            places: self.places,
            receive: self.receive.clone(),
            device: self.device,
            name: self.name.clone(),
        };
        self.relaying = comm.relay(member)?;
        Ok(self.relaying.is_some())
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        self.relaying = None;
    }

    /// Whether a run is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.relaying.is_some()
    }

    /// What a launch is told.
    pub(super) fn shared(&self, ranks: usize) -> Shared<'_> {
        let Self { memory, places, indices, kept, has_halo, next, .. } = self;
        Shared { memory, places: *places, has_halo, indices, kept: *kept, next: *next, ranks: ranks as u32 }
    }

    /// Where the next product puts what other ranks need of it.
    pub(super) fn sending(&self) -> Sending {
        let Self { memory, places, indices, kept, rows, next: [_, exchange], .. } = self;
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
        let [sum, exchange] = &mut self.next;
        *sum = sum.wrapping_add(1 + iterations * of_iteration + of_end);
        *exchange = exchange.wrapping_add(iterations * exchanges);
    }

    /// Counts what ranks do in a pass: a sum, an exchange of halos.
    pub(super) fn met(&mut self, [sums, exchanges]: [bool; 2]) {
        let [sum, exchange] = &mut self.next;
        *sum = sum.wrapping_add(u32::from(sums));
        *exchange = exchange.wrapping_add(u32::from(exchanges));
    }

    /// That a rank did not come in time.
    pub(super) fn lost(&self) -> Error {
        self.relaying.as_ref().map_or(Error::PeerFailed, |relaying| relaying.lost())
    }
}
