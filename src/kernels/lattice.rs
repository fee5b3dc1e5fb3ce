//! Launchers of `cl/lattice.cl`: multigrid levels on a lattice, whose rows follow from the classes of coordinates.

use super::{Argument, PRELUDE, Shape, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;

/// Products, and restrictions, for any number of entries a row, and for those of usual stencils, each by a kernel of its own.
const PRODUCTS: [(usize, &str); 5] = [
    (0, "lattice_product"),
    (5, "lattice_product_5"),
    (7, "lattice_product_7"),
    (9, "lattice_product_9"),
    (27, "lattice_product_27"),
];
const RESTRICTIONS: [(usize, &str); 3] =
    [(0, "lattice_restrict"), (9, "lattice_restrict_9"), (27, "lattice_restrict_27")];

/// Points of a compute unit for each of which a GPU has a work-item, where there are as many.
const POINTS_OF_A_UNIT: usize = 1 << 12;

/// The most points of a column that a work-item does one after the other, in both shapes.
const DEEPEST: [usize; 2] = [32, 1 << 12];

/// Groups for each compute unit at most, and points that are worth one, where this is one work-item.
const GROUPS_OF_A_UNIT: usize = 8;
const FEW: usize = 1 << 10;

/// Weights of a [cell](LatticeTransfer::new).
const CELL: usize = 27;

/// Coordinates of three directions: the class of each, and how many classes there are.
pub(crate) type ClassesOf<'a> = [(&'a [u32], usize); 3];

/// In which order work-items go through the points of a lattice.
#[derive(Debug, Clone, Copy)]
struct Walk {
    /// The directions of columns next to each other, and the one along columns.
    directions: [usize; 3],
    /// How many points these have.
    sides: [usize; 3],
    depth: usize,
    /// The distances of elements of neighbours in these.
    distances: [usize; 3],
}

impl Walk {
    /// The order of directions for a lattice: neighbouring work-items of a GPU have neighbouring points, and a processor's has a line of them.
    fn directions(shape: Shape, [_, y, z]: [usize; 3]) -> [usize; 3] {
        match shape {
            Shape::Cpu => [1, 2, 0],
            Shape::Gpu if z == 1 && y > 1 => [0, 2, 1],
            Shape::Gpu => [0, 1, 2],
        }
    }

    fn new(ctx: &Context, shape: Shape, directions: [usize; 3], sides: [usize; 3]) -> Self {
        let strides = [1, sides[0], sides[0] * sides[1]];
        let units = ctx.info().compute_units.max(1) as usize;
        let depth = match shape {
            Shape::Gpu => (sides.iter().product::<usize>() / (units * POINTS_OF_A_UNIT)).clamp(1, DEEPEST[0]),
            Shape::Cpu => sides[0].clamp(1, DEEPEST[1]),
        };
        Self { directions, sides: directions.map(|d| sides[d]), depth, distances: directions.map(|d| strides[d]) }
    }

    /// How many points there are, and pieces of columns.
    fn points(&self) -> usize {
        self.sides.iter().product()
    }

    fn pieces(&self) -> usize {
        let [a, b, m] = self.sides;
        a * b * m.div_ceil(self.depth)
    }
}

/// Points of three directions whose rows follow from classes.
pub(crate) struct LatticeRows {
    walk: Walk,
    /// Of each coordinate, direction by direction, what it adds to where a row begins; and the ends of runs along columns,
    classes: DeviceVec<u32>,
    /// entries by kind of row,
    table: DeviceVec<f32>,
    /// and for each of a row, how much further the element is that it is multiplied by.
    distances: DeviceVec<i32>,
}

impl LatticeRows {
    /// Rows by classes of coordinates, those of the first direction next to each other, each with an entry for every distance of elements.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// # Panics
    /// If there is no entry for some row, or there are classes beyond their number.
    pub(crate) fn new(
        ctx: &Context,
        shape: Shape,
        classes: ClassesOf<'_>,
        (distances, table): (&[isize], &[f32]),
    ) -> Result<Self> {
        let sides = classes.map(|of| of.0.len());
        let walk = Walk::new(ctx, shape, Walk::directions(shape, sides), sides);
        Self::walked(ctx, walk, classes, (distances, table))
    }

