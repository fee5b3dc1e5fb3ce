//! Experiments on each kind of device alone, and on all devices together.

use std::sync::Arc;

use declive::device::{Choice, Info, Kind, Pick};
use declive::experiments::{Experiment, experiment};
use declive::solve::{Format, Method, Setup};
use declive::{Csr, Error};

use super::progress::Screen;
use crate::report::bench::ALL;

/// Devices that are alike, of which one stands for all; no device is the host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alike {
    pub(crate) device: Option<Info>,
    /// The ranks that they have in a solve on all devices.
    pub(crate) ranks: Vec<usize>,
    /// The numbers of them all; none of the host.
    pub(crate) indices: Vec<usize>,
    /// Bytes a second of a plain copy on one of them, if it was measured.
    pub(crate) copy: Option<f64>,
}

/// The kinds of devices that ranks have, in order.
pub(crate) fn kinds(ranks: &[Option<Info>]) -> Vec<Alike> {
    let facts = |d: &Info| (d.name.clone(), d.platform.clone(), d.driver.clone(), d.compute_units, d.memory_bytes);
    let mut kinds: Vec<Alike> = Vec::new();
    for (rank, device) in ranks.iter().enumerate() {
        let same = kinds.iter_mut().find(|kind| kind.device.as_ref().map(facts) == device.as_ref().map(facts));
        let index = device.as_ref().map(|device| device.index);
        match same {
            Some(kind) => {
                kind.ranks.push(rank);
                kind.indices.extend(index.filter(|index| !kind.indices.contains(index)));
            }
            None => {
                let (device, indices) = (device.clone(), index.into_iter().collect());
                kinds.push(Alike { device, ranks: vec![rank], indices, copy: None });
            }
        }
    }
    kinds
}

/// Devices that work together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Team {
    /// `[0]`, `host` or `all`.
    pub(crate) label: String,
    pub(crate) choice: Choice,
    /// Bytes a second of copies on all of them at once.
    pub(crate) copy: Option<f64>,
}

impl Alike {
    /// `[0]` or `host`.
    pub(crate) fn label(&self) -> String {
        self.device.as_ref().map_or_else(|| "host".into(), |device| format!("[{}]", device.index))
    }

    fn is_gpu(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.kind == Kind::Gpu)
    }
}

impl Team {
    /// One of these devices alone.
    pub(crate) fn alone(kind: &Alike) -> Self {
        let choice = Choice::List(vec![pick(kind.device.as_ref())]);
        Self { label: kind.label(), choice, copy: kind.copy }
    }

    /// All devices, each a rank, which are of these kinds; none if there is but one.
    pub(crate) fn all(devices: &[Option<Info>], kinds: &[Alike]) -> Option<Self> {
        let picks = devices.iter().map(|device| pick(device.as_ref())).collect();
        let team = || Self { label: ALL.into(), choice: Choice::List(picks), copy: copies(kinds) };
        (devices.len() > 1).then(team)
    }
}

/// What copies on all devices at once reach: each GPU has memory of its own, CPUs and the host share one.
fn copies(kinds: &[Alike]) -> Option<f64> {
    let (gpus, shared): (Vec<&Alike>, Vec<&Alike>) = kinds.iter().partition(|kind| kind.is_gpu());
    let gpus = gpus.into_iter().map(|kind| Some(kind.copy? * kind.indices.len() as f64)).sum::<Option<f64>>()?;
    let shared = shared.into_iter().map(|kind| kind.copy).collect::<Option<Vec<f64>>>()?;
    Some(gpus + shared.into_iter().fold(0.0, f64::max))
}

fn pick(device: Option<&Info>) -> Pick {
    device.map_or(Pick::Host, |device| Pick::Index(device.index))
}

/// What experiments have in common.
pub(crate) struct Series<'a> {
    pub(crate) a: &'a Arc<Csr>,
    /// What the matrix is.
    pub(crate) matrix: &'a str,
    /// All but the method and the devices.
    pub(crate) setup: Setup,
    pub(crate) iterations: u64,
    pub(crate) repeat: usize,
}

impl Series<'_> {
    /// One of them.
    pub(crate) fn run(&self, method: Method, team: &Team, screen: Screen) -> Result<Experiment, Error> {
        let what = format!("{method} on {}", team.label);
        log::info!("{what}");
        let bar = screen.steps(&what);
        // the baseline as it was: compressed rows
        let format = if method == Method::CgClassic { Format::Csr } else { self.setup.format };
        let setup = self.setup.clone().with_method(method).with_format(format).with_devices(team.choice.clone());
        let progress = |done, all| bar.update(done, all);
        let experiment = experiment(self.a, self.matrix, &setup, self.iterations, self.repeat, &progress)?;
        Ok(Experiment { copy_bytes_per_second: team.copy, ..experiment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_of_the_host() {
        let host = |copy| Alike { device: None, ranks: vec![0, 1], indices: Vec::new(), copy };
        assert_eq!(kinds(&[None, None]), [host(None)]);
        let team =
            |label: &str, choice: &str, copy| Team { label: label.into(), choice: choice.parse().unwrap(), copy };
        assert_eq!(Team::alone(&host(Some(3.0))), team("host", "host", Some(3.0)));
        assert_eq!(Team::all(&[None], &[host(None)]), None);
        // ranks of the host share its memory
        assert_eq!(Team::all(&[None, None], &[host(Some(3.0))]), Some(team("all", "host,host", Some(3.0))));
        assert_eq!(copies(&[host(Some(3.0)), host(Some(5.0))]), Some(5.0));
        assert_eq!(copies(&[host(Some(3.0)), host(None)]), None);
    }
}
