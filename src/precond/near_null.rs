//! What a multigrid method has to interpolate well: vectors that the matrix makes hardly anything of.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::matrix::reorder::Permutation;
use crate::matrix::{Csr, blocks};

/// The most near-null vectors, and unknowns of a node.
pub(super) const MOST_VECTORS: usize = 16;

/// Vectors v for which ‖A v‖ is small beside ‖A‖ ‖v‖, and how many unknowns there are at each node of the mesh that a matrix comes from.
///
/// Multigrid ([`Precond::Amg`](crate::solve::Precond::Amg)) interpolates them exactly from each level to the next. Where nothing is told, it
/// takes a constant for each unknown of a node, which is what diffusion has. In elasticity all motions of a rigid body cost no
/// energy: rotations, too, for which it needs to know where nodes are.
#[derive(Debug, Clone, PartialEq)]
pub struct NearNull {
    unknowns: usize,
    /// Vectors row by row, and how many; none are a constant for each unknown.
    vectors: Option<(usize, Arc<Vec<f64>>)>,
}

impl NearNull {
    /// A constant for each of so many unknowns of a node, which are consecutive rows.
    ///
    /// # Errors
    /// [`Error::Usage`] for none, or more than 16.
    pub fn of_unknowns(unknowns: usize) -> Result<Self> {
        if !(1..=MOST_VECTORS).contains(&unknowns) {
            return Err(Error::Usage(format!("a node has from 1 to {MOST_VECTORS} unknowns, not {unknowns}")));
        }
        Ok(Self { unknowns, vectors: None })
    }

    /// A constant for each unknown of a node of a matrix: of a square one that is made of full blocks, the largest up to 6 × 6; else one
    /// constant.
    #[must_use]
    pub fn of_matrix(a: &Csr) -> Self {
        Self { unknowns: blocks::unknowns(a), vectors: None }
    }

    /// Vectors of their own, each with an element for each row; `unknowns` rows are a node.
    ///
    /// # Errors
    /// [`Error::Usage`] for other numbers of vectors than 1 to 16, and for elements that are not finite.
    pub fn of_vectors<V: AsRef<[f64]>>(unknowns: usize, vectors: &[V]) -> Result<Self> {
        let of_unknowns = Self::of_unknowns(unknowns)?;
        let width = vectors.len();
        let n = vectors.first().map_or(0, |v| v.as_ref().len());
        if !(1..=MOST_VECTORS).contains(&width) {
            return Err(Error::Usage(format!("there are from 1 to {MOST_VECTORS} near-null vectors, not {width}")));
        }
        if let Some(other) = vectors.iter().find(|v| v.as_ref().len() != n) {
            let other = other.as_ref().len();
            return Err(Error::Usage(format!("one near-null vector has {n} elements, another {other}")));
        }
        for (k, v) in vectors.iter().enumerate() {
            if let Some(row) = v.as_ref().iter().position(|v| !v.is_finite()) {
                return Err(Error::Usage(format!("element {} of near-null vector {} is not finite", row + 1, k + 1)));
            }
        }
        let rows = (0..n).flat_map(|row| vectors.iter().map(move |v| v.as_ref()[row])).collect();
        Ok(Self { vectors: Some((width, Arc::new(rows))), ..of_unknowns })
    }