    fn walked(
        ctx: &Context,
        walk: Walk,
        classes: ClassesOf<'_>,
        (distances, table): (&[isize], &[f32]),
    ) -> Result<Self> {
        let [x, y, z] = classes.map(|of| of.1);
        let count = distances.len();
        assert!(x * y * z * count <= table.len());
        assert!(classes.iter().all(|(of, count)| of.iter().all(|class| (*class as usize) < *count)));
        let units = [count, count * x, count * x * y];
        let mut all = Vec::new();
        for d in walk.directions {
            all.extend(classes[d].0.iter().map(|class| class * units[d] as u32));
        }
        let along = classes[walk.directions[2]].0;
        let mut end = 0;
        for run in along.chunk_by(|a, b| a == b) {
            end += run.len() as u32;
            all.extend(run.iter().map(|_| end));
        }
        let distances: Vec<i32> = distances.iter().map(|distance| *distance as i32).collect();
        Ok(Self {
            walk,
            classes: DeviceVec::from_slice(ctx, &all, "classes of a lattice")?,
            table: DeviceVec::from_slice(ctx, table, "rows of a lattice")?,
            distances: DeviceVec::from_slice(ctx, &distances, "neighbours in a lattice")?,
        })
    }

    /// How many points there are.
    pub(crate) fn rows(&self) -> usize {
        self.walk.points()
    }
}

/// How the points of a lattice are interpolated from a coarser one.
pub(crate) struct LatticeTransfer {
    rows: LatticeRows,
    cells: LatticeRows,
    above: Walk,
    /// Every how many points there is one of the coarser lattice, as directions are walked.
    steps: [usize; 3],
}

