//! Messages in either precision: a rank may need both.

use std::sync::Arc;

use super::{Alone, Communicator, Failure, Threads};

/// A rank's communicators, one for messages in each precision.
pub struct Links {
    /// For messages in single precision.
    pub single: Box<dyn Communicator<f32>>,
    /// For messages in double precision.
    pub double: Box<dyn Communicator<f64>>,
}

impl Links {
    /// Those of ranks that are threads, whose messages so many ranks read; or of one that is alone.
    #[must_use]
    pub fn new(receivers: &[usize], failure: &Arc<Failure>) -> Vec<Self> {
        if receivers.len() == 1 {
            return vec![Self { single: Box::new(Alone::default()), double: Box::new(Alone::default()) }];
        }
        Threads::new(receivers, failure)
            .into_iter()
            .zip(Threads::new(receivers, failure))
            .map(|(single, double)| Self { single: Box::new(single), double: Box::new(double) })
            .collect()
    }
}
