//! How several ranks iterate.

use crate::comm::Communicator;
use crate::error::Result;

/// Who has a part in iterations, from the way that asks least of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    /// The host has one in each, by its own sums and messages.
    Host,
    /// Ranks meet in live memory, devices between launches,
    One,
    /// or within launches of several iterations.
    Several,
}

impl By {
    const ALL: [Self; 3] = [Self::Host, Self::One, Self::Several];

    fn of(number: usize) -> Self {
        Self::ALL[number % Self::ALL.len()]
    }
}

/// What a rank can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ways {
    /// With its memory,
    pub(super) can: By,
    /// and with any.
    pub(super) would: By,
    /// Whether it is the host's threads, which gain nothing from meeting others of their kind so.
    pub(super) is_host: bool,
}

impl Ways {
    /// What all can do, and by the host as if all could what all would do. Collective.
    ///
    /// # Errors
    /// A failed rank.
    pub(super) fn agree<T>(self, comm: &dyn Communicator<T>) -> Result<Self> {
        const WAYS: usize = By::ALL.len();
        let own = self.can as usize + WAYS * (self.would as usize + WAYS * usize::from(self.is_host));
        let all: Vec<usize> = comm.gather(own as f64)?.into_iter().map(|of| of as usize).collect();
        let is_host = all.iter().all(|of| of / (WAYS * WAYS) > 0);
        let least = |way: &dyn Fn(usize) -> usize| all.iter().map(|of| By::of(way(*of))).fold(By::Several, By::min);
        let can = if is_host { By::Host } else { least(&|of| of) };
        Ok(Self { can, would: least(&|of| of / WAYS), is_host })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::comm::{Failure, Threads};

    fn agreed(all: &[Ways]) -> Ways {
        let comms = Threads::<f64>::new(&vec![0; all.len()], &Arc::new(Failure::default()));
        let found: Vec<Ways> = std::thread::scope(|scope| {
            let ranks: Vec<_> = comms.into_iter().zip(all).map(|(c, own)| scope.spawn(move || own.agree(&c))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap().unwrap()).collect()
        });
        assert!(found.iter().all(|of| *of == found[0]));
        found[0]
    }

    #[test]
    fn all_do_as_the_one_that_can_do_least() {
        let device = |can, would| Ways { can, would, is_host: false };
        let host = |can, would| Ways { can, would, is_host: true };
        let cases = [
            (vec![device(By::Several, By::Several); 3], device(By::Several, By::Several)),
            (vec![device(By::Several, By::Several), device(By::Host, By::One)], device(By::Host, By::One)),
            (vec![device(By::Several, By::Several), host(By::One, By::One)], device(By::One, By::One)),
            (vec![device(By::One, By::One), host(By::Host, By::Host)], device(By::Host, By::Host)),
            (vec![host(By::One, By::One); 2], host(By::Host, By::One)),
        ];
        for (all, expected) in cases {
            assert_eq!(agreed(&all), expected, "{all:?}");
        }
    }
}
