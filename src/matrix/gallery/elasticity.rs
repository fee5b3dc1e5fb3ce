//! Linear elasticity with trilinear bricks.

use rayon::prelude::*;

use super::grid::Grid;
use super::materials::Materials;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::assemble;

/// Young's modulus.
const YOUNG: f64 = 1.0;
/// Poisson's ratio.
const POISSON: f64 = 0.3;
/// Lamé's first parameter.
pub(super) const LAMBDA: f64 = YOUNG * POISSON / ((1.0 + POISSON) * (1.0 - 2.0 * POISSON));
/// The shear modulus, Lamé's second parameter.
pub(super) const MU: f64 = YOUNG / (2.0 * (1.0 + POISSON));

/// Linear elasticity of a block clamped on one face: −∇·σ(u) = f, u = 0 on x = 0, no traction elsewhere.
///
/// The block has ex × ey × ez cubes with side 1 and trilinear displacements (Q1), three unknowns a node in the order
/// x, y, z, nodes in that of [`elasticity3d_coordinates`]; isotropic with E = 1, ν = 0.3. Entry between component c of node i and component d of node j:
///
/// ```text
/// λ ∫ ∂c φi ∂d φj + μ ∫ ∂d φi ∂c φj + δcd μ ∫ ∇φi · ∇φj,   λ = E ν / (1+ν)(1−2ν),   μ = E / 2(1+ν)
/// ```
///
/// Each integral is a product of three one-dimensional ones, which are known in closed form: the whole matrix is exact
/// up to rounding and symmetric to the bit. The unknowns of the clamped face are eliminated, so that
/// n = 3 ex (ey+1)(ez+1) and nnz = 9 (3ex − 2)(3ey + 1)(3ez + 1). Rows are full: 81 entries inside, those included that
/// are 0 by the symmetry of the grid. Symmetric positive definite; the condition number grows as m² for cubes of m
/// elements a side, and as the fourth power of the length of thin beams.
///
/// T. J. R. Hughes, *The Finite Element Method*, Prentice-Hall 1987, sections 2.7 and 3.5.
///
/// # Errors
/// [`Error::Usage`] for a block without elements or with too many.
pub fn elasticity3d(elements: [usize; 3]) -> Result<Csr> {
    stiffness(elements, true, uniform(elements))
}

/// Linear elasticity of a block of two materials: as [`elasticity3d`], with another E in random blocks of elements.
///
/// The elements are cut into 8 × 8 × 8 blocks (or single ones where a side has fewer than 8); the seed makes E either 1 or `contrast` in
/// each, with even odds, as in [`jumps`](super::jumps). n, nnz and the order of unknowns are those of [`elasticity3d`]. Symmetric to
/// the bit and positive definite; the condition number grows as that of [`elasticity3d`], times max(contrast, 1/contrast).
///
/// # Errors
/// [`Error::Usage`] for a block without elements or with too many.
pub fn elasticity3d_jumps(elements: [usize; 3], contrast: f64, seed: u64) -> Result<Csr> {
    let materials = Materials::new(elements, contrast, seed);
    stiffness(elements, true, |blocks, place, step| {
        // two nodes see the elements that they share in the same order
        let [xs, ys, zs] = std::array::from_fn(|axis| shared(place[axis], step[axis], elements[axis]));
        let mut sum = [[0.0; 3]; 3];
        for &(z, of_z) in zs.iter().flatten() {
            for &(y, of_y) in ys.iter().flatten() {
                for &(x, of_x) in xs.iter().flatten() {
                    let (stiffness, block) = (materials.at([x, y, z]), blocks.get([of_x, of_y, of_z], step));
                    for (sums, row) in sum.iter_mut().zip(block) {
                        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += stiffness * v);
                    }
                }
            }
        }
        sum
    })
}

