//! A device's block of rows.

use std::sync::Arc;

use super::device_rows::{DeviceRows, Which};
use super::exchange::HaloExchange;
use super::plan::{Offer, Target};
use super::{Exchange, Format, segments};
use crate::backend::opencl::{DeviceSums, OpenClBackend};
use crate::backend::{Arriving, Backend, LinearOperator, pair};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::kernels::products::{Product, Rows};
use crate::kernels::{Kernels, ProductsFor, Shape, Tuning};
use crate::partition::{HaloPlan, NewValues, Part};
use crate::real::Real;

/// A block of rows in one of several formats, with what its halo needs in vectors of so many columns.
pub(crate) struct DeviceBlock<T: Real> {
    rows: Arc<DeviceRows<T>>,
    format: Format,
    /// Bytes that a product reads and writes.
    bytes: u64,
    n_rows: usize,
    columns: usize,
    exchange: HaloExchange<T>,
}

impl<T: Real> DeviceBlock<T> {
    /// The most entries of a block, which row pointers count in 32 bits.
    pub(crate) const MAX_NNZ: usize = segments::MAX_LEN;

    /// Moves the block of `part`, times `factor`, to the device, in `format`.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); [`Error::Usage`](crate::Error::Usage) if the rows do not fit the format.
    ///
    /// # Panics
    /// If there are more entries than 32-bit row pointers can count, or a column is outside the block.
    #[cfg(test)]
    pub(crate) fn upload(ctx: &Context, tuning: &Tuning, part: &Part<'_>, factor: f64, format: Format) -> Result<Self> {
        let offer = Offer::of(part, factor, format, target(ctx, tuning))?;
        Self::alone(ctx, tuning, part, &offer)?.join(ctx, &part.halo, Exchange::HostStaged)
    }

    /// Moves the block of `part` to the device as one of the formats that were found for it, as if no other rank took part:
    /// products leave the halo as it is.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    ///
    /// # Panics
    /// If there are more entries than 32-bit row pointers can count, or a column is outside the block.
    pub(crate) fn alone(ctx: &Context, tuning: &Tuning, part: &Part<'_>, offer: &Offer<'_, T>) -> Result<Self> {
        assert!(part.nnz() <= Self::MAX_NNZ, "{} entries in one block", part.nnz());
        let rows = Arc::new(offer.upload(ctx, tuning)?);
        let n_rows = part.n_owned();
        let nobody = HaloPlan { len: part.halo.len, ..HaloPlan::default() };
        let exchange = HaloExchange::new(ctx, n_rows, &nobody, Exchange::HostStaged)?;
        Ok(Self { rows, format: offer.format, bytes: offer.bytes, n_rows, columns: 1, exchange })
    }

