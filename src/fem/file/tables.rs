//! The tables of a problem's file as they are written, and the conditions that they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::{ANY, Kind};
use crate::error::{Error, Result};
use crate::fem::assembly::Condition;

/// A part of the file with a name, and the line where it is.
#[derive(Debug, Clone)]
pub(super) struct Table<T> {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) content: T,
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) title: Option<String>,
    pub(super) mesh: Spanned<OfMesh>,
    pub(super) physics: OfPhysics,
    #[serde(default)]
    pub(super) regions: BTreeMap<Spanned<String>, Region>,
    #[serde(default)]
    pub(super) sides: BTreeMap<Spanned<String>, Side>,
    #[serde(default)]
    pub(super) probes: Vec<Spanned<OfProbe>>,
    pub(super) picture: Option<OfPicture>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfMesh {
    pub(super) file: Option<PathBuf>,
    pub(super) square: Option<[usize; 2]>,
    pub(super) cube: Option<[usize; 3]>,
    pub(super) capacitor: Option<usize>,
    pub(super) order: Option<usize>,
    pub(super) scale: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfPhysics {
    #[serde(deserialize_with = "by_name")]
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Region {
    pub(super) conductivity: Option<f64>,
    pub(super) young: Option<f64>,
    pub(super) poisson: Option<f64>,
    pub(super) source: Option<Values>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Side {
    pub(super) value: Option<Values>,
    pub(super) flux: Option<Values>,
    pub(super) robin: Option<Robin>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Robin {
    pub(super) coefficient: Values,
    pub(super) outside: Option<Values>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfProbe {
    pub(super) name: Option<String>,
    pub(super) point: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfPicture {
    pub(super) from: [f64; 2],
    pub(super) to: [f64; 2],
}

/// A number, or one for each unknown of a node, of which some may be free.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a number, or a list of one for each unknown of a node, or \"free\"")]
pub(super) enum Values {
    One(f64),
    Many(Vec<Entry>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a number, or \"free\"")]
pub(super) enum Entry {
    Number(f64),
    Free(Free),
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) enum Free {
    #[serde(rename = "free")]
    Free,
}

fn by_name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Kind, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl<T> Table<T> {
    pub(super) fn error(&self, of: &str, message: &str) -> Error {
        at(self.line, format!("{of}.{}: {message}", key(&self.name)))
    }
}

impl Table<Side> {
    /// The conditions for each of b unknowns.
    pub(super) fn conditions<'m>(&self, b: usize) -> Result<Vec<Condition<'m>>> {
        let numbers = |what: &str, values: &Values, may_be_free: bool| {
            values.numbers(b, may_be_free).map_err(|message| self.error("sides", &format!("{what} {message}")))
        };
        let Side { value, flux, robin } = &self.content;
        let (mut all, mut is_known) = (Vec::new(), [false; 3]);
        if let Some(value) = value {
            for (component, v) in numbers("value", value, true)? {
                is_known[component] = true;
                all.push(Condition::Value { component, value: Box::new(move |_| v) });
            }
        }
        let both = |what: &str| {
            let message = format!("{what} where the value is known; give the unknown a value, or a flux, or a film");
            self.error("sides", &message)
        };
        if let Some(flux) = flux {
            for (component, g) in numbers("flux", flux, true)? {
                // a flux of 0 is a place in the list
                if is_known[component] && g != 0.0 {
                    return Err(both("flux"));
                }
                all.push(Condition::Flux { component, value: Box::new(move |_| g) });
            }
        }
        if let Some(Robin { coefficient, outside }) = robin {
            let outside = outside.as_ref().map_or_else(|| Ok(Vec::new()), |v| numbers("robin.outside", v, true))?;
            for (component, coefficient) in numbers("robin.coefficient", coefficient, true)? {
                if is_known[component] && coefficient != 0.0 {
                    return Err(both("robin"));
                }
                let outside = outside.iter().find(|(own, _)| *own == component).map_or(0.0, |(_, v)| *v);
                all.push(Condition::Robin { component, coefficient, outside });
            }
        }
        Ok(all)
    }
}

impl Values {
    /// Numbers of components, but for those that are free.
    pub(super) fn numbers(&self, b: usize, may_be_free: bool) -> std::result::Result<Vec<(usize, f64)>, String> {
        let entries = match self {
            Self::One(number) => &[Entry::Number(*number)][..],
            Self::Many(entries) => entries,
        };
        if entries.len() != b {
            let found = if entries.len() == 1 { "1 number".into() } else { format!("{} numbers", entries.len()) };
            return Err(format!("has {found}, but a node has {b} unknowns: one is needed for each"));
        }
        let mut numbers = Vec::new();
        for (component, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Number(number) if number.is_finite() => numbers.push((component, *number)),
                Entry::Number(number) => return Err(format!("is {number}, which is no number")),
                Entry::Free(_) if may_be_free => {}
                Entry::Free(_) => return Err("can't be \"free\"; write 0".into()),
            }
        }
        Ok(numbers)
    }

    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::One(number) => *number == 0.0,
            Self::Many(entries) => entries.iter().all(|entry| matches!(entry, Entry::Free(_) | Entry::Number(0.0))),
        }
    }
}

/// Tables by their names, in the order of the file.
pub(super) fn tables<T>(all: BTreeMap<Spanned<String>, T>, line: impl Fn(usize) -> usize) -> Vec<Table<T>> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    let table = |(name, content): (Spanned<String>, T)| Table {
        line: line(name.span().start),
        name: name.into_inner(),
        content,
    };
    all.into_iter().map(table).collect()
}

/// All tables are of things that the mesh has.
pub(super) fn known<T>(tables: &[Table<T>], of: &str, what: &str, names: &[String]) -> Result<()> {
    let is_known = |name: &String| names.contains(name) || what == "region" && name == ANY;
    tables.iter().find(|table| !is_known(&table.name)).map_or(Ok(()), |table| {
        let there = if names.is_empty() { "none".into() } else { names.join(", ") };
        Err(at(table.line, format!("{of}.{}: the mesh has no such {what}; it has: {there}", key(&table.name))))
    })
}

pub(super) fn at(line: usize, message: String) -> Error {
    Error::Usage(format!("line {line}: {message}"))
}

/// A name as a key of TOML.
pub(in crate::fem) fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_bare { name.into() } else { serde_json::Value::from(name).to_string() }
}
