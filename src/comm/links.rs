//! Messages in either precision: a rank may need both, and a preconditioner those of its own.

use std::sync::Arc;

use super::among::{Among, Group};
use super::{Alone, Communicator, Failure, Threads};

/// A rank's communicators, one for messages in each precision.
pub struct Links {
    /// For messages in single precision.
    pub single: Box<dyn Communicator<f32>>,
    /// For messages in double precision.
    pub double: Box<dyn Communicator<f64>>,
    /// For those of a preconditioner, each of which all other ranks receive.
    pub precond: Box<dyn Communicator<f32>>,
}

impl Links {
    /// Those of this process's ranks among those of several processes, where so many of its own read the messages of each.
    #[must_use]
    pub(crate) fn among(receivers: &[usize], group: &Group, failure: &Arc<Failure>) -> Vec<Self> {
        let all_others = vec![receivers.len().saturating_sub(1); receivers.len()];
        Among::<f32>::new(Threads::new(receivers, failure), group, 0)
            .into_iter()
            .zip(Among::<f64>::new(Threads::new(receivers, failure), group, 1))
            .zip(Among::<f32>::new(Threads::new(&all_others, failure), group, 2))
            .map(|((single, double), precond)| Self {
                single: Box::new(single),
                double: Box::new(double),
                precond: Box::new(precond),
            })
            .collect()
    }

    /// Those of ranks that are threads, whose messages so many ranks read; or of one that is alone.
    #[must_use]
    pub fn new(receivers: &[usize], failure: &Arc<Failure>) -> Vec<Self> {
        if receivers.len() == 1 {
            let alone = Box::new(Alone::default());
            return vec![Self {
                single: alone,
                double: Box::new(Alone::default()),
                precond: Box::new(Alone::default()),
            }];
        }
        let all_others = vec![receivers.len() - 1; receivers.len()];
        Threads::new(receivers, failure)
            .into_iter()
            .zip(Threads::new(receivers, failure))
            .zip(Threads::new(&all_others, failure))
            .map(|((single, double), precond)| Self {
                single: Box::new(single),
                double: Box::new(double),
                precond: Box::new(precond),
            })
            .collect()
    }
}
