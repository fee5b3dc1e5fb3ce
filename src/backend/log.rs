//! The log in which a device that works alone leaves the scalars of its iterations, and the host's late view of it.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::program::Program;
use super::source::Columns;
use crate::backend::Record;
use crate::comm::live::MOST_VALUES;
use crate::device::{Context, DeviceVec, PendingRead, Pinned, Queue};
use crate::error::Result;
use crate::real::Real;

/// Rows of the log: the host is never as far behind.
const ROWS: u64 = 256;
/// Iterations before the first look at the log,
const FIRST_BATCH: u64 = 4;
/// and between two looks, at most.
const MAX_BATCH: u64 = 64;
/// How long the iterations between two looks should take: long against the cost of a look, short against a human's patience.
const BATCH_TIME: Duration = Duration::from_micros(300);

/// Numbers behind the rows: two, and room for totals over ranks, as words.
const BEHIND: usize = 2 + 2 * MOST_VALUES;

/// A row of scalars for each of the last iterations.
pub(super) struct Log<A: Real> {
    /// Rows, and behind them the row of the first iteration that was not done because its launch was refused, and whether another rank
    /// did not come in time; then totals over ranks.
    pub(super) entries: DeviceVec<A>,
    pub(super) columns: Columns,
    idle: Vec<Pinned<A>>,
    /// A look under way, and the iterations that it will show.
    pending: Option<(PendingRead<Pinned<A>>, Range<u64>)>,
    pub(super) looks: Looks,
    last_look: Instant,
    launches: Launches,
    /// Whether there was a run before.
    has_begun: bool,
    /// Whether another rank did not come in time.
    pub(super) has_lost_rank: bool,
}

/// When ranks look at iterations that were made ahead of them: all at the same ones.
pub(super) struct Looks {
    /// Iterations between two looks.
    pub(super) batch: u64,
    /// All iterations before this one were looked at, or will be by the look under way.
    seen: u64,
}

impl Looks {
    /// Before a run.
    pub(super) fn new() -> Self {
        Self { batch: FIRST_BATCH, seen: 1 }
    }

    /// Whether iterations before `end` were not looked at.
    pub(super) fn has_news(&self, end: u64) -> bool {
        end > self.seen
    }

    /// Those that are looked at now: if it is time, or at once to `drain` the log.
    pub(super) fn next(&mut self, end: u64, drain: bool) -> Option<Range<u64>> {
        let is_time = self.has_news(end) && (end - self.seen >= self.batch || drain);
        is_time.then(|| std::mem::replace(&mut self.seen, end)..end)
    }

    /// Later looks are at more at a time.
    pub(super) fn grow(&mut self) {
        self.batch = (2 * self.batch).min(MAX_BATCH);
    }
}

/// How launches of several iterations fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launches {
    /// None was refused so far.
    Granted,
    /// One was refused, and all that came after it: nothing was done of this iteration and of later ones.
    Refused(u64),
    /// There will be no others.
    Over,
}

impl<A: Real> Log<A> {
    /// An empty log.
    ///
    /// # Errors
    /// Not enough memory.
    pub(super) fn new(ctx: &Context, columns: Columns) -> Result<Self> {
        let len = columns.width * ROWS as usize + BEHIND;
        let idle = vec![Pinned::zeros(ctx, len)?, Pinned::zeros(ctx, len)?];
        let entries = DeviceVec::zeros(ctx, len, "the log")?;
        let launches = Launches::Granted;
        Ok(Self {
            entries,
            columns,
            idle,
            pending: None,
            looks: Looks::new(),
            last_look: Instant::now(),
            launches,
            has_begun: false,
            has_lost_rank: false,
        })
    }

    /// Begins a run, before the first iteration of which carried scalars have these values.
    pub(super) fn begin(&mut self, ctx: &Context, carried: &[f64]) -> Result<()> {
        self.abandon(ctx)?;
        (self.looks, self.last_look) = (Looks::new(), Instant::now());
        // a refusal may have come too late for the former run to notice
        let mut end = [A::default()];
        self.entries.read(ctx, self.entries.len() - BEHIND, &mut end)?;
        let is_refused = self.has_begun && !end[0].to_f64().is_nan();
        if is_refused || matches!(self.launches, Launches::Refused(_)) {
            self.launches = Launches::Over;
        }
        (self.has_begun, self.has_lost_rank) = (true, false);
        // a row that no kernel has written must not look like numbers
        self.entries.fill(ctx, 0xFF)?;
        let first: Vec<A> = carried.iter().map(|value| A::from_f64(*value)).collect();
        if first.is_empty() { Ok(()) } else { self.entries.write(ctx, self.columns.carried(0), &first) } // that of iteration 0
    }

    /// Takes no interest in the look under way.
    fn abandon(&mut self, ctx: &Context) -> Result<()> {
        if let Some((read, _)) = self.pending.take() {
            self.idle.push(read.wait(ctx)?);
        }
        Ok(())
    }

    /// Number of rows, and of numbers in each.
    pub(super) fn size(&self) -> [u32; 2] {
        [ROWS as u32, self.columns.width as u32]
    }

    /// Where the numbers behind the rows are.
    pub(super) fn behind(&self) -> u32 {
        (self.entries.len() - BEHIND) as u32
    }

