//! Launchers of `cl/amg_blocks.cl` and `cl/amg_block_product.cl`.

use std::rc::Rc;

use super::aggregate::DeviceAggregates;
use super::{AmgKernels, DeviceSparse, launch};
use crate::device::{Context, DeviceVec, Grid, Kernel, Stay};
use crate::error::Result;
use crate::kernels::{Argument, PRELUDE, USUAL_STD, count, options_of};
use crate::real::Real;

/// Work-items of a group that makes a node's rows of a product: many, if blocks that are added at once have so many elements.
const GROUPS: [usize; 2] = [64, 256];
const MANY: usize = 256;

/// Blocks that it has room for: one of these numbers, twice as many as a row has on the average; but no more than so many elements.
const ROOMS: [usize; 3] = [8, 32, 128];
const MOST_ELEMENTS: usize = 4096;

/// A matrix in blocks of `size` rows and columns: the compressed rows of its nodes, and behind each other the blocks of their entries, row by
/// row. Made by this module and by `precond::amg::on_device` alone, which vouch for it: as for a [`DeviceSparse`].
pub(crate) struct DeviceBlocks {
    /// With a value for each block that is its norm, where that is asked for.
    pub(crate) nodes: DeviceSparse,
    size: [u32; 2],
    values: DeviceVec<f32>,
}

impl DeviceBlocks {
    /// How many entries its rows have.
    pub(crate) fn nnz(&self) -> usize {
        self.values.len()
    }

    /// As kernels take it.
    fn rows(&self) -> [&dyn Argument; 3] {
        [&self.nodes.starts, &self.nodes.columns, &self.values]
    }

    /// Rows of a block, and columns.
    fn sides(&self) -> [&dyn Argument; 2] {
        [&self.size[0], &self.size[1]]
    }

    /// Nodes, and their entries.
    fn entries(&self) -> (usize, usize) {
        (self.nodes.n_rows, self.nodes.nnz())
    }
}

/// Near-null vectors of a level.
pub(crate) struct DeviceModes {
    /// Rows of a node.
    pub(crate) unknowns: usize,
    /// How many vectors there are.
    pub(crate) width: usize,
    /// Their elements, row by row.
    pub(crate) values: DeviceVec<f32>,
}

