//! Sums among kernels that run: words in memory that kernels and processors see change, and the relay between several such memories.
//!
//! Each rank has a memory of its own, as no two devices can share one. It puts its values into its memory; the relay, a thread of the
//! host, takes those of all ranks, adds them in the order of the ranks, and puts the totals into the memory of each:
//!
//! ```text
//! rank 0's kernel   put ─┐                      ┌► get
//! rank 1's kernel   put ─┼► relay: totals ──────┼► get
//! the relay              └ of all ranks, once   ┘
//! ```
//!
//! *Words.* A value travels as two numbers of 64 bits, each of which has half of the value's bits and the number of the sum in the
//! other half. So a half that has come tells by itself that it has, in whatever order stores become visible, and needs neither a
//! flag nor a fence, nor accesses of 128 bits that are not torn.
//!
//! *Slots.* Sums take turns with two lines of words in each direction. A rank puts the values of sum s + 1 only when it has the totals
//! of sum s, and there are none before the relay has the values of all ranks. So a line is written again, with sum s + 2, only when
//! all have read s: nobody reads a number later than the one that it waits for.

pub(crate) mod halos;
pub(crate) mod membership;
pub(crate) mod relaying;
pub(crate) mod sending;

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of 64 bits in a word.
pub(crate) const WORD: usize = 2;
/// Numbers of 64 bits in a line of words: two cache lines of 128 bytes, of which most sums need one. The first word has the number of
/// values.
pub(crate) const LINE: usize = 32;
/// The most values of a sum.
pub(crate) const MOST_VALUES: usize = LINE / WORD - 1;
/// Numbers of 64 bits that a rank's memory has for sums: two lines of values, then two of totals.
pub(crate) const ROOM: usize = 4 * LINE;

/// A number of 64 bits that others change.
pub(crate) trait Shared64 {
    /// Its value.
    fn get(&self) -> u64;
    /// Changes it.
    fn put(&self, value: u64);
    /// Changes it, once all that this thread has changed before is seen by whoever sees this value.
    fn hand_over(&self, value: u64);
    /// Its value, with what was changed before it was handed over.
    fn take_over(&self) -> u64;
}

impl Shared64 for AtomicU64 {
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn put(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    fn hand_over(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn take_over(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
}

/// Which of the lines of a rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Its values.
    Values,
    /// The totals that it gets.
    Totals,
}

/// The line of sum `number`.
fn line<S: Shared64>(memory: &[S], of: Lines, number: u32) -> &[S] {
    let turn = (number % 2) as usize + if of == Lines::Totals { 2 } else { 0 };
    &memory[turn * LINE..(turn + 1) * LINE]
}

/// Puts the bits of a value with the number of its sum.
fn put_word<S: Shared64>(word: &[S], bits: u64, number: u32) {
    word[0].put(bits << 32 | u64::from(number));
    word[1].put(bits >> 32 << 32 | u64::from(number));
}

/// The bits of a value of sum `number`, if both halves are there.
fn get_word<S: Shared64>(word: &[S], number: u32) -> Option<u64> {
    let [low, high] = [word[0].get(), word[1].get()];
    let has_come = [low, high].iter().all(|half| *half as u32 == number);
    has_come.then_some(high >> 32 << 32 | low >> 32)
}

/// Puts values, or their totals, for sum `number`.
///
/// # Panics
/// If there are more than [`MOST_VALUES`].
pub(crate) fn put<S: Shared64>(memory: &[S], of: Lines, number: u32, values: &[f64]) {
    assert!(values.len() <= MOST_VALUES, "{} values in one sum", values.len());
    let mut words = line(memory, of, number).chunks_exact(WORD);
    let all = std::iter::once(values.len() as u64).chain(values.iter().map(|value| value.to_bits()));
    all.zip(&mut words).for_each(|(bits, word)| put_word(word, bits, number));
}

/// The values, or totals, of sum `number`, once all of them are there.
pub(crate) fn get<S: Shared64>(memory: &[S], of: Lines, number: u32) -> Option<Values> {
    let mut words = line(memory, of, number).chunks_exact(WORD);
    let len = get_word(words.next()?, number)? as usize;
    let mut all = Values { len, values: [0.0; MOST_VALUES] };
    for (value, word) in all.values.get_mut(..len)?.iter_mut().zip(words) {
        *value = f64::from_bits(get_word(word, number)?);
    }
    Some(all)
}

/// The values of a sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Values {
    len: usize,
    values: [f64; MOST_VALUES],
}

impl Deref for Values {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.values[..self.len]
    }
}

/// What the relay knows of the sum that is under way.
pub(crate) struct Relay {
    /// Its number,
    number: u32,
    /// and the values of those who have come.
    come: Vec<Option<Values>>,
}

impl Relay {
    /// Before the first sum of so many ranks, which has number 1.
    pub(crate) fn new(ranks: usize) -> Self {
        Self { number: 1, come: vec![None; ranks] }
    }

    /// Looks who has come; when all have, gives each the totals. Says whether it did.
    pub(crate) fn look<S: Shared64>(&mut self, memories: &[&[S]]) -> bool {
        for (memory, values) in memories.iter().zip(&mut self.come) {
            if values.is_none() {
                *values = get(memory, Lines::Values, self.number);
            }
        }
        if !self.come.iter().all(Option::is_some) {
            return false;
        }
        let len = self.come.iter().flatten().map(|values| values.len).max().unwrap_or(0);
        let total = |k: usize| self.come.iter().flatten().filter_map(|values| values.get(k)).sum::<f64>();
        let totals: Vec<f64> = (0..len).map(total).collect();
        memories.iter().for_each(|memory| put(memory, Lines::Totals, self.number, &totals));
        self.number = self.number.wrapping_add(1);
        self.come.fill(None);
        true
    }

