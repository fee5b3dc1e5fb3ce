//! An iteration with a cycle of multigrid.

use serde::Serialize;

use super::exchange::{self, Way};
use super::halo::Halo;
use super::iteration::{Iteration, Method, Parts, iteration};
use super::{Layout, Machine, System};
use crate::runtime::SHARED_LEVEL;

/// The coarsest level has so many rows or fewer, and there are so many levels at most.
const FEW_ROWS: f64 = 300.0;
const MOST_LEVELS: usize = 12;

/// Products of a cycle with the matrix of a level.
const PRODUCTS: f64 = 4.0;

/// A level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Level {
    /// Rows of its matrix.
    pub rows: f64,
    /// Its entries.
    pub entries: f64,
}

/// The levels of a system, the first of them its own: as those of `poisson3d`, of which each has the same part of the rows of the one above.
#[must_use]
pub fn levels(machine: &Machine, system: &System) -> Vec<Level> {
    let made = &machine.multigrid;
    let mut levels = vec![Level { rows: system.rows, entries: system.entries() }];
    while levels[levels.len() - 1].rows > FEW_ROWS && levels.len() < MOST_LEVELS {
        let above = levels[levels.len() - 1].rows;
        let (part, of_row) = match levels.len() {
            1 => (made.first_coarsening, made.first_row_entries),
            _ => (made.coarsening, made.row_entries),
        };
        let rows = part * above;
        levels.push(Level { rows, entries: rows * of_row.min(rows) });
    }
    levels
}

/// Iterations of `cg` with such a cycle to a relative residual of 10⁻⁸, on a cube of N points along a side: 10 + 1.83 log₂ (N / 32), from what was
/// measured (10, 11, 13, 15, 16 and 17 for 32, 64, 128, 215, 320 and 464). Beyond, that is an extrapolation.
#[must_use]
pub fn iterations(system: &System) -> f64 {
    (10.0 + 1.83 * (system.side() / 32.0).log2()).round().max(1.0)
}

/// How many levels ranks share where the first `shared` are what the program takes: those of more than 2²³ entries.
#[must_use]
pub fn shared_by_entries(levels: &[Level]) -> usize {
    levels.iter().take_while(|level| level.entries > SHARED_LEVEL as f64).count().min(levels.len() - 1)
}

/// A cycle of which ranks share so many levels; the first of the others is gathered, and from there on all do alike.
///
/// ```text
/// shared level   entries t / P + launches + halos (meeting + elements)
/// gathered       P messages, or ⌈log₂ P⌉ and the bytes
/// each other one entries t + launches
/// ```
#[must_use]
pub fn cycle(machine: &Machine, system: &System, layout: &Layout, way: Way, shared: usize) -> Parts {
    let made = &machine.multigrid;
    let launches = 1e-6 * made.launches * machine.gpu.launch_us;
    let values = PRODUCTS * 0.5 * system.entry_bytes() / (1e9 * machine.gpu.bandwidth_gb_s);
    let mut parts = Parts::default();
    for (k, level) in levels(machine, system).into_iter().enumerate() {
        let of_values = if k == 0 { values } else { 0.0 };
        let work = level.entries * (1e-12 * made.entry_ps + of_values);
        if layout.gpus == 1 || k < shared {
            parts.kernels += work / layout.gpus as f64;
            parts.launches += launches;
            let [meeting, elements] = of_halo(machine, system, &level, layout, way);
            parts.meeting += made.halos * meeting;
            parts.halo += made.halos * elements;
            continue;
        }
        if k == shared {
            parts.coarse += gathered(machine, &level, layout, way);
        }
        parts.coarse += work + launches;
    }
    parts
}

/// A halo of a level: what ranks take to meet, and the elements, in single precision.
fn of_halo(machine: &Machine, system: &System, level: &Level, layout: &Layout, way: Way) -> [f64; 2] {
    if layout.gpus == 1 {
        return [0.0; 2];
    }
    let halo = Halo::of(way.cut(), &System { rows: level.rows, ..*system }, layout);
    match (layout.processes, way) {
        (1, _) => {
            let elements = 0.5e-9 * machine.node.host_halo_ns * halo.elements();
            [exchange::meeting_by_host(machine, layout.gpus), elements]
        }
        (_, Way::Direct) => {
            let elements = 0.5e-9 * machine.node.meet_halo_ns * halo.elements();
            [exchange::meeting(machine, layout.on_node), elements + exchange::wire(machine, layout, &halo, 4.0)]
        }
        _ => {
            let elements = exchange::through_host(machine, layout, &halo, 4.0);
            [exchange::meeting_of_processes(machine, layout.of_process), elements]
        }
    }
}

