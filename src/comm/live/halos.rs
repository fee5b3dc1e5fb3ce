//! Halos among kernels that run: elements in live memory, and flags that tell when they are there.
//!
//! A rank's kernel writes what others need into its own memory, and then raises a flag; threads of the host copy it, in *pieces*, into the
//! memories of those who need it, and raise the flags of the pieces; their kernels wait for these. A flag is the number of the exchange.
//! Who sees one (acquire) sees what was written before it was raised (release). [Few](FEW) elements arrive as words instead, as values of
//! sums do: twice the bytes, but a kernel needs no second look.
//!
//! *Slots.* Exchanges take turns with two slots. Who writes what is sent in exchange e + 2, before its flag and the sum behind it, has the
//! totals of the sum behind exchange e + 1, to which all have come that had taken exchange e. So nothing is written again before it was
//! copied, nor before it was taken, and a link may look for one exchange after the other.

use std::ops::Range;

use super::{ROOM, Shared64, WORD, get_word, put_word};
use crate::partition::Receive;

/// The most elements of a piece. Smaller ones gain nothing, and have more flags.
const PIECE: usize = 512;

/// Numbers of 64 bits from one flag to the next: each has a cache line.
pub(crate) const FLAG: usize = 8;

/// The most elements that a rank receives as words.
pub(crate) const FEW: usize = 8192;

/// The pieces in which a halo arrives: of one sender each, neighbouring elements, in order.
pub(crate) fn pieces(receive: &[Receive]) -> Vec<Receive> {
    let of_one = |Receive { from, segment, halo }: &Receive| {
        let (from, segment, halo) = (*from, segment.clone(), halo.clone());
        (0..segment.len()).step_by(PIECE).map(move |begin| {
            let piece = |of: &Range<usize>| of.start + begin..of.end.min(of.start + begin + PIECE);
            Receive { from, segment: piece(&segment), halo: piece(&halo) }
        })
    };
    receive.iter().flat_map(of_one).collect()
}

/// What a rank's memory has behind what there is for sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// Elements that it sends,
    pub(crate) sent: usize,
    /// those that it receives,
    pub(crate) halo: usize,
    /// and in how many pieces.
    pub(crate) pieces: usize,
    /// How many arrive as words, at most: [`FEW`], but in tests.
    few: usize,
}

/// Flags, and behind them elements; or words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    begin: usize,
    flags: usize,
    elements: usize,
    has_words: bool,
}

impl Slot {
    fn end(self) -> usize {
        let Self { begin, flags, elements, has_words } = self;
        begin + if has_words { elements * WORD } else { flags * FLAG + elements.next_multiple_of(FLAG) }
    }

    fn flag<S>(self, memory: &[S], k: usize) -> &S {
        &memory[self.begin + k * FLAG]
    }

    fn words<'a, S>(self, memory: &'a [S], of: &Range<usize>) -> impl ExactSizeIterator<Item = &'a [S]> {
        memory[self.begin..][of.start * WORD..of.end * WORD].chunks_exact(WORD)
    }

    fn elements<'a, S>(self, memory: &'a [S], of: &Range<usize>) -> &'a [S] {
        &memory[self.begin + self.flags * FLAG..][of.start..of.end]
    }

    /// Forgets former exchanges.
    fn clear<S: Shared64>(self, memory: &[S]) {
        let numbered = if self.has_words { self.elements * WORD } else { self.flags * FLAG };
        memory[self.begin..][..numbered].iter().for_each(|number| number.put(0));
    }

    /// The elements, once they are there, of the exchange of this number, under a flag.
    fn get<S: Shared64>(
        self,
        memory: &[S],
        of: &Range<usize>,
        flag: usize,
        number: u32,
        into: &mut [u64; PIECE],
    ) -> bool {
        if self.has_words {
            let mut words = self.words(memory, of).zip(into);
            return words.all(|(word, bits)| get_word(word, number).map(|seen| *bits = seen).is_some());
        }
        let is_there = self.flag(memory, flag).take_over() == u64::from(number);
        if is_there {
            self.elements(memory, of).iter().zip(into).for_each(|(element, bits)| *bits = element.get());
        }
        is_there
    }

    /// Puts elements that have a flag together.
    fn put<S: Shared64>(
        self,
        memory: &[S],
        of: &Range<usize>,
        flag: usize,
        number: u32,
        elements: impl Iterator<Item = u64>,
    ) {
        if self.has_words {
            self.words(memory, of).zip(elements).for_each(|(word, bits)| put_word(word, bits, number));
        } else {
            self.elements(memory, of).iter().zip(elements).for_each(|(element, bits)| element.put(bits));
            self.flag(memory, flag).hand_over(number.into());
        }
    }
}

