//! Flow in a reservoir of layered rock.

use std::f64::consts::LN_10;

use rayon::prelude::*;

use super::grid::Grid;
use super::random::Stream;
use super::stencil::{harmonic_mean, seven_point};
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::assemble::zeroed;

/// Area by distance between the centres of cells across each axis, for cells of 20 × 10 × 2 feet, in units of 1 foot; along z
/// times 0.1, the vertical permeability by the horizontal one.
const FACES: [f64; 3] = [1.0, 4.0, 10.0];
/// 2π dz / ln(r/w) of a well of radius w = 0.5 feet, by the radius r = 0.14 √(dx² + dy²) at which the pressure is that of its cell.
const WELL: f64 = 6.85;
/// The decades of the least permeability that there is, in millidarcies, and of the most.
const LEAST: f64 = -3.0;
const MOST: f64 = 4.0;
/// How many of 85 layers are of the upper formation.
const UPPER: usize = 35;

/// The pressure in an oil reservoir of the size and kind of SPE10: −∇·(k ∇p) = q in layers of heterogeneous rock.
///
/// Cells of 20 × 10 × 2 feet, with the layers along z. Of 85 layers the first 35 are rock whose permeability k is lognormal, with
/// a mean and a deviation of its own in each layer, and varies within some eight cells. In the others narrow, winding
/// channels, mostly along y, cut through rock that is some 10⁴ times as tight. k is from 10⁻³ to 10⁴ millidarcies, and a tenth of
/// that upright. Cell-centred finite volumes: `Σ t_f (p − p(neighbour))` over the six faces, where t_f is the harmonic mean of k in
/// the cells on either side, times 1, 4 and 10 across x, y and z. Nothing passes the boundary. In the four corners vertical
/// wells with a given pressure go through all layers; each adds 6.85 k to the diagonal, which makes the matrix positive definite.
///
/// n and nnz as for [`poisson3d`](super::poisson3d). Symmetric to the bit. 60 × 220 × 85 is the size of SPE10: 1.1 · 10⁶ cells.
/// k is made of random numbers at the points of lattices, interpolated between, and depends on a cell's place, its formation
/// and the seed alone. The bits depend on the platform's `exp`. Takes 8 bytes a cell beside the matrix, in O(n).
///
/// M. A. Christie, M. J. Blunt, "Tenth SPE comparative solution project" (2001), doi 10.2118/72469-PA; for wells D. W. Peaceman
/// (1983), doi 10.2118/10528-PA.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for an empty or too large grid;
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the permeability doesn't fit.
pub fn reservoir(sides: [usize; 3], seed: u64) -> Result<Csr> {
    let grid = Grid::new(sides, 1)?;
    let rock = Rock::new(sides[2], seed);
    let mut k: Vec<f64> = zeroed(grid.points, "the permeability of the cells")?;
    k.par_iter_mut().with_min_len(1 << 10).enumerate().for_each(|(i, k)| *k = rock.permeability(grid.place(i)));
    seven_point(
        grid,
        grid.all(),
        |axis, i, j| FACES[axis] * harmonic_mean(k[i], k[j]),
        |axis, i| {
            let [_, y, _] = grid.place(i);
            let well = axis == 0 && (y == 0 || y + 1 == sides[1]);
            if well { WELL * k[i] } else { 0.0 }
        },
    )
}

/// What is where.
struct Rock {
    /// The first layer of the lower formation.
    lower: usize,
    layers: Stream,
    grain: Stream,
    channels: Stream,
}

impl Rock {
    fn new(layers: usize, seed: u64) -> Self {
        let stream = Stream::new(seed);
        let [of_layers, grain, channels] = [0, 1, 2].map(|k| stream.fork(k));
        Self { lower: (layers * UPPER).div_ceil(85), layers: of_layers, grain, channels }
    }

