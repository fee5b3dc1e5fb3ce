//! Options by name as text: one table for interfaces of other languages, and for files.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::device::Choice;
use crate::error::{Error, Result};
use crate::krylov::{MOST_RESTART, Method};
use crate::named::names;
use crate::operator::{Exchange, Format};
use crate::precond::{NearNull, Precond};
use crate::real::Precision;
use crate::runtime::{OnFailure, Reorder, Setup, Stop};
use crate::tune::Tune;

/// What a solver is built with, and when its solves stop, set by the names of options.
///
/// Names are those of [`ALL`], and mean what they do in `declive solve`: fields of [`Setup`] and [`Stop`], and `block_size`. In a name `-`
/// stands for `_`, too.
///
/// ```
/// use declive::solve::{Method, Options};
///
/// let mut options = Options::default();
/// options.set("method", "minres")?;
/// options.set("time-limit", "1.5m")?;
/// assert_eq!(options.setup.method, Method::Minres);
/// assert_eq!(options.get("time_limit")?, "90s");
/// let error = options.set("precision", "f16").unwrap_err();
/// assert_eq!(error.to_string(), "precision = f16: unknown precision 'f16'; there are: f64, f32, mixed");
/// # Ok::<(), declive::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// For [`Solver::new`](crate::Solver::new).
    pub setup: Setup,
    /// For [`Solver::solve`](crate::Solver::solve).
    pub stop: Stop,
    /// Whether `rtol` was set: else it depends on `backward_error`.
    has_rtol: bool,
}

impl Options {
    /// Sets an option.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that is not in [`ALL`], and for a value that the option can't have; the option then stays as it was.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let option = find(name)?;
        let value = value.trim();
        (option.set)(self, value).map_err(|error| Error::Usage(format!("{} = {value}: {error}", option.name)))
    }

    /// The value of an option, as a text that [`set`](Self::set) takes.
    ///
    /// # Errors
    /// [`Error::Usage`] for a name that is not in [`ALL`].
    pub fn get(&self, name: &str) -> Result<String> {
        Ok((find(name)?.get)(self))
    }
}

/// An option that has a name.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The name.
    pub name: &'static str,
    /// One line of description.
    pub about: &'static str,
    values: fn() -> String,
    set: fn(&mut Options, &str) -> Result<()>,
    get: fn(&Options) -> String,
}

impl OptionInfo {
    /// What values there are: names, or a form with an example.
    #[must_use]
    pub fn values(&self) -> String {
        (self.values)()
    }

    /// The value without being set.
    #[must_use]
    pub fn default_value(&self) -> String {
        (self.get)(&Options::default())
    }
}

/// The option of a field that is an enum with names.
macro_rules! of_enum {
    ($field:ident: $type:ty, $about:literal) => {
        OptionInfo {
            name: stringify!($field),
            about: $about,
            values: || names(<$type>::ALL),
            set: |options, value| {
                options.setup.$field = value.parse()?;
                Ok(())
            },
            get: |options| options.setup.$field.to_string(),
        }
    };
}

/// What stands for a value that is left to the program.
const AUTO: &str = "auto";
/// What stands for no limit.
const NONE: &str = "none";

