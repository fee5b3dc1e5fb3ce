//! Calls of MPI, and what they say.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::mpi::ffi;
use ::mpi::ffi::{MPI_Comm, MPI_Request, MPI_Status};

use crate::error::{Error, Result};

/// A number of elements, as MPI counts them.
pub(super) fn count_of(elements: usize) -> Result<c_int> {
    let too_many =
        |_| Error::Usage(format!("{elements} elements are more than MPI takes at a time: send them in parts"));
    c_int::try_from(elements).map_err(too_many)
}

/// That MPI is over.
pub(super) fn ended() -> Error {
    Error::Usage("MPI has ended, and can't be started again in this process".into())
}

/// The lock, whoever panicked with it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What such a question about MPI's state says.
pub(super) fn is(question: unsafe extern "C" fn(*mut c_int) -> c_int) -> bool {
    let mut answer = 0;
    // SAFETY: these two may be asked at any time, and write a number.
    unsafe { question(&raw mut answer) };
    answer != 0
}

/// A call's error.
pub(super) fn checked(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: as much memory as any text needs.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &raw mut length) };
    let message = String::from_utf8_lossy(&text[..length as usize]).into_owned();
    Err(Error::Mpi { call, message })
}

/// Room for a status.
pub(super) fn status() -> MPI_Status {
    // SAFETY: it is made of numbers.
    unsafe { std::mem::zeroed() }
}

/// What is known of a request if it is done; it is then taken as done by all others, too.
pub(super) fn test(request: &mut MPI_Request) -> Result<Option<MPI_Status>> {
    let (mut done, mut status) = (0, status());
    // SAFETY: a request of ours, or the null one, which is always done.
    checked("MPI_Test", unsafe { ffi::MPI_Test(request, &raw mut done, &raw mut status) })?;
    Ok((done != 0).then_some(status))
}

/// Whether what a status is of was cancelled.
pub(super) fn cancelled(status: &MPI_Status) -> bool {
    let mut cancelled = 0;
    // SAFETY: a status that MPI wrote.
    unsafe { ffi::MPI_Test_cancelled(status, &raw mut cancelled) };
    cancelled != 0
}

/// A copy of a valid communicator, whose calls give errors.
pub(super) fn copy(original: MPI_Comm) -> Result<MPI_Comm> {
    // SAFETY: a constant.
    let mut copy = unsafe { ffi::RSMPI_COMM_NULL };
    // SAFETY: a valid communicator; MPI writes another.
    checked("MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(original, &raw mut copy) })?;
    // SAFETY: that communicator, and a constant.
    checked("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN) })?;
    Ok(copy)
}

/// Bytes of a message.
pub(super) fn length(status: &MPI_Status) -> Result<usize> {
    let mut length = 0;
    // SAFETY: a status that MPI wrote.
    checked("MPI_Get_count", unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &raw mut length) })?;
    Ok(length as usize)
}

/// This process's number in a valid communicator, and how many there are.
pub(super) fn place(communicator: MPI_Comm) -> Result<[usize; 2]> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the communicator is valid; MPI writes a number.
    checked("MPI_Comm_rank", unsafe { ffi::MPI_Comm_rank(communicator, &raw mut rank) })?;
    // SAFETY: as above.
    checked("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(communicator, &raw mut size) })?;
    Ok([rank as usize, size as usize])
}

/// The largest tag in a valid communicator.
pub(super) fn largest_tag(communicator: MPI_Comm) -> Result<c_int> {
    let (mut tag, mut found) = (null_mut::<c_int>(), 0);
    // SAFETY: the communicator is valid; MPI writes where the number stands.
    checked("MPI_Comm_get_attr", unsafe {
        ffi::MPI_Comm_get_attr(communicator, ffi::MPI_TAG_UB as c_int, (&raw mut tag).cast(), &raw mut found)
    })?;
    // SAFETY: if it was found, it stands there.
    Ok(if found == 0 { 0 } else { unsafe { *tag } })
}

/// Processors of the host, also those that this process doesn't run on: MPI gives each process its own.
pub(super) fn processors() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: it asks for a number.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        usize::try_from(online).unwrap_or(1)
    }
    #[cfg(not(unix))]
    {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}