    /// Rows of an operator that is no matrix, whose products move so many bytes.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn of_operator(
        ctx: &Context,
        (rows, bytes): (DeviceRows<T>, u64),
        n_rows: usize,
        (halo, model): (&HaloPlan, Exchange),
    ) -> Result<Self> {
        let exchange = HaloExchange::new(ctx, n_rows, halo, model)?;
        Ok(Self { rows: Arc::new(rows), format: Format::Auto, bytes, n_rows, columns: 1, exchange })
    }

    /// The block as one of several, whose products fill the halo; the context must be of the kind that `exchange` needs.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn join(self, ctx: &Context, halo: &HaloPlan, exchange: Exchange) -> Result<Self> {
        Ok(Self { exchange: HaloExchange::new(ctx, self.n_rows, halo, exchange)?, ..self })
    }

    /// The same rows, which are not moved again, for vectors of 2, 4, 8 or 16 columns: element (row, c) is number `row * columns + c`,
    /// also in the halo. A product reads the matrix once for all columns. Takes memory for the messages of the halo, and for the sums of
    /// the pieces of long rows.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    ///
    /// # Panics
    /// If this block is for several columns itself.
    pub(crate) fn of_columns(&self, ctx: &Context, columns: usize) -> Result<Self> {
        assert_eq!(self.columns, 1, "a block for vectors of several columns");
        let all = [Which::Interior, Which::Boundary, Which::All].into_iter().flat_map(|which| self.launches(which));
        all.into_iter().try_for_each(|rows| rows.make_room(ctx, columns))?;
        Ok(Self {
            rows: Arc::clone(&self.rows),
            format: self.format,
            bytes: self.bytes + (2 * self.n_rows * (columns - 1) * size_of::<T>()) as u64,
            n_rows: self.n_rows,
            columns,
            exchange: self.exchange.of_columns(ctx, columns)?,
        })
    }

    /// The same, as if a product moved so many bytes.
    #[cfg(test)]
    pub(crate) fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// The same, as if a step took longer than an exchange, so that no product is launched in two parts.
    #[cfg(test)]
    pub(crate) fn whole(mut self) -> Self {
        self.exchange.is_hidden_by_step = true;
        self
    }

    /// What a product launches on some rows, one after the other.
    pub(crate) fn launches(&self, which: Which) -> impl ExactSizeIterator<Item = Rows<'_, T>> {
        self.rows.launches(which)
    }

    /// Whether it is no matrix.
    fn is_of_operator(&self) -> bool {
        self.launches(Which::All).any(|rows| rows.own_program().is_some())
    }

    /// Compiles the products of its format, or else the first of them waits for the compiler.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn compile<A: Real>(&self, ctx: &Context, kernels: &Kernels<T, A>) -> Result<()> {
        self.launches(Which::All).try_for_each(|rows| kernels.prepare(ctx, rows, ProductsFor::Columns(self.columns)))
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &DeviceRows<T> {
        &self.rows
    }

    /// What is exchanged for a product.
    pub(crate) fn plan(&self) -> &HaloPlan {
        self.exchange.plan()
    }

    /// Memory that the rows take on the device, in bytes, without what belongs to their halo.
    pub(crate) fn memory(&self) -> u64 {
        self.rows.memory as u64
    }

    /// The format that was chosen.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Kernels that a product launches: each leaves partial sums of its own.
    pub(crate) fn launch_count(&self) -> usize {
        self.launches(Which::Interior).len() + self.launches(Which::Boundary).len()
    }

    /// Launches a product on the rows that need no halo while the halo of `x` is under way, then on the others.
    fn overlapped<A: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        x: &mut DeviceVec<T>,
        product: &Product<'_, T, A>,
    ) -> Result<()> {
        let on = |which, x: &DeviceVec<T>| {
            self.launches(which)
                .map(|rows| self.launch(backend, rows, x, product, None))
                .try_for_each(|groups| groups.map(|_| ()))
        };
        self.exchange.pack(backend, x)?;
        on(Which::Interior, x)?;
        self.exchange.send(backend, x)?;
        self.exchange.receive(backend, x)?;
        on(Which::Boundary, x)
    }

    /// y = A x on some rows, with parts of x·y and y·y behind those of the `before` work-groups that were launched so far.
    /// Tells how many there are then.
    fn dots_of<A: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        which: Which,
        x: &DeviceVec<T>,
        y: &mut DeviceVec<T>,
        partials: &DeviceVec<A>,
        before: usize,
    ) -> Result<usize> {
        let (done, sending) = (&*backend.done(), backend.sending());
        self.launches(which).try_fold(before, |groups, rows| {
            let (first, sending) = (groups as u32, sending.as_ref());
            let product = Product::Dots { y: &mut *y, partials, first, done, sending };
            Ok(groups + self.launch(backend, rows, x, &product, backend.as_several())?)
        })
    }

    /// Launches a product on some rows, in a grid that may be given; tells on how many groups.
    fn launch<A: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        rows: Rows<'_, T>,
        x: &DeviceVec<T>,
        product: &Product<'_, T, A>,
        grid: Option<Grid>,
    ) -> Result<usize> {
        assert_eq!(self.columns, backend.columns(), "columns of a block and of vectors");
        backend.kernels.product(&backend.ctx, rows, self.columns, x, product, grid)
    }
}

impl<T: Real, A: Real> LinearOperator<OpenClBackend<T, A>> for DeviceBlock<T> {
    fn apply(&self, backend: &OpenClBackend<T, A>, x: &mut DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        self.overlapped(backend, x, &Product::Store(y))
    }

    fn fill_halo(&self, backend: &OpenClBackend<T, A>, x: &mut DeviceVec<T>) -> Result<()> {
        self.exchange.pack(backend, x)?;
        self.exchange.send(backend, x)?;
        self.exchange.receive(backend, x)
    }

    fn multiply(
        &self,
        backend: &OpenClBackend<T, A>,
        v: &mut [DeviceVec<T>],
        of: [usize; 2],
        arriving: Option<Arriving<'_, DeviceVec<T>>>,
        dots: &mut DeviceSums<A>,
    ) -> Result<()> {
        let partials = backend.empty(dots, self.launch_count())?;
        if let Some(Arriving { of, .. }) = &arriving {
            self.exchange.send(backend, &v[*of])?;
        }
        // one launch is quicker than two, if it does not wait
        let is_whole = backend.in_one() || self.exchange.is_hidden_by_step;
        let mut groups = dots.groups();
        if !is_whole {
            let [x, y] = pair(v, of);
            groups = self.dots_of(backend, Which::Interior, x, y, &partials, groups)?;
        }
        if let Some(Arriving { of, then }) = arriving {
            self.exchange.receive(backend, &mut v[of])?;
            if self.exchange.halo() > 0 {
                then(v)?;
            }
        }
        let rest = if is_whole { Which::All } else { Which::Boundary };
        let [x, y] = pair(v, of);
        dots.set_groups(self.dots_of(backend, rest, x, y, &partials, groups)?);
        Ok(())
    }