/// All options, in the order of the help of `declive solve`.
pub const ALL: &[OptionInfo] = &[
    of_enum!(method: Method, "Krylov method, or factors"),
    OptionInfo {
        name: "precond",
        about: "Preconditioner; auto is jacobi, and with method = auto amg from where it is forecast to take less",
        values: || format!("{AUTO}, {}", names(Precond::ALL)),
        set: |options, value| {
            let (precond, may_change) = match value {
                AUTO => (Setup::default().precond, true),
                name => (name.parse()?, false),
            };
            (options.setup.precond, options.setup.may_change) = (precond, may_change);
            Ok(())
        },
        get: |options| match &options.setup {
            Setup { may_change: true, .. } => AUTO.into(),
            Setup { precond, .. } => precond.to_string(),
        },
    },
    OptionInfo {
        name: "block_size",
        about: "For amg and block-jacobi, unknowns of a node of the mesh, which are consecutive rows; takes the place of near-null vectors",
        values: || format!("{AUTO}, as the matrix tells, or a number from 1 to 16"),
        set: |options, value| {
            options.setup.near_null = match value {
                AUTO => None,
                _ => Some(NearNull::of_unknowns(within(value, 1..=16, "unknowns of a node")?)?),
            };
            Ok(())
        },
        get: |options| or(options.setup.near_null.as_ref().map(NearNull::unknowns), AUTO),
    },
    OptionInfo {
        name: "restart",
        about: "Steps of a cycle of gmres",
        values: || format!("a number from 1 to {MOST_RESTART}"),
        set: |options, value| {
            options.setup.restart = within(value, 1..=MOST_RESTART, "steps of a cycle")?;
            Ok(())
        },
        get: |options| options.setup.restart.to_string(),
    },
    of_enum!(precision: Precision, "Precision of the iteration; the answer is checked in more than double precision"),
    OptionInfo {
        name: "devices",
        about: "Devices, each of which becomes a rank",
        values: || "auto, or a list of gpu, cpu, host, all and numbers of devices, such as 0,2".into(),
        set: |options, value| {
            options.setup.devices = value.parse::<Choice>()?;
            Ok(())
        },
        get: |options| options.setup.devices.to_string(),
    },
    OptionInfo {
        name: "shares",
        about: "The part of the work that each rank gets",
        values: || format!("{AUTO}, by measured speed, or a number for each rank, such as 3:1"),
        set: |options, value| {
            options.setup.shares = if value == AUTO { None } else { Some(value.parse()?) };
            Ok(())
        },
        get: |options| or(options.setup.shares.as_ref(), AUTO),
    },
    of_enum!(format: Format, "How devices store their rows"),
    of_enum!(reorder: Reorder, "Order of the rows on the devices; vectors are in the order of A in any case"),
    of_enum!(exchange: Exchange, "How halos get from device to device"),
    of_enum!(tune: Tune, "Where launch parameters of kernels come from"),
    of_enum!(on_failure: OnFailure, "When a device fails: end with the error, or let the others go on"),
    OptionInfo {
        name: "columns",
        about: "At most so many right-hand sides side by side; 1 is one after the other",
        values: || format!("a number from 1 to {}", Setup::default().columns),
        set: |options, value| {
            options.setup.columns = columns(value)?;
            Ok(())
        },
        get: |options| options.setup.columns.to_string(),
    },
    OptionInfo {
        name: "assume_symmetric",
        about: "Do not check that A is symmetric; solve with it as it is",
        values: || "true, false".into(),
        set: |options, value| {
            let wrong = |_| Error::Usage("it is true or false".into());
            options.setup.assume_symmetric = value.parse().map_err(wrong)?;
            Ok(())
        },
        get: |options| options.setup.assume_symmetric.to_string(),
    },
    OptionInfo {
        name: "rtol",
        about: "Converged when ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol); while it is not set, 1e-8, and 0 beside backward_error",
        values: || "a number from 0 up".into(),
        set: |options, value| {
            options.stop.rtol = tolerance(value)?;
            options.has_rtol = true;
            Ok(())
        },
        get: |options| number(options.stop.rtol),
    },
    OptionInfo {
        name: "atol",
        about: "Absolute tolerance, in the units of b",
        values: || "a number from 0 up".into(),
        set: |options, value| {
            options.stop.atol = tolerance(value)?;
            Ok(())
        },
        get: |options| number(options.stop.atol),
    },
    OptionInfo {
        name: "backward_error",
        about: "Converged, too, when ‖b − A x‖∞ ≤ R (‖A‖∞ ‖x‖∞ + ‖b‖∞), for R > 0",
        values: || "a number from 0 up".into(),
        set: |options, value| {
            options.stop.backward_error = tolerance(value)?;
            if !options.has_rtol {
                options.stop.rtol = if options.stop.backward_error > 0.0 { 0.0 } else { Stop::default().rtol };
            }
            Ok(())
        },
        get: |options| number(options.stop.backward_error),
    },
    OptionInfo {
        name: "max_iters",
        about: "At most so many iterations for each right-hand side; auto is 10 n, but from 1000 to 200000",
        values: || format!("{AUTO}, or a number from 0 up"),
        set: |options, value| {
            options.stop.max_iters = match value {
                AUTO => None,
                _ => Some(within(value, 0..=u64::MAX, "iterations")?),
            };
            Ok(())
        },
        get: |options| or(options.stop.max_iters, AUTO),
    },
    OptionInfo {
        name: "time_limit",
        about: "At most so much time in the iteration for each right-hand side",
        values: || format!("{NONE}, or a time, such as 60, 60s, 1.5m, 500ms, 2h"),
        set: |options, value| {
            options.stop.time_limit = if value == NONE { None } else { Some(duration(value)?) };
            Ok(())
        },
        get: |options| or(options.stop.time_limit.map(|time| format!("{}s", time.as_secs_f64())), NONE),
    },
];

