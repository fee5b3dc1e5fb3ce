//! Linear elasticity on an unstructured mesh of tetrahedra.

use rayon::prelude::*;

use super::elasticity::{LAMBDA, MU};
use super::grid::Grid;
use super::random::Stream;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::{assemble, zeroed};

/// How far a node is moved along each axis, at most, in sides of a cell. No tetrahedron can turn inside out.
const JITTER: f64 = 0.1;

/// Linear elasticity of a block clamped on one face, on an unstructured mesh: −∇·σ(u) = f, u = 0 on x = 0, no traction
/// elsewhere.
///
/// The nodes of cx × cy × cz unit cells, moved by up to 0.1 along each axis (those on the faces of the block within
/// them), make six tetrahedra a cell with linear displacements (P1), three unknowns a node in the order x, y, z;
/// isotropic with E = 1, ν = 0.3. Entry between component c of node i and component d of node j, summed over the
/// tetrahedra with both:
///
/// ```text
/// volume (λ ∂c φi ∂d φj + μ ∂d φi ∂c φj + δcd μ ∇φi · ∇φj),   λ = E ν / (1+ν)(1−2ν),   μ = E / 2(1+ν)
/// ```
///
/// The seed ranks the nodes. A cell is cut into the tetrahedra between its lowest corner and the triangles of the three
/// faces beyond, each of which is cut along the diagonal from its own lowest corner: neighbouring cells agree on the
/// face between them. A node has 6 to 26 neighbours, 14 on average inside, so that rows have 21 to 81 entries there, 45
/// on average; blocks of 3 × 3 are full. Nodes are numbered at random within blocks of `shuffle` cells a side, which
/// follow one another as cells of a grid do: 1 keeps the order of the grid, and the longest side gives one without any
/// locality.
///
/// n = 3 cx (cy+1)(cz+1); the unknowns of the clamped face are eliminated. Symmetric to the bit and positive definite;
/// the condition number grows as m² for cubes of m cells a side. Takes 24 bytes a node beside the matrix, in O(nnz).
///
/// The cut is the pulling triangulation of C. W. Lee (1991), as in J. A. De Loera, J. Rambau, F. Santos,
/// *Triangulations*, Springer 2010, section 4.3.2, doi 10.1007/978-3-642-12971-1; the elements are those of
/// T. J. R. Hughes, *The Finite Element Method*, Prentice-Hall 1987, section 3.I.
///
/// # Errors
/// [`Error::Usage`] for a block without cells or with too many, or if `shuffle` is 0; [`Error::OutOfMemory`] if the
/// mesh doesn't fit.
pub fn tetrahedra(cells: [usize; 3], shuffle: usize, seed: u64) -> Result<Csr> {
    if shuffle == 0 {
        return Err(Error::Usage("nodes can't be numbered within blocks of 0 cells; give 1 or more".into()));
    }
    stiffness(&Mesh::new(cells, seed)?, shuffle, seed, true)
}

/// Where the nodes of [`tetrahedra`] are, those of the clamped face left out: unknowns 3k to 3k + 2 are the displacements of node k along
/// x, y and z.
///
/// # Errors
/// As [`tetrahedra`].
pub fn tetrahedra_coordinates(cells: [usize; 3], shuffle: usize, seed: u64) -> Result<Vec<[f64; 3]>> {
    let mesh = Mesh::new(cells, seed)?;
    let numbers = Numbers::new(&mesh, shuffle.max(1), Stream::new(seed).fork(2), true)?;
    Ok(numbers.nodes.par_iter().map(|&node| mesh.position(mesh.nodes.place(node as usize))).collect())
}