    fn take_values(&mut self, backend: &OpenClBackend<T, A>, values: &NewValues<'_>) -> Result<bool> {
        self.rows.replace_values(&backend.ctx, values)
    }

    fn takes_columns(&self) -> bool {
        !self.is_of_operator()
    }

    fn of_columns(&self, backend: &OpenClBackend<T, A>, columns: usize) -> Result<Self> {
        let block = DeviceBlock::of_columns(self, &backend.ctx, columns)?;
        block.compile(&backend.ctx, &backend.kernels)?;
        Ok(block)
    }

    fn receive_halo(
        &self,
        backend: &OpenClBackend<T, A>,
        v: &mut [DeviceVec<T>],
        Arriving { of, then }: Arriving<'_, DeviceVec<T>>,
    ) -> Result<()> {
        self.exchange.send(backend, &v[of])?;
        self.exchange.receive(backend, &mut v[of])?;
        if self.exchange.halo() > 0 { then(v) } else { Ok(()) }
    }

    fn pack_halo(&self, backend: &OpenClBackend<T, A>, y: &DeviceVec<T>, is_summed: bool) -> Result<()> {
        if is_summed { self.exchange.pack_known(backend, y) } else { self.exchange.pack(backend, y) }
    }

    fn residual(
        &self,
        backend: &OpenClBackend<T, A>,
        b: &DeviceVec<T>,
        x: &mut DeviceVec<T>,
        r: &mut DeviceVec<T>,
    ) -> Result<()> {
        self.overlapped(backend, x, &Product::Residual { b, r })
    }