impl Places {
    /// Of a rank that sends so many elements, and receives these.
    pub(crate) fn new(sent: usize, receive: &[Receive]) -> Self {
        let halo = receive.iter().map(|receive| receive.halo.len()).sum();
        Self { sent, halo, pieces: pieces(receive).len(), few: FEW }
    }

    /// Numbers of 64 bits that the rank's memory has.
    pub(crate) fn room(self) -> usize {
        self.received(1).end()
    }

    /// Forgets former sums and exchanges. Elements under flags may stay: nobody looks at them.
    pub(crate) fn clear<S: Shared64>(self, memory: &[S]) {
        memory[..ROOM].iter().for_each(|number| number.put(0));
        [0, 1].into_iter().flat_map(|turn| [self.sent(turn), self.received(turn)]).for_each(|slot| slot.clear(memory));
    }

    /// What is sent in exchange `number`.
    fn sent(self, number: u32) -> Slot {
        let first = Slot { begin: ROOM, flags: 1, elements: self.sent, has_words: false };
        if number.is_multiple_of(2) { first } else { Slot { begin: first.end(), ..first } }
    }

    /// Puts what is sent in exchange `number`.
    pub(crate) fn send<S: Shared64>(self, memory: &[S], elements: impl Iterator<Item = u64>, number: u32) {
        self.sent(number).put(memory, &(0..self.sent), 0, number, elements);
    }

    /// A piece of what is received in exchange `number`, once it is there; behind it there may be anything.
    pub(crate) fn take<S: Shared64>(
        self,
        memory: &[S],
        of: &Range<usize>,
        piece: usize,
        number: u32,
    ) -> Option<[u64; PIECE]> {
        let mut elements = [0; PIECE];
        self.received(number).get(memory, of, piece, number, &mut elements).then_some(elements)
    }

    /// Where the elements are that are sent in exchange `number`.
    pub(crate) fn sent_at(self, number: u32) -> usize {
        self.sent(number).begin + FLAG
    }

    /// What is received in exchange `number`.
    fn received(self, number: u32) -> Slot {
        let (elements, has_words) = (self.halo, self.halo <= self.few);
        let first = Slot { begin: self.sent(1).end(), flags: self.pieces, elements, has_words };
        if number.is_multiple_of(2) { first } else { Slot { begin: first.end(), ..first } }
    }
}

/// A piece of a halo, on its way into the memory of the rank that needs it.
#[derive(Debug)]
pub(crate) struct Link {
    from: usize,
    to: usize,
    places: [Places; 2],
    /// Which of the receiver's pieces it is.
    piece: usize,
    segment: Range<usize>,
    halo: Range<usize>,
    /// The exchange that is under way.
    number: u32,
}

impl Link {
    /// Those of what rank `to` receives, before the first exchange, which has number 1.
    pub(crate) fn all(to: usize, receive: &[Receive], places: &[Places]) -> impl Iterator<Item = Self> {
        let of = move |(piece, Receive { from, segment, halo }): (usize, Receive)| {
            let places = [places[from], places[to]];
            Self { from, to, places, piece, segment, halo, number: 1 }
        };
        pieces(receive).into_iter().enumerate().map(of)
    }

