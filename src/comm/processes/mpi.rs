//! Processes of MPI.
//!
//! What waits tests and tests again, rather than block inside MPI: so it notices that another process has failed, and leaves its
//! processor to others. What a failed process leaves unfinished keeps its memory for good, as MPI may still write there.

mod calls;
mod restoring;

use std::ffi::c_int;
use std::mem::{forget, take};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use ::mpi::ffi;
use ::mpi::ffi::{MPI_Comm, MPI_Request, MPI_Status};
use ::mpi::raw::AsRaw;

use self::calls::{
    cancelled, checked, copy, count_of, ended, is, largest_tag, length, lock, place, processors, status, test,
};
use super::{Bytes, Processes};
use crate::error::{Error, ErrorKind, Result};

/// How often a waiting thread tests before it lets others run.
const SPINS: u32 = 2_000;
/// How often it then yields before it sleeps.
const YIELDS: u32 = 200;
/// How long it sleeps between two tests.
const NAP: Duration = Duration::from_micros(50);
/// How often it tests between two looks for failures, as long as it spins; and afterwards.
const LOOKS: [u32; 2] = [256, 8];

/// The tag of what is gathered by messages: those below are streams.
const GATHER: c_int = 1 << 16;
/// The tags of notices: of failures, and that all is revoked.
const FAILURE: c_int = 0;
const REVOKED: c_int = 1;
/// Up to so many processes, messages from each to each are faster than MPI's own gathering.
const MOST_BY_MESSAGES: usize = 8;
/// And up to so many numbers of each: MPI sends them before the receiver asks.
const SMALL: usize = 64;

/// Bytes of what a failed process says, at most.
const MOST_WORDS: usize = 2048;
/// How long a process that ends after a failure waits for others.
const PATIENCE: Duration = Duration::from_secs(1);

/// The world that this process has started.
static STARTED: Mutex<Option<Weak<World>>> = Mutex::new(None);

/// The processes of an MPI job, as one of them sees them.
///
/// Its last owner lets go of it on all processes together, in the thread that has made it, as MPI may ask for that. If MPI was [started](Self::start) here, that ends MPI, too. After a
/// failure, it ends the whole job by `MPI_Abort`, with exit code 3: whatever is to be said must be said before.
pub struct World {
    communicator: Shared<MPI_Comm>,
    /// Another one for what is told beside: failures, and how all go on after some.
    notices: Shared<MPI_Comm>,
    process: usize,
    count: usize,
    on_host: [usize; 2],
    /// Whether MPI is this one's to finalize.
    ends_mpi: bool,
    spins: u32,
    /// The first process known to have failed, perhaps this one, and why.
    failed: OnceLock<(usize, String)>,
    /// What is on its way.
    sending: Mutex<Vec<Sending>>,
    /// How many those are.
    pending: AtomicUsize,
    gathering: Mutex<Gathering>,
    /// Messages to each process, and from it, since all was last restored.
    sent: Vec<AtomicU64>,
    received: Vec<AtomicU64>,
    /// How often all was restored, and which of these times was last asked for, counted from 1.
    restored: AtomicU64,
    revoked: AtomicU64,
}

/// One of MPI's handles.
struct Shared<T>(T);

// SAFETY: MPI was started so that any thread may use its handles.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

/// Bytes that MPI reads until the request is done.
struct Sending {
    request: Shared<MPI_Request>,
    _bytes: Bytes,
}

/// The memory that MPI gathers from and into, kept for the next time.
#[derive(Default)]
struct Gathering {
    own: Vec<u64>,
    all: Vec<u64>,
    requests: Vec<Shared<MPI_Request>>,
    /// How often it was begun since all was last restored.
    begun: u64,
}

impl World {
    /// Starts MPI, or gives what was started before. If other code has started MPI, that code ends it, after the last owner
    /// has let go of this. Collective.
    ///
    /// # Errors
    /// [`Error::Usage`] if MPI doesn't let several threads call it, or has ended; [`Error::Mpi`].
    pub fn start() -> Result<Arc<Self>> {
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = &*started {
            return started.upgrade().ok_or_else(ended);
        }
        // SAFETY: a constant, once the library is loaded.
        let world = unsafe { ffi::RSMPI_COMM_WORLD };
        if is(ffi::MPI_Initialized) {
            return Self::on(world, false);
        }
        let mut provided = 0;
        // SAFETY: MPI was not started before, and needs no arguments.
        checked("MPI_Init_thread", unsafe {
            ffi::MPI_Init_thread(null_mut(), null_mut(), ffi::RSMPI_THREAD_MULTIPLE, &raw mut provided)
        })?;
        let this = Self::on(world, true).inspect_err(|_| {
            // SAFETY: it was started above, and nothing is under way.
            unsafe { ffi::MPI_Finalize() };
        })?;
        *started = Some(Arc::downgrade(&this));
        Ok(this)
    }

