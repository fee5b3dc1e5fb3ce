//! What a rank needs of others, by the way in which the rows of a cube are cut.

use super::{Layout, System};

/// How rows are given to ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Ranges of neighbouring rows in the order given: slabs of the cube, or parts of one of its planes. What the program does.
    Slabs,
    /// Blocks that are nearly cubes, those of a node a block themselves.
    Blocks,
}

/// Elements that the rank with the most of them receives for a product.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Halo {
    /// From ranks of its own node.
    pub inside: f64,
    /// From ranks of other nodes.
    pub outside: f64,
    /// Ranks of other nodes that send them.
    pub senders: f64,
}

impl Halo {
    /// Elements in all.
    #[must_use]
    pub fn elements(&self) -> f64 {
        self.inside + self.outside
    }

    /// Of a rank in the middle, where `rows` of a cube are cut so, with 7 or 27 points in a row.
    #[must_use]
    pub fn of(cut: Cut, system: &System, layout: &Layout) -> Self {
        match cut {
            _ if layout.gpus == 1 => Self::default(),
            Cut::Slabs => slabs(system, layout),
            Cut::Blocks => blocks(system, layout),
        }
    }
}

/// Rows before and behind a range that its own rows have entries in: of 7 points on a cube of side N, N² on each side, whatever the number of
/// ranks; of 27 points N² + N + 1. With two ranks there is one side. A rank whose node has less than N² rows has both sides outside;
/// else, as the first of its node, one.
fn slabs(system: &System, layout: &Layout) -> Halo {
    let side = system.side();
    let reach = if system.stencil == 27 { side * side + side + 1.0 } else { side * side };
    let own = system.rows / layout.gpus as f64;
    let sides = if layout.gpus == 2 { 1.0 } else { 2.0 };
    let all = (sides * reach).min(system.rows - own);
    let of_side = all / sides;
    let outside = if layout.nodes == 1 {
        0.0
    } else if own * (layout.on_node as f64) < reach {
        all
    } else {
        of_side
    };
    let senders = if outside > 0.0 { (outside / own).ceil().min(layout.gpus as f64 - 1.0) } else { 0.0 };
    Halo { inside: all - outside, outside, senders }
}

/// Faces of a block, and with 27 points edges and corners; a direction that is cut once has one neighbour, one that is not cut none.
/// Ranks of a node are a block of blocks, and the rank at its corner counts.
fn blocks(system: &System, layout: &Layout) -> Halo {
    let cuts = factors(layout.gpus);
    let of_node = if layout.nodes == 1 { cuts } else { factors(layout.on_node) };
    let sides = cuts.map(|cut| system.side() / cut as f64);
    // neighbours in each direction: of all ranks, and of those of the node, whose corner has one at most
    let counts = cuts.map(|cut| (cut - 1).min(2) as f64);
    let inside = std::array::from_fn(|k| {
        if layout.nodes == 1 { counts[k] } else { counts[k].min((of_node[k] - 1) as f64).min(1.0) }
    });
    let around = |counts: [f64; 3], sides: [f64; 3]| match system.stencil {
        27 => (0..3).map(|k| sides[k] + counts[k]).product::<f64>() - sides.iter().product::<f64>(),
        _ => (0..3).map(|k| counts[k] * sides[(k + 1) % 3] * sides[(k + 2) % 3]).sum(),
    };
    let most = system.rows - system.rows / layout.gpus as f64;
    let [all, inside_all] = [counts, inside].map(|counts| around(counts, sides).min(most));
    let senders = if layout.nodes == 1 { 0.0 } else { around(counts, [1.0; 3]) - around(inside, [1.0; 3]) };
    Halo { inside: inside_all, outside: all - inside_all, senders }
}

/// Three factors of a number, as near to each other as can be, the least first.
#[must_use]
pub fn factors(count: u64) -> [u64; 3] {
    let mut best = [1, 1, count];
    let surface = |[a, b, c]: [u64; 3]| a * b + b * c + c * a;
    for a in (1..).take_while(|a| a * a * a <= count).filter(|a| count.is_multiple_of(*a)) {
        let rest = count / a;
        for b in (a..).take_while(|b| b * b <= rest).filter(|b| rest.is_multiple_of(*b)) {
            let found = [a, b, rest / b];
            if surface(found) < surface(best) {
                best = found;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::Machine;

    fn halo(cut: Cut, side: f64, gpus: u64) -> Halo {
        let system = System::poisson3d(side * side * side);
        Halo::of(cut, &system, &Layout::of(&Machine::default(), gpus))
    }

    #[test]
    fn factors_by_hand() {
        let found = [1, 2, 7, 8, 12, 64, 1000, 10_000].map(factors);
        let expected = [[1, 1, 1], [1, 1, 2], [1, 1, 7], [2, 2, 2], [2, 2, 3], [4, 4, 4], [10, 10, 10], [20, 20, 25]];
        assert_eq!(found, expected);
    }

    #[test]
    fn slabs_by_hand() {
        assert_eq!(halo(Cut::Slabs, 100.0, 1), Halo::default());
        let near = |found: Halo, inside: f64, outside: f64, senders: f64| {
            let is_near = (found.inside - inside).abs() < 1e-3 && (found.outside - outside).abs() < 1e-3;
            assert!(is_near && found.senders == senders, "{found:?}, not {inside}, {outside}, {senders}");
        };
        near(halo(Cut::Slabs, 100.0, 2), 1e4, 0.0, 0.0);
        near(halo(Cut::Slabs, 100.0, 4), 2e4, 0.0, 0.0);
        near(halo(Cut::Slabs, 100.0, 16), 1e4, 1e4, 1.0);
        // a quarter of a plane for each rank, and two planes on a node: four ranks of another one send on one side
        near(halo(Cut::Slabs, 100.0, 400), 1e4, 1e4, 4.0);
        // a node has half of a plane
        near(halo(Cut::Slabs, 100.0, 1600), 0.0, 2e4, 32.0);
    }

    #[test]
    fn blocks_by_hand() {
        let near = |found: Halo, inside: f64, outside: f64, senders: f64| {
            let is_near = (found.inside - inside).abs() < 1e-3 && (found.outside - outside).abs() < 1e-3;
            assert!(is_near && found.senders == senders, "{found:?}, not {inside}, {outside}, {senders}");
        };
        near(halo(Cut::Blocks, 100.0, 8), 3.0 * 2500.0, 0.0, 0.0);
        // 50 x 50 x 25, the last direction cut into four: one face of 2500 on either side, two of 1250
        near(halo(Cut::Blocks, 100.0, 16), 2500.0 + 2.0 * 1250.0, 2500.0, 1.0);
        // blocks of 10³ with six neighbours, of which three are on the node
        near(halo(Cut::Blocks, 100.0, 1000), 300.0, 300.0, 3.0);
        let mut system = System::poisson3d(1e6);
        system.stencil = 27;
        let found = Halo::of(Cut::Blocks, &system, &Layout::of(&Machine::default(), 1000));
        // 12³ − 10³ around a block, 7 of its 26 neighbours on the node
        assert!((found.elements() - 728.0).abs() < 1e-6, "{found:?}");
        assert_eq!(found.senders, 19.0);
    }

    #[test]
    fn blocks_need_less_than_slabs_from_eight_on() {
        for gpus in [8, 64, 1024, 10_000] {
            let [slabs, blocks] = [Cut::Slabs, Cut::Blocks].map(|cut| halo(cut, 2000.0, gpus).elements());
            assert!(blocks < slabs, "{gpus}: {blocks} and {slabs}");
        }
    }
}
