//! Kernels of a Krylov basis, whole and in two bands of rows.

use crate::kernels::basis::{Band, TileSums};

use super::*;

/// Columns of `n` small integers, one behind the other.
fn columns(n: usize, count: usize) -> Vec<Vec<f64>> {
    (0..count).map(|c| ints(n, c + 3)).collect()
}

/// Few enough that sums are exact in single precision.
fn factors(count: usize) -> Vec<f64> {
    (0..count).map(|c| [0.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0][c % 8]).collect()
}

struct Case<'a, T: Real, A: Real> {
    t: &'a Bench<T, A>,
    n: usize,
    v: Vec<Vec<f64>>,
    bands: Vec<Band<T>>,
}

impl<T: Real, A: Real> Case<'_, T, A> {
    /// The columns on the device, in bands that are cut there; canaries come behind each.
    fn upload<'a>(t: &'a Bench<T, A>, n: usize, count: usize, cuts: &[usize]) -> Case<'a, T, A> {
        let v = columns(n, count);
        let mut bands: Vec<Band<T>> = Vec::new();
        let ends = cuts.iter().copied().chain([n]);
        for (begin, end) in [0].into_iter().chain(cuts.iter().copied()).zip(ends) {
            let first_tile = bands.last().map_or(0, |band| band.tiles.end);
            let group_size = t.kernels.tuning.launch("basis_dots").group_size;
            let mut band = Band::zeros(&t.ctx, begin..end, count, first_tile, group_size).unwrap();
            band.elements = t.up(&v.iter().flat_map(|v| &v[begin..end]).copied().collect::<Vec<_>>());
            bands.push(band);
        }
        Case { t, n, v, bands }
    }

    fn tiles(&self) -> usize {
        self.bands.last().unwrap().tiles.end
    }

    /// Vᵀ w, Vᵀ u with a column u, and w·w.
    fn expected(&self, w: &[f64], newest: usize) -> Vec<f64> {
        let of = |w: &[f64]| self.v.iter().map(|v| dot(v, w)).collect::<Vec<f64>>();
        [of(w), of(&self.v[newest]), vec![dot(w, w)]].concat()
    }

    /// w + factor V f.
    fn combined(&self, factor: f64, f: &[f64], w: &[f64]) -> Vec<f64> {
        let of = |i: usize| f.iter().zip(&self.v).map(|(f, v)| factor * f * v[i]).sum::<f64>();
        (0..self.n).map(|i| w[i] + of(i)).collect()
    }

    /// The columns as they are now.
    fn read(&self) -> Vec<Vec<f64>> {
        let mut all = vec![Vec::new(); self.v.len()];
        for band in &self.bands {
            let elements = self.t.down(&band.elements);
            for (c, column) in all.iter_mut().enumerate() {
                column.extend(&elements[c * band.rows.len()..][..band.rows.len()]);
            }
        }
        all
    }
}