    /// The motions of a rigid body, from the coordinates of nodes, a vector for each axis: along the axes, and rotations.
    ///
    /// Unknowns of a node are its displacements, as many as there are axes, and behind them in shells and frames the angles of its
    /// rotation about the axes: 2 or 3 in the plane, 3 or 6 in space.
    ///
    /// # Errors
    /// [`Error::Usage`] for other numbers of axes or unknowns, and for coordinates that are not finite.
    pub fn of_coordinates<V: AsRef<[f64]>>(unknowns: usize, coordinates: &[V]) -> Result<Self> {
        let axes = coordinates.len();
        if !matches!((axes, unknowns), (2, 2 | 3) | (3, 3 | 6)) {
            return Err(Error::Usage(format!(
                "with {axes} coordinates a node has no {unknowns} unknowns: rigid bodies have 2 or 3 in the plane, 3 or 6 in space"
            )));
        }
        let nodes = coordinates[0].as_ref().len();
        let mut of_axes = Vec::new();
        for (axis, v) in coordinates.iter().map(AsRef::as_ref).enumerate() {
            if v.len() != nodes {
                return Err(Error::Usage(format!(
                    "{nodes} nodes have coordinate 1, and {} coordinate {}",
                    v.len(),
                    axis + 1
                )));
            }
            if let Some(node) = v.iter().position(|c| !c.is_finite()) {
                return Err(Error::Usage(format!("coordinate {} of node {} is not finite", axis + 1, node + 1)));
            }
            of_axes.push(v);
        }
        // about the middle, in units of the size of the body
        let mean = |v: &[f64]| v.iter().sum::<f64>() / nodes.max(1) as f64;
        let middle: Vec<f64> = of_axes.iter().map(|v| mean(v)).collect();
        let size =
            of_axes.iter().zip(&middle).flat_map(|(v, m)| v.iter().map(move |c| (c - m).abs())).fold(0.0, f64::max);
        let unit = if size > 0.0 { size.recip() } else { 1.0 };
        let planes: &[[usize; 2]] = if axes == 2 { &[[0, 1]] } else { &[[0, 1], [1, 2], [2, 0]] };
        let width = axes + planes.len();
        let mut rows = vec![0.0; nodes * unknowns * width];
        for (node, of_node) in rows.chunks_mut((unknowns * width).max(1)).enumerate() {
            (0..axes).for_each(|axis| of_node[axis * width + axis] = 1.0);
            for (k, &[from, to]) in planes.iter().enumerate() {
                let at = |axis: usize| unit * (of_axes[axis][node] - middle[axis]);
                of_node[from * width + axes + k] = -at(to);
                of_node[to * width + axes + k] = at(from);
                // a rotation in the plane of two axes is one about the third
                let about = if axes == 2 { 0 } else { 3 - from - to };
                if unknowns > axes {
                    of_node[(axes + about) * width + axes + k] = unit;
                }
            }
        }
        Ok(Self { unknowns, vectors: Some((width, Arc::new(rows))) })
    }

    /// Rows of a node.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        self.unknowns
    }

    /// How many vectors there are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.vectors.as_ref().map_or(self.unknowns, |(width, _)| *width)
    }

    /// Whether it is a constant alone.
    pub(crate) fn is_constant(&self) -> bool {
        self.unknowns == 1 && self.vectors.is_none()
    }

    /// Element `k` of row `i`.
    pub(crate) fn at(&self, i: usize, k: usize) -> f64 {
        match &self.vectors {
            Some((width, rows)) => rows[i * width + k],
            None => f64::from(u8::from(i % self.unknowns == k)),
        }
    }

    /// Checks that it is for `n` rows.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        if !n.is_multiple_of(self.unknowns) {
            return Err(Error::Usage(format!("{n} rows are no whole number of nodes with {} unknowns", self.unknowns)));
        }
        match &self.vectors {
            Some((width, rows)) if rows.len() != n * width => {
                Err(Error::SizeMismatch { what: "near-null vectors".into(), expected: n, found: rows.len() / width })
            }
            _ => Ok(()),
        }
    }

    /// The same for rows in another order, which keeps those of nodes together.
    pub(crate) fn in_order(&self, order: &Permutation) -> Self {
        let vectors = self.vectors.as_ref().map(|(width, rows)| {
            let of_row = |&old: &u32| &rows[old as usize * width..][..*width];
            (*width, Arc::new(order.order().par_iter().flat_map_iter(|old| of_row(old).iter().copied()).collect()))
        });
        Self { vectors, ..*self }
    }
}

