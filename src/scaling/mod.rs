//! What an iteration takes on many GPUs of many nodes: a model of costs.
//!
//! It is made of a few formulas, with numbers that were measured on one node and published figures of a network ([`Machine`]). All of them
//! have the form of Hockney's model: a message takes a latency α and, for each byte, the inverse β of a bandwidth. Many messages of a process
//! follow each other with the gap of LogP (Culler et al. 1993).
//!
//! | module | what it says |
//! |---|---|
//! | [`machine`] | the numbers, with their units |
//! | [`halo`] | what a rank needs of others, by the way in which rows are cut |
//! | [`exchange`] | how long sums and halos take, by the [`Way`] in which ranks exchange |
//! | [`iteration`] | an iteration of conjugate gradients |
//! | [`multigrid`] | one with a cycle of multigrid |
//! | [`limits`] | what no longer fits |
//! | [`measured`] | the same beside what was measured |
//!
//! The system is a grid of points in a cube, with 7 or 27 points in a row. Ranks are alike, and nobody else uses the network: noise, congestion and
//! uneven devices are not in it.

pub mod exchange;
pub mod halo;
pub mod iteration;
pub mod limits;
pub mod machine;
pub mod measured;
pub mod multigrid;

use serde::Serialize;

pub use self::exchange::Way;
pub use self::iteration::{Iteration, Method, Parts};
pub use self::machine::Machine;
use crate::operator::Format;

/// The system: an operator on the points of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct System {
    /// Rows: the side of the cube, cubed. Not rounded to a cube of an integer.
    pub rows: f64,
    /// Entries of a row: 7, or 27.
    pub stencil: u32,
    /// How a rank stores its rows.
    pub format: Format,
}

impl System {
    /// The operator of 7 points with the same coefficients everywhere, which `dictionary` stores.
    #[must_use]
    pub fn poisson3d(rows: f64) -> Self {
        Self { rows, stencil: 7, format: Format::Dictionary }
    }

    /// Points along a side of the cube.
    #[must_use]
    pub fn side(&self) -> f64 {
        self.rows.cbrt()
    }

    /// Entries of the matrix.
    #[must_use]
    pub fn entries(&self) -> f64 {
        f64::from(self.stencil) * self.rows
    }

    /// Bytes of an entry: column and value, as far as the format stores them for each entry.
    #[must_use]
    pub fn entry_bytes(&self) -> f64 {
        self.format.entry_bytes()
    }
}

/// So many GPUs, of which a node has some, in so many processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Layout {
    /// GPUs, each of them a rank.
    pub gpus: u64,
    /// Those of a node.
    pub on_node: u64,
    /// Nodes.
    pub nodes: u64,
    /// Processes, each with its part of a node's GPUs.
    pub processes: u64,
    /// GPUs of a process.
    pub of_process: u64,
}

impl Layout {
    /// Full nodes, but for the last one. GPUs that one node has are of one process, which is what is fastest.
    #[must_use]
    pub fn of(machine: &Machine, gpus: u64) -> Self {
        let gpus = gpus.max(1);
        if gpus <= machine.node.gpus {
            return Self { gpus, on_node: gpus, nodes: 1, processes: 1, of_process: gpus };
        }
        let nodes = gpus.div_ceil(machine.node.gpus);
        let of_node = machine.node.processes.clamp(1, machine.node.gpus);
        let of_process = machine.node.gpus.div_ceil(of_node);
        Self { gpus, on_node: machine.node.gpus, nodes, processes: nodes * of_node, of_process }
    }

    /// One GPU for each process, all on one node.
    #[must_use]
    pub fn of_processes(processes: u64) -> Self {
        Self { gpus: processes, on_node: processes, nodes: 1, processes, of_process: 1 }
    }
}
