//! How long sums and halos take. All times are in seconds.

use super::halo::{Cut, Halo};
use super::{Layout, Machine};
use crate::named::named;

named! {
    /// In which way ranks exchange, where there are several processes. GPUs of one process alone meet while their kernels run, whatever the way.
    Way, "way":
    /// As the program does it.
    Today = "today", "rows in slabs, sums by messages of each process to all, through the host";
    /// Other rows, and another sum; the rest as today.
    Blocks = "blocks", "rows in blocks, sums by a tree, through the host";
    /// Not built.
    Direct = "direct", "rows in blocks, sums by a tree, while kernels run, from GPU to network; not built";
}

/// The numbers that each rank tells in an iteration of `cg`: three sums, and whether to stop.
const WORDS: f64 = 4.0;

const BYTES: f64 = 8.0;
const MICRO: f64 = 1e-6;
const NANO: f64 = 1e-9;

impl Way {
    /// How it gives rows to ranks.
    #[must_use]
    pub fn cut(self) -> Cut {
        if self == Self::Today { Cut::Slabs } else { Cut::Blocks }
    }
}

/// α + bytes / bandwidth: one message over the network (Hockney's model).
#[must_use]
pub fn message(machine: &Machine, bytes: f64) -> f64 {
    let network = &machine.network;
    MICRO * network.latency_us + bytes / (1e9 * network.bandwidth_gb_s)
}

/// ⌈log₂ P⌉ α: an all-reduce of a few numbers by recursive doubling among P nodes.
#[must_use]
pub fn tree(machine: &Machine, nodes: u64) -> f64 {
    let rounds = nodes.max(1).next_power_of_two().trailing_zeros();
    f64::from(rounds) * message(machine, BYTES * WORDS)
}

/// α + (P − 1) (g + bytes / bandwidth) + what it takes to add: each of P processes tells the numbers of its ranks to each other one, one message
/// after the other with the gap g of LogP. So do messages, and so does Open MPI's
/// `MPI_Iallgather` unless it is told otherwise (`coll_libnbc_iallgather_algorithm`).
#[must_use]
pub fn all_to_all(machine: &Machine, layout: &Layout) -> f64 {
    if layout.processes == 1 {
        return 0.0;
    }
    let others = (layout.processes - 1) as f64;
    let bytes = BYTES * WORDS * layout.of_process as f64;
    let each = MICRO * machine.network.gap_us + bytes / (1e9 * machine.network.bandwidth_gb_s);
    let added = NANO * machine.process.add_ns * WORDS * layout.gpus as f64;
    MICRO * machine.network.latency_us + others * each + added
}

/// What a sum takes beyond the node or the process.
#[must_use]
pub fn sum(machine: &Machine, layout: &Layout, way: Way) -> f64 {
    match way {
        Way::Today => all_to_all(machine, layout),
        // on a node, the sum is in what processes take to meet
        Way::Blocks | Way::Direct => tree(machine, layout.nodes),
    }
}

/// What GPUs of a process take to meet while their kernels run: m₂ + (G − 2) m⁺.
#[must_use]
pub fn meeting(machine: &Machine, gpus: u64) -> f64 {
    match gpus {
        0 | 1 => 0.0,
        more => MICRO * (machine.node.meet_us + (more - 2) as f64 * machine.node.meet_more_us),
    }
}

/// What GPUs of a process take to meet by the host: m₂ + (G − 2) m⁺.
#[must_use]
pub fn meeting_by_host(machine: &Machine, gpus: u64) -> f64 {
    match gpus {
        0 | 1 => 0.0,
        more => MICRO * (machine.node.host_us + (more - 2) as f64 * machine.node.host_more_us),
    }
}

/// What an iteration of several processes with so many GPUs each takes for calls, transfers and waiting: s₁ + (G − 1) m⁺, as the driver does one
/// call at a time for all GPUs of a process.
#[must_use]
pub fn meeting_of_processes(machine: &Machine, of_process: u64) -> f64 {
    MICRO * (machine.process.host_us + (of_process.max(1) - 1) as f64 * machine.node.host_more_us)
}

