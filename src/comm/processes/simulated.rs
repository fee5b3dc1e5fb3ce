//! Threads in the place of processes, for tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Bytes, Processes};
use crate::error::{Error, ErrorKind, Result};

/// One of several threads that share nothing else.
pub(crate) struct Simulated {
    process: usize,
    shared: Arc<Shared>,
}

struct Shared {
    count: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Of each round of gathering, what was brought so far, and how many have taken it.
    rounds: VecDeque<(Vec<Option<Vec<u64>>>, usize)>,
    /// Rounds that are over.
    over: u64,
    /// Rounds of each process.
    of_each: Vec<u64>,
    /// By sender, receiver and stream.
    messages: HashMap<(usize, usize, u32), VecDeque<Vec<u8>>>,
    failed: Option<(usize, String)>,
    is_revoked: bool,
    /// How many have come to restore all, and how often that was done.
    restoring: usize,
    restored: u64,
}

impl Simulated {
    /// So many.
    pub(crate) fn all(count: usize) -> Vec<Arc<dyn Processes>> {
        let state = Mutex::new(State { of_each: vec![0; count], ..State::default() });
        let shared = Arc::new(Shared { count, state, changed: Condvar::new() });
        (0..count).map(|process| Arc::new(Self { process, shared: Arc::clone(&shared) }) as _).collect()
    }

    /// Waits until there is something to take.
    fn wait<R>(&self, mut take: impl FnMut(&mut State) -> Option<R>) -> Result<R> {
        self.wait_whatever(|state| if state.is_revoked { Some(Err(Error::PeerFailed)) } else { take(state).map(Ok) })?
    }

    /// The same whatever is revoked.
    fn wait_whatever<R>(&self, mut take: impl FnMut(&mut State) -> Option<R>) -> Result<R> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(taken) = take(&mut state) {
                self.shared.changed.notify_all();
                return Ok(taken);
            }
            if let Some((process, why)) = state.failed.clone() {
                let is_own = process == self.process;
                return Err(if is_own { Error::PeerFailed } else { failed(process, why) });
            }
            let waited = self.shared.changed.wait_timeout(state, Duration::from_millis(20));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Processes for Simulated {
    fn process(&self) -> usize {
        self.process
    }

    fn count(&self) -> usize {
        self.shared.count
    }

    fn on_host(&self) -> [usize; 2] {
        [self.process, self.shared.count]
    }

    fn gather(&self, own: &[u64], all: &mut [u64]) -> Result<()> {
        assert_eq!(all.len(), own.len() * self.count());
        let (process, count) = (self.process, self.count());
        let round = self.wait(|state| {
            let round = state.of_each[process];
            state.of_each[process] += 1;
            let place = (round - state.over) as usize;
            if state.rounds.len() == place {
                state.rounds.push_back((vec![None; count], 0));
            }
            state.rounds[place].0[process] = Some(own.to_vec());
            Some(round)
        })?;
        let brought = self.wait(|state| {
            let (brought, taken) = &mut state.rounds[(round - state.over) as usize];
            let all: Option<Vec<Vec<u64>>> = brought.iter().cloned().collect();
            let all = all?;
            *taken += 1;
            if *taken == count {
                state.rounds.pop_front();
                state.over += 1;
            }
            Some(all.concat())
        })?;
        all.copy_from_slice(&brought);
        Ok(())
    }

    fn send(&self, to: usize, stream: u32, bytes: Bytes) -> Result<()> {
        self.wait(|state| {
            state.messages.entry((self.process, to, stream)).or_default().push_back(bytes.to_vec());
            Some(())
        })
    }

    fn receive(&self, from: usize, stream: u32, into: &mut [u8]) -> Result<()> {
        let bytes = self.wait(|state| state.messages.get_mut(&(from, self.process, stream))?.pop_front())?;
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn fail(&self, why: &str) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.get_or_insert((self.process, why.into()));
        self.shared.changed.notify_all();
    }

    fn check(&self) -> Result<()> {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.failed.clone().filter(|(process, _)| *process != self.process) {
            Some((process, why)) => Err(failed(process, why)),
            None if state.is_revoked => Err(Error::PeerFailed),
            None => Ok(()),
        }
    }

    fn revoke(&self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).is_revoked = true;
        self.shared.changed.notify_all();
    }

