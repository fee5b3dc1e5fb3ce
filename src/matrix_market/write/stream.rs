//! Text made by all threads, and written in order by one.

use std::io::{Result, Write};

use rayon::prelude::*;

use super::text::Text;

/// Lines that a thread makes at a time: some 150 KiB of text, at most 400 KiB.
const LINES: usize = 1 << 12;

/// Pieces a thread, on average, that are made while those before are written.
const PIECES: usize = 4;

/// Writes `total` lines to `out`, in the order of their numbers.
///
/// `lines(from..to, text)` makes those of a range; it may leave some out. All threads of the pool make lines while the
/// caller's writes those of the turn before: what lies in memory is bounded, whatever `total` is.
pub(super) fn write_lines(
    out: &mut impl Write,
    total: usize,
    lines: impl Fn(std::ops::Range<usize>, &mut Text) + Sync,
) -> Result<()> {
    let (mut ready, mut next) = (Vec::<Text>::new(), Vec::<Text>::new());
    let turn = PIECES * rayon::current_num_threads();
    for first in (0..total).step_by(turn * LINES) {
        next.resize_with((total - first).div_ceil(LINES).min(turn), Text::default);
        let mut written = Ok(());
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                next.par_iter_mut().enumerate().with_max_len(1).for_each(|(k, text)| {
                    let from = first + k * LINES;
                    let to = total.min(from + LINES);
                    text.start(to - from);
                    lines(from..to, text);
                });
            });
            written = write_all(out, &ready);
        });
        written?;
        std::mem::swap(&mut ready, &mut next);
    }
    write_all(out, &ready)?;
    out.flush()
}

fn write_all(out: &mut impl Write, texts: &[Text]) -> Result<()> {
    texts.iter().try_for_each(|text| out.write_all(text.as_bytes()))
}