/// The stiffness matrix, with the unknowns of the face x = 0 eliminated or, if not `clamped`, singular.
fn stiffness(mesh: &Mesh, shuffle: usize, seed: u64, clamped: bool) -> Result<Csr> {
    let numbers = Numbers::new(mesh, shuffle, Stream::new(seed).fork(2), clamped)?;
    let mut masks: Vec<u32> = zeroed(numbers.nodes.len(), "the neighbours of the nodes")?;
    masks.par_iter_mut().zip(&numbers.nodes).for_each(|(mask, &node)| {
        let place = mesh.nodes.place(node as usize);
        mesh.around(place, |tet, _| tet.nodes.iter().for_each(|n| *mask |= 1 << step(place, *n)));
        if clamped && place[0] == 1 {
            *mask &= !BEFORE;
        }
    });
    assemble(
        3 * masks.len(),
        |i| 3 * masks[i / 3].count_ones() as usize,
        |i, row| {
            let place = mesh.nodes.place(numbers.nodes[i / 3] as usize);
            let sums = mesh.row(place, i % 3);
            let mut neighbours = [(0, 0); 27];
            let mut count = 0;
            for s in (0..27).filter(|s| masks[i / 3] >> s & 1 == 1) {
                let other = [place[0] + s % 3 - 1, place[1] + s / 3 % 3 - 1, place[2] + s / 9 - 1];
                neighbours[count] = (numbers.of[mesh.nodes.number(other)] as usize, s);
                count += 1;
            }
            let neighbours = &mut neighbours[..count];
            neighbours.sort_unstable();
            for &mut (number, s) in neighbours {
                (0..3).for_each(|d| row.push(3 * number + d, sums[s][d]));
            }
        },
    )
}

/// The bits of the steps to nodes with lower x, for which `step` is a multiple of 3.
const BEFORE: u32 = 0o111_111_111;

/// A node by its coordinates in the grid.
type Place = [usize; 3];

/// Which of the 27 nodes around `from`, itself among them, `to` is.
fn step(from: Place, to: Place) -> usize {
    (to[0] + 1 - from[0]) + 3 * (to[1] + 1 - from[1]) + 9 * (to[2] + 1 - from[2])
}

/// Which unknowns are whose.
struct Numbers {
    /// The number of each node of the grid; of no meaning for those that are clamped.
    of: Vec<u32>,
    /// The nodes that are not, by number.
    nodes: Vec<u32>,
}

impl Numbers {
    fn new(mesh: &Mesh, shuffle: usize, stream: Stream, clamped: bool) -> Result<Self> {
        let grid = mesh.nodes;
        let nodes = grid.points - if clamped { grid.points / grid.sides[0] } else { 0 };
        let blocks = Grid::new(grid.sides.map(|side| side.div_ceil(shuffle)), 1)?;
        let mut keys: Vec<(u32, u64, u32)> = zeroed(grid.points, "the order of the nodes")?;
        keys.par_iter_mut().enumerate().for_each(|(node, key)| {
            let place = grid.place(node);
            let block =
                if clamped && place[0] == 0 { u32::MAX } else { blocks.number(place.map(|c| c / shuffle)) as u32 };
            let order = if shuffle == 1 { 0 } else { stream.bits(node as u64) };
            *key = (block, order, node as u32);
        });
        // nodes that are clamped come last
        keys.par_sort_unstable();
        let mut of: Vec<u32> = zeroed(grid.points, "the numbers of the nodes")?;
        keys.iter().zip(0..).for_each(|((.., node), number)| of[*node as usize] = number);
        Ok(Self { of, nodes: keys[..nodes].iter().map(|(.., node)| *node).collect() })
    }
}

/// Cells cut into tetrahedra. Everything is made when it is asked for, from the seed.
struct Mesh {
    nodes: Grid,
    ranks: Stream,
    moves: Stream,
}

/// Four nodes, in an order that depends on the mesh alone.
struct Tetrahedron {
    nodes: [Place; 4],
    corners: [[f64; 3]; 4],
}

impl Mesh {
    fn new(cells: [usize; 3], seed: u64) -> Result<Self> {
        if cells.contains(&0) {
            let [cx, cy, cz] = cells;
            return Err(Error::Usage(format!("a block of {cx} × {cy} × {cz} cells is empty")));
        }
        let nodes = Grid::new(cells.map(|c| c.saturating_add(1)), 3)?;
        let stream = Stream::new(seed);
        Ok(Self { nodes, ranks: stream.fork(0), moves: stream.fork(1) })
    }

    /// Where a node is.
    fn position(&self, place: Place) -> [f64; 3] {
        let node = self.nodes.number(place) as u64;
        std::array::from_fn(|axis| {
            let inside = place[axis] > 0 && place[axis] + 1 < self.nodes.sides[axis];
            place[axis] as f64 + if inside { JITTER * self.moves.signed(3 * node + axis as u64) } else { 0.0 }
        })
    }

