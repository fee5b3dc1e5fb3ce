//! Launchers of `cl/elements.cl`, products with a matrix of finite elements that is not assembled.

use std::fmt::Write;
use std::sync::Arc;

use super::products::{OwnProgram, ProductRows, Products};
use super::{Argument, Launch};
use crate::device::{DeviceVec, Grid};
use crate::real::Real;

/// Bits of a node's number; those above tell which of its unknowns are known.
pub(crate) const NODE_BITS: u32 = 29;

/// Numbers in the head of a block.
pub(crate) const HEAD: usize = 6;

/// The names of a step's kernels.
const BLOCKS: [&str; 3] = ["blocks_store", "blocks_dots", "blocks_residual"];
const SHARED: [&str; 3] = ["shared_store", "shared_dots", "shared_residual"];
const ZERO: [&str; 3] = ["zero_store", "zero_dots", "zero_residual"];
const COLOUR: [&str; 3] = ["colour_store", "colour_dots", "colour_residual"];
const SUMMED: [&str; 3] = ["summed_store", "summed_dots", "summed_residual"];

/// What the kernels are compiled for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Elements {
    pub(crate) dimensions: usize,
    /// Nodes of an element, and unknowns of a node.
    pub(crate) nodes: usize,
    pub(crate) unknowns: usize,
    /// The most elements and nodes of a block.
    pub(crate) block: usize,
    pub(crate) block_nodes: usize,
    /// Of each place at which integrals are formed, the derivatives of the shape function of each node by direction,
    pub(crate) slopes: Vec<Vec<[f64; 3]>>,
    /// and the part of the volume, times that of the element whose corners are the origin and the unit vectors.
    pub(crate) weights: Vec<f64>,
    pub(crate) is_curved: bool,
    pub(crate) is_elastic: bool,
    pub(crate) is_stored: bool,
    pub(crate) is_scaled: bool,
    pub(crate) has_springs: bool,
    /// Elements of coordinates: `float` or `double`, and whether they are sums of two.
    pub(crate) place: &'static str,
    pub(crate) has_low_part: bool,
    /// Whether loops over an element are unrolled.
    pub(crate) is_unrolled: bool,
    /// Whether nodes are summed by blocks, or else by colours.
    pub(crate) is_by_blocks: bool,
}

impl Elements {
    /// The program that has the steps of a product.
    pub(crate) fn program(&self) -> OwnProgram {
        let list = |values: &[f64]| values.iter().map(|v| format!("{v:e}")).collect::<Vec<_>>().join(", ");
        let node = |slope: &[f64; 3]| format!("{{{}}}", list(&slope[..self.dimensions]));
        let point = |slopes: &Vec<[f64; 3]>| format!("{{{}}}", slopes.iter().map(node).collect::<Vec<_>>().join(", "));
        let slopes = self.slopes.iter().map(point).collect::<Vec<_>>().join(", \\\n    ");
        let mut tables = format!("#define SLOPES {{{slopes}}}\n#define WEIGHTS {{{}}}\n", list(&self.weights));
        let is = u8::from;
        for (name, value) in [
            ("DIM", self.dimensions),
            ("NODES", self.nodes),
            ("UNKNOWNS", self.unknowns),
            ("LOCAL_NODES", self.block_nodes),
            ("POINTS", self.weights.len()),
            ("CURVED", is(self.is_curved).into()),
            ("ELASTIC", is(self.is_elastic).into()),
            ("STORED", is(self.is_stored).into()),
            ("SCALED", is(self.is_scaled).into()),
            ("SPRINGS", is(self.has_springs).into()),
            ("COORDINATES", 1 + usize::from(is(self.has_low_part))),
            ("UNROLLED", is(self.is_unrolled).into()),
            ("BY_BLOCKS", is(self.is_by_blocks).into()),
        ] {
            let _ = writeln!(tables, "#define {name} {value}");
        }
        OwnProgram {
            files: vec![("tables", tables), ("elements", include_str!("../../cl/elements.cl").into())],
            options: format!("-D PLACE={}", self.place),
            group_size: self.block,
            kernels: if self.is_by_blocks { [BLOCKS, SHARED].concat() } else { [ZERO, COLOUR, SUMMED].concat() },
        }
    }
}

/// Coordinates, in single or double precision.
pub(crate) enum Places {
    Single(DeviceVec<f32>),
    Double(DeviceVec<f64>),
}

impl Places {
    fn argument(&self) -> &dyn Argument {
        match self {
            Self::Single(places) => places,
            Self::Double(places) => places,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(places) => places.len(),
            Self::Double(places) => places.len(),
        }
    }
}

