//! Other numbers of work-groups, tried in the iterations of a solve itself.
//!
//! Nothing is computed for the sake of the trial: an iteration with other numbers of groups is an iteration. It costs what
//! the worse numbers take longer. A round tries half and twice as many groups as usual, five times in turns; kernels that
//! gain go on in that direction, all at once, until none does. The first round begins when [`BEGIN`] iterations are done:
//! half the groups can at most double the time of five iterations, so that trials stay within 5 % of the solve.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Iterations of a run before its first trial.
const BEGIN: u64 = 100;

/// How often each number is tried in a round.
const REPEATS: u64 = 5;

/// Numbers of a round: as it is, and to either side.
const SLOTS: u64 = 3;

/// What a change has to gain before it is made.
const WORTH: f64 = 0.02;

/// The most groups for each compute unit that are tried: more leave more partial sums to whoever adds them, which the time of
/// the kernel itself does not show.
pub(crate) const MAX_TRIED_PER_UNIT: usize = 16;

/// The trials of a rank.
pub(crate) struct Trials {
    climbs: BTreeMap<&'static str, Climb>,
    /// The tags of the round under way, or over but not judged.
    round: Option<RangeInclusive<u64>>,
    /// The number that is tried now.
    slot: Option<usize>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until enough iterations are done.
    Waiting,
    /// One iteration shows which kernels there are.
    Seeing,
    Trying,
    Over,
}

/// The way of one kernel to its best number of groups for each unit.
struct Climb {
    best: usize,
    /// More groups for each unit than this have nothing to do in any of its launches.
    most: usize,
    /// What is tried in this round, the best so far first; made when the first iteration has shown all launches.
    candidates: Vec<usize>,
    /// Times of this round: of each iteration, the launches together, and how many.
    times: BTreeMap<u64, (Duration, u32)>,
    /// Of the best one, and how often it was measured.
    found: Option<Vec<f64>>,
    is_done: bool,
}

impl Climb {
    fn new(usual: usize) -> Self {
        Self { best: usual, most: 1, candidates: vec![usual], times: BTreeMap::new(), found: None, is_done: false }
    }

    /// All launches of an iteration were seen: what is worth a try to either side.
    fn begin(&mut self) {
        let usual = self.best.min(self.most);
        let others: Vec<usize> = [usual / 2, 2 * usual].into_iter().filter(|&groups| self.allows(groups)).collect();
        self.candidates.extend(others);
        self.is_done = self.candidates.len() == 1;
    }

    fn allows(&self, groups: usize) -> bool {
        (1..=self.most.min(MAX_TRIED_PER_UNIT)).contains(&groups)
    }

    fn groups(&self, slot: Option<usize>) -> usize {
        slot.and_then(|slot| self.candidates.get(slot)).copied().unwrap_or(self.best)
    }

    /// Looks at a round whose first tag was `first`.
    fn judge(&mut self, first: u64) {
        let mut of_slot = vec![Vec::new(); SLOTS as usize];
        for (tag, time) in std::mem::take(&mut self.times) {
            let (time, launches) = time;
            of_slot[((tag - first) % SLOTS) as usize].push(time.as_secs_f64() / f64::from(launches));
        }
        for times in &mut of_slot {
            times.sort_by(f64::total_cmp);
        }
        let at = |slot: usize, part: f64| {
            let times = &of_slot[slot];
            times.get((part * times.len() as f64) as usize).copied().unwrap_or(f64::INFINITY)
        };
        let median = |slot: usize| at(slot, 0.5);
        let fastest = (0..self.candidates.len()).min_by(|&a, &b| median(a).total_cmp(&median(b))).unwrap_or(0);
        // beyond the noise: one's slow runs are faster than the other's fast ones
        let is_better = median(fastest) < (1.0 - WORTH) * median(0) && at(fastest, 0.75) < at(0, 0.25);
        let winner = if is_better { fastest } else { 0 };
        let (before, best) = (self.best, self.candidates[winner]);
        self.best = best;
        self.found = Some(std::mem::take(&mut of_slot[winner]));
        let next = if best > before { 2 * best } else { best / 2 };
        self.is_done = winner == 0 || !self.allows(next);
        self.candidates = vec![best, next];
    }
}

/// What trials have found for a kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried {
    /// The kernel.
    pub(crate) kernel: &'static str,
    /// The best number of groups for each compute unit.
    pub(crate) groups_per_unit: usize,
    /// Times of a launch with it, in seconds, by rising length; the mean of an iteration's.
    pub(crate) times: Vec<f64>,
}

