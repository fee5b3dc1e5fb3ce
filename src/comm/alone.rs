//! One rank.

use std::cell::Cell;
use std::ops::Range;

use super::{Communicator, Message, NewMemory};
use crate::error::Result;
use crate::partition::Receiver;

/// The communicator of a rank that has the system for itself: sums are what they are, and there are no messages.
#[derive(Debug, Default)]
pub struct Alone {
    stop: Cell<u32>,
}

impl<T> Communicator<T> for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum(&self, _: &mut [f64]) -> Result<()> {
        Ok(())
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>> {
        Ok(vec![value])
    }

    fn post(&self, _: Message<T>, _: &[Receiver]) -> Result<()> {
        Ok(())
    }

    fn fetch(&self, from: usize, _: &Range<usize>, _: NewMemory<'_, T>) -> Result<(Message<T>, Range<usize>)> {
        unreachable!("a single rank has no halo, so nothing comes from rank {from}")
    }

    fn request_stop(&self, request: u32) {
        self.stop.set(request);
    }

    fn stop_request(&self) -> u32 {
        self.stop.get()
    }
}