    /// The processes of a communicator of yours, within a copy of it. MPI stays yours to end, after the last owner has let go
    /// of this. Collective.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn of(communicator: &impl AsRaw<Raw = MPI_Comm>) -> Result<Arc<Self>> {
        Self::on(communicator.as_raw(), false)
    }

    /// The same for a communicator that doesn't come from the crate `mpi`.
    ///
    /// # Safety
    /// It must be a valid communicator, within one group.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub unsafe fn of_raw(communicator: MPI_Comm) -> Result<Arc<Self>> {
        Self::on(communicator, false)
    }

    /// This process's number among those of its host.
    #[must_use]
    pub fn local_rank(&self) -> usize {
        self.on_host[0]
    }

    /// Number of processes on this host.
    #[must_use]
    pub fn local_count(&self) -> usize {
        self.on_host[1]
    }

    /// On a copy of a valid communicator.
    fn on(original: MPI_Comm, ends_mpi: bool) -> Result<Arc<Self>> {
        if !is(ffi::MPI_Initialized) {
            return Err(Error::Usage("MPI has not been started".into()));
        }
        if is(ffi::MPI_Finalized) {
            return Err(ended());
        }
        let mut provided = 0;
        // SAFETY: MPI runs, and writes a number.
        checked("MPI_Query_thread", unsafe { ffi::MPI_Query_thread(&raw mut provided) })?;
        // SAFETY: a constant.
        if provided < unsafe { ffi::RSMPI_THREAD_MULTIPLE } {
            return Err(Error::Usage(
                "MPI lets only one thread call it, but each device's thread does: start it by MPI_Init_thread with \
                 MPI_THREAD_MULTIPLE, and with a library that is built for that"
                    .into(),
            ));
        }
        let (communicator, notices) = (copy(original)?, copy(original)?);
        if largest_tag(communicator)? < GATHER {
            return Err(Error::Usage(format!("this MPI has no tags up to {GATHER}")));
        }
        let [process, count] = place(communicator)?;
        // SAFETY: a constant.
        let mut host = unsafe { ffi::RSMPI_COMM_NULL };
        // SAFETY: a valid communicator, and constants; MPI writes another communicator.
        checked("MPI_Comm_split_type", unsafe {
            ffi::MPI_Comm_split_type(
                communicator,
                ffi::RSMPI_COMM_TYPE_SHARED,
                process as c_int,
                ffi::RSMPI_INFO_NULL,
                &raw mut host,
            )
        })?;
        let on_host = place(host)?;
        // SAFETY: that communicator, which is used no more.
        checked("MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&raw mut host) })?;
        Ok(Arc::new(Self {
            communicator: Shared(communicator),
            notices: Shared(notices),
            process,
            count,
            on_host,
            ends_mpi,
            spins: if on_host[1] > processors() { 0 } else { SPINS },
            failed: OnceLock::new(),
            sending: Mutex::default(),
            pending: AtomicUsize::new(0),
            gathering: Mutex::default(),
            sent: counters(count),
            received: counters(count),
            restored: AtomicU64::new(0),
            revoked: AtomicU64::new(0),
        }))
    }
}

impl Gathering {
    /// What this process has for it.
    fn bring(&mut self, own: &[u64], processes: usize) {
        self.own.clear();
        self.own.extend_from_slice(own);
        self.all.resize(own.len() * processes, 0);
    }
}

fn counters(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Stands for any sender.
fn any_source() -> c_int {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_ANY_SOURCE }
}

/// Starts MPI's own gathering in a valid communicator.
///
/// # Safety
/// The memory must be kept until the request is done.
unsafe fn start_allgather(communicator: MPI_Comm, own: &[u64], all: &mut [u64]) -> Result<MPI_Request> {
    let length = count_of(own.len())?;
    // SAFETY: a constant.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: one array of that length, and one of that of all.
    checked("MPI_Iallgather", unsafe {
        ffi::MPI_Iallgather(
            own.as_ptr().cast(),
            length,
            ffi::RSMPI_UINT64_T,
            all.as_mut_ptr().cast(),
            length,
            ffi::RSMPI_UINT64_T,
            communicator,
            &raw mut request,
        )
    })?;
    Ok(request)
}

