//! A charge on a lattice in a random field.

use std::f64::consts::PI;

use super::grid::Grid;
use super::random::Stream;
use crate::error::Result;
use crate::matrix::assemble::assemble;
use crate::matrix::{Complex64, Csr};

/// The gauge Laplacian on a periodic lattice: a Laplacian with a phase on each link between two points.
///
/// Row, with U(x, a) = e^iθ the phase of the link from point x to the next along axis a:
///
/// ```text
/// (4 + shift) u(x) − Σₐ ( U(x, a) u(x + a) + U(x − a, a)* u(x − a) )
/// ```
///
/// The angles θ are independent and uniform in [−π, π) times `disorder`: 0 is the periodic Laplacian, 1 a field as at
/// infinite coupling. n = mx·my, nnz = 5n if both sides are 3 or longer; on shorter ones links between the same points
/// are added up. Hermitian to the bit and positive definite: all eigenvalues are between `shift` and 8 + `shift`. Without
/// disorder the first is `shift`; the field lifts it.
///
/// Laplacians of this kind stand for the operators of lattice gauge theory: K. G. Wilson, "Confinement of quarks" (1974),
/// doi 10.1103/PhysRevD.10.2445. The bits depend on the platform's `sin` and `cos`.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large lattice.
pub fn gauge2d([mx, my]: [usize; 2], disorder: f64, shift: f64, seed: u64) -> Result<Csr<Complex64>> {
    let lattice = Lattice { grid: Grid::new([mx, my, 1], 1)?, angles: Stream::new(seed), disorder, shift };
    assemble(
        lattice.grid.points,
        |i| lattice.row(i).1,
        |i, row| {
            let (entries, count) = lattice.row(i);
            entries[..count].iter().for_each(|(j, value)| row.push(*j, *value));
        },
    )
}

struct Lattice {
    grid: Grid,
    angles: Stream,
    disorder: f64,
    shift: f64,
}

impl Lattice {
    /// The phase of the link from point `i` along an axis.
    fn link(&self, i: usize, axis: usize) -> Complex64 {
        let angle = PI * self.disorder * self.angles.signed(2 * i as u64 + axis as u64);
        Complex64::new(angle.cos(), angle.sin())
    }

    /// Columns and values in rising order, and how many they are.
    fn row(&self, i: usize) -> ([(usize, Complex64); 5], usize) {
        let place = self.grid.place(i);
        let step = |axis: usize, by: usize| {
            let mut place = place;
            place[axis] = (place[axis] + by) % self.grid.sides[axis];
            self.grid.number(place)
        };
        let mut entries = [(i, Complex64::new(4.0 + self.shift, 0.0)); 5];
        for axis in 0..2 {
            let (next, last) = (step(axis, 1), step(axis, self.grid.sides[axis] - 1));
            entries[1 + 2 * axis] = (next, -self.link(i, axis));
            entries[2 + 2 * axis] = (last, -self.link(last, axis).conj());
        }
        entries.sort_by_key(|(j, _)| *j);
        // on short sides, several links to the same point: two at most off the diagonal, so that their order doesn't matter
        let mut count = 1;
        for k in 1..entries.len() {
            let (j, value) = entries[k];
            if entries[count - 1].0 == j {
                entries[count - 1].1 += value;
            } else {
                entries[count] = entries[k];
                count += 1;
            }
        }
        (entries, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_hand() {
        // without disorder, the periodic Laplacian
        let a = gauge2d([3, 3], 0.0, 0.5, 1).unwrap();
        let one = Complex64::new(1.0, 0.0);
        let values = [4.5, -1.0, -1.0, -1.0, -1.0].map(|v| one * v);
        assert_eq!(a.row(0), (&[0, 1, 2, 3, 6][..], &values[..]));
        // two points on a ring of two, tied twice to each other and twice to themselves across y
        let a = gauge2d([2, 1], 0.0, 0.0, 1).unwrap();
        assert_eq!(a.to_columns(), [[one * 2.0, -one * 2.0], [-one * 2.0, one * 2.0]]);
        assert_eq!(gauge2d([1, 1], 0.0, 0.25, 1).unwrap().values(), [one * 0.25]);
    }

    #[test]
    fn links_are_phases() {
        let a = gauge2d([5, 4], 1.0, 0.1, 3).unwrap();
        assert_eq!(a.nnz(), 5 * 20);
        for i in 0..20 {
            for (&j, v) in a.row(i).0.iter().zip(a.row(i).1) {
                let size = if i == j as usize { 4.1 } else { 1.0 };
                assert!((v.norm() - size).abs() < 1e-14);
            }
        }
        // angles go all the way round
        assert!(a.values().iter().any(|v| v.re > 0.5 && v.im != 0.0));
        let weak = gauge2d([5, 4], 0.1, 0.1, 3).unwrap();
        assert!(weak.values().iter().all(|v| v.im.abs() <= (0.1 * PI).sin()));
    }

    #[test]
    fn hermitian_on_the_shortest_sides() {
        for sides in [[1, 1], [1, 2], [2, 2], [1, 5], [2, 3], [3, 1], [4, 4]] {
            let a = gauge2d(sides, 1.0, 0.1, 7).unwrap();
            for i in 0..a.n_rows() {
                for j in 0..a.n_rows() {
                    assert_eq!(a.get(i, j), a.get(j, i).map(|v| v.conj()), "{sides:?} ({i}, {j})");
                }
            }
        }
    }
}
