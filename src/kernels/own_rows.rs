//! Launcher of `cl/rows.cl`, products with rows that a text of the caller's forms.

use std::sync::Arc;

use super::products::{OwnProgram, ProductRows, Products};
use super::{Argument, Launch};
use crate::device::{DeviceVec, Grid};
use crate::real::Real;

const NAMES: [&str; 3] = ["own_rows_store", "own_rows_dots", "own_rows_residual"];
const TEXT: &str = include_str!("../../cl/rows.cl");

/// Work-items of a group.
const GROUP_SIZE: usize = 128;

/// An array of the caller's.
pub(crate) enum OwnArray<T> {
    Numbers(DeviceVec<T>),
    Indices(DeviceVec<u32>),
}

/// The program of a text, which may name arrays: of numbers, or of indices.
pub(crate) fn program(text: &str, arrays: &[(&str, bool)], is_scaled: bool, most: usize) -> OwnProgram {
    let parameter = |&(name, has_numbers): &(&str, bool)| {
        format!(", __global const {} *{name}", if has_numbers { "real" } else { "uint" })
    };
    let parameters: String = arrays.iter().map(parameter).collect();
    let names: String = arrays.iter().map(|(name, _)| format!(", {name}")).collect();
    let before = format!(
        "#define OPERATOR_ARRAYS {parameters}\n#define OPERATOR_PASS {names}\n#define SCALED {}\n{TEXT}",
        u8::from(is_scaled)
    );
    let begin = "static inline real operator_row(uint row, uint n, const columns of_rank OPERATOR_ARRAYS)\n{\n".into();
    OwnProgram {
        files: vec![
            ("rows", before),
            ("operator_begin", begin),
            ("operator", text.into()),
            ("rows_end", format!("}}\n#define OPERATOR_ROW\n{TEXT}")),
        ],
        options: String::new(),
        group_size: GROUP_SIZE.min(most),
        kernels: NAMES.to_vec(),
    }
}

/// Rows of a rank. Made by `crate::operator::text` alone.
pub(crate) struct OwnTextRows<T> {
    pub(crate) program: OwnProgram,
    /// All rows, the first of the rank, how many it has, and elements of others that they need.
    pub(crate) sizes: [u32; 4],
    pub(crate) halo: DeviceVec<u32>,
    pub(crate) scale: DeviceVec<T>,
    pub(crate) arrays: Vec<OwnArray<T>>,
}

impl<T: Real> ProductRows<T> for Arc<OwnTextRows<T>> {
    fn products(&self) -> Products {
        Products { names: NAMES, main: 0 }
    }

    fn own_program(&self) -> Option<&OwnProgram> {
        Some(&self.program)
    }

    fn lens(&self) -> [usize; 2] {
        let [_, _, own, others] = self.sizes.map(|size| size as usize);
        [own, own + others]
    }

    fn is_there(&self) -> bool {
        self.halo.len() >= self.sizes[3] as usize
    }

    fn items(&self) -> usize {
        self.sizes[2] as usize
    }

    fn grid(&self, launch: Launch, _columns: usize) -> Grid {
        let groups = self.items().div_ceil(self.program.group_size).clamp(1, launch.max_groups);
        Grid { groups, group_size: self.program.group_size }
    }

    fn arguments(&self, _columns: usize) -> Vec<&dyn Argument> {
        let mut all: Vec<&dyn Argument> = self.sizes.iter().map(|size| size as &dyn Argument).collect();
        all.extend([&self.halo as &dyn Argument, &self.scale]);
        all.extend(self.arrays.iter().map(|array| -> &dyn Argument {
            match array {
                OwnArray::Numbers(array) => array,
                OwnArray::Indices(array) => array,
            }
        }));
        all
    }
}