    /// The row of an iteration.
    pub(super) fn row(iteration: u64) -> u32 {
        (iteration % ROWS) as u32
    }

    /// Where it begins.
    pub(super) fn begin_of(&self, iteration: u64) -> u32 {
        Self::row(iteration) * self.columns.width as u32
    }

    /// Carried scalar `k` after iteration `iteration`, or after the last one before it that was not refused.
    pub(super) fn carried(&self, ctx: &Context, iteration: u64, k: usize) -> Result<f64> {
        let mut value = [A::default()];
        let mut last = iteration;
        if self.launches != Launches::Over {
            self.entries.read(ctx, self.entries.len() - BEHIND, &mut value)?;
            last = refused(value[0], iteration).map_or(iteration, |first| first - 1);
        }
        self.entries.read(ctx, self.begin_of(last) as usize + self.columns.carried(k), &mut value)?;
        Ok(value[0].to_f64())
    }

    /// Whether launches of several iterations are of use.
    pub(super) fn launches(&self) -> Launches {
        self.launches
    }

    /// Goes back to before the first iteration that was refused; there will be no other launch of several.
    pub(super) fn give_up_launches(&mut self) {
        self.launches = Launches::Over;
    }

    /// Looks at iterations before `end` if it is time, or at once to `drain` the log, and takes in what was read before. `enqueued` is
    /// the last iteration that was enqueued. Gives the last iteration that is known to be done, if that is news; time spent waiting
    /// goes to `waited`.
    pub(super) fn look(
        &mut self,
        ctx: &Context,
        program: &Program,
        (end, enqueued): (u64, u64),
        (drain, is_alone): (bool, bool),
        waited: &dyn Fn(Instant),
        records: &mut Vec<Record>,
    ) -> Result<Option<u64>> {
        let mut known = None;
        if let Some(iterations) = self.looks.next(end, drain) {
            // while the device works on this batch's end, the host takes in the batch before
            let former = self.pending.take();
            if let Some(memory) = self.idle.pop() {
                let all = [(&self.entries, 0..self.entries.len())];
                let read = DeviceVec::start_reads(ctx, Queue::Compute, &all, memory, None, "the log")?;
                ctx.flush(Queue::Compute)?;
                self.pending = Some((read, iterations));
            }
            known = self.take_in(ctx, program, former, enqueued, waited, records)?.or(known);
            if is_alone {
                self.adapt();
            } else {
                self.looks.grow();
            }
        }
        if drain {
            let pending = self.pending.take();
            known = self.take_in(ctx, program, pending, enqueued, waited, records)?.or(known);
        }
        Ok(known)
    }

    fn take_in(
        &mut self,
        ctx: &Context,
        program: &Program,
        look: Option<(PendingRead<Pinned<A>>, Range<u64>)>,
        enqueued: u64,
        waited: &dyn Fn(Instant),
        records: &mut Vec<Record>,
    ) -> Result<Option<u64>> {
        let Some((read, iterations)) = look else { return Ok(None) };
        let start = Instant::now();
        let memory = read.wait(ctx)?;
        waited(start);
        let behind = &memory[memory.len() - BEHIND..];
        let refused = refused(behind[0], enqueued);
        self.has_lost_rank |= !behind[1].to_f64().is_nan();
        if let (Launches::Granted, Some(first)) = (self.launches, refused) {
            self.launches = Launches::Refused(first);
        }
        let mut end = iterations.end;
        if let Launches::Refused(first) = self.launches {
            // the launch that was refused was to form the end of the iteration before
            end = end.min(first - u64::from(program.last.is_some() && first > 1)).max(iterations.start);
            self.looks.seen = end;
        }
        for iteration in iterations.start..end {
            let row = self.begin_of(iteration) as usize;
            records.extend(self::records(program, &self.columns, &memory[row..], iteration));
        }
        self.idle.push(memory);
        if matches!(self.launches, Launches::Refused(_)) {
            self.abandon(ctx)?;
        }
        Ok(end.checked_sub(1))
    }

    fn adapt(&mut self) {
        let time = self.last_look.elapsed();
        self.last_look = Instant::now();
        if time < BATCH_TIME {
            self.looks.grow();
        } else if time > 3 * BATCH_TIME {
            self.looks.batch = (self.looks.batch / 2).max(1);
        }
    }
}

/// What a row of the log tells of its iteration.
pub(super) fn records<'a, A: Real>(
    program: &'a Program,
    columns: &'a Columns,
    row: &'a [A],
    iteration: u64,
) -> impl Iterator<Item = Record> + 'a {
    program.checks().filter_map(move |check| {
        let column = columns.column(check.node)?;
        Some(check.record(iteration, row[column].to_f64()))
    })
}

/// The first iteration that was refused, if the end of the log tells its row; the host is never further ahead than there are rows.
fn refused<A: Real>(row: A, enqueued: u64) -> Option<u64> {
    let row = row.to_f64();
    (!row.is_nan()).then(|| enqueued - (enqueued + ROWS - row as u64) % ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_tell_iterations() {
        assert_eq!(refused(f64::NAN, 300), None);
        assert_eq!(
            [refused(44.0, 300), refused(45.0, 300), refused(0.0, 256), refused(1.0, 1)],
            [300, 45, 256, 1].map(Some)
        );
    }
}