/// Where the nodes of [`elasticity3d`] and [`elasticity3d_jumps`] are, those of the clamped face left out: unknowns 3k to 3k + 2 are the
/// displacements of node k along x, y and z.
///
/// With them the motions of a rigid body can be told: three translations, and rotations such as (−y, x, 0).
///
/// # Errors
/// [`Error::Usage`] for a block without elements or with too many.
pub fn elasticity3d_coordinates(elements: [usize; 3]) -> Result<Vec<[f64; 3]>> {
    let grid = nodes(elements, true)?;
    let at = |k| {
        let [x, y, z] = grid.place(k).map(|c| c as f64);
        [x + 1.0, y, z]
    };
    Ok((0..grid.points).into_par_iter().map(at).collect())
}

/// The grid of nodes, without those of the face x = 0 if it is `clamped`.
fn nodes(elements: [usize; 3], clamped: bool) -> Result<Grid> {
    if elements.contains(&0) {
        let [ex, ey, ez] = elements;
        return Err(Error::Usage(format!("a block of {ex} × {ey} × {ez} elements is empty")));
    }
    let [x, y, z] = elements.map(|e| e.saturating_add(1));
    Grid::new([x - usize::from(clamped), y, z], 3)
}

/// The stiffness matrix, with the unknowns of the face x = 0 eliminated or, if not `clamped`, singular: `block(blocks, place, step)` is
/// that between the node at `place`, by coordinates that count the face in, and the one `step − 1` away along each axis.
fn stiffness(
    elements: [usize; 3],
    clamped: bool,
    block: impl Fn(&Blocks, [usize; 3], [usize; 3]) -> Block + Sync,
) -> Result<Csr> {
    let (grid, blocks) = (nodes(elements, clamped)?, Blocks::new());
    assemble(
        3 * grid.points,
        |i| 3 * grid.count_around(grid.place(i / 3)),
        |i, row| {
            let (place, c) = (grid.place(i / 3), i % 3);
            let [x, y, z] = place;
            let in_block = [x + usize::from(clamped), y, z];
            let [xs, ys, zs] = grid.around(place);
            for z in zs {
                for y in ys.clone() {
                    for x in xs.clone() {
                        let other = [x, y, z];
                        let step = std::array::from_fn(|axis| other[axis] + 1 - place[axis]);
                        let block = block(&blocks, in_block, step);
                        (0..3).for_each(|d| row.push(3 * grid.number(other) + d, block[c][d]));
                    }
                }
            }
        },
    )
}

/// The block between two nodes, where E = 1 in all elements.
fn uniform(elements: [usize; 3]) -> impl Fn(&Blocks, [usize; 3], [usize; 3]) -> Block {
    move |blocks, place, step| {
        let sides = std::array::from_fn(|axis| Side::of(place[axis], elements[axis]));
        *blocks.get(sides, step)
    }
}

/// Along one axis, the elements that node `at` shares with the one `step − 1` away, in rising order, and on which side of it each is.
fn shared(at: usize, step: usize, elements: usize) -> [Option<(usize, Side)>; 2] {
    let before = (step < 2 && at > 0).then(|| (at - 1, Side::Before));
    let after = (step > 0 && at < elements).then_some((at, Side::After));
    [before, after]
}

/// On which sides of a node there are elements, along one axis.
#[derive(Debug, Clone, Copy)]
enum Side {
    After,
    Both,
    Before,
}

impl Side {
    const ALL: [Self; 3] = [Self::After, Self::Both, Self::Before];

    /// Of node `at` on a line of `elements` elements.
    fn of(at: usize, elements: usize) -> Self {
        match at {
            0 => Self::After,
            _ if at == elements => Self::Before,
            _ => Self::Both,
        }
    }

    /// 1 or 0 for an element before the node, and for one after it.
    fn elements(self) -> (f64, f64) {
        match self {
            Self::After => (0.0, 1.0),
            Self::Both => (1.0, 1.0),
            Self::Before => (1.0, 0.0),
        }
    }
}

/// The integrals of the hat functions φ, ψ of a node and of the one before (step 0), itself (1) or after (2).
struct Line {
    /// ∫ φ ψ
    mass: f64,
    /// ∫ φ′ ψ′
    stiffness: f64,
    /// ∫ φ′ ψ
    first: f64,
    /// ∫ φ ψ′
    second: f64,
}

