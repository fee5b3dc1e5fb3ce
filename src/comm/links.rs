//! Messages in either precision: a rank may need both.

use std::sync::{Arc, RwLock};

use super::{Alone, Communicator, Failure, Outbox, Threads};

/// A rank's communicators, one for messages in each precision.
pub struct Links {
    /// For messages in single precision.
    pub single: Box<dyn Communicator<f32>>,
    /// For messages in double precision.
    pub double: Box<dyn Communicator<f64>>,
}

/// A rank's memory for messages in each precision; empty where there are none.
#[derive(Clone)]
pub struct Outboxes {
    /// Those in single precision.
    pub single: Outbox<f32>,
    /// Those in double precision.
    pub double: Outbox<f64>,
}

impl Default for Outboxes {
    fn default() -> Self {
        Self { single: Arc::new(RwLock::new(Vec::new())), double: Arc::new(RwLock::new(Vec::new())) }
    }
}

impl Links {
    /// Those of ranks that are threads, or of one that is alone. With its outboxes comes the number of ranks that read
    /// them.
    #[must_use]
    pub fn new(outboxes: &[(Outboxes, usize)], failure: &Arc<Failure>) -> Vec<Self> {
        if outboxes.len() == 1 {
            return vec![Self { single: Box::new(Alone::default()), double: Box::new(Alone::default()) }];
        }
        let single = outboxes.iter().map(|(outboxes, readers)| (outboxes.single.clone(), *readers)).collect();
        let double = outboxes.iter().map(|(outboxes, readers)| (outboxes.double.clone(), *readers)).collect();
        Threads::new(single, failure)
            .into_iter()
            .zip(Threads::new(double, failure))
            .map(|(single, double)| Self { single: Box::new(single), double: Box::new(double) })
            .collect()
    }
}
