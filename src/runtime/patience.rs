//! When an iteration is left for another that is forecast to take less.
//!
//! What comes next takes about as long as so many iterations of this one. From half of these on it is looked from time to time how many
//! are left, by the slope of the residual's logarithm over the last half: it is over if that is more than what comes next
//! takes, and the earlier, the more. Who is right about the future takes at most twice as long as who knew it, and mostly half as long
//! again. Earlier, a residual tells little: on a grid it hardly falls until all points have heard of each other. Where it is looked depends on numbers of iterations alone, so that equal runs decide alike.

/// The first look, as a part of the iterations that what comes next takes as long as; but not before so many, whose slope may be anything.
const FIRST: u64 = 2;
const LEAST: u64 = 25;

/// Iterations between two looks, as a part of those that were done.
const AGAIN: u64 = 4;

/// What an iteration is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Iterations that what comes next takes as long as.
    iterations: u64,
    /// When it is looked next, of all iterations of the solve.
    next: u64,
    /// Those that were done before.
    before: u64,
}

impl Patience {
    /// After `before` iterations.
    pub(crate) fn new(iterations: u64, before: u64) -> Self {
        let iterations = iterations.max(1);
        Self { iterations, next: before + (iterations / FIRST).max(iterations.min(LEAST)), before }
    }

    /// The iteration after which it is looked next.
    pub(crate) fn next(self) -> u64 {
        self.next
    }

    /// Whether what comes next is forecast to take less, by ‖r‖ after each iteration since the beginning, and where it has to arrive;
    /// if not, it is looked again later.
    pub(crate) fn is_over(&mut self, history: &[f64], target: f64) -> bool {
        let (done, iterations) = ((self.next - self.before) as f64, self.iterations as f64);
        let is_over = left(history, target) > iterations * (iterations / done).max(1.0);
        self.next += ((self.next - self.before) / AGAIN).max(1);
        is_over
    }
}

/// How many iterations are left, by the slope of the last half of these.
fn left(history: &[f64], target: f64) -> f64 {
    let least = |residuals: &[f64]| residuals.iter().copied().fold(f64::INFINITY, f64::min).ln();
    let (first, last) = history.split_at(history.len() / 2);
    let (former, now) = (least(first), least(first).min(least(last)));
    let slope = (former - now) / last.len().max(1) as f64;
    (now - target.ln()).max(0.0) / slope // infinite where nothing was gained
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals that fall to `per` of the former.
    fn falling(per: f64, count: i32) -> Vec<f64> {
        (0..=count).map(|k| per.powi(k)).collect()
    }

    #[test]
    fn forecasts_by_the_slope() {
        assert!((left(&falling(0.5, 20), 0.5_f64.powi(50)) - 30.0).abs() < 3.0);
        assert_eq!(left(&falling(0.5, 20), 0.9), 0.0);
        assert_eq!(left(&[1.0; 30], 1e-8), f64::INFINITY);
        // what rises is not as far as the least that there was
        let mut history = falling(0.9, 40);
        history.extend([1.0, 2.0, 5.0]);
        assert!(left(&history, 1e-8).is_finite());
    }

    #[test]
    fn looks_at_fixed_iterations() {
        let mut patience = Patience::new(400, 100);
        assert_eq!(patience.next(), 300);
        // 700 left, where 800 would be too many
        assert!(!patience.is_over(&falling(0.9, 200), 0.9_f64.powi(900)));
        assert_eq!(patience.next(), 350);
        assert!({ patience }.is_over(&falling(0.9, 250), 0.9_f64.powi(950)));
        // later as many as what comes next takes
        let mut late = Patience { next: 500, ..patience };
        assert!(!{ late }.is_over(&falling(0.9, 400), 0.9_f64.powi(750)));
        assert!(late.is_over(&falling(0.9, 400), 0.9_f64.powi(850)));
        assert_eq!(late.next(), 600);
        // not at once
        assert_eq!([1, 30, 60, 300].map(|few| Patience::new(few, 7).next()), [8, 32, 37, 157]);
        let mut none = Patience::new(0, 0);
        assert_eq!(none.next(), 1);
        assert!(!none.is_over(&falling(1e-9, 1), 1e-8));
        assert_eq!(none.next(), 2);
    }
}