/// The option of this name, in which `-` is as good as `_`.
fn find(name: &str) -> Result<&'static OptionInfo> {
    let same = name.trim().replace('-', "_");
    ALL.iter().find(|option| option.name == same).ok_or_else(|| {
        let all: Vec<_> = ALL.iter().map(|option| option.name).collect();
        Error::Usage(format!("unknown option '{name}'; there are: {}", all.join(", ")))
    })
}

/// A value that may be left to the program.
fn or(value: Option<impl Display>, otherwise: &str) -> String {
    value.map_or_else(|| otherwise.into(), |value| value.to_string())
}

/// A number as a text that is read as the same.
fn number(value: f64) -> String {
    format!("{value:e}")
}

/// Reads a whole number.
fn within<T: std::str::FromStr + PartialOrd + Display>(text: &str, range: RangeInclusive<T>, what: &str) -> Result<T> {
    let wrong = || Error::Usage(format!("{what} are a number from {} to {}", range.start(), range.end()));
    text.parse().ok().filter(|value| range.contains(value)).ok_or_else(wrong)
}

/// Reads a tolerance: a finite number from 0 up.
///
/// # Errors
/// [`Error::Usage`] for anything else.
pub fn tolerance(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(Error::Usage("a tolerance is a number from 0 up, such as 1e-8".into())),
    }
}

/// Reads how many right-hand sides are solved for side by side, at most.
///
/// # Errors
/// [`Error::Usage`] for anything but a number from 1 to 1024.
pub fn columns(text: &str) -> Result<usize> {
    let most = Setup::default().columns;
    match text.parse() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        _ => Err(Error::Usage(format!("a number of columns is one from 1 to {most}"))),
    }
}

