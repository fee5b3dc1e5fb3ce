//! Halos among kernels that run: elements in live memory, each with the number of its exchange, as values of sums are.
//!
//! A rank's kernel puts what others need into its own memory; threads of the host copy it into the memories of those, word by word,
//! as it comes; their kernels wait for each word. An element is a word of two numbers of 64 bits, or in single precision one number.
//!
//! *Slots.* Exchanges take turns with two slots. Who puts exchange e + 2 has the totals of a sum to which all have come that had
//! taken exchange e: there is a sum between two exchanges. So no word is written again before it was copied, nor before it was taken,
//! and a link may look for one exchange after the other.

use std::ops::Range;

use super::{LINE, Shared64, WORD};
use crate::partition::Receive;

/// Words that are copied at once, if all of them are there.
const BLOCK: usize = 8;

/// Where the elements of a rank are in its memory, behind what there is for sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// Elements that it sends,
    pub(crate) sent: usize,
    /// and those that it receives.
    pub(crate) halo: usize,
    /// Numbers of 64 bits of an element.
    pub(crate) word: usize,
}

impl Places {
    /// Those of elements of so many bytes.
    pub(crate) fn new(sent: usize, halo: usize, bytes: usize) -> Self {
        Self { sent, halo, word: if bytes == 4 { 1 } else { WORD } }
    }

    /// Numbers of 64 bits that the rank's memory has.
    pub(crate) fn room(self) -> usize {
        super::ROOM + 2 * (self.sent + self.halo) * self.word
    }

    /// What is sent in exchange `number`.
    fn sent_in(self, number: u32) -> Range<usize> {
        let begin = 4 * LINE + (number % 2) as usize * self.sent * self.word;
        begin..begin + self.sent * self.word
    }

    /// What is received in exchange `number`.
    fn halo_in(self, number: u32) -> Range<usize> {
        let begin = 4 * LINE + (2 * self.sent + (number % 2) as usize * self.halo) * self.word;
        begin..begin + self.halo * self.word
    }
}

/// A segment of what a rank sends, on its way into the halo of another one.
#[derive(Debug)]
pub(crate) struct Link {
    from: usize,
    to: usize,
    places: [Places; 2],
    segment: Range<usize>,
    halo: Range<usize>,
    /// The exchange that is under way, and how many of its elements were copied.
    number: u32,
    copied: usize,
}

impl Link {
    /// Before the first exchange, which has number 1.
    pub(crate) fn new(to: usize, receive: &Receive, places: &[Places]) -> Self {
        let Receive { from, segment, halo } = receive.clone();
        Self { from, to, places: [places[from], places[to]], segment, halo, number: 1, copied: 0 }
    }

    /// Copies what has come. Says whether anything has.
    pub(crate) fn look<S: Shared64>(&mut self, memories: &[&[S]]) -> bool {
        let (word, len) = (self.places[0].word, self.segment.len());
        if len == 0 {
            return false;
        }
        let segment = |all: Range<usize>, of: &Range<usize>| all.start + of.start * word..all.start + of.end * word;
        let from = &memories[self.from][segment(self.places[0].sent_in(self.number), &self.segment)];
        let to = &memories[self.to][segment(self.places[1].halo_in(self.number), &self.halo)];
        let before = self.copied;
        while self.copied < len {
            let count = BLOCK.min(len - self.copied) * word;
            let at = self.copied * word;
            let (from, to) = (&from[at..at + count], &to[at..at + count]);
            let copied = if count == BLOCK * WORD {
                copy_block::<S, { BLOCK * WORD }>(from, to, word, self.number)
            } else {
                copy(from, to, word, self.number)
            };
            self.copied += copied;
            if copied * word < count {
                break;
            }
        }
        let has_come = self.copied > before;
        if self.copied == len {
            (self.number, self.copied) = (self.number.wrapping_add(1), 0);
        }
        has_come
    }
}

/// Copies words of exchange `number` as far as they are there, and says how many.
fn copy<S: Shared64>(from: &[S], to: &[S], word: usize, number: u32) -> usize {
    for (k, (from, to)) in from.chunks_exact(word).zip(to.chunks_exact(word)).enumerate() {
        let mut seen = [0; WORD];
        seen.iter_mut().zip(from).for_each(|(seen, from)| *seen = from.get());
        if seen[..word].iter().any(|seen| *seen as u32 != number) {
            return k;
        }
        to.iter().zip(seen).for_each(|(to, seen)| to.put(seen));
    }
    from.len() / word
}

