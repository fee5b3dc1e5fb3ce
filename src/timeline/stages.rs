//! When the process did what: reading, opening devices, moving rows, solving, checking, and what of it ran beside the rest.
//!
//! As with a logger, there is one record for all threads, and it is empty until somebody asks for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The lane of threads without a name.
const UNNAMED: &str = "beside";

static RECORD: Mutex<Option<Vec<Stage>>> = Mutex::new(None);

/// A stage of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// What was done.
    pub name: &'static str,
    /// Who did it: the name of the thread, as `main`, `driver` or `rank 0`. The stages of a lane follow each other.
    pub lane: String,
    /// When it began.
    pub start: Instant,
    /// When it ended; none if it goes on.
    pub end: Option<Instant>,
}

/// From now on the stages of all threads are kept.
pub fn record() {
    kept().get_or_insert_default();
}

/// The stages that were kept until now, in the order of their beginnings.
#[must_use]
pub fn recorded() -> Vec<Stage> {
    let mut stages = kept().clone().unwrap_or_default();
    stages.sort_by_key(|stage| stage.start);
    stages
}

/// A stage of the calling thread begins, which ends when this is dropped.
pub fn stage(name: &'static str) -> Running {
    stage_in(thread::current().name().unwrap_or(UNNAMED), name)
}

/// A stage of a thread begins that may have to be started yet.
pub(crate) fn stage_in(lane: &str, name: &'static str) -> Running {
    let start = Instant::now();
    let place = kept().as_mut().map(|stages| {
        stages.push(Stage { name, lane: lane.into(), start, end: None });
        stages.len() - 1
    });
    Running { start, place }
}

fn kept() -> MutexGuard<'static, Option<Vec<Stage>>> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stage that goes on until this is dropped.
#[derive(Debug)]
#[must_use = "what is dropped has ended"]
pub struct Running {
    start: Instant,
    /// Among those that are kept.
    place: Option<usize>,
}

impl Running {
    /// Ends the stage, and tells how long it took.
    pub fn end(self) -> Duration {
        self.start.elapsed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Some(place), Some(stages)) = (self.place, kept().as_mut()) {
            stages[place].end = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_of_several_threads() {
        record();
        let first = stage_in("stages of a test", "begun before its thread");
        let other = thread::Builder::new().name("other stages of a test".into());
        let spawned = other.spawn(|| {
            drop(first);
            stage("named").end()
        });
        let took = spawned.unwrap().join().unwrap();
        let open = stage_in("stages of a test", "open");
        let of_test: Vec<Stage> =
            recorded().into_iter().filter(|stage| stage.lane.ends_with("stages of a test")).collect();
        let names: Vec<&str> = of_test.iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["begun before its thread", "named", "open"]);
        assert!(of_test[0].end.unwrap() <= of_test[1].start && of_test[1].end.unwrap() - of_test[1].start >= took);
        assert_eq!((&*of_test[1].lane, of_test[2].end), ("other stages of a test", None));
        drop(open);
    }
}