/// A halo over the network alone: α + (k − 1) g + bytes / bandwidth from k senders; where a node has more GPUs than interfaces, they share these.
#[must_use]
pub fn wire(machine: &Machine, layout: &Layout, halo: &Halo, element_bytes: f64) -> f64 {
    if layout.nodes == 1 || halo.outside == 0.0 {
        return 0.0;
    }
    let sharing = (layout.on_node as f64 / machine.network.interfaces as f64).max(1.0);
    let gaps = (halo.senders - 1.0).max(0.0) * MICRO * machine.network.gap_us;
    message(machine, element_bytes * halo.outside * sharing) + gaps
}

/// A halo through the host, of several processes: what is of the own process by pinned memory, the rest by messages, and over the network.
/// What `halo` calls inside is of the own node.
#[must_use]
pub fn through_host(machine: &Machine, layout: &Layout, halo: &Halo, element_bytes: f64) -> f64 {
    let part = element_bytes / BYTES;
    let is_one = layout.of_process == layout.on_node;
    let [own, others] = if is_one { [halo.inside, halo.outside] } else { [0.0, halo.elements()] };
    let staged = machine.node.host_halo_ns * own + machine.process.halo_ns * others;
    NANO * part * staged + wire(machine, layout, halo, element_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(gpus: u64) -> Layout {
        Layout::of(&Machine::default(), gpus)
    }

    fn near(found: f64, micros: f64) {
        assert!((1e6 * found - micros).abs() < 1e-6 * micros.abs().max(1.0), "{found}, not {micros} µs");
    }

    #[test]
    fn sums_by_hand() {
        let machine = Machine::default();
        near(tree(&machine, 1), 0.0);
        // a thousandth of a microsecond is 50 bytes
        near(tree(&machine, 128), 7.0 * (1.0 + 32.0 / 50e3));
        near(tree(&machine, 129), 8.0 * (1.0 + 32.0 / 50e3));
        near(all_to_all(&machine, &layout(8)), 0.0);
        near(all_to_all(&machine, &layout(80)), 1.0 + 9.0 * (0.3 + 256.0 / 50e3) + 80.0 * 4e-3);
        assert_eq!(sum(&machine, &layout(80), Way::Direct), tree(&machine, 10));
    }

    /// 6.01 µs for 8 bytes among 128 hosts (Graham et al. 2016, doi 10.1109/COMHPC.2016.006).
    #[test]
    fn a_tree_takes_about_what_was_published() {
        let ratio = 1e6 * tree(&Machine::default(), 128) / 6.01;
        assert!((1.0..1.3).contains(&ratio), "{ratio}");
    }

    #[test]
    fn meetings_by_hand() {
        let machine = Machine::default();
        near(meeting(&machine, 1), 0.0);
        near(meeting(&machine, 8), 50.0);
        near(meeting_by_host(&machine, 4), 115.0);
        near(meeting_of_processes(&machine, 1), 100.0);
        near(meeting_of_processes(&machine, 8), 275.0);
    }

    #[test]
    fn halos_by_hand() {
        let mut machine = Machine::default();
        let halo = Halo { inside: 1000.0, outside: 2000.0, senders: 3.0 };
        near(wire(&machine, &layout(8), &halo, 8.0), 0.0);
        near(wire(&machine, &layout(16), &halo, 8.0), 1.0 + 0.6 + 16_000.0 / 50e3);
        machine.network.interfaces = 4;
        near(wire(&machine, &layout(16), &halo, 4.0), 1.0 + 0.6 + 16_000.0 / 50e3);
        near(through_host(&machine, &layout(16), &halo, 8.0), 0.3 + 5.8 + 1.6 + 32_000.0 / 50e3);
        // each process has a GPU, so that all others are other processes
        near(through_host(&machine, &Layout::of_processes(2), &halo, 8.0), 2.9 * 3.0);
    }
}