/// The same, without a look at single words if all are there.
fn copy_block<S: Shared64, const N: usize>(from: &[S], to: &[S], word: usize, number: u32) -> usize {
    let mut seen = [0; N];
    seen.iter_mut().zip(from).for_each(|(seen, from)| *seen = from.get());
    let differences = seen.iter().fold(0, |all, seen| all | (*seen as u32 ^ number));
    if differences != 0 {
        return copy(from, to, word, number);
    }
    to.iter().zip(seen).for_each(|(to, seen)| to.put(seen));
    N / word
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Modelled;

    use super::super::{Lines, Relay, get, put};
    use super::*;

    /// What a kernel does with an element that is sent.
    fn put_element<S: Shared64>(memory: &[S], places: Places, k: usize, bits: u64, number: u32) {
        let at = places.sent_in(number).start + k * places.word;
        if places.word == 1 {
            memory[at].put(bits << 32 | u64::from(number));
        } else {
            memory[at].put(bits << 32 | u64::from(number));
            memory[at + 1].put(bits >> 32 << 32 | u64::from(number));
        }
    }

    /// An element of the halo, if it is there.
    fn take_element<S: Shared64>(memory: &[S], places: Places, k: usize, number: u32) -> Option<u64> {
        let at = places.halo_in(number).start + k * places.word;
        let seen: Vec<u64> = memory[at..at + places.word].iter().map(Shared64::get).collect();
        let has_come = seen.iter().all(|seen| *seen as u32 == number);
        let high = seen.get(1).map_or(0, |high| high >> 32 << 32);
        has_come.then_some(high | seen[0] >> 32)
    }

    #[test]
    fn places_do_not_overlap() {
        for (sent, halo, bytes) in [(0, 0, 8), (3, 5, 8), (4, 1, 4), (1, 0, 8)] {
            let places = Places::new(sent, halo, bytes);
            let mut all: Vec<usize> =
                [1, 2].iter().flat_map(|number| places.sent_in(*number).chain(places.halo_in(*number))).collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(super::super::ROOM..places.room()), "{sent} {halo} {bytes}");
            assert_eq!((places.sent_in(3), places.halo_in(4)), (places.sent_in(1), places.halo_in(2)));
        }
    }

    /// Words come in any order, in pieces; each is copied once all before it are there, and each exchange in full.
    #[test]
    fn links_copy_what_has_come() {
        for (bytes, len) in [(8, 21), (4, 21), (8, 1), (8, 8), (4, 17)] {
            let places = [Places::new(len + 2, 0, bytes), Places::new(0, len + 3, bytes)];
            let memories = places.map(|places| (0..places.room()).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
            let words = memories.each_ref().map(|memory| &memory[..]);
            let mut link = Link::new(1, &Receive { from: 0, segment: 1..len + 1, halo: 2..len + 2 }, &places);
            let value =
                |k: usize, number: u32| (if bytes == 4 { 0 } else { 7 << 32 }) + k as u64 * 100 + u64::from(number);
            for number in 1..=5 {
                assert!(!link.look(&words));
                for k in (1..=len).rev() {
                    put_element(words[0], places[0], k, value(k, number), number);
                    assert_eq!(link.look(&words), k == 1, "nothing is copied before what comes first");
                }
                for k in 0..len {
                    assert_eq!(take_element(words[1], places[1], 2 + k, number), Some(value(1 + k, number)));
                }
            }
            for number in 6..=8 {
                for k in 1..=len {
                    put_element(words[0], places[0], k, value(k, number), number);
                    assert!(link.look(&words));
                    assert_eq!(take_element(words[1], places[1], 1 + k, number), Some(value(k, number)));
                }
            }
        }
    }

    /// Two ranks that exchange elements and then meet in a sum, again and again, with a link each and the relay: in every order in which
    /// the memory model lets loads see stores, with no switch from a thread that does not give way, each takes the element of its
    /// exchange.
    #[test]
    fn no_order_of_loads_and_stores_gives_a_wrong_element() {
        const ROUNDS: u32 = 3;
        const LOOKS: usize = 2;
        let most = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let reached = std::sync::Arc::clone(&most);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(0);
        model.check(move || {
            // rank 0 sends an element in single precision to rank 1
            let places = [Places::new(1, 0, 4), Places::new(0, 1, 4)];
            let memories =
                places.map(|places| Arc::new((0..places.room()).map(|_| Modelled::new(0)).collect::<Vec<_>>()));
            let rank = |rank: usize| {
                let (memory, reached) = (Arc::clone(&memories[rank]), std::sync::Arc::clone(&reached));
                move || {
                    for number in 1..=ROUNDS {
                        if rank == 0 {
                            put_element(&memory, places[0], 0, u64::from(number) * 10, number);
                        }
                        put(&memory, Lines::Values, number, &[]);
                        let look = |_| {
                            loom::thread::yield_now();
                            get(&memory, Lines::Totals, number)
                        };
                        if (0..LOOKS).find_map(look).is_none() {
                            return;
                        }
                        if rank == 1 {
                            let look = |_| {
                                loom::thread::yield_now();
                                take_element(&memory, places[1], 0, number)
                            };
                            let Some(taken) = (0..LOOKS).find_map(look) else { return };
                            assert_eq!(taken, u64::from(number) * 10);
                            reached.fetch_max(number, Ordering::Relaxed);
                        }
                    }
                }
            };
            let threads = [0, 1].map(|k| loom::thread::spawn(rank(k)));
            let words = memories.each_ref().map(|memory| &memory[..]);
            let (mut relay, mut link) =
                (Relay::new(2), Link::new(1, &Receive { from: 0, segment: 0..1, halo: 0..1 }, &places));
            for _ in 0..2 * ROUNDS {
                loom::thread::yield_now();
                link.look(&words);
                relay.look(&words);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(most.load(Ordering::Relaxed), ROUNDS, "no order came to the last exchange");
    }
}
