//! The model beside what was measured: `docs/measurements.md` has the measurements, of NVIDIA H200s, `poisson3d` in double precision.

use serde::Serialize;

use super::exchange::Way;
use super::iteration::{Method, by_host, iteration};
use super::multigrid::iteration_of;
use super::{Layout, Machine, System};
use crate::operator::Format;

/// How GPUs were together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Together {
    /// One, or several of one process that meet while kernels run.
    Running,
    /// Several of one process, by the host.
    ByHost,
    /// A process for each, on one node.
    Processes,
}

/// A measurement.
struct Measurement {
    /// Points along a side.
    side: u32,
    method: &'static str,
    gpus: u64,
    together: Together,
    /// The time of an iteration, the least and the most of several.
    micros: [f64; 2],
}

/// A measurement and what the model says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The system, as `--generate` has it.
    pub system: String,
    /// The method, and its preconditioner.
    pub method: &'static str,
    /// How many GPUs, and how they were together.
    pub gpus: u64,
    /// How they were together.
    pub together: &'static str,
    /// The least and the most that were measured, µs an iteration.
    pub measured: [f64; 2],
    /// What the model says, µs.
    pub model: f64,
    /// The model over the mean of both.
    pub ratio: f64,
}

const CG: &str = "cg";
const SINGLE: &str = "cg-single-reduction";
const PIPELINED: &str = "cg-pipelined";
const AMG: &str = "cg, amg";
const VARIABLE: &str = "cg of variable";

const fn one(side: u32, method: &'static str, micros: [f64; 2]) -> Measurement {
    Measurement { side, method, gpus: 1, together: Together::Running, micros }
}

const fn several(side: u32, method: &'static str, gpus: u64, together: Together, micros: [f64; 2]) -> Measurement {
    Measurement { side, method, gpus, together, micros }
}

use Together::{ByHost, Processes, Running};

/// What was measured.
const MEASURED: &[Measurement] = &[
    one(64, CG, [11.1, 13.0]),
    one(100, CG, [20.7, 30.2]),
    one(150, CG, [66.8, 67.6]),
    one(215, CG, [181.0, 184.0]),
    one(320, CG, [573.0, 573.0]),
    one(464, CG, [1740.0, 1778.0]),
    one(215, VARIABLE, [299.0, 317.0]),
    one(64, SINGLE, [11.7, 11.7]),
    one(150, SINGLE, [89.0, 89.0]),
    one(215, SINGLE, [242.0, 242.0]),
    one(64, PIPELINED, [15.2, 15.2]),
    one(150, PIPELINED, [122.0, 122.0]),
    one(215, PIPELINED, [345.0, 345.0]),
    several(64, CG, 2, Running, [19.4, 26.4]),
    several(100, CG, 2, Running, [26.2, 30.6]),
    several(150, CG, 2, Running, [51.0, 54.4]),
    several(215, CG, 2, Running, [113.0, 118.0]),
    several(464, CG, 2, Running, [909.0, 918.0]),
    several(64, CG, 3, Running, [31.6, 31.6]),
    several(215, CG, 3, Running, [97.7, 97.7]),
    several(464, CG, 3, Running, [691.0, 691.0]),
    several(64, CG, 4, Running, [35.9, 35.9]),
    several(150, CG, 4, Running, [57.4, 57.4]),
    several(215, CG, 4, Running, [104.0, 104.0]),
    several(464, CG, 4, Running, [557.0, 557.0]),
    several(64, CG, 2, ByHost, [56.0, 78.0]),
    several(150, CG, 2, ByHost, [66.0, 93.0]),
    several(215, CG, 2, ByHost, [122.0, 132.0]),
    several(464, CG, 2, ByHost, [951.0, 969.0]),
    several(64, CG, 4, ByHost, [98.0, 132.0]),
    several(215, CG, 4, ByHost, [118.0, 156.0]),
    several(464, CG, 4, ByHost, [566.0, 579.0]),
    several(64, CG, 2, Processes, [117.0, 117.0]),
    several(150, CG, 2, Processes, [198.0, 198.0]),
    several(215, CG, 2, Processes, [292.0, 388.0]),
    several(464, CG, 2, Processes, [1589.0, 1589.0]),
    several(64, PIPELINED, 2, Processes, [126.0, 126.0]),
    several(150, PIPELINED, 2, Processes, [203.0, 203.0]),
    several(215, PIPELINED, 2, Processes, [371.0, 371.0]),
    one(64, AMG, [291.0, 291.0]),
    one(100, AMG, [418.0, 418.0]),
    one(215, AMG, [1882.0, 1882.0]),
    one(464, AMG, [17_141.0, 17_141.0]),
    // seconds of all iterations by their number
    one(320, AMG, [5625.0, 5625.0]),
    several(215, AMG, 2, ByHost, [1786.0, 1786.0]),
    several(320, AMG, 2, ByHost, [4188.0, 4188.0]),
    several(464, AMG, 2, ByHost, [9706.0, 9706.0]),
];

/// The model of H200s beside all measurements. The network is in none of them.
#[must_use]
pub fn comparisons(machine: &Machine) -> Vec<Comparison> {
    MEASURED.iter().map(|measurement| compared(machine, measurement)).collect()
}

fn compared(machine: &Machine, measurement: &Measurement) -> Comparison {
    let &Measurement { side, method, gpus, together, micros } = measurement;
    let mut system = System::poisson3d(f64::from(side).powi(3));
    let layout = match together {
        Together::Processes => Layout::of_processes(gpus),
        Together::Running | Together::ByHost => {
            Layout { gpus, on_node: gpus, nodes: 1, processes: 1, of_process: gpus }
        }
    };
    let of = |system: &System, method| iteration(machine, system, &layout, method, Way::Today).seconds;
    let seconds = match (method, together) {
        (CG, Together::ByHost) => by_host(machine, &system, &layout),
        (AMG, _) => iteration_of(machine, &system, &layout, Way::Today).0.seconds,
        (SINGLE, _) => of(&system, Method::CgSingleReduction),
        (PIPELINED, _) => of(&system, Method::CgPipelined),
        (VARIABLE, _) => {
            system.format = Format::Pattern;
            of(&system, Method::Cg)
        }
        _ => of(&system, Method::Cg),
    };
    let model = 1e6 * seconds;
    Comparison {
        system: format!("{}:{side}", if method == VARIABLE { "variable" } else { "poisson3d" }),
        method: if method == VARIABLE { CG } else { method },
        gpus,
        together: match together {
            _ if gpus == 1 => "alone",
            Together::Running => "live",
            Together::ByHost => "host-staged",
            Together::Processes => "processes",
        },
        measured: micros,
        model,
        ratio: model / (0.5 * (micros[0] + micros[1])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far the model may be from what was measured. Most of it is within a tenth.
    const FACTOR: f64 = 1.25;

    #[test]
    fn the_model_is_near_what_was_measured() {
        let all = comparisons(&Machine::default());
        let far: Vec<_> = all.iter().filter(|one| one.ratio > FACTOR || one.ratio < FACTOR.recip()).collect();
        assert!(far.is_empty(), "{far:#?}");
        let near = all.iter().filter(|one| (one.ratio - 1.0).abs() <= 0.1).count();
        assert!(4 * near >= 3 * all.len(), "{near} of {} are within a tenth", all.len());
    }

    #[test]
    fn a_slower_memory_is_noticed() {
        let mut machine = Machine::default();
        machine.gpu.bandwidth_gb_s *= 0.5;
        assert!(comparisons(&machine).iter().any(|one| one.ratio > 1.9));
    }
}
