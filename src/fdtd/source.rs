//! Where fields come from.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::grid::Component;
use crate::error::{Error, Result};

/// A function of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Waveform {
    /// A exp(−((t − delay) / width)²).
    Gaussian {
        /// A, in the unit of the field.
        #[serde(default = "one")]
        amplitude: f64,
        /// When it is largest, in s.
        delay: f64,
        /// In s.
        width: f64,
    },
    /// A sin(2π f t + phase), which rises from 0 to its full height as (1 − cos(π t / rise)) / 2.
    Sine {
        /// A, in the unit of the field.
        #[serde(default = "one")]
        amplitude: f64,
        /// f, in Hz.
        frequency: f64,
        /// In radians.
        #[serde(default)]
        phase: f64,
        /// In s; 0 is at once.
        #[serde(default)]
        rise: f64,
    },
    /// A (1 − 2 u) exp(−u) with u = (π f (t − delay))².
    Ricker {
        /// A, in the unit of the field.
        #[serde(default = "one")]
        amplitude: f64,
        /// f, where the spectrum is largest, in Hz.
        frequency: f64,
        /// When it is largest, in s.
        delay: f64,
    },
    /// A exp(−((t − delay) / width)²) sin(2π f (t − delay)).
    ModulatedGaussian {
        /// A, in the unit of the field.
        #[serde(default = "one")]
        amplitude: f64,
        /// f, in Hz.
        frequency: f64,
        /// In s.
        delay: f64,
        /// In s.
        width: f64,
    },
    /// A (10 − 15 cos φ + 6 cos 2φ − cos 3φ) / 32 with φ = 2π t / duration: 0 from `duration` on, and smooth there.
    SmoothPulse {
        /// A, in the unit of the field.
        #[serde(default = "one")]
        amplitude: f64,
        /// In s.
        duration: f64,
    },
}

fn one() -> f64 {
    1.0
}

impl Waveform {
    /// Its value at a time in s.
    #[must_use]
    pub fn at(&self, t: f64) -> f64 {
        let bell = |delay: f64, width: f64| (-((t - delay) / width).powi(2)).exp();
        match *self {
            Self::Gaussian { amplitude, delay, width } => amplitude * bell(delay, width),
            Self::Sine { amplitude, frequency, phase, rise } => {
                let part = if t < rise { 0.5 - 0.5 * (TAU / 2.0 * t / rise).cos() } else { 1.0 };
                amplitude * part * (TAU * frequency * t + phase).sin()
            }
            Self::Ricker { amplitude, frequency, delay } => {
                let u = (TAU / 2.0 * frequency * (t - delay)).powi(2);
                amplitude * (1.0 - 2.0 * u) * (-u).exp()
            }
            Self::ModulatedGaussian { amplitude, frequency, delay, width } => {
                amplitude * bell(delay, width) * (TAU * frequency * (t - delay)).sin()
            }
            Self::SmoothPulse { amplitude, duration } => {
                let phi = TAU * t / duration;
                let sum = 10.0 - 15.0 * phi.cos() + 6.0 * (2.0 * phi).cos() - (3.0 * phi).cos();
                if (0.0..duration).contains(&t) { amplitude * sum / 32.0 } else { 0.0 }
            }
        }
    }

    /// Refuses numbers that make no function.
    fn check(&self) -> Result<()> {
        let (numbers, positive): (&[f64], &[(&str, f64)]) = match self {
            Self::Gaussian { amplitude, delay, width } => (&[*amplitude, *delay], &[("width", *width)]),
            Self::Sine { amplitude, frequency, phase, rise } => {
                (&[*amplitude, *phase, *rise], &[("frequency", *frequency)])
            }
            Self::Ricker { amplitude, frequency, delay } => (&[*amplitude, *delay], &[("frequency", *frequency)]),
            Self::ModulatedGaussian { amplitude, frequency, delay, width } => {
                (&[*amplitude, *delay], &[("frequency", *frequency), ("width", *width)])
            }
            Self::SmoothPulse { amplitude, duration } => (&[*amplitude], &[("duration", *duration)]),
        };
        if let Some(bad) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(Error::Usage(format!("its waveform has the number {bad}, which is not finite")));
        }
        match positive.iter().find(|(_, number)| !(number.is_finite() && *number > 0.0)) {
            Some((what, bad)) => Err(Error::Usage(format!("the {what} of its waveform is {bad}; it must be above 0"))),
            None => Ok(()),
        }
    }
}

/// A point, a line, a plane or a box of cells that drives a component.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Source {
    /// Which component.
    pub component: Component,
    /// The first cell along each axis,
    pub from: Vec<usize>,
    /// and the last one.
    pub to: Vec<usize>,
    /// Whether the field is set to the waveform, so that the place scatters other waves; else the waveform is added to it in each step, as a
    /// current density −waveform / b does, b = (Δt / ε) / (1 + σ Δt / 2 ε).
    pub hard: bool,
    /// What it does in time. Step n updates H at the time n Δt, and E at (n + ½) Δt.
    pub waveform: Waveform,
}

impl Source {
    /// Refuses what is not in order by itself.
    pub(crate) fn check(&self) -> Result<()> {
        self.waveform.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waveforms() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        let gaussian = Waveform::Gaussian { amplitude: 2.0, delay: 3.0, width: 0.5 };
        close(gaussian.at(3.0), 2.0);
        close(gaussian.at(3.5), 2.0 * (-1.0_f64).exp());
        let sine = Waveform::Sine { amplitude: 1.0, frequency: 0.25, phase: 0.0, rise: 2.0 };
        close(sine.at(1.0), 0.5);
        close(sine.at(5.0), 1.0);
        let ricker = Waveform::Ricker { amplitude: 1.0, frequency: 1.0, delay: 1.0 };
        close(ricker.at(1.0), 1.0);
        close(ricker.at(1.0 + 0.5_f64.sqrt() / (TAU / 2.0)), 0.0);
        let pulse = Waveform::SmoothPulse { amplitude: 1.0, duration: 40.0 };
        close(pulse.at(20.0), 1.0);
        close(pulse.at(0.0), 0.0);
        assert_eq!([pulse.at(40.0), pulse.at(-1.0)], [0.0, 0.0]);
        let burst = Waveform::ModulatedGaussian { amplitude: 1.0, frequency: 1.0, delay: 0.0, width: 1e9 };
        close(burst.at(0.25), 1.0);
        assert!(Waveform::SmoothPulse { amplitude: 1.0, duration: 0.0 }.check().is_err());
        assert!(Waveform::Gaussian { amplitude: f64::INFINITY, delay: 0.0, width: 1.0 }.check().is_err());
    }
}