    /// Calls `visit` with the tetrahedra that have the node at `place`, and which of their corners it is. Two nodes see
    /// those that they share in the same order.
    fn around(&self, place: Place, mut visit: impl FnMut(&Tetrahedron, usize)) {
        let [xs, ys, zs] =
            std::array::from_fn(|axis| place[axis].saturating_sub(1)..=place[axis].min(self.nodes.sides[axis] - 2));
        for z in zs {
            for y in ys.clone() {
                for x in xs.clone() {
                    let corner = |k: usize| [x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)];
                    let positions: [_; 8] = std::array::from_fn(|k| self.position(corner(k)));
                    let node = |k| self.nodes.number(corner(k)) as u64;
                    for cut in cut(&std::array::from_fn(|k| (self.ranks.bits(node(k)), node(k)))) {
                        let nodes = cut.map(corner);
                        if let Some(own) = nodes.iter().position(|n| *n == place) {
                            visit(&Tetrahedron { nodes, corners: cut.map(|k| positions[k]) }, own);
                        }
                    }
                }
            }
        }
    }

    /// Row `c` of the 3 × 3 blocks between the node at `place` and each of the 27 around it.
    fn row(&self, place: Place, c: usize) -> [[f64; 3]; 27] {
        let mut sums = [[0.0; 3]; 27];
        self.around(place, |tet, own| {
            let (volume, slopes) = tet.slopes();
            let a = slopes[own];
            for (node, b) in tet.nodes.iter().zip(&slopes) {
                let both = MU * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
                for (d, sum) in sums[step(place, *node)].iter_mut().enumerate() {
                    let same = if c == d { both } else { 0.0 };
                    *sum += volume * (LAMBDA * (a[c] * b[d]) + MU * (a[d] * b[c]) + same);
                }
            }
        });
        sums
    }
}