/// The right-hand side of a level for all ranks: 4 bytes a row.
fn gathered(machine: &Machine, level: &Level, layout: &Layout, way: Way) -> f64 {
    let staged = 0.5e-9 * level.rows;
    match (layout.processes, way) {
        (1, _) => exchange::meeting_by_host(machine, layout.gpus) + machine.node.host_halo_ns * staged,
        (_, Way::Direct) => {
            let on_wire = exchange::tree(machine, layout.nodes) + exchange::message(machine, 4.0 * level.rows);
            exchange::meeting(machine, layout.on_node) + machine.node.meet_halo_ns * staged + on_wire
        }
        (processes, _) => {
            let meeting = exchange::meeting_of_processes(machine, layout.of_process);
            let others = (processes - 1) as f64 * 1e-6 * machine.network.gap_us;
            let on_wire = if way == Way::Today { others } else { exchange::tree(machine, layout.nodes) };
            meeting + machine.process.halo_ns * staged + on_wire + exchange::message(machine, 4.0 * level.rows)
        }
    }
}

/// An iteration of `cg` with such a cycle, which has one more sum, and the number of levels that are shared: as the program does it, those of many
/// entries; in other ways, as many as make the cycle the fastest.
#[must_use]
pub fn iteration_of(machine: &Machine, system: &System, layout: &Layout, way: Way) -> (Iteration, usize) {
    let levels = levels(machine, system);
    let cycle = |shared| cycle(machine, system, layout, way, shared);
    let shared = match way {
        _ if layout.gpus == 1 => levels.len(),
        Way::Today => shared_by_entries(&levels),
        Way::Blocks | Way::Direct => {
            let all = 0..levels.len();
            all.min_by(|a, b| cycle(*a).total().total_cmp(&cycle(*b).total())).unwrap_or(0)
        }
    };
    let plain = iteration(machine, system, layout, Method::Cg, way).parts;
    let again = Parts { sums: exchange::sum(machine, layout, way), meeting: plain.meeting, ..Parts::default() };
    (cycle(shared).and(plain).and(again).into(), shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_hand() {
        let machine = Machine::default();
        // as measured: 9938, 1002, 54, 3.1 and 0.2 thousand rows, 1.53 times the entries
        let levels = levels(&machine, &System::poisson3d(215f64.powi(3)));
        let rows: Vec<f64> = levels.iter().map(|level| (1e-3 * level.rows).round()).collect();
        assert_eq!(rows, [9938.0, 1004.0, 55.0, 3.0, 0.0]);
        let complexity = levels.iter().map(|level| level.entries).sum::<f64>() / levels[0].entries;
        assert!((1.48..1.56).contains(&complexity), "{complexity}");
        assert_eq!(shared_by_entries(&levels), 2);
    }

    #[test]
    fn iterations_by_hand() {
        let found = [32.0, 64.0, 128.0, 215.0, 320.0, 464.0].map(|n: f64| iterations(&System::poisson3d(n.powi(3))));
        let measured = [10.0, 11.0, 13.0, 15.0, 16.0, 17.0];
        assert!(found.iter().zip(measured).all(|(found, measured)| (found - measured).abs() <= 1.0), "{found:?}");
    }

    #[test]
    fn sharing_more_levels_is_worth_it_until_halos_take_longer() {
        let machine = Machine::default();
        let system = System::poisson3d(1e12);
        let layout = Layout::of(&machine, 10_000);
        let (best, shared) = iteration_of(&machine, &system, &layout, Way::Direct);
        assert!((3..levels(&machine, &system).len()).contains(&shared), "{shared}");
        assert!((0.01..0.05).contains(&best.seconds), "{best:?}");
        let (today, _) = iteration_of(&machine, &system, &layout, Way::Today);
        assert!(today.limited_by == "halo" && today.seconds > 20.0 * best.seconds, "{today:?}");
    }

    #[test]
    fn one_gpu_has_no_halos() {
        let machine = Machine::default();
        let (alone, _) = iteration_of(&machine, &System::poisson3d(1e6), &Layout::of(&machine, 1), Way::Today);
        let Parts { meeting, sums, halo, coarse, .. } = alone.parts;
        assert_eq!([meeting, sums, halo, coarse], [0.0; 4]);
    }
}