    /// The sum that is under way, and the ranks that have not come to it.
    pub(crate) fn missing(&self) -> (u32, Vec<usize>) {
        let missing = self.come.iter().enumerate().filter(|(_, values)| values.is_none());
        (self.number, missing.map(|(rank, _)| rank).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Modelled;
    use proptest::prelude::*;

    use super::*;

    impl Shared64 for Modelled {
        fn get(&self) -> u64 {
            self.load(Ordering::Relaxed)
        }

        fn put(&self, value: u64) {
            self.store(value, Ordering::Relaxed);
        }

        fn hand_over(&self, value: u64) {
            self.store(value, Ordering::Release);
        }

        fn take_over(&self) -> u64 {
            self.load(Ordering::Acquire)
        }
    }

    fn memory() -> Vec<AtomicU64> {
        (0..ROOM).map(|_| AtomicU64::new(0)).collect()
    }

    proptest! {
        #[test]
        fn any_bits_come_back(values in prop::collection::vec(any::<u64>(), 0..=MOST_VALUES), number: u32) {
            let memory = memory();
            let values: Vec<f64> = values.into_iter().map(f64::from_bits).collect();
            for of in [Lines::Values, Lines::Totals] {
                prop_assume!(number != 0);
                prop_assert!(get(&memory, of, number).is_none());
                put(&memory, of, number, &values);
                let back = get(&memory, of, number).unwrap();
                prop_assert!(back.iter().map(|v| v.to_bits()).eq(values.iter().map(|v| v.to_bits())));
                for other in [number.wrapping_add(2), number.wrapping_sub(2), number ^ 1] {
                    prop_assert!(get(&memory, of, other).is_none() || other == 0);
                }
            }
        }
    }

    #[test]
    fn totals_are_added_in_the_order_of_the_ranks() {
        let memories = [memory(), memory(), memory()];
        let words = memories.each_ref().map(|memory| &memory[..]);
        let mut relay = Relay::new(3);
        let numbers = [0.1, 1e16, -1e16];
        for (number, order) in [(1, [2, 0, 1]), (2, [1, 2, 0])] {
            for rank in order {
                assert!(!relay.look(&words));
                assert!(words.iter().all(|words| get(words, Lines::Totals, number).is_none()));
                put(words[rank], Lines::Values, number, &[numbers[rank], 1.0]);
            }
            assert!(relay.look(&words));
            for words in words {
                assert_eq!(get(words, Lines::Totals, number).unwrap()[..], [0.1 + 1e16 - 1e16, 3.0]);
            }
            assert_eq!(relay.missing(), (number + 1, vec![0, 1, 2]));
        }
    }

    #[test]
    fn numbers_begin_again() {
        let memories = [memory(), memory()];
        let words = memories.each_ref().map(|memory| &memory[..]);
        let mut relay = Relay { number: u32::MAX - 1, come: vec![None; 2] };
        for number in [u32::MAX - 1, u32::MAX, 0, 1, 2] {
            assert!(number == 0 || !relay.look(&words));
            words.iter().for_each(|words| put(words, Lines::Values, number, &[f64::from(number)]));
            assert!(relay.look(&words));
            assert!(
                words.iter().all(|words| get(words, Lines::Totals, number).unwrap()[..] == [2.0 * f64::from(number)])
            );
        }
    }

    /// The relay and so many ranks in sums of one value that reuse a line: every order in which the memory model lets loads see stores, with
    /// at most so many switches from a thread that does not give way. Who has looked in vain a few times leaves, so that there is an end.
    fn model(ranks: usize, switches: usize) {
        const SUMS: u32 = 3;
        const LOOKS: usize = 2;
        let last = std::sync::Arc::new(AtomicU32::new(0));
        let reached = std::sync::Arc::clone(&last);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(switches);
        model.check(move || {
            let memory = || (0..ROOM).map(|_| Modelled::new(0)).collect::<Vec<_>>();
            let memories: Vec<_> = (0..ranks).map(|_| Arc::new(memory())).collect();
            let rank = |rank: usize| {
                let (memory, reached) = (Arc::clone(&memories[rank]), std::sync::Arc::clone(&reached));
                move || {
                    for number in 1..=SUMS {
                        put(&memory, Lines::Values, number, &[f64::from(number) * (rank + 1) as f64]);
                        let look = |_| {
                            loom::thread::yield_now();
                            get(&memory, Lines::Totals, number)
                        };
                        let Some(totals) = (0..LOOKS).find_map(look) else { return };
                        assert_eq!(totals[..], [f64::from(number) * (ranks * (ranks + 1) / 2) as f64]);
                        reached.fetch_max(number, Ordering::Relaxed);
                    }
                }
            };
            let threads: Vec<_> = (0..ranks).map(|k| loom::thread::spawn(rank(k))).collect();
            let words: Vec<&[Modelled]> = memories.iter().map(|memory| &memory[..]).collect();
            let mut relay = Relay::new(ranks);
            for _ in 0..SUMS {
                let look = |_| {
                    loom::thread::yield_now();
                    relay.look(&words)
                };
                if !(0..LOOKS).any(look) {
                    break;
                }
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(last.load(Ordering::Relaxed), SUMS, "no order came to the last sum");
    }

    #[test]
    fn no_order_of_loads_and_stores_gives_a_wrong_total() {
        model(1, 2);
        model(2, 0);
    }
}