impl Line {
    fn new(side: Side, step: usize) -> Self {
        let (before, after) = side.elements();
        match step {
            0 => Self { mass: 1.0 / 6.0, stiffness: -1.0, first: 0.5, second: -0.5 },
            1 => {
                let ends = (before - after) / 2.0;
                Self { mass: (before + after) / 3.0, stiffness: before + after, first: ends, second: ends }
            }
            _ => Self { mass: 1.0 / 6.0, stiffness: -1.0, first: -0.5, second: 0.5 },
        }
    }
}

/// The 3 × 3 block between two nodes, by components.
type Block = [[f64; 3]; 3];

/// The blocks of every kind of node: inside, on the faces, edges and corners.
struct Blocks(Vec<Block>);

impl Blocks {
    fn new() -> Self {
        let mut blocks = Vec::with_capacity(27 * 27);
        for kind in 0..27 {
            for neighbour in 0..27 {
                let lines = [1, 3, 9].map(|unit| Line::new(Side::ALL[kind / unit % 3], neighbour / unit % 3));
                blocks.push(block(&lines));
            }
        }
        Self(blocks)
    }

    /// The block between a node with elements on `sides` and its neighbour `step − 1` away along each axis.
    fn get(&self, sides: [Side; 3], step: [usize; 3]) -> &Block {
        let [x, y, z] = sides.map(|s| s as usize);
        &self.0[(x + 3 * y + 9 * z) * 27 + step[0] + 3 * step[1] + 9 * step[2]]
    }
}