    fn restore(&self) -> Result<()> {
        let count = self.count();
        let time = self.wait_whatever(|state| {
            let time = state.restored;
            state.restoring += 1;
            if state.restoring == count {
                state.rounds.clear();
                state.messages.clear();
                state.of_each.fill(0);
                (state.over, state.restoring, state.is_revoked) = (0, 0, false);
                state.restored += 1;
            }
            Some(time)
        })?;
        self.wait_whatever(|state| (state.restored > time).then_some(()))
    }
}

fn failed(process: usize, why: String) -> Error {
    Error::ProcessFailed { process, why, kind: ErrorKind::Runtime }
}

/// Lets so many processes do something, and gives what each has.
pub(crate) fn processes<R: Send>(count: usize, body: impl Fn(Arc<dyn Processes>) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = Simulated::all(count).into_iter().map(|one| scope.spawn(move || body(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::{agreed, any, exchange, gathered, largest, sum, told};
    use super::*;

    #[test]
    fn collective_calls() {
        for count in [1, 2, 3, 5] {
            let found = processes(count, |all| {
                let own = all.process();
                let of_each = |range: Range<usize>| range.map(|to| vec![(10 * own + to) as f64; to + own]).collect();
                let received = exchange::<f64>(&*all, of_each(0..count)).unwrap();
                for (from, elements) in received.iter().enumerate() {
                    assert_eq!(*elements, vec![(10 * from + own) as f64; from + own]);
                }
                let numbers =
                    (0..3).map(|round| gathered(&*all, (10 * round + own) as u64).unwrap()).collect::<Vec<_>>();
                let is_first = any(&*all, own == 0).unwrap() && !any(&*all, false).unwrap();
                (numbers, sum(&*all, own as f64).unwrap(), largest(&*all, -(own as f64)).unwrap(), is_first)
            });
            for (numbers, sum, largest, is_first) in found {
                let expected: Vec<Vec<u64>> =
                    (0..3).map(|round| (0..count as u64).map(|own| 10 * round + own).collect()).collect();
                assert_eq!((numbers, largest, is_first), (expected, 0.0, true));
                assert_eq!(sum, (count * (count - 1) / 2) as f64);
            }
        }
    }

    #[test]
    fn the_first_error_is_everybodys() {
        let found = processes(4, |all| {
            let own = all.process();
            assert_eq!(agreed(&*all, Ok(own)).unwrap(), own);
            let result = if own % 2 == 1 { Err(Error::Usage(format!("no {own}"))) } else { Ok(own) };
            let error = agreed(&*all, result).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            error.to_string()
        });
        assert_eq!(found, ["process 1 failed: no 1", "no 1", "process 1 failed: no 1", "no 3"]);
        let told = processes(3, |all| told(&*all, 2, format!("I am {}", all.process()).into_bytes()).unwrap());
        assert!(told.iter().all(|text| text == b"I am 2"));
    }

    /// What was sent or brought before is forgotten, and nobody gets it afterwards.
    #[test]
    fn all_go_on_after_what_is_revoked() {
        for count in [1, 2, 5] {
            processes(count, |all| {
                let (own, next) = (all.process(), (all.process() + 1) % count);
                for round in 0..20_u64 {
                    // others may have revoked it already
                    if let Ok(all) = gathered(&*all, round) {
                        assert_eq!(all, vec![round; count]);
                    }
                    all.send(next, 1, Bytes::of(Arc::new(vec![round]), 0..1)).unwrap_or(());
                    if own as u64 == round % count as u64 {
                        all.revoke();
                    }
                    let ended = loop {
                        if let Err(error) = gathered(&*all, 100) {
                            break error;
                        }
                    };
                    assert!(matches!(ended, Error::PeerFailed), "{ended}");
                    assert!(all.check().is_err() && all.receive(next, 1, &mut [0; 8]).is_err());
                    all.restore().unwrap();
                }
                all.check().unwrap();
            });
        }
    }

    #[test]
    fn a_failure_is_told_to_all() {
        let errors = processes(3, |all| {
            if all.process() == 1 {
                all.fail("the disk is full");
                return None;
            }
            gathered(&*all, 0).err().map(|error| error.to_string())
        });
        let told = Some("process 1 failed: the disk is full".to_owned());
        assert_eq!(errors, [told.clone(), None, told]);
    }
}
