//! Progress on standard error, for people only: nothing is shown unless it is a terminal.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use declive::solve::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps of the bar of a solve, whose own measure is continuous.
const STEPS: u64 = 1000;

/// Whether to show anything. Log lines and bars would write over each other, so that `-v` turns the bars off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    shown: bool,
}

impl Screen {
    /// Looks at standard error.
    pub(crate) fn new(quiet: bool) -> Self {
        let logging = log::max_level() > log::LevelFilter::Warn;
        Self { shown: !quiet && !logging && std::io::stderr().is_terminal() }
    }

    /// A bar over the entries of a file.
    pub(crate) fn entries(self, file: &str) -> Bar {
        self.bar("{msg}: {human_pos} of {human_len} entries [{wide_bar}]", format!("reading {file}"))
    }

    /// A bar over the bytes of a file.
    pub(crate) fn bytes(self, file: &str) -> Bar {
        self.bar("{msg}: {bytes} of {total_bytes} [{wide_bar}]", format!("reading {file}"))
    }

    /// A spinner for work of unknown length.
    pub(crate) fn working(self, what: &str) -> Bar {
        let bar = self.bar("{msg} {spinner}", what.to_owned());
        if self.shown {
            bar.0.enable_steady_tick(Duration::from_millis(150));
        }
        bar
    }

    /// A bar over the steps of some work.
    pub(crate) fn steps(self, what: &str) -> Bar {
        self.bar("{msg} [{wide_bar}] {percent} %", what.to_owned())
    }

    /// A bar over the way of the residual to its target.
    pub(crate) fn solve(self, what: &str) -> SolveBar {
        let bar = self.bar("{prefix}: {msg} [{wide_bar}]", String::new());
        bar.0.set_length(STEPS);
        bar.0.set_prefix(what.to_owned());
        SolveBar { bar, way: Mutex::default() }
    }

    fn bar(self, style: &str, message: String) -> Bar {
        let target = if self.shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(0), target);
        Bar(bar.with_style(style.progress_chars("=> ")).with_message(message))
    }
}

/// Shown while work goes on.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// So much is done of so much in all. Threads may come in another order than their numbers do.
    pub(crate) fn update<N: TryInto<u64>>(&self, done: N, all: N) {
        let [done, all] = [done, all].map(|n| n.try_into().unwrap_or(u64::MAX));
        // each of the two calls may draw the bar anew
        if self.0.length() != Some(all) {
            self.0.set_length(all);
        }
        self.0.set_position(self.0.position().max(done));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shown while a system is solved.
#[derive(Debug)]
pub(crate) struct SolveBar {
    bar: Bar,
    /// Residual of the first report, where the way begins, and the iterations of the last.
    way: Mutex<Option<(f64, u64)>>,
}

impl SolveBar {
    /// Called by the solver.
    pub(crate) fn update(&self, progress: &Progress) {
        let bar = &self.bar.0;
        if bar.is_hidden() {
            return;
        }
        let mut known = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let former = known.filter(|(_, iterations)| *iterations <= progress.iterations);
        if former.is_none() {
            bar.set_position(0); // other right-hand sides
        }
        let first = former.map_or(progress.rel_residual_2, |(first, _)| first);
        *known = Some((first, progress.iterations));
        let way = fraction(first, progress.rel_residual_2, progress.target);
        // the residual of conjugate gradients goes up and down; the bar only forward
        bar.set_position(bar.position().max((way * STEPS as f64) as u64));
        let seconds = progress.elapsed.as_secs_f64();
        let rate = if seconds > 0.0 { progress.iterations as f64 / seconds } else { 0.0 };
        bar.set_message(format!(
            "iteration {}, residual {:.1e} of {:.1e}, {rate:.0}/s",
            progress.iterations, progress.rel_residual_2, progress.target
        ));
    }
}

/// How far the residual has come on a logarithmic scale, from 0 to 1; a target of 0 is never nearer.
fn fraction(first: f64, now: f64, target: f64) -> f64 {
    let way = (first / now).ln() / (first / target).ln();
    if way.is_finite() { way.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_logarithmic() {
        assert!((fraction(1.0, 1e-4, 1e-8) - 0.5).abs() < 1e-12);
        assert_eq!(fraction(1.0, 10.0, 1e-8), 0.0);
        assert_eq!(fraction(1.0, 1e-9, 1e-8), 1.0);
    }

    #[test]
    fn odd_numbers_stay_at_the_start() {
        assert_eq!(fraction(1.0, 1e-4, 0.0), 0.0);
        assert_eq!(fraction(1.0, f64::NAN, 1e-8), 0.0);
        assert_eq!(fraction(0.0, 0.0, 1e-8), 0.0);
    }

    #[test]
    fn late_news_of_reading_takes_nothing_back() {
        let bar = Screen { shown: false }.entries("A.mtx");
        bar.update(7, 9);
        bar.update(3, 9);
        assert_eq!((bar.0.position(), bar.0.length()), (7, Some(9)));
    }

    #[test]
    fn hidden_bars_take_updates() {
        let screen = Screen { shown: false };
        let mut progress = Progress::default();
        (progress.iterations, progress.rel_residual_2, progress.target) = (3, 0.1, 1e-8);
        screen.solve("solving").update(&progress);
        screen.entries("A.mtx").update(1, 2);
        screen.bytes("A.npz").update(1, 2);
        drop(screen.working("preparing"));
    }
}