impl World {
    /// An error if a process is known to have failed.
    fn known_failure(&self) -> Result<()> {
        match self.failed.get() {
            Some((process, why)) => {
                Err(Error::ProcessFailed { process: *process, why: why.clone(), kind: ErrorKind::Runtime })
            }
            None => Ok(()),
        }
    }

    /// The same, or if all is known to be revoked.
    fn known(&self) -> Result<()> {
        self.known_failure()?;
        if self.is_revoked() { Err(Error::PeerFailed) } else { Ok(()) }
    }

    /// The same after a look for notices.
    fn look(&self) -> Result<()> {
        self.take_notices()?;
        self.known()
    }

    /// Receives the notices that are there.
    fn take_notices(&self) -> Result<()> {
        while let Some((from, tag, words)) = self.probed(self.notices.0, any_source())? {
            if tag == REVOKED {
                let time = words.as_slice().try_into().map_or(0, u64::from_ne_bytes);
                self.revoked.fetch_max(time, Ordering::AcqRel);
            } else {
                self.failed.get_or_init(|| (from, String::from_utf8_lossy(&words).into_owned()));
            }
        }
        Ok(())
    }

    /// A message that has come from `source`, or any, with its sender and tag, if there is one.
    fn probed(&self, communicator: MPI_Comm, source: c_int) -> Result<Option<(usize, c_int, Vec<u8>)>> {
        let (mut found, mut status) = (0, status());
        // SAFETY: constants.
        let (mut message, any_tag) = unsafe { (ffi::RSMPI_MESSAGE_NULL, ffi::RSMPI_ANY_TAG) };
        // SAFETY: a valid communicator; MPI writes into variables of ours.
        checked("MPI_Improbe", unsafe {
            ffi::MPI_Improbe(source, any_tag, communicator, &raw mut found, &raw mut message, &raw mut status)
        })?;
        if found == 0 {
            return Ok(None);
        }
        let (from, tag) = (status.MPI_SOURCE as usize, status.MPI_TAG);
        let mut bytes = vec![0_u8; length(&status)?];
        // SAFETY: the message that was found, and as much memory as it needs.
        checked("MPI_Mrecv", unsafe {
            ffi::MPI_Mrecv(
                bytes.as_mut_ptr().cast(),
                bytes.len() as c_int,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                &raw mut status,
            )
        })?;
        Ok(Some((from, tag, bytes)))
    }

    /// Waits until a request is done, as long as `look` has no error.
    fn wait(&self, request: &mut MPI_Request, look: fn(&Self) -> Result<()>) -> Result<MPI_Status> {
        let mut turn = 0;
        loop {
            if let Some(status) = test(request)? {
                return Ok(status);
            }
            turn += 1;
            if turn % LOOKS[usize::from(turn > self.spins)] == 0 {
                look(self)?;
                self.sweep();
            }
            turn = self.pause(turn);
        }
    }