impl LatticeTransfer {
    /// For a lattice with the sides `above`, of which every `steps`-th point of a direction is one of the coarser lattice: rows of the coarser
    /// lattice as those of [`LatticeRows::new`], for elements of the finer one around their point's; and weights by the classes of
    /// cells between points of the coarser lattice, 27 each, those of the first direction next to each other. In each direction number 0 is what the point at the
    /// cell's lower end has of that end, 1 what the one in the middle has of it, and 2 what that has of the upper end.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// # Panics
    /// If sides do not follow from each other, or as [`LatticeRows::new`].
    pub(crate) fn new(
        ctx: &Context,
        shape: Shape,
        (above, steps): ([usize; 3], [usize; 3]),
        (classes, rows): (ClassesOf<'_>, (&[isize], &[f32])),
        (classes_of_cells, cells): (ClassesOf<'_>, &[[f32; CELL]]),
    ) -> Result<Self> {
        let sides = [0, 1, 2].map(|d| above[d].div_ceil(steps[d]));
        assert!(steps.iter().all(|step| matches!(step, 1 | 2)));
        assert!([classes, classes_of_cells].iter().all(|of| of.map(|of| of.0.len()) == sides));
        let directions = Walk::directions(shape, above);
        let walk = Walk::new(ctx, shape, directions, sides);
        // the numbers of cells in the order of directions, too
        let place = |k: usize| {
            let numbers = [k % 3, k / 3 % 3, k / 9];
            (0..3).map(|at| numbers[at] * 3usize.pow(directions[at] as u32)).sum::<usize>()
        };
        let cells: Vec<f32> = cells.iter().flat_map(|cell| (0..CELL).map(|k| cell[place(k)])).collect();
        Ok(Self {
            rows: LatticeRows::walked(ctx, walk, classes, rows)?,
            cells: LatticeRows::walked(ctx, walk, classes_of_cells, (&[0; CELL], &cells))?,
            above: Walk::new(ctx, shape, directions, above),
            steps: directions.map(|d| steps[d]),
        })
    }

    /// Checks that vectors are long enough.
    fn check(&self, fine: usize, coarse: usize) {
        assert!(self.above.points() <= fine && self.rows.rows() <= coarse);
    }
}

/// The kernels.
pub(crate) struct LatticeKernels {
    products: Vec<(usize, Kernel)>,
    restrictions: Vec<(usize, Kernel)>,
    correct: Kernel,
    group_size: usize,
    most_groups: usize,
}

impl LatticeKernels {
    /// Compiles them in that shape, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, shape: Shape) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("lattice", include_str!("../../cl/lattice.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let (most, units) = (ctx.info().max_work_group.max(1), ctx.info().compute_units.max(1) as usize);
        let group_size = if shape == Shape::Cpu { 1 } else { 256.min(1 << most.ilog2()).max(2) };
        let program = ctx.build(&source, &options_of::<f32, f32>(USUAL_STD, ctx.info(), group_size, group_size))?;
        let kernel = |name| ctx.kernel(&program, name, ["float", "float"]);
        let each = |of: &[(usize, &'static str)]| -> Result<Vec<_>> {
            of.iter().map(|(count, name)| Ok((*count, kernel(name)?))).collect()
        };
        Ok(Self {
            products: each(&PRODUCTS)?,
            restrictions: each(&RESTRICTIONS)?,
            correct: kernel("lattice_correct")?,
            group_size,
            most_groups: GROUPS_OF_A_UNIT * units,
        })
    }

    /// x = c b + d A b. Moves 2 elements a row.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn smooth_from_zero(
        &self,
        ctx: &Context,
        (a, [c, d]): (&LatticeRows, [f32; 2]),
        b: &DeviceVec<f32>,
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        self.product(ctx, a, (0, [c, d]), [b, b], x)
    }

    /// r = b − A x. Moves 3 elements a row.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn residual(
        &self,
        ctx: &Context,
        a: &LatticeRows,
        [b, x]: [&DeviceVec<f32>; 2],
        r: &mut DeviceVec<f32>,
    ) -> Result<()> {
        self.product(ctx, a, (1, [0.0, -1.0]), [x, b], r)
    }

    /// x += c r + d A r. Moves 3 elements a row.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn smooth(
        &self,
        ctx: &Context,
        (a, [c, d]): (&LatticeRows, [f32; 2]),
        r: &DeviceVec<f32>,
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        self.product(ctx, a, (2, [c, d]), [r, r], x)
    }

    /// y = from + c v + d A v, from 0, z, or y.
    fn product(
        &self,
        ctx: &Context,
        a: &LatticeRows,
        (from, [c, d]): (u32, [f32; 2]),
        [v, z]: [&DeviceVec<f32>; 2],
        y: &mut DeviceVec<f32>,
    ) -> Result<()> {
        assert!(a.rows() <= v.len().min(z.len()).min(y.len()));
        self.run(ctx, of_rows(&self.products, a), a, &[&count(a.distances.len()), &a.distances, &from, &c, &d, v, z, y])
    }

    /// b = Pᵀ r. Moves 1 element a row above.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn restrict(
        &self,
        ctx: &Context,
        of: &LatticeTransfer,
        r: &DeviceVec<f32>,
        to: &mut DeviceVec<f32>,
    ) -> Result<()> {
        of.check(r.len(), to.len());
        let LatticeTransfer { rows, above, steps, .. } = of;
        let ([near, next, far], [a, b, m]) = (above.distances.map(count), steps.map(count));
        let entries = count(rows.distances.len());
        self.run(
            ctx,
            of_rows(&self.restrictions, rows),
            rows,
            &[&entries, &rows.distances, &near, &next, &far, &a, &b, &m, r, to],
        )
    }

    /// x += P e. Moves 2 elements a row above.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn correct(
        &self,
        ctx: &Context,
        of: &LatticeTransfer,
        e: &DeviceVec<f32>,
        x: &mut DeviceVec<f32>,
    ) -> Result<()> {
        of.check(x.len(), e.len());
        let LatticeTransfer { cells, above, steps, .. } = of;
        let ([near, next, far], [a, b, m]) = (above.distances.map(count), steps.map(count));
        let [above_a, above_b, above_m] = above.sides.map(count);
        let more: [&dyn Argument; 11] = [&near, &next, &far, &a, &b, &m, &above_a, &above_b, &above_m, e, x];
        self.run(ctx, &self.correct, cells, &more)
    }

    /// Launches a kernel for these points.
    fn run(&self, ctx: &Context, kernel: &Kernel, of: &LatticeRows, more: &[&dyn Argument]) -> Result<()> {
        let LatticeRows { walk, classes, table, .. } = of;
        let ([side, others, length], [near, next, far]) = (walk.sides.map(count), walk.distances.map(count));
        let (columns, depth) = (side * others, count(walk.depth));
        let mut args: Vec<&dyn Argument> = vec![&side, &columns, &length, &depth, &near, &next, &far, classes, table];
        args.extend(more);
        let groups = match self.group_size {
            1 => (walk.points() / FEW).clamp(1, self.most_groups),
            size => walk.pieces().div_ceil(size).max(1),
        };
        // SAFETY: types as declared in the file; as many points as the callers have checked the vectors for, and rows as they were made.
        unsafe { launch(ctx, kernel, Grid { groups, group_size: self.group_size }, &args) }
    }
}