/// The block between two nodes from the integrals along the axes.
fn block(lines: &[Line; 3]) -> Block {
    // ∫ ∂c φ ∂d ψ
    let product = |c: usize, d: usize| -> f64 {
        (0..3)
            .map(|axis| match (axis == c, axis == d) {
                (true, true) => lines[axis].stiffness,
                (true, false) => lines[axis].first,
                (false, true) => lines[axis].second,
                (false, false) => lines[axis].mass,
            })
            .product()
    };
    let gradients: f64 = (0..3).map(|c| product(c, c)).sum();
    std::array::from_fn(|c| {
        std::array::from_fn(|d| {
            let both = if c == d { MU * gradients } else { 0.0 };
            LAMBDA * product(c, d) + MU * product(d, c) + both
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stiffness(elements: [usize; 3], clamped: bool) -> Result<Csr> {
        super::stiffness(elements, clamped, uniform(elements))
    }

    /// ‖A u‖∞ for a displacement of the unclamped block.
    fn force(elements: [usize; 3], u: impl Fn([f64; 3]) -> [f64; 3]) -> f64 {
        let a = stiffness(elements, false).unwrap();
        let [nx, ny, nz] = elements.map(|e| e + 1);
        let mut v = Vec::new();
        for z in 0..nz {
            for y in 0..ny {
                (0..nx).for_each(|x| v.extend(u([x as f64, y as f64, z as f64])));
            }
        }
        a.mul_vec(&v).into_iter().fold(0.0, |m, f| m.max(f.abs()))
    }

    #[test]
    fn rigid_motions_need_no_force() {
        for elements in [[1, 1, 1], [2, 3, 1], [3, 2, 4]] {
            for c in 0..3 {
                let translation = std::array::from_fn(|d| f64::from(u8::from(c == d)));
                assert!(force(elements, |_| translation) < 1e-14, "{elements:?} {c}");
            }
            assert!(force(elements, |[x, y, _]| [-y, x, 0.0]) < 1e-13);
            assert!(force(elements, |[_, y, z]| [0.0, -z, y]) < 1e-13);
            assert!(force(elements, |[x, _, z]| [z, 0.0, -x]) < 1e-13);
            assert!(force(elements, |[x, _, _]| [x, 0.0, 0.0]) > 0.1);
        }
    }

    #[test]
    fn a_pulled_block_stretches_by_hookes_law() {
        // u = (x, −ν y, −ν z) is uniaxial tension σ_xx = E: the forces on the faces x = const are E times their areas
        let a = stiffness([1, 1, 1], false).unwrap();
        let u: Vec<f64> = (0..8)
            .flat_map(|p| [f64::from(p & 1), -POISSON * f64::from(p >> 1 & 1), -POISSON * f64::from(p >> 2)])
            .collect();
        for (i, f) in a.mul_vec(&u).into_iter().enumerate() {
            let expected = if i % 3 != 0 {
                0.0
            } else if i / 3 % 2 == 1 {
                YOUNG / 4.0
            } else {
                -YOUNG / 4.0
            };
            assert!((f - expected).abs() < 1e-15, "{i} {f}");
        }
    }

    #[test]
    fn energy_is_never_negative() {
        let a = stiffness([2, 2, 2], false).unwrap();
        for seed in 0..20 {
            let u = crate::matrix::gallery::random_vector(a.n_rows(), seed);
            let energy: f64 = a.mul_vec(&u).iter().zip(&u).map(|(f, u)| f * u).sum();
            assert!(energy > 0.0);
        }
    }

    #[test]
    fn clamping_removes_the_first_face_only() {
        let (free, clamped) = (stiffness([3, 2, 2], false).unwrap(), stiffness([3, 2, 2], true).unwrap());
        let outer = |i: usize| {
            let (node, c) = (i / 3, i % 3);
            3 * (node / 3 * 4 + node % 3 + 1) + c
        };
        for i in 0..clamped.n_rows() {
            for j in 0..clamped.n_cols() {
                assert_eq!(clamped.get(i, j), free.get(outer(i), outer(j)));
            }
        }
    }

    #[test]
    fn one_material_is_none_other() {
        let (uniform, jumps) = (elasticity3d([3, 2, 4]).unwrap(), elasticity3d_jumps([3, 2, 4], 1.0, 1).unwrap());
        assert_eq!((uniform.row_ptr(), uniform.n_rows()), (jumps.row_ptr(), jumps.n_rows()));
        assert!(uniform.values().iter().zip(jumps.values()).all(|(u, j)| (u - j).abs() < 1e-14));
    }

    #[test]
    fn elements_of_two_materials_add_up() {
        // with a contrast of c, blocks are sums over the elements of the first material and c times those over the others
        let elements = [4, 3, 2];
        let [a, b, c] = [1.0, 2.0, 5.0].map(|contrast| elasticity3d_jumps(elements, contrast, 1).unwrap());
        let values = a.values().iter().zip(b.values()).zip(c.values());
        assert!(values.clone().all(|((a, b), c)| (c - a - 4.0 * (b - a)).abs() < 1e-13));
        assert!(values.clone().any(|((a, b), _)| a != b));
        // the last node has one element
        let materials = Materials::new(elements, 7.0, 1);
        let d = elasticity3d_jumps(elements, 7.0, 1).unwrap();
        let corner = elements.map(|e| e - 1);
        let last = a.n_rows() - 1;
        assert!((d.get(last, last).unwrap() - materials.at(corner) * a.get(last, last).unwrap()).abs() < 1e-14);
    }

    #[test]
    fn nodes_are_where_they_are() {
        let elements = [3, 2, 2];
        let nodes = elasticity3d_coordinates(elements).unwrap();
        assert_eq!((nodes.len(), nodes[0], nodes[3]), (3 * 3 * 3, [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]));
        assert_eq!(nodes[26], [3.0, 2.0, 2.0]);
        // a rotation needs no force but next to the clamped face
        let a = elasticity3d_jumps(elements, 1e2, 1).unwrap();
        let turned: Vec<f64> = nodes.iter().flat_map(|&[x, y, _]| [-y, x, 0.0]).collect();
        let forces = a.mul_vec(&turned);
        assert!(nodes.iter().zip(forces.chunks(3)).all(|(n, f)| n[0] == 1.0 || f.iter().all(|f| f.abs() < 1e-11)));
        assert!(elasticity3d_coordinates([1, 0, 1]).is_err());
    }
}