    /// The horizontal permeability of a cell, in millidarcies.
    fn permeability(&self, place: [usize; 3]) -> f64 {
        let layer = self.layers.fork(place[2] as u64);
        let grain = noise(self.grain, place, [8.0, 8.0, 2.0]);
        let decades = if place[2] < self.lower {
            1.5 + 1.5 * layer.signed(0) + (1.0 + 0.5 * layer.signed(1)) * grain
        } else if noise(self.channels, place, [12.0, 48.0, 4.0]).abs() < 0.1 {
            2.8 + grain
        } else {
            -1.0 + 0.5 * layer.signed(0) + 0.8 * grain
        };
        (decades.clamp(LEAST, MOST) * LN_10).exp()
    }
}

/// Noise of mean 0 and deviation near 1: random numbers at the points of a lattice of the given `lengths`, linear between, and such on
/// lattices twice, four and eight times as fine, by as much smaller.
fn noise(stream: Stream, place: [usize; 3], lengths: [f64; 3]) -> f64 {
    let octave = |scale: f64| {
        let at = std::array::from_fn(|axis| place[axis] as f64 * scale / lengths[axis]);
        interpolated(stream.fork(scale as u64), at) / scale
    };
    2.4 * [1.0, 2.0, 4.0, 8.0].map(octave).iter().sum::<f64>()
}

/// Random numbers in [−1, 1) at points with whole coordinates, linear along each axis between.
fn interpolated(stream: Stream, at: [f64; 3]) -> f64 {
    let along = |c: f64| {
        let (low, rest) = (c.floor(), c - c.floor());
        [(low as u64, 1.0 - rest), (low as u64 + 1, rest)]
    };
    let [xs, ys, zs] = at.map(along);
    let mut sum = 0.0;
    for (z, of_z) in zs {
        let plane = stream.fork(z);
        for (y, of_y) in ys {
            let line = plane.fork(y);
            xs.iter().for_each(|&(x, of_x)| sum += of_x * of_y * of_z * line.signed(x));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decades(layers: std::ops::Range<usize>) -> Vec<f64> {
        let rock = Rock::new(85, 1);
        let at = |i: usize, z: usize| rock.permeability([i % 60, i / 60 * 3, z]).log10();
        layers.flat_map(|z| (0..4380).map(move |i| at(i, z))).collect()
    }

    #[test]
    fn formations_are_what_they_are_called() {
        let (upper, lower) = (decades(0..35), decades(35..85));
        for all in [&upper, &lower] {
            assert!(all.iter().all(|d| (LEAST - 1e-12..=MOST + 1e-12).contains(d)));
        }
        let between = |all: &[f64], low: f64, high: f64| {
            all.iter().filter(|d| (low..high).contains(*d)).count() as f64 / all.len() as f64
        };
        assert!(between(&upper, 0.0, 3.0) > 0.5, "{}", between(&upper, 0.0, 3.0));
        let (channels, tight) = (between(&lower, 2.0, 4.1), between(&lower, -3.1, 1.0));
        assert!((0.03..0.2).contains(&channels) && tight > 0.8, "{channels} {tight}");
    }

    #[test]
    fn noise_is_smooth_and_scattered() {
        let stream = Stream::new(4);
        let at = |x: usize| noise(stream, [x, 3, 7], [8.0, 8.0, 2.0]);
        let n = 20_000;
        let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let variance = mean(&|x| at(x).powi(2));
        assert!(mean(&at).abs() < 0.1 && (0.5..2.0).contains(&variance), "{variance}");
        let correlation = |far: usize| mean(&|x| at(x) * at(x + far)) / variance;
        assert!(correlation(1) > 0.6 && correlation(40).abs() < 0.1, "{} {}", correlation(1), correlation(40));
    }

    #[test]
    fn only_wells_pass_the_boundary() {
        let sides = [4, 5, 3];
        let a = reservoir(sides, 1).unwrap();
        let (grid, rock) = (Grid::new(sides, 1).unwrap(), Rock::new(3, 1));
        for (i, sum) in a.mul_vec(&vec![1.0; 60]).into_iter().enumerate() {
            let place = grid.place(i);
            let corner = (0..2).all(|axis| place[axis] == 0 || place[axis] + 1 == sides[axis]);
            let expected = if corner { WELL * rock.permeability(place) } else { 0.0 };
            assert!((sum - expected).abs() <= 1e-14 * a.get(i, i).unwrap(), "{i}: {sum} {expected}");
        }
    }
}
