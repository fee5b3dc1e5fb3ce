//! Processes of MPI.
//!
//! What waits tests and tests again, rather than block inside MPI: so it notices that another process has failed, and leaves its
//! processor to others. What a failed process leaves unfinished keeps its memory for good, as MPI may still write there.

mod calls;

use std::ffi::c_int;
use std::mem::{forget, take};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use ::mpi::ffi;
use ::mpi::ffi::{MPI_Comm, MPI_Request, MPI_Status};
use ::mpi::raw::AsRaw;

use self::calls::{checked, count_of, ended, is, largest_tag, length, lock, place, processors, status, test};
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
/// The tag of failures.
const FAILURE: c_int = GATHER + 1;
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
        // SAFETY: a constant.
        let mut communicator = unsafe { ffi::RSMPI_COMM_NULL };
        // SAFETY: a valid communicator; MPI writes another.
        checked("MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(original, &raw mut communicator) })?;
        // SAFETY: that communicator, and a constant.
        checked("MPI_Comm_set_errhandler", unsafe {
            ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN)
        })?;
        if largest_tag(communicator)? < FAILURE {
            return Err(Error::Usage(format!("this MPI has no tags up to {FAILURE}")));
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
            process,
            count,
            on_host,
            ends_mpi,
            spins: if on_host[1] > processors() { 0 } else { SPINS },
            failed: OnceLock::new(),
            sending: Mutex::default(),
            pending: AtomicUsize::new(0),
            gathering: Mutex::default(),
        }))
    }
}

impl World {
    /// An error if a process is known to have failed.
    fn known(&self) -> Result<()> {
        match self.failed.get() {
            Some((process, why)) => {
                Err(Error::ProcessFailed { process: *process, why: why.clone(), kind: ErrorKind::Runtime })
            }
            None => Ok(()),
        }
    }

    /// The same after a look for messages that say so.
    fn look(&self) -> Result<()> {
        loop {
            let (mut found, mut status) = (0, status());
            // SAFETY: a constant.
            let mut message = unsafe { ffi::RSMPI_MESSAGE_NULL };
            // SAFETY: a valid communicator; MPI writes into variables of ours.
            checked("MPI_Improbe", unsafe {
                ffi::MPI_Improbe(
                    ffi::RSMPI_ANY_SOURCE,
                    FAILURE,
                    self.communicator.0,
                    &raw mut found,
                    &raw mut message,
                    &raw mut status,
                )
            })?;
            if found == 0 {
                return self.known();
            }
            let mut words = vec![0_u8; length(&status)?];
            // SAFETY: the message that was found, and as much memory as it needs.
            checked("MPI_Mrecv", unsafe {
                ffi::MPI_Mrecv(
                    words.as_mut_ptr().cast(),
                    words.len() as c_int,
                    ffi::RSMPI_UINT8_T,
                    &raw mut message,
                    &raw mut status,
                )
            })?;
            self.failed.get_or_init(|| (status.MPI_SOURCE as usize, String::from_utf8_lossy(&words).into_owned()));
        }
    }

