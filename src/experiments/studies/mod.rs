//! The studies of F. Alfaro Vigo, G. Rossetto, "Programação paralela em GPU para métodos numéricos", SBMAC 2016, again: reductions of
//! tridiagonal systems, tiles of L U, and groups of finite differences in the time domain.
//!
//! A [`Study`] has panels, each of which is a table, or a part of a plot, with a series of numbers for each of what is compared.

mod fdtd;
mod lu;
mod tridiagonal;

use serde::Serialize;

pub use self::fdtd::fdtd;
pub use self::lu::lu;
pub use self::tridiagonal::tridiagonal;
use crate::error::{Error, ErrorKind, Result};
use crate::real::Precision;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// Those of a device one after the other.
    pub panels: Vec<Panel>,
    /// What is left out, and why.
    pub notes: Vec<String>,
    /// Of the first error, unless devices or memory were just too small.
    #[serde(skip)]
    pub failure: Option<ErrorKind>,
}

/// Numbers over the same sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// Where: the label of a device, or `host`.
    pub device: String,
    /// What they have in common.
    pub title: String,
    /// What sizes are of.
    pub x: &'static str,
    /// What values are, with their unit.
    pub y: &'static str,
    /// Sizes, by rising number.
    pub at: Vec<usize>,
    /// What is compared.
    pub series: Vec<Series>,
}

/// A number for each size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What is measured.
    pub name: String,
    /// Whether it is the host's own, for comparison.
    pub is_host: bool,
    /// None where it could not be measured.
    pub values: Vec<Option<f64>>,
    /// How many times the host's these are, where that is what is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times_host: Vec<Option<f64>>,
}

/// Is told what comes next.
pub type Progress<'a> = &'a dyn Fn(&str);

/// What all studies are given.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Run<'a> {
    /// Of the elements: double or single.
    pub precision: Precision,
    /// Measurements of each number.
    pub repeat: usize,
    /// Is told what comes next.
    pub progress: Progress<'a>,
}

impl<'a> Run<'a> {
    /// So many measurements; `Mixed` is single precision.
    #[must_use]
    pub fn new(precision: Precision, repeat: usize, progress: Progress<'a>) -> Self {
        Self { precision: precision.of_vectors(), repeat: repeat.max(1), progress }
    }
}

impl Study {
    fn new() -> Self {
        Self { panels: Vec::new(), notes: Vec::new(), failure: None }
    }

    /// What was measured, if it was; else there is a note.
    fn found<T>(&mut self, what: &str, result: Result<T>) -> Option<T> {
        let error = match result {
            Ok(found) => return Some(found),
            Err(error) => error,
        };
        let is_too_much = matches!(
            error,
            Error::OutOfDeviceMemory { .. }
                | Error::OutOfMemory { .. }
                | Error::TooManyElements { .. }
                | Error::KernelBuild { .. }
        );
        if !is_too_much {
            self.failure.get_or_insert(error.kind());
        }
        self.notes.push(format!("{what} is left out: {error}"));
        None
    }

    /// Whether an error is rounding; else there is a note.
    fn is_right(&mut self, what: &str, error: f64, most: f64) -> bool {
        let is_right = error <= most;
        if !is_right {
            self.failure.get_or_insert(ErrorKind::Runtime);
            self.notes.push(format!("{what} is WRONG, and left out: the error is {error:.1e}"));
        }
        is_right
    }
}

impl Panel {
    /// The series of this name, which has a place for each size.
    fn series(&mut self, name: &str, is_host: bool) -> &mut Series {
        let known = self.series.iter().position(|series| series.name == name);
        let at = known.unwrap_or_else(|| {
            let values = vec![None; self.at.len()];
            self.series.push(Series { name: name.into(), is_host, values, times_host: Vec::new() });
            self.series.len() - 1
        });
        &mut self.series[at]
    }

    /// Compares all with the host.
    fn compare(&mut self) {
        let Some(host) = self.series.iter().find(|series| series.is_host).map(|host| host.values.clone()) else {
            return;
        };
        for series in self.series.iter_mut().filter(|series| !series.is_host) {
            let of = |(value, host): (&Option<f64>, &Option<f64>)| Some((*value)? / (*host)?);
            series.times_host = series.values.iter().zip(&host).map(of).collect();
        }
    }

    /// Leaves out sizes and series without any value.
    fn tidied(mut self) -> Option<Self> {
        let kept: Vec<usize> =
            (0..self.at.len()).filter(|&k| self.series.iter().any(|series| series.values[k].is_some())).collect();
        self.at = kept.iter().map(|&k| self.at[k]).collect();
        self.series.retain(|series| series.values.iter().any(Option::is_some));
        for series in &mut self.series {
            for values in [&mut series.values, &mut series.times_host] {
                *values = kept.iter().filter_map(|&k| values.get(k).copied()).collect();
            }
        }
        (!self.at.is_empty()).then_some(self)
    }
}

/// Sizes by rising number, each once.
fn rising(sizes: &[usize]) -> Vec<usize> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What stands for the host among devices.
const HOST: &str = "host";

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        Panel { device: "[0]".into(), title: "t".into(), x: "n", y: "y", at: vec![1, 2, 4], series: Vec::new() }
    }

    #[test]
    fn series_by_hand() {
        let mut panel = panel();
        panel.series("a", false).values[0] = Some(6.0);
        panel.series(HOST, true).values = vec![Some(2.0), None, Some(3.0)];
        panel.series("a", false).values[2] = Some(3.0);
        panel.series("nothing", false);
        panel.compare();
        let panel = panel.tidied().unwrap();
        assert_eq!(panel.at, [1, 4]);
        let names: Vec<_> = panel.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["a", HOST]);
        assert_eq!(panel.series[0].values, [Some(6.0), Some(3.0)]);
        assert_eq!(panel.series[0].times_host, [Some(3.0), Some(1.0)]);
        assert_eq!((&panel.series[1].times_host[..], rising(&[4, 1, 4])), (&[][..], vec![1, 4]));
    }

    #[test]
    fn a_panel_without_numbers_is_none() {
        assert_eq!(panel().tidied(), None);
    }

    #[test]
    fn failures_are_told_from_what_is_too_large() {
        let mut study = Study::new();
        assert_eq!(study.found("one", Ok(1)), Some(1));
        let large = Error::OutOfMemory { what: "x".into(), bytes: 1 };
        assert_eq!((study.found::<u8>("two", Err(large)), study.failure), (None, None));
        assert_eq!(study.found::<u8>("three", Err(Error::Usage("no".into()))), None);
        assert_eq!(study.failure, Some(ErrorKind::Input));
        assert!(study.notes.len() == 2 && study.notes[1] == "three is left out: no", "{:?}", study.notes);
        assert!(study.is_right("four", 1e-9, 1e-6) && !study.is_right("five", f64::NAN, 1e-6));
        assert!(study.notes.len() == 3 && study.notes[2].starts_with("five is WRONG"), "{:?}", study.notes);
    }
}