/// Cuts a cell, corner k of which is at (k & 1, k >> 1 & 1, k >> 2), into six tetrahedra by the ranks of its corners.
fn cut<R: Ord>(ranks: &[R; 8]) -> [[usize; 4]; 6] {
    let lowest = |corners: &[usize]| corners.iter().copied().min_by_key(|k| &ranks[*k]).unwrap_or(0);
    let top = lowest(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let mut tetrahedra = [[top; 4]; 6];
    for (axis, pair) in tetrahedra.chunks_exact_mut(2).enumerate() {
        // the face across from the lowest corner along this axis
        let (one, other) = (1 << ((axis + 1) % 3), 1 << ((axis + 2) % 3));
        let first = top ^ 1 << axis;
        let low = lowest(&[first, first ^ one, first ^ other, first ^ one ^ other]);
        for (tetrahedron, side) in pair.iter_mut().zip([one, other]) {
            *tetrahedron = [top, low, low ^ side, low ^ one ^ other];
        }
    }
    tetrahedra
}

impl Tetrahedron {
    /// The volume, and the gradients of the four linear functions that are 1 at a corner and 0 at the others.
    fn slopes(&self) -> (f64, [[f64; 3]; 4]) {
        let [o, a, b, c] = self.corners;
        let [a, b, c] = [a, b, c].map(|p| std::array::from_fn(|axis| p[axis] - o[axis]));
        let det = dot(a, cross(b, c));
        let [ga, gb, gc] = [cross(b, c), cross(c, a), cross(a, b)].map(|normal| normal.map(|n| n / det));
        let go = std::array::from_fn(|axis| -(ga[axis] + gb[axis] + gc[axis]));
        (det.abs() / 6.0, [go, ga, gb, gc])
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery::random_vector;
    use crate::matrix::stats::Stats;

    /// ‖A u‖∞ for a displacement of the unclamped mesh.
    fn force(mesh: &Mesh, u: impl Fn([f64; 3]) -> [f64; 3]) -> f64 {
        let a = stiffness(mesh, 1, 1, false).unwrap();
        let v: Vec<f64> = (0..mesh.nodes.points).flat_map(|i| u(mesh.position(mesh.nodes.place(i)))).collect();
        a.mul_vec(&v).into_iter().fold(0.0, |m, f| m.max(f.abs()))
    }

    /// Away from the clamped face, a rotation of nodes where they are said to be needs no force.
    #[test]
    fn nodes_are_where_they_are() {
        let nodes = tetrahedra_coordinates([4, 3, 3], 2, 5).unwrap();
        let a = tetrahedra([4, 3, 3], 2, 5).unwrap();
        let turned: Vec<f64> = nodes.iter().flat_map(|&[x, y, _]| [-y, x, 0.0]).collect();
        let forces = a.mul_vec(&turned);
        let inner: Vec<_> = nodes.iter().zip(forces.chunks(3)).filter(|(n, _)| n[0] > 1.2).collect();
        assert!(nodes.len() == a.n_rows() / 3 && inner.len() == 3 * 16);
        assert!(inner.iter().all(|(_, f)| f.iter().all(|f| f.abs() < 1e-12)));
    }

    #[test]
    fn cells_are_cut_into_six_equal_parts_whatever_the_ranks() {
        for seed in 0..500 {
            let stream = Stream::new(seed);
            let ranks: [u64; 8] = std::array::from_fn(|k| stream.bits(k as u64));
            for nodes in cut(&ranks) {
                let corners = nodes.map(|k| [k & 1, k >> 1 & 1, k >> 2].map(|c| c as f64));
                let tet = Tetrahedron { nodes: [[0; 3]; 4], corners };
                assert_eq!(tet.slopes().0, 1.0 / 6.0);
            }
        }
        // by hand: corner 0 is the lowest, then 7: all six share the edge between them
        assert!(cut(&[0, 2, 3, 4, 5, 6, 7, 1]).iter().all(|t| t[0] == 0 && t[1] == 7));
    }

    #[test]
    fn no_tetrahedron_turns_inside_out() {
        // six volumes are linear in each coordinate of each corner: least where all are moved as far as they go
        let place = |k: usize| [k & 1, k >> 1 & 1, k >> 2].map(|c| c as f64);
        let volume = |corners: [[f64; 3]; 4]| {
            let [a, b, c] = [1, 2, 3].map(|k| std::array::from_fn(|axis| corners[k][axis] - corners[0][axis]));
            dot(a, cross(b, c))
        };
        for four in (0..4096usize).map(|k| [k & 7, k >> 3 & 7, k >> 6 & 7, k >> 9]) {
            let corners = four.map(place);
            if volume(corners) != 1.0 {
                continue;
            }
            for signs in 0..4096 {
                let mut moved = corners;
                for (k, c) in moved.iter_mut().flatten().enumerate() {
                    *c += if signs >> k & 1 == 0 { JITTER } else { -JITTER };
                }
                assert!(volume(moved) > 0.1, "{four:?} {signs:b}");
            }
        }
    }

    #[test]
    fn tetrahedra_fill_the_block_and_agree_on_faces() {
        use std::collections::BTreeMap;
        let mesh = Mesh::new([4, 3, 5], 7).unwrap();
        let (mut volume, mut faces) = (0.0, BTreeMap::new());
        for node in 0..mesh.nodes.points {
            mesh.around(mesh.nodes.place(node), |tet, own| {
                volume += tet.slopes().0 / 4.0; // each is seen from four corners
                if own == 0 {
                    for left_out in 0..4 {
                        let mut face: Vec<_> = (0..4).filter(|k| *k != left_out).map(|k| tet.nodes[k]).collect();
                        face.sort_unstable();
                        *faces.entry(face).or_insert(0) += 1;
                    }
                }
            });
        }
        assert!((volume - 60.0_f64).abs() < 1e-12);
        assert!(faces.values().all(|n| *n <= 2));
        // two triangles a square on the surface are of one tetrahedron only
        assert_eq!(faces.values().filter(|n| **n == 1).count(), 2 * 2 * (4 * 3 + 3 * 5 + 5 * 4));
    }

    #[test]
    fn rigid_motions_need_no_force() {
        for (cells, seed) in [([1, 1, 1], 1), ([2, 3, 1], 2), ([3, 2, 4], 3)] {
            let mesh = Mesh::new(cells, seed).unwrap();
            for c in 0..3 {
                assert!(force(&mesh, |_| std::array::from_fn(|d| f64::from(u8::from(c == d)))) < 1e-13);
            }
            assert!(force(&mesh, |[x, y, _]| [-y, x, 0.0]) < 1e-12);
            assert!(force(&mesh, |[_, y, z]| [0.0, -z, y]) < 1e-12);
            assert!(force(&mesh, |[x, _, z]| [z, 0.0, -x]) < 1e-12);
            assert!(force(&mesh, |[x, _, _]| [x, 0.0, 0.0]) > 0.1);
        }
    }

    #[test]
    fn a_pulled_block_stretches_by_hookes_law() {
        // u = (x, −ν y, −ν z) is uniaxial tension E: inside no force, on the faces x = const E times their area
        let (cells, nu) = ([3, 2, 2], 0.3);
        let mesh = Mesh::new(cells, 5).unwrap();
        let a = stiffness(&mesh, 1, 1, false).unwrap();
        let place = |i: usize| mesh.nodes.place(i);
        let u: Vec<f64> = (0..mesh.nodes.points)
            .flat_map(|i| {
                let [x, y, z] = mesh.position(place(i));
                [x, -nu * y, -nu * z]
            })
            .collect();
        let (mut left, mut right) = (0.0, 0.0);
        for (i, f) in a.mul_vec(&u).into_iter().enumerate() {
            match (i % 3, place(i / 3)[0]) {
                (0, 0) => left += f,
                (0, 3) => right += f,
                _ => assert!(f.abs() < 1e-14, "{i} {f}"),
            }
        }
        assert!((left + 4.0_f64).abs() < 1e-14 && (right - 4.0_f64).abs() < 1e-14, "{left} {right}");
    }

    #[test]
    fn clamping_and_numbering_change_the_order_alone() {
        let mesh = Mesh::new([3, 4, 2], 9).unwrap();
        let free = stiffness(&mesh, 1, 9, false).unwrap();
        for shuffle in [1, 2, 50] {
            let a = stiffness(&mesh, shuffle, 9, true).unwrap();
            let numbers = Numbers::new(&mesh, shuffle, Stream::new(9).fork(2), true).unwrap();
            assert!(numbers.nodes.iter().all(|node| node % 4 > 0) && a.n_rows() == 3 * numbers.nodes.len());
            let outer = |i: usize| 3 * numbers.nodes[i / 3] as usize + i % 3;
            for i in 0..a.n_rows() {
                for j in 0..a.n_cols() {
                    assert_eq!(a.get(i, j), free.get(outer(i), outer(j)));
                }
            }
            let in_order = numbers.nodes.is_sorted();
            assert_eq!(in_order, shuffle == 1);
        }
    }

    #[test]
    fn rows_vary_and_blocks_are_full() {
        let a = tetrahedra([12; 3], 4, 1).unwrap();
        let lengths = |i: usize| a.row(i).0.len();
        for node in 0..a.n_rows() / 3 {
            assert!(lengths(3 * node).is_multiple_of(3));
            for c in 0..3 {
                assert_eq!(a.row(3 * node).0, a.row(3 * node + c).0);
            }
            assert!(a.row(3 * node).0.chunks(3).all(|b| b[0] % 3 == 0 && b[2] == b[0] + 2));
        }
        let s = Stats::of(&a);
        assert!(s.row_max >= 66 && s.row_max <= 81 && s.numerically_symmetric, "{s:?}");
        let mean = a.nnz() as f64 / a.n_rows() as f64;
        assert!((36.0..45.0).contains(&mean), "{mean}");
    }

    #[test]
    fn energy_is_never_negative() {
        let a = tetrahedra([3; 3], 2, 4).unwrap();
        for seed in 0..20 {
            let u = random_vector(a.n_rows(), seed);
            let energy: f64 = a.mul_vec(&u).iter().zip(&u).map(|(f, u)| f * u).sum();
            assert!(energy > 0.0);
        }
    }

    #[test]
    fn blocks_of_no_cells() {
        for cells in [[0, 1, 1], [2, 0, 2], [3, 3, 0]] {
            assert!(matches!(tetrahedra(cells, 1, 1), Err(Error::Usage(_))));
        }
        assert!(tetrahedra([2; 3], 0, 1).unwrap_err().to_string().contains("0 cells"));
        assert!(tetrahedra([usize::MAX; 3], 1, 1).unwrap_err().to_string().contains("too large"));
    }
}