    /// Waits until a request is done.
    fn wait(&self, request: &mut MPI_Request) -> Result<MPI_Status> {
        let mut turn = 0;
        loop {
            if let Some(status) = test(request)? {
                return Ok(status);
            }
            turn += 1;
            if turn % LOOKS[usize::from(turn > self.spins)] == 0 {
                self.look()?;
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

    /// Ends a receive that has come to nothing, so that its memory is its owner's again.
    fn give_up(&self, request: &mut MPI_Request) {
        // SAFETY: a constant.
        if *request == unsafe { ffi::RSMPI_REQUEST_NULL } {
            return;
        }
        // SAFETY: a request of ours that is not yet done, or failed.
        unsafe { ffi::MPI_Cancel(request) };
        let end = Instant::now() + 2 * PATIENCE;
        while let Ok(None) = test(request) {
            // Half of it has come, from a process that is no more.
            if Instant::now() > end {
                self.abort();
            }
            std::thread::sleep(NAP);
        }
    }

    /// Starts to send. Callers keep the bytes until the request is done: with the receiver's, if it waits for that.
    fn start_send(&self, to: usize, tag: c_int, bytes: &[u8], waits_for_receiver: bool) -> Result<MPI_Request> {
        let send = if waits_for_receiver { ffi::MPI_Issend } else { ffi::MPI_Isend };
        let length = count_of(bytes.len())?;
        // SAFETY: a constant.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI reads the bytes until the request is done: callers keep them so long.
        checked("MPI_Isend", unsafe {
            send(
                bytes.as_ptr().cast(),
                length,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                self.communicator.0,
                &raw mut request,
            )
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

    /// Gathers within memory of ours.
    fn gather_within(&self, Gathering { own, all, requests }: &mut Gathering) -> Result<()> {
        requests.clear();
        if self.count > MOST_BY_MESSAGES || own.len() > SMALL {
            let length = count_of(own.len())?;
            // SAFETY: a constant.
            requests.push(Shared(unsafe { ffi::RSMPI_REQUEST_NULL }));
            // SAFETY: one array of that length, and one of that of all, which are kept until the request is done.
            checked("MPI_Iallgather", unsafe {
                ffi::MPI_Iallgather(
                    own.as_ptr().cast(),
                    length,
                    ffi::RSMPI_UINT64_T,
                    all.as_mut_ptr().cast(),
                    length,
                    ffi::RSMPI_UINT64_T,
                    self.communicator.0,
                    &raw mut requests[0].0,
                )
            })?;
        } else {
            for other in (0..self.count).filter(|other| *other != self.process) {
                requests.push(Shared(self.start_send(other, GATHER, bytemuck::cast_slice(own), false)?));
            }
            for (from, into) in all.chunks_exact_mut(own.len()).enumerate() {
                if from == self.process {
                    into.copy_from_slice(own);
                } else {
                    requests.push(Shared(self.start_receive(from, GATHER, bytemuck::cast_slice_mut(into))?));
                }
            }
        }
        requests.iter_mut().rev().try_for_each(|request| self.wait(&mut request.0).map(drop))
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
        let mut gathering = lock(&self.gathering);
        gathering.own.clear();
        gathering.own.extend_from_slice(own);
        gathering.all.resize(all.len(), 0);
        let result = self.gather_within(&mut gathering);
        match result {
            Ok(()) => all.copy_from_slice(&gathering.all),
            // MPI may still read and write there.
            Err(_) => forget(take(&mut *gathering)),
        }
        result
    }

    fn send(&self, to: usize, stream: u32, bytes: Bytes) -> Result<()> {
        assert!((stream as c_int) < GATHER);
        self.known()?;
        self.sweep();
        let mut request = self.start_send(to, stream as c_int, &bytes, false)?;
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

    fn receive(&self, from: usize, stream: u32, into: &mut [u8]) -> Result<()> {
        assert!((stream as c_int) < GATHER);
        self.known()?;
        self.sweep();
        let mut request = self.start_receive(from, stream as c_int, into)?;
        let status = self.wait(&mut request).inspect_err(|_| self.give_up(&mut request))?;
        assert_eq!(length(&status)?, into.len(), "as many bytes as are waited for");
        Ok(())
    }

    fn fail(&self, why: &str) {
        if self.failed.set((self.process, why.to_owned())).is_err() {
            return;
        }
        // It happens once; others may read these to the end.
        let words: &'static [u8] = why.as_bytes()[..why.len().min(MOST_WORDS)].to_vec().leak();
        let others = (0..self.count).filter(|other| *other != self.process);
        // So that it is done once the other has seen it.
        let mut requests: Vec<_> = others.filter_map(|to| self.start_send(to, FAILURE, words, true).ok()).collect();
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
}

impl Drop for World {
    fn drop(&mut self) {
        if is(ffi::MPI_Finalized) {
            forget(take(&mut *lock(&self.sending)));
            return;
        }
        if std::thread::panicking() {
            self.fail("it panicked");
        }
        if self.end().is_err() {
            // MPI may still read there, or write into what the communicator has to do with.
            forget(take(&mut *lock(&self.sending)));
            if self.ends_mpi {
                self.abort();
            }
            return;
        }
        // SAFETY: nothing is under way in this communicator, and nobody uses it any more.
        unsafe { ffi::MPI_Comm_free(&raw mut self.communicator.0) };
        if self.ends_mpi {
            // SAFETY: MPI was started by this, and all processes have come here.
            unsafe { ffi::MPI_Finalize() };
        }
    }
}

#[cfg(test)]
mod tests;