    /// What is done between two tests, the more the longer it takes. Gives the number of the test.
    fn pause(&self, turn: u32) -> u32 {
        if turn < self.spins {
            std::hint::spin_loop();
        } else if turn < self.spins + YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
            // It stays about here, and so never overflows.
            return self.spins + YIELDS + turn % LOOKS[1];
        }
        turn
    }

    /// Lets go of what has been sent.
    fn sweep(&self) {
        if self.pending.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Others who hold the lock do the same.
        let Ok(mut sending) = self.sending.try_lock() else { return };
        let (mut done, mut index, mut lost) = (Vec::new(), 0, None);
        while index < sending.len() {
            match test(&mut sending[index].request.0) {
                Ok(Some(_)) => done.push(sending.swap_remove(index)),
                Ok(None) => index += 1,
                // MPI may still read there.
                Err(error) => {
                    forget(sending.swap_remove(index));
                    lost = Some(error);
                }
            }
        }
        self.pending.store(sending.len(), Ordering::Relaxed);
        drop(sending);
        drop(done);
        // Whoever waits for it would do so for ever.
        if let Some(error) = lost {
            self.fail(&error.to_string());
        }
    }

    /// Keeps the bytes of a message that is being sent.
    fn keep(&self, mut request: MPI_Request, bytes: Bytes) -> Result<()> {
        match test(&mut request) {
            // Small ones are copied at once.
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                let mut sending = lock(&self.sending);
                sending.push(Sending { request: Shared(request), _bytes: bytes });
                self.pending.store(sending.len(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                forget(bytes);
                Err(error)
            }
        }
    }

    /// Ends a receive that has come to nothing, so that its memory is its owner's again. Tells whether a message has come all the same.
    fn give_up(&self, request: &mut MPI_Request) -> bool {
        // SAFETY: a constant.
        if *request == unsafe { ffi::RSMPI_REQUEST_NULL } {
            return false;
        }
        // SAFETY: a request of ours that is not yet done, or failed.
        unsafe { ffi::MPI_Cancel(request) };
        let end = Instant::now() + 2 * PATIENCE;
        loop {
            match test(request) {
                Ok(Some(status)) => return !cancelled(&status),
                Ok(None) => {}
                Err(_) => return false,
            }
            // Half of it has come: the rest will, unless its process is no more.
            if Instant::now() > end && !matches!(self.look(), Err(Error::PeerFailed)) {
                self.abort();
            }
            std::thread::sleep(NAP);
        }
    }

    /// Starts to send. Callers keep the bytes until the request is done: with the receiver's, if it waits for that.
    fn start_send(
        &self,
        communicator: MPI_Comm,
        (to, tag): (usize, c_int),
        bytes: &[u8],
        waits_for_receiver: bool,
    ) -> Result<MPI_Request> {
        let send = if waits_for_receiver { ffi::MPI_Issend } else { ffi::MPI_Isend };
        let length = count_of(bytes.len())?;
        // SAFETY: a constant.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI reads the bytes until the request is done: callers keep them so long.
        checked("MPI_Isend", unsafe {
            send(bytes.as_ptr().cast(), length, ffi::RSMPI_UINT8_T, to as c_int, tag, communicator, &raw mut request)
        })?;
        Ok(request)
    }

    /// Starts to receive. Callers keep the memory until the request is done.
    fn start_receive(&self, from: usize, tag: c_int, into: &mut [u8]) -> Result<MPI_Request> {
        let length = count_of(into.len())?;
        // SAFETY: a constant.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI writes into the memory until the request is done: callers keep it so long.
        checked("MPI_Irecv", unsafe {
            ffi::MPI_Irecv(
                into.as_mut_ptr().cast(),
                length,
                ffi::RSMPI_UINT8_T,
                from as c_int,
                tag,
                self.communicator.0,
                &raw mut request,
            )
        })?;
        Ok(request)
    }

    /// Starts to gather, within memory of ours.
    fn start_gather(&self, Gathering { own, all, requests, begun }: &mut Gathering) -> Result<()> {
        requests.clear();
        *begun += 1;
        if self.count > MOST_BY_MESSAGES || own.len() > SMALL {
            // SAFETY: the memory is kept until the request is done.
            requests.push(Shared(unsafe { start_allgather(self.communicator.0, own, all)? }));
            return Ok(());
        }
        for other in self.others() {
            let bytes = bytemuck::cast_slice(own);
            requests.push(Shared(self.start_send(self.communicator.0, (other, GATHER), bytes, false)?));
        }
        for (from, into) in all.chunks_exact_mut(own.len()).enumerate() {
            if from == self.process {
                into.copy_from_slice(own);
            } else {
                requests.push(Shared(self.start_receive(from, GATHER, bytemuck::cast_slice_mut(into))?));
            }
        }
        Ok(())
    }

    /// Waits for all of it, as long as `look` has no error.
    fn finish_gather(&self, Gathering { requests, .. }: &mut Gathering, look: fn(&Self) -> Result<()>) -> Result<()> {
        requests.iter_mut().rev().try_for_each(|request| self.wait(&mut request.0, look).map(drop))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.process;
        (0..self.count).filter(move |other| *other != own)
    }

    /// Waits until what is on its way has left, and all have come here, or one has failed and others don't come for a while.
    fn end(&self) -> Result<()> {
        // SAFETY: a constant.
        let mut barrier = unsafe { ffi::RSMPI_REQUEST_NULL };
        if self.ends_mpi {
            // SAFETY: a valid communicator; MPI writes a request.
            checked("MPI_Ibarrier", unsafe { ffi::MPI_Ibarrier(self.communicator.0, &raw mut barrier) })?;
        }
        let (mut end, mut turn) = (None, 0);
        loop {
            self.sweep();
            let failed = self.look().is_err();
            let all_here = test(&mut barrier)?.is_some();
            if all_here && (failed || self.pending.load(Ordering::Relaxed) == 0) {
                // Whoever has failed has said so before it came here.
                return self.look();
            }
            if failed && Instant::now() > *end.get_or_insert_with(|| Instant::now() + PATIENCE) {
                return self.known();
            }
            turn = self.pause(turn + 1);
        }
    }

    /// Leaves to MPI what it may still read, or write to.
    fn abandon(&self) {
        forget(take(&mut *lock(&self.sending)));
        forget(take(&mut *lock(&self.gathering)));
    }

    /// Ends the job.
    fn abort(&self) -> ! {
        // SAFETY: a valid communicator. It does not return.
        unsafe { ffi::MPI_Abort(self.communicator.0, 3) };
        std::process::abort()
    }
}