impl<A: Real> AmgKernels<A> {
    /// A square matrix that is made of full blocks of `size` rows and columns, whose rows are sorted; with norms.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn blocks_of(&self, ctx: &Context, a: &DeviceSparse, size: usize) -> Result<DeviceBlocks> {
        let (n, nnz) = (a.n_rows / size, a.nnz() / (size * size));
        assert!(a.n_rows == n * size && a.n_cols == a.n_rows && a.nnz() == nnz * size * size);
        let side = count(size);
        let starts = self.pool.array(ctx, n + 1, Stay::Short, "where nodes begin")?;
        // SAFETY: types as declared in the file; n size + 1 row starts, and n + 1 of nodes. The kernel takes n + 1 of them.
        unsafe {
            launch(ctx, &self.kernels["block_starts"], self.grid(n + 1), &[&count(n), &side, &a.starts, &starts])
        }?;
        let nodes = self.with_starts(ctx, (n, n), starts, nnz, Stay::Short)?;
        let values = self.pool.array(ctx, a.nnz(), Stay::Short, "blocks of a level")?;
        let [from_starts, from_columns, from_values] = a.rows();
        let args = [&side, from_starts, from_columns, from_values, &nodes.starts, &nodes.columns, &values];
        // SAFETY: types as declared in the file; n nodes, whose blocks have size × size entries of the rows.
        unsafe { self.run_shared(ctx, "blocks_of_rows", (n, nnz), &args) }?;
        let blocks = DeviceBlocks { nodes, size: [side, side], values };
        self.norms(ctx, &blocks)?;
        Ok(blocks)
    }

    /// The same of n nodes, whose arrays are there.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn blocks_with(
        &self,
        ctx: &Context,
        (n, size): (usize, usize),
        starts: DeviceVec<u32>,
        columns: DeviceVec<u32>,
        values: DeviceVec<f32>,
    ) -> Result<DeviceBlocks> {
        assert!(starts.len() == n + 1 && values.len() == columns.len() * size * size);
        let norms = self.pool.array(ctx, columns.len(), Stay::Short, "norms of blocks")?;
        let nodes = DeviceSparse { n_rows: n, n_cols: n, starts, columns, values: norms };
        let blocks = DeviceBlocks { nodes, size: [count(size); 2], values };
        self.norms(ctx, &blocks)?;
        Ok(blocks)
    }

    /// Sets the norms of square blocks.
    fn norms(&self, ctx: &Context, a: &DeviceBlocks) -> Result<()> {
        assert!(a.size[0] == a.size[1]);
        let [starts, columns, norms] = a.nodes.rows();
        // SAFETY: types as declared in the file; n nodes, as the blocks vouch, and a norm for each entry.
        unsafe { self.run_shared(ctx, "block_norms", a.entries(), &[&a.size[0], starts, columns, &a.values, norms]) }
    }

    /// The rows of a matrix in blocks.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn rows_of(&self, ctx: &Context, a: &DeviceBlocks) -> Result<DeviceSparse> {
        let [height, width] = a.size.map(|side| side as usize);
        let (n, n_cols) = (a.nodes.n_rows * height, a.nodes.n_cols * width);
        let starts = self.pool.array(ctx, n + 1, Stay::Long, "where rows begin")?;
        let [high, wide] = a.sides();
        // SAFETY: types as declared in the file; the starts of n / height nodes, and n + 1 of rows. The kernel takes n + 1 of them.
        unsafe {
            launch(
                ctx,
                &self.kernels["row_starts"],
                self.grid(n + 1),
                &[&count(n), high, wide, &a.nodes.starts, &starts],
            )
        }?;
        let rows = self.with_starts(ctx, (n, n_cols), starts, a.nnz(), Stay::Long)?;
        let [starts, columns, _] = a.nodes.rows();
        let args = [high, wide, starts, columns, &a.values, &rows.columns, &rows.values];
        // SAFETY: as above, and room for the entries of all blocks.
        unsafe { self.run_shared(ctx, "rows_of_blocks", a.entries(), &args) }?;
        Ok(rows)
    }

    /// The length of what near-null vectors are at each node.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn at_nodes(&self, ctx: &Context, modes: &DeviceModes) -> Result<DeviceVec<f32>> {
        let elements = modes.unknowns * modes.width;
        let n = modes.values.len() / elements;
        let lengths = self.short(ctx, n, "near-null vectors at nodes")?;
        // SAFETY: types as declared in the file; n nodes, with so many elements each.
        unsafe { self.run(ctx, "modes_at_nodes", n, &[&[&count(elements), &modes.values, &lengths]]) }?;
        Ok(lengths)
    }

    /// The tentative prolongation of near-null vectors, and those of the next level. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn bases(
        &self,
        ctx: &Context,
        aggregates: &DeviceAggregates,
        modes: &DeviceModes,
    ) -> Result<(DeviceBlocks, DeviceModes)> {
        let &DeviceModes { unknowns, width, ref values } = modes;
        let n = aggregates.of.len();
        assert!(values.len() == n * unknowns * width);
        let (starts, members) = self.members(ctx, aggregates)?;
        let square = width * width;
        let factors: DeviceVec<A> = self.short(ctx, aggregates.count * square, "factors of near-null vectors")?;
        let next = self.short(ctx, aggregates.count * square, "the next near-null vectors")?;
        let [high, wide] = [unknowns, width].map(count);
        // SAFETY: types as declared in the file; members below n, each with unknowns × width elements, and a square for each aggregate.
        unsafe {
            let args: [&dyn Argument; 7] = [&high, &wide, &starts, &members, values, &factors, &next];
            self.run(ctx, "bases_factor", aggregates.count, &[&args])
        }?;
        let lengths = self.short::<f32>(ctx, n, "values of nodes")?; // nobody reads them
        let nodes = self.unsmoothed(ctx, aggregates.of.len(), aggregates, &lengths)?;
        let t = self.short(ctx, nodes.nnz() * unknowns * width, "the tentative prolongation")?;
        // SAFETY: types as declared in the file; unknowns rows of each node, a square for each aggregate, and a block for each node that has one.
        unsafe {
            let args: [&dyn Argument; 7] = [&high, &wide, &aggregates.of, &nodes.starts, values, &factors, &t];
            self.run(ctx, "bases_rows", n * unknowns, &[&args])
        }?;
        let t = DeviceBlocks { nodes, size: [high, wide], values: t };
        Ok((t, DeviceModes { unknowns: width, width, values: next }))
    }

    /// P = (I − ω A) T. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn smoothed_blocks(
        &self,
        ctx: &Context,
        a: &DeviceBlocks,
        t: &DeviceBlocks,
        aggregates: &DeviceAggregates,
        omega: f32,
    ) -> Result<DeviceBlocks> {
        let p = self.blocks_product(ctx, a, t, Stay::Long)?;
        assert!(p.nodes.n_rows == aggregates.of.len());
        let size = t.size[0] * t.size[1];
        let of_p = [&size as &dyn Argument, &omega, &p.nodes.starts, &p.nodes.columns, &aggregates.of];
        let of_t: [&dyn Argument; 3] = [&t.nodes.starts, &t.values, &p.values];
        // SAFETY: types as declared in the file; n nodes of p and of t, whose blocks have the same size.
        unsafe { self.run_shared(ctx, "blocks_smoothed", p.entries(), &[&of_p[..], &of_t].concat()) }?;
        Ok(p)
    }

    /// A B, which is to stay so long; its rows are sorted. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn blocks_product(
        &self,
        ctx: &Context,
        a: &DeviceBlocks,
        b: &DeviceBlocks,
        stay: Stay,
    ) -> Result<DeviceBlocks> {
        assert!(a.size[1] == b.size[0]);
        let lengths = self.product_lengths(ctx, &a.nodes, &b.nodes, stay)?;
        let nodes = self.product(ctx, &a.nodes, &b.nodes, lengths, true)?;
        let size = [a.size[0], b.size[1]];
        let values = self.pool.array(ctx, nodes.nnz() * (size[0] * size[1]) as usize, stay, "blocks of a level")?;
        let c = DeviceBlocks { nodes, size, values };
        let at_once = b.nnz() / b.nodes.n_rows.max(1) * (size[0] / b.size[0]).max(1) as usize;
        let group_size = GROUPS[usize::from(at_once >= MANY)];
        let sides = [size[0], a.size[1], size[1]].map(|side| side as usize);
        let grid = Grid { groups: c.nodes.n_rows.clamp(1, self.most_groups), group_size };
        let n = count(c.nodes.n_rows);
        let args = [&[&n as &dyn Argument][..], &a.rows(), &b.rows(), &c.rows()].concat();
        let of_row = 2 * c.nodes.nnz() / c.nodes.n_rows.max(1);
        let room = ROOMS.into_iter().find(|room| *room >= of_row).unwrap_or(usize::MAX);
        let room = room.min(MOST_ELEMENTS / (sides[0] * sides[2]));
        let kernel = self.block_product(ctx, [group_size, room], sides)?;
        // SAFETY: types as declared in the file; matrices that fit, as checked and as the blocks vouch, and the nodes of their product.
        unsafe { launch(ctx, &kernel, grid, &args) }?;
        Ok(c)
    }

    /// The kernel for blocks of these sides, compiled when it is first needed.
    fn block_product(&self, ctx: &Context, [group_size, room]: [usize; 2], sides: [usize; 3]) -> Result<Rc<Kernel>> {
        let [height, depth, width] = sides;
        let key = [group_size, room, height, depth, width];
        let mut kernels = self.block_products.borrow_mut();
        if let Some(kernel) = kernels.get(&key) {
            return Ok(Rc::clone(kernel));
        }
        let files = [("prelude", PRELUDE), ("amg_block_product", include_str!("../../../cl/amg_block_product.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let options = options_of::<f32, A>(USUAL_STD, ctx.info(), group_size, group_size);
        let options = format!("{options} -D BLOCKS={room} -D HEIGHT={height} -D DEPTH={depth} -D WIDTH={width}");
        let kernel = ctx.kernel(&ctx.build(&source, &options)?, "blocks_product", [f32::CL_NAME, A::CL_NAME])?;
        Ok(Rc::clone(kernels.entry(key).or_insert(Rc::new(kernel))))
    }

    /// The transpose, whose rows are sorted.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn transposed_blocks(&self, ctx: &Context, a: &DeviceBlocks) -> Result<DeviceBlocks> {
        let (nodes, places) = self.transposed_and_places(ctx, &a.nodes)?;
        let values = self.pool.array(ctx, a.nnz(), Stay::Long, "blocks of a level")?;
        let [high, wide] = a.sides();
        // SAFETY: types as declared in the file; places of all blocks.
        unsafe { self.run(ctx, "blocks_at", nodes.nnz(), &[&[high, wide, &places, &a.values, &values]]) }?;
        Ok(DeviceBlocks { nodes, size: [a.size[1], a.size[0]], values })
    }

    /// Scales Pᵀ A P so that its diagonal is 1, and Pᵀ and the near-null vectors to match; P gets the other sign, too. Sets the norms.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn scale_blocks(
        &self,
        ctx: &Context,
        [p, restriction, next]: [&mut DeviceBlocks; 3],
        modes: &mut DeviceModes,
    ) -> Result<()> {
        let [size, width] = restriction.size;
        let n = next.nodes.n_rows * size as usize;
        assert!(next.size == [size, size] && p.size == [width, size] && modes.values.len() == n * size as usize);
        assert!(next.nodes.n_rows == restriction.nodes.n_rows && next.nodes.n_rows == p.nodes.n_cols);
        let factors = self.short::<f32>(ctx, n, "factors of the next level")?;
        let [starts, columns, _] = next.nodes.rows();
        let of_next = [&size as &dyn Argument, &width, starts, columns, &next.values];
        let of_rows: [&dyn Argument; 4] = [&restriction.nodes.starts, &restriction.values, &factors, &modes.values];
        // SAFETY: types as declared in the file; n rows here and there, n factors, `size` vectors, and columns as the blocks vouch.
        unsafe { self.run(ctx, "block_factors", n, &[&of_next, &of_rows]) }?;
        // SAFETY: as above.
        unsafe {
            let args: [&dyn Argument; 5] = [&size, starts, columns, &factors, &next.values];
            self.run_shared(ctx, "blocks_scale_both", next.entries(), &args)
        }?;
        // SAFETY: as above.
        unsafe {
            let args: [&dyn Argument; 5] = [&size, &width, &restriction.nodes.starts, &factors, &restriction.values];
            self.run_shared(ctx, "blocks_scale_rows", restriction.entries(), &args)
        }?;
        // SAFETY: as above; the kernel takes blocks.
        unsafe {
            let args: [&dyn Argument; 5] = [&width, &size, &p.nodes.columns, &factors, &p.values];
            self.run(ctx, "blocks_scale_columns", p.nodes.nnz(), &[&args])
        }?;
        self.norms(ctx, next)
    }
}
