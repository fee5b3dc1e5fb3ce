//! How processes go on after the failure of a device: what is under way is revoked, brought to an end, and forgotten.

use std::mem::forget;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::calls::lock;
use super::{Bytes, Processes, REVOKED, Shared, World, start_allgather};
use crate::error::Result;

impl World {
    /// Whether all was revoked since it was last restored.
    pub(super) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire) > self.restored.load(Ordering::Acquire)
    }

    /// Tells all others, unless somebody has told all.
    pub(super) fn revoke_all(&self) {
        let time = self.restored.load(Ordering::Acquire) + 1;
        if self.revoked.fetch_max(time, Ordering::AcqRel) >= time {
            return;
        }
        for to in self.others() {
            let bytes = Bytes::of(Arc::new(vec![time]), 0..1);
            let sent = self.start_send(self.notices.0, (to, REVOKED), &bytes, false);
            if let Err(error) = sent.and_then(|request| self.keep(request, bytes)) {
                self.fail(&error.to_string());
            }
        }
    }

    /// Waits for all, takes part in what others have begun, and receives what was sent to this process.
    pub(super) fn restore_all(&self) -> Result<()> {
        let gathering = &mut *lock(&self.gathering);
        let mut own = vec![gathering.begun, gathering.own.len() as u64];
        own.extend(self.sent.iter().map(|sent| sent.load(Ordering::Relaxed)));
        // whoever comes here begins nothing any more
        let all = self.gather_notices(&own)?;
        let of = |process: usize| &all[process * own.len()..(process + 1) * own.len()];
        // nobody is ahead by more than one
        let ahead = (0..self.count).map(of).max_by_key(|of| of[0]).unwrap_or(&own);
        if gathering.begun < ahead[0] {
            gathering.bring(&vec![0; ahead[1] as usize], self.count);
            self.start_gather(gathering)?;
        }
        self.finish_gather(gathering, Self::look_for_failures)?;
        for from in self.others() {
            self.discard(from, of(from)[2 + self.process])?;
        }
        self.until(|| {
            self.sweep();
            Ok(self.pending.load(Ordering::Relaxed) == 0)
        })?;
        gathering.begun = 0;
        self.sent.iter().chain(&self.received).for_each(|count| count.store(0, Ordering::Relaxed));
        self.restored.fetch_add(1, Ordering::AcqRel);
        // nobody goes on before
        self.gather_notices(&[0]).map(drop)
    }

    /// Receives all that a process has sent to this one, which is so many messages.
    fn discard(&self, from: usize, sent: u64) -> Result<()> {
        let received = &self.received[from];
        self.until(|| {
            while received.load(Ordering::Relaxed) < sent && self.probed(self.communicator.0, from as _)?.is_some() {
                received.fetch_add(1, Ordering::Relaxed);
            }
            Ok(received.load(Ordering::Relaxed) == sent)
        })
    }

    /// Waits until it is so, or a process fails.
    fn until(&self, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let mut turn = 0;
        while !is_so()? {
            self.look_for_failures()?;
            turn = self.pause(turn + 1);
        }
        Ok(())
    }

    fn look_for_failures(&self) -> Result<()> {
        self.take_notices()?;
        self.known_failure()
    }

    /// What all processes bring, beside all else.
    fn gather_notices(&self, own: &[u64]) -> Result<Vec<u64>> {
        let (own, mut all) = (own.to_vec(), vec![0; own.len() * self.count]);
        // SAFETY: the memory is kept until the request is done, or for good.
        let mut request = Shared(unsafe { start_allgather(self.notices.0, &own, &mut all)? });
        match self.wait(&mut request.0, Self::look_for_failures) {
            Ok(_) => Ok(all),
            Err(error) => {
                // MPI may still read and write there
                forget((own, all));
                Err(error)
            }
        }
    }
}
