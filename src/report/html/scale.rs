//! From values to places on a chart.

/// An axis: values from `domain`, or their logarithms, to places in `range`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct Scale {
    log: bool,
    domain: [f64; 2],
    range: [f64; 2],
}

impl Scale {
    /// Equal steps for equal differences.
    pub(in crate::report) fn linear(domain: [f64; 2], range: [f64; 2]) -> Self {
        Self { log: false, domain, range }
    }

    /// Equal steps for equal ratios; of positive values.
    pub(in crate::report) fn log(domain: [f64; 2], range: [f64; 2]) -> Self {
        Self { log: true, domain: domain.map(f64::ln), range }
    }

    /// Reaches beyond its values on both sides, by so many units of its range.
    pub(in crate::report) fn padded(self, before: f64, after: f64) -> Self {
        let [lo, hi] = self.domain;
        let unit = (hi - lo) / ((self.range[1] - self.range[0]).abs() - before - after);
        Self { domain: [lo - before * unit, hi + after * unit], ..self }
    }

    /// The place of a value; the middle if there is but one value.
    pub(in crate::report) fn at(&self, value: f64) -> f64 {
        let [lo, hi] = self.domain;
        let [from, to] = self.range;
        let value = if self.log { value.ln() } else { value };
        let part = if hi > lo { (value - lo) / (hi - lo) } else { 0.5 };
        from + part * (to - from)
    }

    /// Round values in its domain, about `most` of them.
    pub(in crate::report) fn ticks(&self, most: usize) -> Vec<f64> {
        let [lo, hi] = self.domain;
        if !self.log {
            let step = round_step((hi - lo) / most as f64);
            let ticks = (lo / step - 1e-9).ceil() as i64..=(hi / step + 1e-9).floor() as i64;
            return if step > 0.0 { ticks.map(|k| k as f64 * step).collect() } else { vec![lo] };
        }
        // decades may be many or but one: their parts are shown if there is room
        let decades = (lo / std::f64::consts::LN_10).floor() as i32..=(hi / std::f64::consts::LN_10).ceil() as i32;
        let within = |tick: &f64| (lo - 1e-9..=hi + 1e-9).contains(&tick.ln());
        let ticks = |parts: &[f64]| -> Vec<f64> {
            decades.clone().flat_map(|d| parts.iter().map(move |p| p * 10f64.powi(d))).filter(within).collect()
        };
        let parts: [&[f64]; 2] = [&[1.0, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0]];
        let fits = parts.into_iter().map(&ticks).find(|ticks| ticks.len() <= most);
        fits.unwrap_or_else(|| few(ticks(&[1.0]), most))
    }

    /// Powers of two in its domain, few enough to be read.
    pub(in crate::report) fn powers_of_two(&self) -> Vec<f64> {
        let exp = |value: f64| if self.log { value.exp() } else { value };
        let [lo, hi] = self.domain.map(exp);
        let powers: Vec<f64> =
            (0..40).map(|k| f64::from(k).exp2()).filter(|p| *p >= lo - 0.01 && *p <= hi + 0.01).collect();
        few(powers, 9)
    }
}

/// Every second, third … of the ticks, so that no more than `most` remain.
fn few(ticks: Vec<f64>, most: usize) -> Vec<f64> {
    let every = ticks.len().div_ceil(most).max(1);
    ticks.into_iter().step_by(every).collect()
}

/// The smallest of 1, 2, 5, 10, 20, 50 … and their fractions that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let parts = [1.0, 2.0, 5.0, 10.0];
    parts.into_iter().map(|part| part * power).find(|round| *round >= step * (1.0 - 1e-9)).unwrap_or(0.0)
}

/// Moves places that rise apart until each is at least `gap` beyond the one before, within `lo` and `hi` if they all
/// fit.
pub(in crate::report) fn spread(places: &mut [f64], gap: f64, [lo, hi]: [f64; 2]) {
    let mut least = lo;
    for place in places.iter_mut() {
        *place = place.max(least);
        least = *place + gap;
    }
    let mut most = hi;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let linear = Scale::linear([0.0, 10.0], [100.0, 0.0]);
        assert_eq!([0.0, 5.0, 10.0].map(|v| linear.at(v)), [100.0, 50.0, 0.0]);
        let log = Scale::log([1.0, 16.0], [0.0, 4.0]);
        assert!([1.0, 2.0, 8.0].map(|v| log.at(v)).iter().zip([0.0, 1.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(Scale::linear([3.0, 3.0], [0.0, 8.0]).at(3.0), 4.0);
        let padded = Scale::linear([1.0, 2.0], [0.0, 10.0]).padded(2.0, 3.0);
        assert!((padded.at(1.0) - 2.0).abs() < 1e-12 && (padded.at(2.0) - 7.0).abs() < 1e-12);
    }

    #[test]
    fn round_ticks() {
        assert_eq!(Scale::linear([0.0, 10.0], [0.0, 1.0]).ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(Scale::linear([3.0, 3.0], [0.0, 1.0]).ticks(5), [3.0]);
        assert_eq!(Scale::log([10.0, 100.0], [0.0, 1.0]).ticks(6), [10.0, 20.0, 30.0, 50.0, 70.0, 100.0]);
        assert_eq!(Scale::log([10.0, 1000.0], [0.0, 1.0]).ticks(6).len(), 3);
        assert_eq!(Scale::log([1e-9, 1e9], [0.0, 1.0]).ticks(8).len(), 7);
        assert_eq!(Scale::log([1.0, 48.0], [0.0, 1.0]).powers_of_two(), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        assert_eq!([0.3, 1.0, 7.0].map(round_step), [0.5, 1.0, 10.0]);
    }

    #[test]
    fn labels_keep_apart() {
        let mut places = [10.0, 11.0, 50.0, 99.0, 100.0];
        spread(&mut places, 12.0, [0.0, 100.0]);
        assert_eq!(places, [10.0, 22.0, 50.0, 88.0, 100.0]);
        let mut few = [200.0];
        spread(&mut few, 12.0, [0.0, 100.0]);
        assert_eq!(few, [100.0]);
    }
}