    fn rows(&self) -> Option<Rows<'_, T>> {
        let mut all = self.launches(Which::All);
        (all.len() == 1 && self.columns == 1 && !self.is_of_operator()).then(|| all.next()).flatten()
    }

    fn live_halo(&self) -> Option<&HaloPlan> {
        self.exchange.live()
    }

    fn halo(&self) -> usize {
        self.exchange.halo()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What rows are laid out for on a device.
pub(crate) fn target(ctx: &Context, tuning: &Tuning) -> Target {
    Target::new(ctx.info(), Shape::of_group(tuning.launch("spmv_dot_pattern").group_size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{Failure, Threads};
    use crate::device::list;
    use crate::matrix::gallery;
    use crate::partition::split;

    /// Of each column, what products of all ranks come to with a vector of so many: A x, A x once more with the halo filled, b − A x,
    /// and x·y and y·y.
    fn multiplied(
        a: &crate::Csr,
        rows: &[std::ops::Range<usize>],
        (shape, model, format): (Shape, Exchange, Format),
        x: &[Vec<f64>],
    ) -> Vec<([Vec<f64>; 3], [f64; 2])> {
        let (k, device) = (x.len(), list().devices.remove(0));
        let parts = split(a, rows);
        let receivers: Vec<usize> = parts.iter().map(|part| part.halo.receivers.len()).collect();
        let comms = Threads::new(&receivers, &Arc::new(Failure::default()));
        let rank = |part: Part<'_>, comm: Threads<f64>| {
            let ctx = Arc::new(Context::open(&device).unwrap());
            let kernels = Kernels::<f64, f64>::build(&ctx, Tuning::default_for(&device, shape)).unwrap();
            let n = part.n_owned();
            let backend = OpenClBackend::of_columns(Arc::clone(&ctx), kernels, [n, k], Box::new(comm)).unwrap();
            let offer = Offer::of(&part, 1.0, format, target(&ctx, &backend.kernels.tuning)).unwrap();
            let block = DeviceBlock::alone(&ctx, &backend.kernels.tuning, &part, &offer).unwrap();
            let block = block.join(&ctx, &part.halo, model).unwrap();
            let of_columns = block.of_columns(&ctx, k).unwrap();
            assert_eq!([block.exchange.halo(), of_columns.exchange.halo()], [1, k].map(|k| k * part.halo.len));
            assert_eq!(of_columns.bytes, block.bytes + (16 * n * (k - 1)) as u64);
            let operator: &dyn LinearOperator<OpenClBackend<f64, f64>> = &of_columns;
            assert!(operator.rows().is_none() && operator.live_halo().is_none());
            of_columns.compile(&ctx, &backend.kernels).unwrap();
            let own: Vec<f64> = part.rows.clone().flat_map(|row| x.iter().map(move |x| x[row])).collect();
            let vector = || backend.vector(operator.halo(), "a vector").unwrap();
            let mut v = [vector(), vector(), vector(), vector()];
            let [x, b, y, r] = &mut v;
            backend.write(&own, x).unwrap();
            backend.write(&vec![1.0; own.len()], b).unwrap();
            of_columns.apply(&backend, x, y).unwrap();
            of_columns.residual(&backend, b, x, r).unwrap();
            let mut sums = backend.product_sums().unwrap();
            of_columns.multiply(&backend, &mut v, [0, 1], None, &mut sums).unwrap();
            let (partials, first, count) = sums.parts();
            let mut parts = vec![0.0; partials.len()];
            partials.read(&ctx, 0, &mut parts).unwrap();
            let parts = &parts[2 * k * first as usize..][..2 * k * count as usize];
            let columns = |v: &DeviceVec<f64>| {
                let mut all = vec![0.0; own.len()];
                backend.read(v, &mut all).unwrap();
                all
            };
            let column = |c: usize| {
                let of = |v: &Vec<f64>| v.iter().skip(c).step_by(k).copied().collect::<Vec<f64>>();
                let sum = |j: usize| parts.iter().skip(j * k + c).step_by(2 * k).sum::<f64>();
                ([&v[2], &v[1], &v[3]].map(|v| of(&columns(v))), [sum(0), sum(1)])
            };
            (0..k).map(column).collect::<Vec<_>>()
        };
        let ranks: Vec<_> = std::thread::scope(|scope| {
            let rank = &rank;
            let threads: Vec<_> =
                parts.into_iter().zip(comms).map(|(part, comm)| scope.spawn(move || rank(part, comm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let of_all = |c: usize| {
            let vector = |j: usize| ranks.iter().flat_map(|rank| rank[c].0[j].clone()).collect::<Vec<f64>>();
            let sum = |j: usize| ranks.iter().map(|rank| rank[c].1[j]).sum::<f64>();
            ([0, 1, 2].map(vector), [0, 1].map(sum))
        };
        (0..k).map(of_all).collect()
    }

    #[test]
    fn halos_of_several_columns() {
        let [small, large] = [[13, 17], [30, 90]].map(|sides| gallery::poisson2d(sides).unwrap());
        let n = small.n_rows();
        let cuts: [&[usize]; 4] = [&[0, n], &[0, 100, n], &[0, 70, 70, n], &[0, 13, 60, 61, 150, n]];
        let of = |a: &crate::Csr, cuts: &[usize], k: usize, how: (Shape, Exchange, Format)| {
            let n = a.n_rows();
            let rows: Vec<_> = cuts.windows(2).map(|ends| ends[0]..ends[1]).collect();
            let x: Vec<Vec<f64>> =
                (0..k).map(|c| (0..n).map(|i| ((i * 7 + 5 * c) % 11) as f64 - 5.0).collect()).collect();
            for (x, ([y, q, r], dots)) in x.iter().zip(multiplied(a, &rows, how, &x)) {
                let expected = a.mul_vec(x);
                let residual: Vec<f64> = expected.iter().map(|y| 1.0 - y).collect();
                assert!(y == expected && q == expected && r == residual, "{cuts:?}, {k}, {how:?}");
                let dot = |x: &[f64]| x.iter().zip(&expected).map(|(x, y)| x * y).sum::<f64>();
                assert_eq!(dots, [dot(x), dot(&expected)], "{cuts:?}, {k}, {how:?}");
            }
        };
        for cuts in cuts {
            of(&small, cuts, 2, (Shape::Gpu, Exchange::HostStaged, Format::Csr));
            of(&small, cuts, 4, (Shape::Cpu, Exchange::Live, Format::Csr));
        }
        of(&small, cuts[2], 16, (Shape::Gpu, Exchange::HostCopied, Format::Sell));
        for shape in [Shape::Cpu, Shape::Gpu] {
            of(&large, &[0, 900, 2700], 8, (shape, Exchange::HostCopied, Format::Pattern));
        }
    }

    #[test]
    #[should_panic(expected = "column 2 of 2")]
    fn no_column_outside_reaches_a_device() {
        let device = list().devices.remove(0);
        let (ctx, tuning) = (Context::open(&device).unwrap(), Tuning::default_for(&device, Shape::of(&device)));
        let upload = |col_idx: [u32; 3]| {
            let (row_ptr, values, halo) = ([0, 2, 3], [1.0; 3], HaloPlan::default());
            let part = Part {
                rows: 0..2,
                row_ptr: &row_ptr,
                col_idx: col_idx.to_vec().into(),
                values: values.as_slice().into(),
                halo,
                of: None,
            };
            DeviceBlock::<f32>::upload(&ctx, &tuning, &part, 1.0, Format::Csr).map(|_| ())
        };
        upload([0, 1, 1]).unwrap();
        upload([0, 1, 2]).unwrap();
    }
}
