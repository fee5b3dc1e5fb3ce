//! The processes of a job that MPI has started, if this is one of them.

use std::sync::Arc;

use declive::distributed::Processes;

use super::failure::Failure;

/// What launchers of MPI tell their processes of the number of these: Open MPI; MPICH, Intel MPI and Slurm.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
/// The same for those of a host.
const ON_HOST: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];

/// The number in one of these variables.
fn number(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// How many processes the launcher has started, if one has.
fn count() -> usize {
    number(&SIZES).unwrap_or(1)
}

/// Threads of this process: its share of the processors, where others work on the same host.
pub(super) fn threads() -> Option<usize> {
    let others = number(&ON_HOST).filter(|count| *count > 1)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Some((processors / others).max(1))
}

/// The processes of the job, if there are several.
///
/// # Errors
/// Those of MPI.
#[cfg(feature = "mpi")]
pub(super) fn of_job() -> Result<Option<Arc<dyn Processes>>, Failure> {
    // launchers of PMIx, as Slurm's may be, tell a process its number alone
    if count() < 2 && std::env::var_os("PMIX_RANK").is_none() {
        return Ok(None);
    }
    let world: Arc<dyn Processes> = declive::mpi::World::start()?;
    Ok(Some(world).filter(|world| world.count() > 1))
}

/// The processes of the job, if there are several.
///
/// # Errors
/// That this program can't be one of them.
#[cfg(not(feature = "mpi"))]
pub(super) fn of_job() -> Result<Option<Arc<dyn Processes>>, Failure> {
    match count() {
        0 | 1 => Ok(None),
        count => Err(Failure::usage(format!(
            "this is one of {count} processes that MPI has started, but declive was built without MPI; build it with --features mpi"
        ))),
    }
}