impl Processes for World {
    fn process(&self) -> usize {
        self.process
    }

    fn count(&self) -> usize {
        self.count
    }

    fn on_host(&self) -> [usize; 2] {
        self.on_host
    }

    fn gather(&self, own: &[u64], all: &mut [u64]) -> Result<()> {
        assert_eq!(all.len(), own.len() * self.count);
        self.known()?;
        self.sweep();
        if self.count == 1 || own.is_empty() {
            all.copy_from_slice(own);
            return Ok(());
        }
        let gathering = &mut *lock(&self.gathering);
        gathering.bring(own, self.count);
        let result = self.start_gather(gathering).and_then(|()| self.finish_gather(gathering, Self::look));
        match result {
            Ok(()) => all.copy_from_slice(&gathering.all),
            Err(Error::PeerFailed) => {} // it is finished when all is restored
            // MPI may still read and write there.
            Err(_) => forget(take(gathering)),
        }
        result
    }

    fn send(&self, to: usize, stream: u32, bytes: Bytes) -> Result<()> {
        assert!((stream as c_int) < GATHER);
        self.known()?;
        self.sweep();
        let request = self.start_send(self.communicator.0, (to, stream as c_int), &bytes, false)?;
        self.sent[to].fetch_add(1, Ordering::Relaxed);
        self.keep(request, bytes)
    }

    fn receive(&self, from: usize, stream: u32, into: &mut [u8]) -> Result<()> {
        assert!((stream as c_int) < GATHER);
        self.known()?;
        self.sweep();
        let mut request = self.start_receive(from, stream as c_int, into)?;
        let count = || self.received[from].fetch_add(1, Ordering::Relaxed);
        let status = self.wait(&mut request, Self::look).inspect_err(|_| {
            if self.give_up(&mut request) {
                count();
            }
        })?;
        count();
        assert_eq!(length(&status)?, into.len(), "as many bytes as are waited for");
        Ok(())
    }

    fn fail(&self, why: &str) {
        if self.failed.set((self.process, why.to_owned())).is_err() {
            return;
        }
        // It happens once; others may read these to the end.
        let words: &'static [u8] = why.as_bytes()[..why.len().min(MOST_WORDS)].to_vec().leak();
        // So that it is done once the other has seen it.
        let send = |to| self.start_send(self.notices.0, (to, FAILURE), words, true).ok();
        let mut requests: Vec<_> = self.others().filter_map(send).collect();
        let end = Instant::now() + PATIENCE;
        while !requests.is_empty() && Instant::now() < end {
            requests.retain_mut(|request| matches!(test(request), Ok(None)));
            // Others may fail at the same time, and wait, too.
            drop(self.look());
            std::thread::sleep(NAP);
        }
    }

    fn check(&self) -> Result<()> {
        match self.look() {
            Err(Error::ProcessFailed { process, .. }) if process == self.process => Ok(()),
            result => result,
        }
    }

    fn revoke(&self) {
        self.revoke_all();
    }

    fn restore(&self) -> Result<()> {
        self.restore_all()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if is(ffi::MPI_Finalized) {
            self.abandon();
            return;
        }
        if std::thread::panicking() {
            self.fail("it panicked");
        }
        if self.end().is_err() {
            self.abandon();
            if self.ends_mpi {
                self.abort();
            }
            return;
        }
        for communicator in [&mut self.communicator.0, &mut self.notices.0] {
            // SAFETY: nothing is under way in this communicator, and nobody uses it any more.
            unsafe { ffi::MPI_Comm_free(&raw mut *communicator) };
        }
        if self.ends_mpi {
            // SAFETY: MPI was started by this, and all processes have come here.
            unsafe { ffi::MPI_Finalize() };
        }
    }
}

#[cfg(test)]
mod tests;