/// What all steps share: arrays by nodes of the rank, regions and unknowns.
pub(crate) struct Fixed<T> {
    pub(crate) program: OwnProgram,
    /// Nodes that the rank owns, and those of its halo behind them; unknowns of each.
    pub(crate) nodes: [usize; 2],
    pub(crate) unknowns: usize,
    /// Four numbers a node.
    pub(crate) places: Places,
    pub(crate) places_low: Places,
    pub(crate) materials: DeviceVec<T>,
    /// An element for each unknown, if the system is scaled.
    pub(crate) scale: DeviceVec<T>,
    /// Matrices of elements, if they are stored.
    pub(crate) matrices: DeviceVec<T>,
    pub(crate) springs: Springs<T>,
}

/// Entries of rows beside those of elements, by unknowns of nodes in a list.
pub(crate) struct Springs<T> {
    pub(crate) ends: DeviceVec<u32>,
    pub(crate) columns: DeviceVec<u32>,
    pub(crate) values: DeviceVec<T>,
}

impl<T: Real> Fixed<T> {
    fn lens(&self) -> [usize; 2] {
        let [own, halo] = self.nodes;
        [own * self.unknowns, (own + halo) * self.unknowns]
    }

    fn is_there(&self) -> bool {
        let nodes = 4 * (self.nodes[0] + self.nodes[1]);
        self.places.len() >= nodes && self.nodes[0] + self.nodes[1] < 1 << NODE_BITS
    }

    fn of_elements(&self) -> [&dyn Argument; 5] {
        [&self.matrices, self.places.argument(), self.places_low.argument(), &self.materials, &self.scale]
    }

    fn of_springs(&self) -> [&dyn Argument; 4] {
        [&self.springs.ends, &self.springs.columns, &self.springs.values, &self.scale]
    }
}

/// Elements in blocks: see `cl/elements.cl`. Made by `crate::fem` alone, which vouches for the lists.
pub(crate) struct Blocks<T> {
    pub(crate) heads: DeviceVec<u32>,
    pub(crate) nodes: DeviceVec<u32>,
    pub(crate) ends: DeviceVec<u16>,
    pub(crate) lists: DeviceVec<u16>,
    pub(crate) corners: DeviceVec<u16>,
    pub(crate) regions: DeviceVec<u16>,
    pub(crate) slots: DeviceVec<u32>,
    pub(crate) sums: DeviceVec<T>,
    /// Nodes that several blocks have, or that have springs, and where the sums of each end.
    pub(crate) shared: DeviceVec<u32>,
    pub(crate) sum_ends: DeviceVec<u32>,
}

/// Some of the blocks.
pub(crate) struct BlockRows<T> {
    pub(crate) fixed: Arc<Fixed<T>>,
    pub(crate) blocks: Arc<Blocks<T>>,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// The grid of a launch for so many groups, or at the most so many of those that are usual.
fn grid(launch: Launch, program: &OwnProgram, groups: usize, most: f64) -> Grid {
    let most = (most * launch.max_groups as f64) as usize;
    Grid { groups: groups.clamp(1, most.max(1)), group_size: program.group_size }
}

/// Blocks wait for memory several times, and so gain by more groups. Partial sums have room for two launches of them and one for nodes of
/// several blocks, of the usual three.
const BLOCK_GROUPS: f64 = 1.25;
const SHARED_GROUPS: f64 = 0.5;

impl<T: Real> ProductRows<T> for BlockRows<T> {
    fn products(&self) -> Products {
        Products { names: BLOCKS, main: 0 }
    }

    fn own_program(&self) -> Option<&OwnProgram> {
        Some(&self.fixed.program)
    }

    fn lens(&self) -> [usize; 2] {
        self.fixed.lens()
    }

    fn is_there(&self) -> bool {
        self.fixed.is_there() && self.first <= self.last && self.last as usize * HEAD <= self.blocks.heads.len()
    }

    fn items(&self) -> usize {
        (self.last - self.first) as usize
    }

    fn grid(&self, launch: Launch, _columns: usize) -> Grid {
        grid(launch, &self.fixed.program, self.items(), BLOCK_GROUPS)
    }