/// The one for as many entries as rows have, or that for any number, which is the first.
fn of_rows<'a>(kernels: &'a [(usize, Kernel)], rows: &LatticeRows) -> &'a Kernel {
    let of_count = kernels.iter().find(|(count, _)| *count == rows.distances.len());
    &of_count.unwrap_or(&kernels[0]).1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::device::list;

    fn int(k: usize, salt: usize) -> f32 {
        ((k * 7 + salt * 13 + k / 5) % 11) as f32 - 5.0
    }

    fn ints(n: usize, salt: usize) -> Vec<f32> {
        (0..n).map(|k| int(k, salt)).collect()
    }

    const CANARY: f32 = -77.0;

    fn up(ctx: &Context, v: &[f32]) -> DeviceVec<f32> {
        let guarded: Vec<f32> = v.iter().copied().chain([CANARY; 4]).collect();
        DeviceVec::from_slice(ctx, &guarded, "a test vector").unwrap()
    }

    fn down(ctx: &Context, v: &DeviceVec<f32>) -> Vec<f32> {
        let mut all = vec![0.0; v.len()];
        v.read(ctx, 0, &mut all).unwrap();
        assert_eq!(all.split_off(all.len() - 4), [CANARY; 4]);
        all
    }

    /// Coordinates of three classes: the ends, and the others.
    fn classes(side: usize) -> Vec<u32> {
        (0..side).map(|at| u32::from(at > 0) + u32::from(at > 1 && at + 1 == side)).collect()
    }

    fn offset(k: usize) -> [isize; 3] {
        [k % 3, k / 3 % 3, k / 9].map(|o| o as isize - 1)
    }

    /// Rows with an integer for each of `neighbours`, or 0 where the neighbour of a point is not there.
    struct Plain {
        sides: [usize; 3],
        neighbours: Vec<usize>,
        table: Vec<f32>,
    }

    impl Plain {
        /// For neighbours `steps` as far in a lattice with the sides `above`.
        fn new(sides: [usize; 3], neighbours: &[usize], (above, steps): ([usize; 3], [usize; 3])) -> Self {
            let mut table = ints(27 * neighbours.len(), 3);
            // but for what lies beyond the lattice from some point of a kind
            for p in points(sides) {
                for (place, &k) in neighbours.iter().enumerate() {
                    if element(p, k, above, steps).is_none() {
                        table[kind(sides, p) * neighbours.len() + place] = 0.0;
                    }
                }
            }
            Self { sides, neighbours: neighbours.to_vec(), table }
        }

        /// With classes, and the distances of entries where sides are so.
        fn with<R>(&self, [x, y, _]: [usize; 3], then: impl Fn(ClassesOf<'_>, &[isize]) -> R) -> R {
            let all = self.sides.map(classes);
            let distance = |k: usize| {
                let [ox, oy, oz] = offset(k);
                (oz * y as isize + oy) * x as isize + ox
            };
            let distances: Vec<_> = self.neighbours.iter().map(|k| distance(*k)).collect();
            then(all.each_ref().map(|of| (&of[..], 3)), &distances)
        }

        fn entries(&self, p: [usize; 3]) -> &[f32] {
            &self.table[kind(self.sides, p) * self.neighbours.len()..][..self.neighbours.len()]
        }

        /// What the points of the cell at `q` have of its ends.
        fn cell(&self, q: [usize; 3], steps: [usize; 3]) -> [f32; CELL] {
            let weight = |k: usize| {
                let numbers = [k % 3, k / 3 % 3, k / 9];
                let end = [0, 1, 2].map(|d| q[d] + numbers[d] / 2);
                let is_one = (0..3).all(|d| end[d] < self.sides[d] && (steps[d] == 2 || numbers[d] == 0));
                // the middle is beside the lower end, and before the upper one
                let place = (0..3).map(|d| [1, 2, 0][numbers[d]] * 3usize.pow(d as u32)).sum::<usize>();
                if is_one { self.entries(end)[place] } else { 0.0 }
            };
            std::array::from_fn(weight)
        }

        /// The sum of the row of `p` with the elements of v that `steps` times it has around it.
        fn times(&self, p: [usize; 3], v: &[f32], (above, steps): ([usize; 3], [usize; 3])) -> f32 {
            let entries = self.entries(p).iter().zip(&self.neighbours);
            entries.filter_map(|(a, k)| Some(a * v[element(p, *k, above, steps)?])).sum()
        }
    }

    fn points(sides: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
        let [x, y, z] = sides;
        (0..x * y * z).map(move |i| [i % x, i / x % y, i / x / y])
    }

    fn kind(sides: [usize; 3], p: [usize; 3]) -> usize {
        (0..3).rev().fold(0, |kind, d| 3 * kind + classes(sides[d])[p[d]] as usize)
    }

    /// The number of a neighbour of `steps` times a point.
    fn element(p: [usize; 3], k: usize, above: [usize; 3], steps: [usize; 3]) -> Option<usize> {
        let at = [0, 1, 2].map(|d| (p[d] * steps[d]).checked_add_signed(offset(k)[d]).filter(|at| *at < above[d]));
        let [Some(x), Some(y), Some(z)] = at else { return None };
        Some((z * above[1] + y) * above[0] + x)
    }

    /// On a device of each platform, in both shapes.
    fn each(test: impl Fn(&Context, Shape, &LatticeKernels)) {
        let devices = list().devices;
        let platforms: BTreeSet<&str> = devices.iter().map(|device| device.platform.as_str()).collect();
        for platform in platforms {
            let ctx = Context::open(devices.iter().find(|device| device.platform == platform).unwrap()).unwrap();
            for shape in [Shape::Gpu, Shape::Cpu] {
                test(&ctx, shape, &LatticeKernels::build(&ctx, shape).unwrap());
            }
        }
    }

    const SIDES: [[usize; 3]; 7] = [[1, 1, 1], [2, 1, 1], [300, 1, 1], [5, 4, 1], [3, 3, 3], [33, 2, 5], [7, 17, 9]];

    #[test]
    fn products_beside_plain_loops() {
        let star = [4, 10, 12, 13, 14, 16, 22];
        let all: Vec<usize> = (0..27).collect();
        each(|ctx, shape, kernels| {
            for sides in SIDES {
                for neighbours in [&star[..], &all, &all[2..18]] {
                    let plain = Plain::new(sides, neighbours, (sides, [1; 3]));
                    let rows = plain.with(sides, |classes, distances| {
                        LatticeRows::new(ctx, shape, classes, (distances, &plain.table)).unwrap()
                    });
                    let n = rows.rows();
                    let (b, x) = (ints(n, 1), ints(n, 2));
                    let times =
                        |v: &[f32]| -> Vec<f32> { points(sides).map(|p| plain.times(p, v, (sides, [1; 3]))).collect() };
                    let [on_b, on_x, mut to] = [&b, &x, &vec![9.0; n]].map(|v| up(ctx, v));
                    kernels.residual(ctx, &rows, [&on_b, &on_x], &mut to).unwrap();
                    let expected: Vec<f32> = b.iter().zip(times(&x)).map(|(b, t)| b - t).collect();
                    assert_eq!(down(ctx, &to), expected, "residual, {sides:?}");
                    kernels.smooth_from_zero(ctx, (&rows, [2.0, -3.0]), &on_b, &mut to).unwrap();
                    let expected: Vec<f32> = b.iter().zip(times(&b)).map(|(b, t)| 2.0 * b - 3.0 * t).collect();
                    assert_eq!(down(ctx, &to), expected, "from zero, {sides:?}");
                    let mut to = up(ctx, &x);
                    kernels.smooth(ctx, (&rows, [2.0, -3.0]), &on_b, &mut to).unwrap();
                    let expected: Vec<f32> = x.iter().zip(expected).map(|(x, gain)| x + gain).collect();
                    assert_eq!(down(ctx, &to), expected, "smooth, {sides:?}");
                }
            }
        });
    }

    #[test]
    fn transfers_beside_plain_loops() {
        let all: Vec<usize> = (0..27).collect();
        each(|ctx, shape, kernels| {
            for above in SIDES {
                for steps in [[2, 2, 2], [2, 1, 1], [1, 2, 1], [1, 1, 2]] {
                    let sides = [0, 1, 2].map(|d| above[d].div_ceil(steps[d]));
                    let mut plain = Plain::new(sides, &all, (above, steps));
                    // in directions without steps no others are interpolated
                    let stays = |k: &usize| (0..3).any(|d| steps[d] == 1 && offset(*k)[d] != 0);
                    plain.table.iter_mut().enumerate().filter(|(at, _)| stays(&(at % 27))).for_each(|(_, w)| *w = 0.0);
                    // each cell is of its own class
                    let cells: Vec<[f32; CELL]> = points(sides).map(|q| plain.cell(q, steps)).collect();
                    let own = sides.map(|side| (0..side as u32).collect::<Vec<_>>());
                    let of_cells = own.each_ref().map(|of| (&of[..], of.len()));
                    let of = plain.with(above, |classes, distances| {
                        let rows = (classes, (distances, &plain.table[..]));
                        LatticeTransfer::new(ctx, shape, (above, steps), rows, (of_cells, &cells)).unwrap()
                    });
                    let (n, below) = (above.iter().product::<usize>(), of.rows.rows());
                    let (r, e, x) = (ints(n, 1), ints(below, 2), ints(n, 3));
                    let mut b = up(ctx, &vec![9.0; below]);
                    kernels.restrict(ctx, &of, &up(ctx, &r), &mut b).unwrap();
                    let expected: Vec<f32> = points(sides).map(|p| plain.times(p, &r, (above, steps))).collect();
                    assert_eq!(down(ctx, &b), expected, "restrict, {above:?} {steps:?}");
                    let mut expected = x.clone();
                    for (j, p) in points(sides).enumerate() {
                        for (w, k) in plain.entries(p).iter().zip(&plain.neighbours) {
                            if let Some(i) = element(p, *k, above, steps) {
                                expected[i] += w * e[j];
                            }
                        }
                    }
                    let mut to = up(ctx, &x);
                    kernels.correct(ctx, &of, &up(ctx, &e), &mut to).unwrap();
                    assert_eq!(down(ctx, &to), expected, "correct, {above:?} {steps:?}");
                }
            }
        });
    }
}