impl Trials {
    /// Trials to be made, if `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let state = if wanted { State::Waiting } else { State::Over };
        Self { climbs: BTreeMap::new(), round: None, slot: None, state }
    }

    /// A run of iterations from 1 on begins: a round that was under way is given up.
    pub(crate) fn begin_run(&mut self) {
        (self.round, self.slot) = (None, None);
        if self.state == State::Seeing {
            (self.climbs, self.state) = (BTreeMap::new(), State::Waiting);
        }
        self.climbs.values_mut().for_each(|climb| climb.times.clear());
    }

    /// An iteration begins; says whether it is part of a round, and is to be timed.
    pub(crate) fn begin_iteration(&mut self, iteration: u64) -> bool {
        match self.state {
            State::Waiting if iteration > BEGIN => self.state = State::Seeing,
            State::Seeing if iteration > BEGIN + 1 => {
                self.climbs.values_mut().for_each(Climb::begin);
                let is_over = self.climbs.values().all(|climb| climb.is_done);
                self.state = if is_over { State::Over } else { State::Trying };
            }
            _ => {}
        }
        if self.state == State::Over {
            (self.round, self.slot) = (None, None);
        }
        let is_on = matches!(self.state, State::Seeing | State::Trying);
        if is_on && self.round.is_none() && iteration > BEGIN {
            self.round = Some(iteration..=iteration + SLOTS * REPEATS - 1);
        }
        self.slot = match &self.round {
            Some(round) if round.contains(&iteration) => Some(((iteration - round.start()) % SLOTS) as usize),
            _ => None,
        };
        self.slot.is_some()
    }

    /// The groups for each unit that a kernel is launched with now, if trials have a say; `usual` without them, and more than
    /// `most` would have nothing to do.
    pub(crate) fn groups_per_unit(&mut self, kernel: &'static str, usual: usize, most: usize) -> usize {
        if self.state == State::Seeing && self.slot.is_some() {
            let climb = self.climbs.entry(kernel).or_insert_with(|| Climb::new(usual));
            climb.most = climb.most.max(most);
        }
        self.climbs.get(kernel).map_or(usual, |climb| climb.groups(self.slot))
    }

    /// Whether a launch with this tag was part of the round.
    pub(crate) fn has(&self, tag: u64) -> bool {
        self.round.as_ref().is_some_and(|round| round.contains(&tag))
    }

    /// The last iteration of the round, if all of it is enqueued when `iteration` begins.
    pub(crate) fn is_enqueued(&self, iteration: u64) -> Option<u64> {
        self.round.as_ref().map(|round| *round.end()).filter(|end| *end < iteration)
    }

    /// Takes note of a launch of the round.
    pub(crate) fn note(&mut self, kernel: &'static str, tag: u64, time: Duration) {
        if let Some(climb) = self.climbs.get_mut(kernel) {
            let (sum, launches) = climb.times.entry(tag).or_default();
            (*sum, *launches) = (*sum + time, *launches + 1);
        }
    }

    /// All launches of the round are noted: decides. Says whether this was the last round.
    pub(crate) fn end_round(&mut self) -> bool {
        let Some(round) = self.round.take() else { return false };
        for climb in self.climbs.values_mut().filter(|climb| !climb.is_done) {
            climb.judge(*round.start());
        }
        for climb in self.climbs.values_mut().filter(|climb| climb.is_done) {
            climb.candidates.truncate(1);
            climb.times.clear();
        }
        if self.climbs.values().all(|climb| climb.is_done) {
            self.state = State::Over;
        }
        self.state == State::Over
    }

    /// What has been found, once; nothing unless all rounds are over.
    pub(crate) fn take_found(&mut self) -> Vec<Tried> {
        let found = self.found();
        if self.state == State::Over {
            self.climbs.values_mut().for_each(|climb| climb.found = None);
        }
        found
    }

    /// What has been found; nothing unless all rounds are over.
    pub(crate) fn found(&self) -> Vec<Tried> {
        let tried = |(&kernel, climb): (&&'static str, &Climb)| {
            let times = climb.found.clone().filter(|times| !times.is_empty())?;
            Some(Tried { kernel, groups_per_unit: climb.best, times })
        };
        let is_over = self.state == State::Over;
        self.climbs.iter().filter(|_| is_over).filter_map(tried).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs iterations of two kernels whose times are given by their groups; what each iteration took, and the trials.
    fn run(iterations: u64, time: impl Fn(&str, usize) -> u64) -> (Vec<u64>, Trials) {
        let mut trials = Trials::new(true);
        let mut taken = Vec::new();
        trials.begin_run();
        for iteration in 1..=iterations {
            if trials.is_enqueued(iteration).is_some() {
                trials.end_round();
            }
            trials.begin_iteration(iteration);
            let mut sum = 0;
            for (kernel, most) in [("a", 1000), ("b", 10)] {
                let nanos = time(kernel, trials.groups_per_unit(kernel, 8, most));
                if trials.has(iteration) {
                    trials.note(kernel, iteration, Duration::from_nanos(nanos));
                }
                sum += nanos;
            }
            taken.push(sum);
        }
        (taken, trials)
    }

    fn found(trials: &Trials) -> Vec<(&str, usize)> {
        trials.found().iter().map(|t| (t.kernel, t.groups_per_unit)).collect()
    }

    #[test]
    fn kernels_climb_to_their_best() {
        // a is fastest with 1 group, b with 2
        let time = |kernel: &str, groups: usize| {
            let best = if kernel == "a" { 1 } else { 2 };
            1000 + 100 * (groups as f64 / best as f64).log2().abs() as u64
        };
        let (_, trials) = run(200, time);
        assert_eq!(found(&trials), [("a", 1), ("b", 2)]);
        assert!(trials.found().iter().all(|t| t.times == [1e-6; 5]));
        let mut trials = trials;
        assert_eq!((trials.take_found().len(), trials.take_found().len()), (2, 0));
        // from 8 to 4, 2 and 1: three rounds
        let (taken, trials) = run(100 + 3 * 15, time);
        assert!(trials.found().is_empty(), "not before they are judged");
        assert!(taken[..100].iter().all(|&t| t == taken[0]));
        let (taken, _) = run(100 + 3 * 15 + 1, time);
        assert_eq!(taken.last(), Some(&2000));
    }

    #[test]
    fn what_is_usual_stays_unless_another_gains() {
        let (taken, trials) = run(300, |_, groups| if groups == 8 { 1000 } else { 985 });
        assert_eq!(found(&trials), [("a", 8), ("b", 8)]);
        // twice as many groups, which b has no work for, and half as many
        assert_eq!(taken.iter().filter(|&&t| t < 2000).count(), 10);
    }

    #[test]
    fn trials_stay_within_their_budget() {
        // time inversely proportional to the groups: the worst there is
        let (taken, _) = run(100 + 3 * 15, |_, groups| 80_000 / groups.min(8) as u64);
        let usual = 20_000;
        let lost: u64 = taken.iter().map(|t| t - usual).sum();
        assert!(20 * lost <= 100 * usual, "{lost}");
    }

    #[test]
    fn no_trials_where_none_are_wanted_or_possible() {
        let mut off = Trials::new(false);
        off.begin_run();
        assert!((1..500).all(|i| !off.begin_iteration(i) && off.groups_per_unit("a", 8, 1000) == 8));
        // no kernel asks: one iteration shows it
        let mut idle = Trials::new(true);
        idle.begin_run();
        let timed: Vec<u64> = (1..500).filter(|&i| idle.begin_iteration(i)).collect();
        assert_eq!((timed, idle.is_enqueued(500)), (vec![101], None));
        // a short run, and work for one group alone
        assert!(run(100, |_, _| 1000).1.found().is_empty());
        let mut climb = Climb::new(8);
        climb.begin();
        assert!(climb.is_done && climb.groups(Some(0)) == 8, "the launch itself has no more groups than there is work");
    }

    /// The few rows before a halo say nothing of how the many behind it are to be launched.
    #[test]
    fn the_largest_launch_of_an_iteration_counts() {
        let mut trials = Trials::new(true);
        trials.begin_run();
        let mut tried = Vec::new();
        for iteration in 1..=103 {
            trials.begin_iteration(iteration);
            let [few, many] = [1, 1000].map(|most| trials.groups_per_unit("a", 8, most));
            assert_eq!(few, many);
            tried.push(many);
        }
        assert_eq!(tried[98..], [8, 8, 8, 4, 16]);
    }

    #[test]
    fn a_run_that_ends_gives_up_its_round() {
        let mut trials = Trials::new(true);
        trials.begin_run();
        for iteration in 1..=105 {
            assert_eq!(trials.begin_iteration(iteration), iteration > 100);
            trials.groups_per_unit("a", 8, 1000);
        }
        trials.note("a", 101, Duration::from_nanos(5));
        trials.begin_run();
        assert!(!trials.has(101) && trials.is_enqueued(1000).is_none());
        assert!(!trials.begin_iteration(1) && trials.begin_iteration(101));
    }
}