impl Default for NearNull {
    /// A constant.
    fn default() -> Self {
        Self { unknowns: 1, vectors: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    fn row(near_null: &NearNull, i: usize) -> Vec<f64> {
        (0..near_null.width()).map(|k| near_null.at(i, k)).collect()
    }

    #[test]
    fn constants() {
        let two = NearNull::of_unknowns(2).unwrap();
        assert_eq!((two.unknowns(), two.width(), row(&two, 3)), (2, 2, vec![0.0, 1.0]));
        assert!(NearNull::default().is_constant() && !two.is_constant());
        for wrong in [0, 17] {
            assert!(NearNull::of_unknowns(wrong).is_err());
        }
        assert!(two.check(6).is_ok());
        assert!(two.check(7).unwrap_err().to_string().contains("7 rows are no whole number of nodes with 2 unknowns"));
    }

    #[test]
    fn vectors() {
        let v = NearNull::of_vectors(1, &[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
        assert_eq!((v.width(), row(&v, 1)), (2, vec![2.0, 5.0]));
        assert!(v.check(3).is_ok() && v.check(4).is_err());
        let turned = v.in_order(&Permutation::new(vec![2, 0, 1]).unwrap());
        assert_eq!((row(&turned, 0), row(&turned, 2)), (vec![3.0, 6.0], vec![2.0, 5.0]));
        let error = |v: &[Vec<f64>]| NearNull::of_vectors(1, v).unwrap_err().to_string();
        assert!(error(&[]).contains("not 0"));
        assert!(error(&[vec![1.0], vec![1.0, 2.0]]).contains("has 1 elements, another 2"));
        assert!(error(&[vec![1.0], vec![f64::NAN]]).contains("element 1 of near-null vector 2 is not finite"));
    }

    /// Nodes at (0, 0), (4, 0) and (2, 3): about (2, 1), in units of 2.
    #[test]
    fn a_body_in_the_plane() {
        let axes = [vec![0.0, 4.0, 2.0], vec![0.0, 0.0, 3.0]];
        let body = NearNull::of_coordinates(2, &axes).unwrap();
        assert_eq!((row(&body, 0), row(&body, 1)), (vec![1.0, 0.0, 0.5], vec![0.0, 1.0, -1.0]));
        assert_eq!((row(&body, 4), row(&body, 5)), (vec![1.0, 0.0, -1.0], vec![0.0, 1.0, 0.0]));
        // a frame: the angle of the rotation that moves its nodes
        let frame = NearNull::of_coordinates(3, &axes).unwrap();
        assert_eq!((frame.width(), row(&frame, 1), row(&frame, 2)), (3, vec![0.0, 1.0, -1.0], vec![0.0, 0.0, 0.5]));
    }

    /// Away from the clamped face no force is needed.
    #[test]
    fn a_body_in_space() {
        let elements = [4, 3, 2];
        let nodes = gallery::elasticity3d_coordinates(elements).unwrap();
        let axes = [0, 1, 2].map(|axis| nodes.iter().map(|node| node[axis]).collect::<Vec<_>>());
        let body = NearNull::of_coordinates(3, &axes).unwrap();
        let a = gallery::elasticity3d_jumps(elements, 1e2, 1).unwrap();
        for k in 0..6 {
            let v: Vec<f64> = (0..a.n_rows()).map(|i| body.at(i, k)).collect();
            let forces = a.mul_vec(&v);
            assert!(v.iter().any(|v| v.abs() > 0.4));
            assert!(
                nodes.iter().zip(forces.chunks(3)).all(|(n, f)| n[0] == 1.0 || f.iter().all(|f| f.abs() < 1e-11)),
                "{k}"
            );
        }
        // a shell has angles about x, y and z
        let shell = NearNull::of_coordinates(6, &axes).unwrap();
        assert_eq!(row(&shell, 5)[..3], [0.0; 3]);
        assert!(row(&shell, 5)[3] > 0.0 && row(&shell, 3)[4] > 0.0 && row(&shell, 4)[5] > 0.0);
    }

    #[test]
    fn what_is_no_body() {
        let error = |unknowns, axes: &[Vec<f64>]| NearNull::of_coordinates(unknowns, axes).unwrap_err().to_string();
        let x = || vec![1.0, 2.0];
        assert!(error(3, &[x()]).contains("with 1 coordinates a node has no 3 unknowns"));
        assert!(error(4, &[x(), x(), x()]).contains("no 4 unknowns"));
        assert!(error(2, &[x(), vec![1.0]]).contains("2 nodes have coordinate 1, and 1 coordinate 2"));
        assert!(error(2, &[x(), vec![1.0, f64::INFINITY]]).contains("coordinate 2 of node 2"));
    }
}
