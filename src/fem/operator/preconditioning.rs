//! Matrices that preconditioners of an operator by elements are made from.

use rayon::prelude::*;

use super::ElementOperator;
use crate::error::Result;
use crate::fem::assembly::{assembled, in_order};
use crate::matrix::Csr;
use crate::operator::distributed::AuxiliarySpace;

/// Rows of a block where nodes have one unknown.
const SCALAR_BLOCK: usize = 4;

/// What is known where it counts for nothing what.
const ZERO: Option<f64> = Some(0.0);

impl ElementOperator<'_> {
    /// The entries of A in blocks of the unknowns of a node, or of four neighbouring nodes that have one each.
    pub(super) fn block_diagonal(&self) -> Result<Csr> {
        let (b, n) = (self.unknowns, self.order());
        let size = if b == 1 { SCALAR_BLOCK } else { b };
        // a block after the other, with room for all entries of the last one
        let mut blocks = vec![0.0; n.div_ceil(size) * size * size];
        let place = |row: usize, column: usize| {
            (row / size == column / size).then_some(row / size * size * size + row % size * size + column % size)
        };
        let (cell, physics) = (self.mesh.cell(), self.physics());
        let (points, width) = (cell.points(), b * cell.nodes());
        let of_element = |element: usize| {
            let mut matrix = vec![0.0; width * width];
            physics.matrix(self.mesh, element, &points, &mut matrix);
            matrix
        };
        in_order(self.mesh.len(), of_element, |element, matrix| {
            let rows = self.mesh.element(element).iter().flat_map(|&node| (0..b).map(move |a| b * node as usize + a));
            for (row, of_row) in rows.clone().zip(matrix.chunks_exact(width)) {
                for (column, v) in rows.clone().zip(of_row) {
                    place(row, column).into_iter().for_each(|k| blocks[k] += v);
                }
            }
        });
        for (row, entries) in self.springs.iter() {
            for &(column, v) in entries {
                place(*row as usize, column as usize).into_iter().for_each(|k| blocks[k] += v);
            }
        }
        let columns = |row: usize| row / size * size..n.min(row / size * size + size);
        let row_ptr = (0..=n).scan(0, |entries, row| {
            let before = *entries;
            *entries += if row < n { columns(row).len() } else { 0 };
            Some(before)
        });
        let value = |row: usize, column: usize| match (row == column, self.is_known(row) || self.is_known(column)) {
            (is_diagonal, true) => f64::from(u8::from(is_diagonal)),
            (_, false) => blocks[row / size * size * size + row % size * size + column % size],
        };
        let col_idx = (0..n).flat_map(|row| columns(row).map(|column| column as u32)).collect();
        let values = (0..n).flat_map(|row| columns(row).map(move |column| (row, column)));
        let values = values.map(|(row, column)| value(row, column)).collect();
        Csr::new(n, n, row_ptr.collect(), col_idx, values)
    }

    /// The assembled matrix of first order: A itself, or, of second order, that of the corners, from which the middles of edges are interpolated
    /// linearly. Rows of the middles are those of the identity.
    pub(super) fn first_order(&self) -> Result<AuxiliarySpace> {
        let (b, n) = (self.unknowns, self.order());
        let mut known: Vec<Option<f64>> = (0..n).map(|row| ZERO.filter(|_| self.is_known(row))).collect();
        let ends = self.ends();
        let interpolation = ends.as_deref().map(|ends| self.interpolation(ends)).transpose()?;
        let mut springs = vec![Vec::new(); n];
        match &interpolation {
            None => self.springs.iter().for_each(|(row, entries)| springs[*row as usize].clone_from(entries)),
            // Pᵀ S P
            Some(p) => {
                for (row, entries) in self.springs.iter() {
                    let (coarse, weights) = p.row(*row as usize);
                    for (&to, weight) in coarse.iter().zip(weights) {
                        for &(column, v) in entries {
                            let (columns, others) = p.row(column as usize);
                            springs[to as usize]
                                .extend(columns.iter().zip(others).map(|(&j, other)| (j, weight * v * other)));
                        }
                    }
                }
            }
        }
        for (node, [a, other]) in ends.iter().flatten().enumerate() {
            if a != other {
                known[b * node..b * node + b].fill(ZERO);
            }
        }
        let linear;
        let mesh = if ends.is_some() {
            linear = self.mesh.first_order();
            &linear
        } else {
            self.mesh
        };
        let matrix = assembled(mesh, &self.physics(), &known, &springs, vec![0.0; n])?.matrix;
        Ok(AuxiliarySpace { matrix, interpolation })
    }

    /// The ends of the edge that a node is in the middle of, or itself twice if it is a corner; nothing for elements of first order.
    fn ends(&self) -> Option<Vec<[u32; 2]>> {
        let cell = self.mesh.cell();
        if cell.order() == 1 {
            return None;
        }
        let mut ends: Vec<[u32; 2]> = (0..self.mesh.points().len() as u32).map(|node| [node, node]).collect();
        for element in 0..self.mesh.len() {
            let nodes = self.mesh.element(element);
            for (&[a, other], &middle) in cell.edges().iter().zip(&nodes[cell.corners()..]) {
                ends[middle as usize] = [nodes[a], nodes[other]];
            }
        }
        Some(ends)
    }

    /// P: corners are what they are, and the middle of an edge half of both ends. Rows and columns of known unknowns are empty, and columns of middles.
    fn interpolation(&self, ends: &[[u32; 2]]) -> Result<Csr> {
        let (b, n) = (self.unknowns, self.order());
        // the columns of a row, of which those count that are free
        let columns = |row: usize| {
            let [one, other] = ends[row / b].map(|node| b * node as usize + row % b);
            let all = [one.min(other), one.max(other)];
            let is_there =
                move |k: &usize| !self.is_known(row) && !self.is_known(all[*k]) && (*k == 0 || all[0] != all[1]);
            (0..2).filter(is_there).map(move |k| all[k] as u32)
        };
        let mut row_ptr = vec![0];
        row_ptr.par_extend((0..n).into_par_iter().map(|row| columns(row).count()));
        (0..n).for_each(|row| row_ptr[row + 1] += row_ptr[row]);
        let col_idx: Vec<u32> = (0..n).into_par_iter().flat_map_iter(columns).collect();
        let is_corner = |row: usize| ends[row / b][0] == ends[row / b][1];
        let weights = |row: usize| columns(row).map(move |_| if is_corner(row) { 1.0 } else { 0.5 });
        let values = (0..n).into_par_iter().flat_map_iter(weights).collect();
        Csr::new(n, n, row_ptr, col_idx, values)
    }
}
