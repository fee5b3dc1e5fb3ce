//! What no longer fits, however long one waits.

use serde::Serialize;

use super::exchange::Way;
use super::halo::Halo;
use super::{Layout, Machine, System};
use crate::comm::among::MOST_RANKS;
use crate::matrix::Csr;

/// Something of which there is only so much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// What it is.
    pub what: &'static str,
    /// How much the system needs.
    pub needs: f64,
    /// How much there is.
    pub most: f64,
    /// Of what: bytes, rows or ranks.
    pub unit: &'static str,
}

impl Limit {
    /// Whether it doesn't fit.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.needs > self.most
    }
}

/// Vectors of `cg` on a GPU, in double precision: x, r, p, q, b, and one that x and b have in common with others.
const VECTORS: f64 = 6.0;

/// Bytes of a row in a dictionary: its pattern, and its part of a mask.
const PATTERN: f64 = 2.125;

/// Bytes of an entry of a level, and of a row for vectors and for what goes between levels, in single precision: an estimate.
const LEVEL_ENTRY: f64 = 6.0;
const LEVEL_ROW: f64 = 60.0;

/// Bytes of a GPU for `cg`, or for `cg` with a cycle of multigrid: matrix, vectors, and places for the halo.
#[must_use]
pub fn gpu_bytes(machine: &Machine, system: &System, layout: &Layout, way: Way, with_levels: bool) -> f64 {
    let rows = system.rows / layout.gpus as f64;
    let halo = Halo::of(way.cut(), system, layout).elements();
    let matrix = rows * (PATTERN + system.entry_bytes() * f64::from(system.stencil));
    let vectors = 8.0 * (VECTORS * rows + 2.0 * halo);
    let of_levels = |levels: Vec<super::multigrid::Level>| {
        let rows: f64 = levels.iter().map(|level| level.rows).sum();
        let entries: f64 = levels.iter().skip(1).map(|level| level.entries).sum();
        (LEVEL_ENTRY * entries + LEVEL_ROW * rows) / layout.gpus as f64
    };
    let levels = if with_levels { of_levels(super::multigrid::levels(machine, system)) } else { 0.0 };
    matrix + vectors + levels
}

/// All limits that the program has, whether or not they are exceeded. Those of a single process are left out where there is one.
#[must_use]
pub fn limits(machine: &Machine, system: &System, layout: &Layout, way: Way) -> Vec<Limit> {
    let memory = 1e9 * machine.node.memory_gb;
    let processes = layout.processes as f64;
    let of_node = processes / layout.nodes as f64;
    let own = system.rows / processes;
    let halo = Halo::of(way.cut(), system, layout).elements();
    let bytes = |what, needs, most| Limit { what, needs, most, unit: "bytes" };
    // column, value, and where rows begin; b and x
    let host = (12.0 * f64::from(system.stencil) + 8.0 + 16.0) * system.rows / layout.nodes as f64;
    let mut all = vec![
        bytes("memory of a GPU", gpu_bytes(machine, system, layout, way, false), 1e9 * machine.gpu.memory_gb),
        bytes(
            "memory of a GPU, with multigrid",
            gpu_bytes(machine, system, layout, way, true),
            1e9 * machine.gpu.memory_gb,
        ),
        bytes("memory of a node for its rows", host, memory),
        Limit {
            what: "32-bit indices of a process's rows and halo",
            needs: own + halo,
            most: Csr::MAX_DIM as f64,
            unit: "rows",
        },
        Limit {
            what: "32-bit rows of a file, or of --generate",
            needs: system.rows,
            most: Csr::MAX_DIM as f64,
            unit: "rows",
        },
        Limit { what: "ranks of a process", needs: layout.of_process as f64, most: MOST_RANKS as f64, unit: "ranks" },
    ];
    if layout.processes > 1 {
        all.extend([
            bytes("what each process is told before an exchange, 8 P²", 8.0 * processes * processes * of_node, memory),
            bytes("b or x in the first process, where they are files", 8.0 * system.rows, memory),
            bytes("where rows begin, of .npz, in each process", 8.0 * system.rows * of_node, memory),
        ]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceeded(rows: f64, gpus: u64, processes: u64) -> Vec<&'static str> {
        let mut machine = Machine::default();
        machine.node.processes = processes;
        let layout = Layout::of(&machine, gpus);
        let all = limits(&machine, &System::poisson3d(rows), &layout, Way::Blocks);
        all.iter().filter(|limit| limit.is_exceeded()).map(|limit| limit.what).collect()
    }

    #[test]
    fn what_fits() {
        assert_eq!(exceeded(1e8, 1, 1), Vec::<&str>::new());
        assert_eq!(exceeded(4e9, 40, 1), Vec::<&str>::new());
        assert_eq!(exceeded(3e9, 1, 1), ["memory of a GPU", "memory of a GPU, with multigrid"]);
    }

    #[test]
    fn what_does_not() {
        // more than 2³² rows of a process before the GPUs are full
        let files = "32-bit rows of a file, or of --generate";
        assert_eq!(exceeded(5e9, 8, 1), ["32-bit indices of a process's rows and halo", files]);
        assert_eq!(exceeded(5e10, 80, 8), [files, "where rows begin, of .npz, in each process"]);
        // a vector of 10¹² elements in one process
        let found = exceeded(1e12, 10_000, 1);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0] == files && found[1].starts_with("b or x") && found[2].starts_with("where rows begin"));
        assert!(exceeded(1e12, 200_000, 8).iter().any(|what| what.contains("8 P²")));
    }
}