    /// Copies the piece if it is there, and says whether it was.
    pub(crate) fn look<S: Shared64>(&mut self, memories: &[&[S]]) -> bool {
        let [sent, received] = [self.places[0].sent(self.number), self.places[1].received(self.number)];
        let mut elements = [0; PIECE];
        if !sent.get(memories[self.from], &self.segment, 0, self.number, &mut elements) {
            return false;
        }
        received.put(memories[self.to], &self.halo, self.piece, self.number, elements.into_iter());
        self.number = self.number.wrapping_add(1);
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Modelled;

    use super::super::{Lines, Relay, get, put};
    use super::*;

    /// What a kernel does with what is sent.
    pub(in super::super) fn send<S: Shared64>(memory: &[S], places: Places, elements: &[u64], number: u32) {
        places.send(memory, elements.iter().copied(), number);
    }

    /// The halo, if all of it is there.
    pub(in super::super) fn take<S: Shared64>(
        memory: &[S],
        places: Places,
        receive: &[Receive],
        number: u32,
    ) -> Option<Vec<u64>> {
        let mut halo = Vec::new();
        for (k, piece) in pieces(receive).iter().enumerate() {
            halo.extend(&places.take(memory, &piece.halo, k, number)?[..piece.halo.len()]);
        }
        Some(halo)
    }

    #[test]
    fn slots_do_not_overlap() {
        for (sent, halo, pieces) in [(0, 0, 0), (3, 5, 2), (FEW, FEW + 1, 17), (FEW + 9, FEW, 16)] {
            let places = Places { sent, halo, pieces, few: FEW };
            let slots = [places.sent(2), places.sent(1), places.received(4), places.received(3)];
            assert_eq!(slots[0].begin, ROOM);
            assert!(slots.windows(2).all(|pair| pair[0].end() == pair[1].begin), "{places:?}");
            assert_eq!((slots[3].end(), places.sent(7), places.received(8)), (places.room(), slots[1], slots[2]));
            assert!(slots.iter().all(|slot| slot.begin % WORD == 0 && slot.end() - slot.begin >= slot.elements));
            assert!(slots.iter().all(|slot| slot.has_words || slot.begin % FLAG == 0), "flags have lines of their own");
            assert_eq!([2, 3].map(|number| places.sent_at(number)), [slots[0], slots[1]].map(|slot| slot.begin + FLAG));
        }
    }

    #[test]
    fn pieces_are_of_one_sender_each() {
        let receive = |from, segment: Range<usize>, halo| Receive { from, segment, halo };
        let all = pieces(&[receive(2, 7..1031, 0..1024), receive(0, 0..0, 1024..1024), receive(1, 5..6, 1024..1025)]);
        let expected = [receive(2, 7..519, 0..512), receive(2, 519..1031, 512..1024), receive(1, 5..6, 1024..1025)];
        assert_eq!(all, expected);
        assert_eq!(Places::new(9, &expected), Places { sent: 9, halo: 1025, pieces: 3, few: FEW });
    }

    /// Pieces are copied once what is sent is there, each exchange in full.
    #[test]
    fn links_copy_what_has_come() {
        // what arrives has words, or flags
        for len in [1, 511, 512, 513, 1025, FEW, FEW + 1] {
            let receive = [Receive { from: 0, segment: 1..len + 1, halo: 0..len }];
            let places = [Places::new(len + 2, &[]), Places::new(0, &receive)];
            let memories = places.map(|places| (0..places.room()).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
            let words = memories.each_ref().map(|memory| &memory[..]);
            for _run in 0..2 {
                places.iter().zip(words).for_each(|(places, memory)| places.clear(memory));
                let mut links: Vec<Link> = Link::all(1, &receive, &places).collect();
                assert_eq!(links.len(), len.div_ceil(PIECE));
                for number in 1..=5 {
                    let elements: Vec<u64> = (0..places[0].sent as u64).map(|k| 100 * k + u64::from(number)).collect();
                    assert!(!links.iter_mut().any(|link| link.look(&words)));
                    send(words[0], places[0], &elements, number);
                    for link in links.iter_mut().rev() {
                        assert!(take(words[1], places[1], &receive, number).is_none());
                        assert!(link.look(&words));
                    }
                    assert_eq!(take(words[1], places[1], &receive, number).unwrap(), elements[1..=len]);
                }
            }
        }
    }

    /// Two ranks that exchange elements and then meet in a sum, again and again, with a link each and the relay: in every order in which
    /// the memory model lets loads see stores, with no switch from a thread that does not give way, each takes the element of its
    /// exchange.
    fn model(few: usize) {
        const ROUNDS: u32 = 4;
        const LOOKS: usize = 2;
        let most = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let reached = std::sync::Arc::clone(&most);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(0);
        model.check(move || {
            // rank 0 sends an element to rank 1
            let receive = [Receive { from: 0, segment: 0..1, halo: 0..1 }];
            let places = [Places::new(1, &[]), Places::new(0, &receive)].map(|places| Places { few, ..places });
            let memories =
                places.map(|places| Arc::new((0..places.room()).map(|_| Modelled::new(0)).collect::<Vec<_>>()));
            let rank = |rank: usize| {
                let (memory, reached) = (Arc::clone(&memories[rank]), std::sync::Arc::clone(&reached));
                move || {
                    for number in 1..=ROUNDS {
                        if rank == 0 {
                            send(&memory, places[0], &[u64::from(number) * 10], number);
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
                                take(&memory, places[1], &[Receive { from: 0, segment: 0..1, halo: 0..1 }], number)
                            };
                            let Some(taken) = (0..LOOKS).find_map(look) else { return };
                            assert_eq!(taken, [u64::from(number) * 10]);
                            reached.fetch_max(number, Ordering::Relaxed);
                        }
                    }
                }
            };
            let threads = [0, 1].map(|k| loom::thread::spawn(rank(k)));
            let words = memories.each_ref().map(|memory| &memory[..]);
            let mut relay = Relay::new(2);
            let mut links: Vec<Link> = Link::all(1, &receive, &places).collect();
            for _ in 0..2 * ROUNDS {
                loom::thread::yield_now();
                links[0].look(&words);
                relay.look(&words);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(most.load(Ordering::Relaxed), ROUNDS, "no order came to the last exchange");
    }

    #[test]
    fn no_order_of_loads_and_stores_gives_a_wrong_element() {
        model(FEW);
        model(0);
    }
}
