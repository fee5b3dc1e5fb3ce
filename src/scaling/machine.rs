//! The numbers of a machine. `machine.toml` has them for a user, with the source of each.

use serde::{Deserialize, Serialize};

/// The machine as a file, with the source of each number: what [`Machine::default`] is.
pub const TEMPLATE: &str = include_str!("machine.toml");

/// Nodes with GPUs, and the network between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// One GPU alone.
    pub gpu: Gpu,
    /// GPUs of a node together, in one process.
    pub node: Node,
    /// Processes, by the host's messages.
    pub process: Process,
    /// Between nodes.
    pub network: Network,
    /// A cycle of multigrid.
    pub multigrid: Multigrid,
}

/// One GPU alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    /// Its memory, in 10⁹ bytes.
    pub memory_gb: f64,
    /// What kernels read and write, in 10⁹ bytes a second.
    pub bandwidth_gb_s: f64,
    /// From kernel to kernel in a queue, µs.
    pub launch_us: f64,
}

/// GPUs of a node, in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// GPUs.
    pub gpus: u64,
    /// Processes that they are shared out among, where there are several nodes.
    pub processes: u64,
    /// Memory of the host, in 10⁹ bytes.
    pub memory_gb: f64,
    /// What two GPUs take to meet while their kernels run, µs.
    pub meet_us: f64,
    /// What each more GPU adds, µs.
    pub meet_more_us: f64,
    /// The part of a meeting that no kernel's work hides.
    pub meet_exposed: f64,
    /// What the element of a halo takes beside that, ns.
    pub meet_halo_ns: f64,
    /// What two GPUs take to meet by the host, µs.
    pub host_us: f64,
    /// What each more GPU of the process adds, µs.
    pub host_more_us: f64,
    /// The part of that in which no kernel runs.
    pub host_exposed: f64,
    /// What the element of a halo takes by the host, ns.
    pub host_halo_ns: f64,
}

/// Processes, whose ranks go by the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// What an iteration of processes with one GPU each takes beside kernels and halos, µs.
    pub host_us: f64,
    /// What the element of a halo of another process takes on its way through memory of the host, ns.
    pub halo_ns: f64,
    /// To add up a number that another rank has told, ns.
    pub add_ns: f64,
}

/// The network between nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// From process to process, µs: α of Hockney's model.
    pub latency_us: f64,
    /// From one message to the next, µs: the gap of LogP.
    pub gap_us: f64,
    /// Of one interface in one direction, in 10⁹ bytes a second: 1 / β.
    pub bandwidth_gb_s: f64,
    /// Interfaces of a node.
    pub interfaces: u64,
}

/// A cycle of multigrid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Multigrid {
    /// What an entry of a level takes, ps.
    pub entry_ps: f64,
    /// Launches of a level.
    pub launches: f64,
    /// Halos of a level that ranks share.
    pub halos: f64,
    /// What is left of rows on the first coarse level.
    pub first_coarsening: f64,
    /// And on each one after it.
    pub coarsening: f64,
    /// Entries of a row of the first coarse level.
    pub first_row_entries: f64,
    /// And of those after it.
    pub row_entries: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            name: "nodes of 8 NVIDIA H200, InfiniBand NDR".into(),
            gpu: Gpu::default(),
            node: Node::default(),
            process: Process::default(),
            network: Network::default(),
            multigrid: Multigrid::default(),
        }
    }
}

impl Default for Gpu {
    fn default() -> Self {
        Self { memory_gb: 141.0, bandwidth_gb_s: 3950.0, launch_us: 4.0 }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self {
            gpus: 8,
            processes: 1,
            memory_gb: 2000.0,
            meet_us: 20.0,
            meet_more_us: 5.0,
            meet_exposed: 0.6,
            meet_halo_ns: 0.3,
            host_us: 65.0,
            host_more_us: 25.0,
            host_exposed: 0.4,
            host_halo_ns: 0.3,
        }
    }
}

impl Default for Process {
    fn default() -> Self {
        Self { host_us: 100.0, halo_ns: 2.9, add_ns: 1.0 }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self { latency_us: 1.0, gap_us: 0.3, bandwidth_gb_s: 50.0, interfaces: 8 }
    }
}

