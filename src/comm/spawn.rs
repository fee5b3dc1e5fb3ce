//! Ranks as threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;

use super::{Failed, Failure};
use crate::error::{Error, Result};

/// Runs `body` on each job in a thread of its own, and waits for all. A panic becomes an error; the first error ends all.
///
/// # Errors
/// Those of the ranks, but for the echoes of others'.
pub fn in_threads<J: Send, R: Send>(
    failure: &Failure,
    jobs: Vec<J>,
    body: impl Fn(J) -> Result<R> + Sync,
) -> std::result::Result<Vec<R>, Failed> {
    let results: Vec<Option<R>> = std::thread::scope(|scope| {
        let body = &body;
        let run = |(rank, job): (usize, J)| {
            let thread = Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, move || {
                let result = catch_unwind(AssertUnwindSafe(|| body(job))).unwrap_or_else(|panic| {
                    let message = panic
                        .downcast_ref::<&str>()
                        .map(ToString::to_string)
                        .or_else(|| panic.downcast_ref::<String>().cloned())
                        .unwrap_or_else(|| "a panic without words".into());
                    Err(Error::RankPanicked { rank, message })
                });
                result.map_err(|e| failure.report(rank, e)).ok()
            });
            thread.map_err(|e| failure.report(rank, Error::RankPanicked { rank, message: e.to_string() })).ok()
        };
        let threads: Vec<_> = jobs.into_iter().enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread?.join().unwrap_or(None)).collect()
    });
    let all = results.into_iter().collect::<Option<_>>();
    all.ok_or_else(|| failure.take())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::comm::{Communicator, Threads};

    fn comms(size: usize, failure: &Arc<Failure>) -> Vec<Threads<f64>> {
        Threads::new(&vec![0; size], failure)
    }

    /// Three ranks sum without end; rank 1 does `what` in its fifth round.
    fn run(what: impl Fn() -> Result<()> + Sync) -> Error {
        let failure = Arc::new(Failure::default());
        let jobs = comms(3, &failure);
        in_threads(&failure, jobs, |comm| -> Result<()> {
            for round in 0.. {
                if comm.rank() == 1 && round == 5 {
                    what()?;
                }
                comm.sum(&mut [1.0])?;
            }
            Ok(())
        })
        .unwrap_err()
        .into()
    }

    #[test]
    fn an_error_on_one_rank_ends_all_with_that_error() {
        let error = run(|| Err(Error::Usage("gpu 1 is lost".into())));
        assert_eq!(error.to_string(), "gpu 1 is lost");
    }

    #[test]
    fn a_panic_on_one_rank_ends_all_with_its_words() {
        let error = run(|| panic!("a defect"));
        assert_eq!(error.to_string(), "internal error on rank 1: a defect");
    }
}
