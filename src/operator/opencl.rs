//! A device's block of rows.

use super::device_rows::{DeviceRows, Which};
use super::exchange::HaloExchange;
use super::plan::{Offer, Target};
use super::{Exchange, Format, segments};
use crate::backend::opencl::{DeviceSums, OpenClBackend};
use crate::backend::{Arriving, LinearOperator, pair};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::products::{Product, Rows};
use crate::kernels::{Kernels, Shape, Tuning};
use crate::partition::{HaloPlan, Part};
use crate::real::Real;

/// A block of rows in one of several formats, with what its halo needs.
pub(crate) struct DeviceBlock<T: Real> {
    rows: DeviceRows<T>,
    format: Format,
    /// Bytes that a product reads and writes.
    bytes: u64,
    n_rows: usize,
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
        let rows = offer.upload(ctx, tuning)?;
        let n_rows = part.n_owned();
        let nobody = HaloPlan { len: part.halo.len, ..HaloPlan::default() };
        let exchange = HaloExchange::new(ctx, n_rows, &nobody, Exchange::HostStaged)?;
        Ok(Self { rows, format: offer.format, bytes: offer.bytes, n_rows, exchange })
    }

    fn of_columns(&self, _: &Context, _: usize) -> Result<Self> {
        todo!()
    }

    /// The block as one of several, whose products fill the halo; the context must be of the kind that `exchange` needs.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn join(self, ctx: &Context, halo: &HaloPlan, exchange: Exchange) -> Result<Self> {
        Ok(Self { exchange: HaloExchange::new(ctx, self.n_rows, halo, exchange)?, ..self })
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

    /// Compiles the products of its format, or else the first of them waits for the compiler.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn compile<A: Real>(&self, ctx: &Context, kernels: &Kernels<T, A>) -> Result<()> {
        self.launches(Which::All).try_for_each(|rows| kernels.prepare(ctx, rows, false))
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
                .map(|rows| backend.kernels.product(&backend.ctx, rows, x, product, None))
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
            Ok(groups + backend.kernels.product(&backend.ctx, rows, x, &product, None)?)
        })
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
        let is_whole = backend.sending().is_some() || self.exchange.is_hidden_by_step;
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

    const TAKES_COLUMNS: bool = true;

    fn of_columns(&self, backend: &OpenClBackend<T, A>, columns: usize) -> Result<Self> {
        DeviceBlock::of_columns(self, &backend.ctx, columns)
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
        (all.len() == 1).then(|| all.next()).flatten()
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
    use crate::device::list;

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
            };
            DeviceBlock::<f32>::upload(&ctx, &tuning, &part, 1.0, Format::Csr).map(|_| ())
        };
        upload([0, 1, 1]).unwrap();
        upload([0, 1, 2]).unwrap();
    }
}