pub(super) fn bases<T: Real, A: Real>(t: &Bench<T, A>) {
    let (ctx, kernels) = (&t.ctx, &t.kernels);
    for (&n, count) in SIZES.iter().zip([1, 2, 31, 40, 9, 3, 17, 33, 8, 12, 70, 10, 6, 5]) {
        for cuts in [vec![], vec![n / 3, n / 3 + n / 2]] {
            let mut case = Case::upload(t, n, count, &cuts);
            let (w, f, tiles) = (ints(n, 1), factors(count), case.tiles());
            let what = format!("n = {n}, {count} columns, cut at {cuts:?}, {:?}", kernels.tuning);
            let all = 2 * count + 1;
            let partials = t.partials(all * tiles);
            let mut totals = t.partials(all + 2);
            let sums = TileSums { partials: &partials, tiles };
            let most = kernels.most_columns().min(count);

            // Vᵀ w, and V's products with a column
            for newest in [count - 1, 0] {
                let dw = t.up(&w);
                for band in &case.bands {
                    for first in (0..count).step_by(most) {
                        let columns = (first..count.min(first + most), count, newest);
                        kernels.basis_dots(ctx, band, columns, &dw, sums).unwrap();
                    }
                }
                kernels.basis_totals(ctx, all, sums, &mut totals).unwrap();
                let found = t.down(&totals);
                assert_eq!(found[all..], [99.0; 2], "beyond what was asked for, {what}");
                assert_eq!(found[..all], case.expected(&w, newest), "{what}");
                assert_eq!(t.down(&dw), w, "{what}");
            }
            t.down(&partials);

            let factors: Vec<A> = f.iter().map(|f| A::from_f64(*f)).collect();
            let factors = DeviceVec::from_slice(ctx, &factors, "factors").unwrap();
            // x + V f
            let mut x = t.up(&w);
            case.bands.iter().for_each(|band| kernels.basis_add(ctx, band, (count, &factors), &mut x).unwrap());
            assert_eq!(t.down(&x), case.combined(1.0, &f, &w), "{what}");

            // the next column, of all before the last, or of none; or the last two
            let has_pairs = case.bands.iter().all(|band| band.rows.len().is_multiple_of(2)) && count > 1;
            for (columns, is_pair) in [(count - 1, false), (0, false), (0, true), (count - 2.min(count), true)] {
                if is_pair && !has_pairs {
                    continue;
                }
                let last = count - 1 - usize::from(is_pair);
                let (dw, mut to, scale) = (t.up(&w), t.up(&vec![9.0; n]), T::from_f64(0.5));
                for band in &mut case.bands {
                    let to = ((last, is_pair), &mut to);
                    kernels.basis_next(ctx, band, (columns, &factors), (scale, &dw), to, sums).unwrap();
                }
                kernels.basis_totals(ctx, 1, sums, &mut totals).unwrap();
                let next: Vec<f64> =
                    case.combined(-1.0, &f[..columns], &w).iter().map(|v| T::from_f64(0.5 * v).to_f64()).collect();
                assert_eq!(t.down(&to), next, "{what}");
                assert_eq!(t.down(&totals)[0], dot(&next, &next), "{what}");
                if is_pair {
                    case.v[count - 1] = next.chunks_exact(2).flat_map(|pair| [-pair[1], pair[0]]).collect();
                }
                case.v[last] = next;
                assert_eq!(case.read(), case.v, "{what}");
            }
        }
    }
}

/// Other groups, and the same bits: fractions, whose sums are rounded.
#[test]
fn launches_change_no_bits() {
    let ctx = Context::open(&list().devices.remove(0)).unwrap();
    let (n, count) = (9_000, 12);
    let fractions = |salt: usize| (0..n).map(|i| 1.0 / (i * 31 % 97 + salt + 3) as f64).collect::<Vec<f64>>();
    for (group_size, block_nnz) in [(1, 1), (256, 512)] {
        let run = |max_groups: usize| {
            let kernels = Kernels::<f64, f64>::build(&ctx, Tuning::uniform(group_size, block_nnz, max_groups)).unwrap();
            let mut band = Band::zeros(&ctx, 0..n, count, 0, group_size).unwrap();
            let elements: Vec<f64> = (0..count).flat_map(fractions).collect();
            band.elements = DeviceVec::from_slice(&ctx, &elements, "columns").unwrap();
            let w = DeviceVec::from_slice(&ctx, &fractions(50), "w").unwrap();
            let mut to = DeviceVec::zeros(&ctx, n, "to").unwrap();
            let factors = DeviceVec::from_slice(&ctx, &fractions(9)[..count], "factors").unwrap();
            let partials = DeviceVec::zeros(&ctx, (2 * count + 1) * band.tiles.len(), "partial sums").unwrap();
            let mut totals = DeviceVec::zeros(&ctx, 2 * count + 1, "totals").unwrap();
            let sums = TileSums { partials: &partials, tiles: band.tiles.len() };
            kernels.basis_dots(&ctx, &band, (0..count, count, 3), &w, sums).unwrap();
            kernels.basis_totals(&ctx, 2 * count + 1, sums, &mut totals).unwrap();
            let mut found = vec![0.0; 2 * count + 2];
            totals.read(&ctx, 0, &mut found[..2 * count + 1]).unwrap();
            let place = ((count - 1, false), &mut to);
            kernels.basis_next(&ctx, &mut band, (count - 1, &factors), (0.5, &w), place, sums).unwrap();
            kernels.basis_totals(&ctx, 1, sums, &mut totals).unwrap();
            totals.read(&ctx, 0, &mut found[2 * count + 1..]).unwrap();
            found.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let [one, three, many] = [1, 3, 64].map(run);
        assert!(one == three && one == many, "groups of {group_size}");
    }
}