/// Reads a time: `60`, `60s`, `1.5m`, `500ms` or `2h`.
///
/// # Errors
/// [`Error::Usage`] for anything else.
pub fn duration(text: &str) -> Result<Duration> {
    // `ms` must be tried before `s`
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1.0));
    number
        .trim_end()
        .parse::<f64>()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value * unit).ok())
        .ok_or_else(|| Error::Usage("not a duration; write 60, 60s, 1.5m, 500ms or 2h".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value other than the default, for each option.
    const OTHERS: &[(&str, &str)] = &[
        ("method", "minres"),
        ("precond", "jacobi"),
        ("block_size", "3"),
        ("restart", "50"),
        ("precision", "mixed"),
        ("devices", "host,0"),
        ("shares", "3:1"),
        ("format", "sell"),
        ("reorder", "rcm"),
        ("exchange", "host-staged"),
        ("tune", "off"),
        ("on_failure", "continue"),
        ("columns", "4"),
        ("assume_symmetric", "true"),
        ("rtol", "1e-10"),
        ("atol", "2.5e-3"),
        ("backward_error", "1e-15"),
        ("max_iters", "12"),
        ("time_limit", "0.5s"),
    ];

    #[test]
    fn all_are_set_and_told() {
        let names: Vec<_> = ALL.iter().map(|option| option.name).collect();
        assert_eq!(names, OTHERS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (name, value) in OTHERS {
            let mut options = Options::default();
            let usual = options.get(name).unwrap();
            options.set(&format!(" {} ", name.replace('_', "-")), value).unwrap();
            assert_eq!(options.get(name).unwrap(), *value, "{name}");
            assert_ne!((&options.setup, &options.stop), (&Setup::default(), &Stop::default()), "{name}");
            // what it says is what it takes
            let said = options.get(name).unwrap();
            let mut same = Options::default();
            same.set(name, &said).unwrap();
            assert_eq!(same, options, "{name} = {said}");
            options.set(name, &usual).unwrap();
            assert_eq!((options.setup, options.stop), (Setup::default(), Stop::default()), "{name} = {usual}");
        }
    }

    #[test]
    fn wrong_values_are_named_and_change_nothing() {
        for (name, value, allowed) in [
            ("method", "jacobi", "cg-pipelined"),
            ("precond", "", "ilu0"),
            ("block_size", "17", "from 1 to 16"),
            ("restart", "0", "from 1 to 10000"),
            ("precision", "F64", "mixed"),
            ("devices", "tpu", "gpu"),
            ("shares", "0:0", "all shares are 0"),
            ("columns", "1025", "from 1 to 1024"),
            ("assume_symmetric", "yes", "true or false"),
            ("rtol", "-1", "from 0 up"),
            ("atol", "nan", "from 0 up"),
            ("max_iters", "1e3", "from 0 to"),
            ("time_limit", "1d", "500ms"),
        ] {
            let mut options = Options::default();
            options.set("method", "gmres").unwrap();
            let before = options.clone();
            let error = options.set(name, value).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} = {value}: ")) && error.contains(allowed), "{error}");
            assert_eq!(options, before, "{name}");
        }
    }

    #[test]
    fn unknown_names_get_the_list() {
        let mut options = Options::default();
        for error in [options.set("tolerance", "1").unwrap_err(), options.get("tolerance").unwrap_err()] {
            let error = error.to_string();
            assert!(error.starts_with("unknown option 'tolerance'; there are: method, precond,"), "{error}");
        }
    }

    #[test]
    fn a_backward_error_takes_the_place_of_a_residual_that_was_not_asked_for() {
        let mut options = Options::default();
        options.set("backward_error", "1e-15").unwrap();
        assert_eq!((options.stop.rtol, options.stop.backward_error), (0.0, 1e-15));
        options.set("backward_error", "0").unwrap();
        assert_eq!(options.stop, Stop::default());
        options.set("rtol", "1e-6").unwrap();
        options.set("backward_error", "1e-15").unwrap();
        assert_eq!(options.stop.rtol, 1e-6);
    }

    #[test]
    fn a_preconditioner_that_is_set_stays() {
        let mut options = Options::default();
        assert_eq!(options.get("precond").unwrap(), "auto");
        options.set("precond", "amg").unwrap();
        assert_eq!((options.setup.precond, options.setup.may_change), (Precond::Amg, false));
        options.set("precond", "auto").unwrap();
        assert_eq!(options.setup, Setup::default());
    }

    #[test]
    fn tolerances() {
        let stop = Stop::default();
        assert_eq!([tolerance("1e-8").unwrap(), tolerance("0").unwrap()], [stop.rtol, stop.atol]);
        for text in ["-1", "nan", "inf", "x", ""] {
            assert!(tolerance(text).is_err(), "{text}");
        }
    }

    #[test]
    fn units_of_time() {
        let ms = |text| duration(text).unwrap().as_millis();
        for (text, expected) in [
            ("60", 60_000),
            ("60s", 60_000),
            ("1.5m", 90_000),
            ("500ms", 500),
            ("2h", 7_200_000),
            ("0", 0),
            ("1 s", 1_000),
        ] {
            assert_eq!(ms(text), expected, "{text}");
        }
        for text in ["", "s", "-1", "1d", "nan", "inf", "1e400", "1h30m", "m"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