    fn arguments(&self, _columns: usize) -> Vec<&dyn Argument> {
        let Blocks { heads, nodes, ends, lists, corners, regions, slots, sums, .. } = &*self.blocks;
        let mut all: Vec<&dyn Argument> = vec![&self.first, &self.last, heads, nodes, ends, lists, corners, regions];
        all.extend([slots as &dyn Argument, sums]);
        all.extend(self.fixed.of_elements());
        all
    }
}

/// The nodes that several blocks have, behind all blocks.
pub(crate) struct SharedRows<T> {
    pub(crate) fixed: Arc<Fixed<T>>,
    pub(crate) blocks: Arc<Blocks<T>>,
    pub(crate) count: u32,
}

impl<T: Real> ProductRows<T> for SharedRows<T> {
    fn products(&self) -> Products {
        Products { names: SHARED, main: 0 }
    }

    fn own_program(&self) -> Option<&OwnProgram> {
        Some(&self.fixed.program)
    }

    fn lens(&self) -> [usize; 2] {
        self.fixed.lens()
    }

    fn is_there(&self) -> bool {
        let Blocks { shared, sum_ends, .. } = &*self.blocks;
        self.fixed.is_there() && self.count as usize <= shared.len().min(sum_ends.len())
    }

    fn items(&self) -> usize {
        self.count as usize
    }

    fn grid(&self, launch: Launch, _columns: usize) -> Grid {
        grid(launch, &self.fixed.program, self.items().div_ceil(self.fixed.program.group_size), SHARED_GROUPS)
    }

    fn arguments(&self, _columns: usize) -> Vec<&dyn Argument> {
        let Blocks { shared, sum_ends, sums, .. } = &*self.blocks;
        let mut all: Vec<&dyn Argument> = vec![&self.count, shared, sum_ends, sums];
        all.extend(self.fixed.of_springs());
        all
    }
}

/// Elements in the order of colours. Made by `crate::fem` alone, which vouches for the lists.
pub(crate) struct Colours {
    /// Elements,
    pub(crate) all: u32,
    pub(crate) corners: DeviceVec<u32>,
    pub(crate) regions: DeviceVec<u16>,
    /// and the rank's own nodes.
    pub(crate) nodes: DeviceVec<u32>,
    pub(crate) spring_places: DeviceVec<u32>,
}

/// A step of a product by colours.
pub(crate) enum ColourStep {
    /// y = 0.
    Zero,
    /// The elements `first` to `last`, of one colour.
    Add { first: u32, last: u32 },
    /// What is in y becomes the product.
    Summed,
}

/// The rows in one step.
pub(crate) struct ColourRows<T> {
    pub(crate) fixed: Arc<Fixed<T>>,
    pub(crate) colours: Arc<Colours>,
    pub(crate) step: ColourStep,
    /// Nodes and unknowns that the rank owns.
    pub(crate) own: [u32; 2],
}

impl<T: Real> ProductRows<T> for ColourRows<T> {
    fn products(&self) -> Products {
        let names = match self.step {
            ColourStep::Zero => ZERO,
            ColourStep::Add { .. } => COLOUR,
            ColourStep::Summed => SUMMED,
        };
        Products { names, main: 0 }
    }

    fn own_program(&self) -> Option<&OwnProgram> {
        Some(&self.fixed.program)
    }

    fn leaves_sums(&self) -> bool {
        matches!(self.step, ColourStep::Summed)
    }

    fn lens(&self) -> [usize; 2] {
        self.fixed.lens()
    }

    fn is_there(&self) -> bool {
        let Colours { all, corners, nodes, .. } = &*self.colours;
        let has_elements = match self.step {
            ColourStep::Add { first, last } => first <= last && last <= *all,
            _ => self.own[0] as usize <= nodes.len(),
        };
        self.fixed.is_there() && has_elements && corners.len().is_multiple_of((*all as usize).max(1))
    }

    fn items(&self) -> usize {
        match self.step {
            ColourStep::Zero => self.own[1] as usize,
            ColourStep::Add { first, last } => (last - first) as usize,
            ColourStep::Summed => self.own[0] as usize,
        }
    }

    fn grid(&self, launch: Launch, _columns: usize) -> Grid {
        grid(launch, &self.fixed.program, self.items().div_ceil(self.fixed.program.group_size), 1.0)
    }

    fn arguments(&self, _columns: usize) -> Vec<&dyn Argument> {
        let Colours { all, corners, regions, nodes, spring_places } = &*self.colours;
        match &self.step {
            ColourStep::Zero => vec![&self.own[1]],
            ColourStep::Add { first, last } => {
                let mut args: Vec<&dyn Argument> = vec![first, last, all, corners, regions];
                args.extend(self.fixed.of_elements());
                args.push(&self.own[1]);
                args
            }
            ColourStep::Summed => {
                let mut args: Vec<&dyn Argument> = vec![&self.own[0], nodes, spring_places];
                args.extend(self.fixed.of_springs());
                args
            }
        }
    }
}