impl Default for Multigrid {
    fn default() -> Self {
        Self {
            entry_ps: 14.5,
            launches: 12.0,
            halos: 4.33,
            first_coarsening: 0.101,
            coarsening: 0.055,
            first_row_entries: 33.0,
            row_entries: 45.0,
        }
    }
}

impl Machine {
    /// The first number that can't be one of a machine: its key, as the file has it, and what it has to be.
    #[must_use]
    pub fn wrong(&self) -> Option<(&'static str, &'static str)> {
        let Self { gpu, node, process, network, multigrid, .. } = self;
        let positive = [
            ("gpu.memory_gb", gpu.memory_gb),
            ("gpu.bandwidth_gb_s", gpu.bandwidth_gb_s),
            ("node.memory_gb", node.memory_gb),
            ("network.bandwidth_gb_s", network.bandwidth_gb_s),
            ("multigrid.entry_ps", multigrid.entry_ps),
            ("multigrid.first_row_entries", multigrid.first_row_entries),
            ("multigrid.row_entries", multigrid.row_entries),
        ];
        let not_negative = [
            ("gpu.launch_us", gpu.launch_us),
            ("node.meet_us", node.meet_us),
            ("node.meet_more_us", node.meet_more_us),
            ("node.meet_halo_ns", node.meet_halo_ns),
            ("node.host_us", node.host_us),
            ("node.host_more_us", node.host_more_us),
            ("node.host_halo_ns", node.host_halo_ns),
            ("process.host_us", process.host_us),
            ("process.halo_ns", process.halo_ns),
            ("process.add_ns", process.add_ns),
            ("network.latency_us", network.latency_us),
            ("network.gap_us", network.gap_us),
            ("multigrid.launches", multigrid.launches),
            ("multigrid.halos", multigrid.halos),
        ];
        let parts = [("node.meet_exposed", node.meet_exposed), ("node.host_exposed", node.host_exposed)];
        let coarser = [
            ("multigrid.first_coarsening", multigrid.first_coarsening),
            ("multigrid.coarsening", multigrid.coarsening),
        ];
        let counts =
            [("node.gpus", node.gpus), ("node.processes", node.processes), ("network.interfaces", network.interfaces)];
        let wrong = |list: &[(&'static str, f64)], is: fn(f64) -> bool, what| {
            list.iter().find(|(_, value)| !(value.is_finite() && is(*value))).map(|(key, _)| (*key, what))
        };
        wrong(&positive, |value| value > 0.0, "must be above 0")
            .or_else(|| wrong(&not_negative, |value| value >= 0.0, "must be 0 or more"))
            .or_else(|| wrong(&parts, |value| (0.0..=1.0).contains(&value), "must be from 0 to 1"))
            .or_else(|| wrong(&coarser, |value| value > 0.0 && value <= 0.8, "must be above 0, and 0.8 or less"))
            .or_else(|| counts.iter().find(|(_, count)| *count == 0).map(|(key, _)| (*key, "must be 1 or more")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has() {
        assert_eq!(Machine::default().wrong(), None);
        let mut machine = Machine::default();
        machine.network.latency_us = -1.0;
        assert_eq!(machine.wrong(), Some(("network.latency_us", "must be 0 or more")));
        machine.gpu.bandwidth_gb_s = f64::NAN;
        assert_eq!(machine.wrong(), Some(("gpu.bandwidth_gb_s", "must be above 0")));
        let mut machine = Machine::default();
        machine.node.gpus = 0;
        assert_eq!(machine.wrong(), Some(("node.gpus", "must be 1 or more")));
        machine.multigrid.coarsening = 1.0;
        assert_eq!(machine.wrong().map(|(key, _)| key), Some("multigrid.coarsening"));
    }

    #[cfg(feature = "cli")]
    #[test]
    fn the_template_is_the_default() {
        assert_eq!(toml::from_str::<Machine>(TEMPLATE).unwrap(), Machine::default());
        assert_eq!(toml::from_str::<Machine>("").unwrap(), Machine::default());
    }
}
