//! A rank on an OpenCL device.

use std::ops::Range;
use std::sync::Arc;

use super::backend::{Backend, Driven, LOG_STEPS, OwnProbe};
use super::grid::{Component, Half, Mode};
use super::material::Table;
use super::problem::Problem;
use super::slab::{Correction, LayerName, Slab, corrections};
use crate::comm::Message;
use crate::device::{Context, DeviceVec, Info, Kernel, PendingRead, PendingWrite, Pinned, Queue};
use crate::error::{Error, Result};
use crate::kernels::MAX_COUNT;
use crate::kernels::fdtd::{FdtdKernels, Layer, Media, Rows};
use crate::real::Real;

/// Messages that are used again: one may be under way, one in the mailbox, and one with the neighbour.
const MESSAGES: usize = 4;

/// The fields of a slab on a device.
pub(crate) struct OpenCl<T: Real> {
    // what needs the context is dropped before it
    kernels: Arc<FdtdKernels<T>>,
    /// Of H and of E.
    updates: [Kernel; 2],
    sources: Vec<Kernel>,
    corrections: Vec<Correcting<T>>,
    /// By the numbers of components; what is not there is `None`.
    fields: [Option<DeviceVec<T>>; 6],
    media: Media<T>,
    log: DeviceVec<T>,
    logged: usize,
    probes: usize,
    sending: Option<PendingRead<Pinned<T>>>,
    messages: Vec<Arc<Pinned<T>>>,
    halos: Vec<PendingWrite>,
    slab: Slab,
    ctx: Arc<Context>,
}

/// A correction, its kernel and arrays.
struct Correcting<T> {
    of: Correction<T>,
    kernel: Kernel,
    psi: DeviceVec<T>,
    profile: DeviceVec<T>,
}

impl<T: Real> OpenCl<T> {
    /// A slab without fields on a device.
    ///
    /// # Errors
    /// [`Error::TooManyElements`], [`Error::OutOfDeviceMemory`]; a failing device.
    pub(crate) fn new(problem: &Problem, slab: Slab, device: &Info) -> Result<Self> {
        let ctx = Context::open(device)?;
        let kernels = FdtdKernels::build(&ctx)?;
        Self::with(problem, slab, (Arc::new(ctx), Arc::new(kernels)))
    }

    /// The same with kernels that are compiled.
    pub(crate) fn with(
        problem: &Problem,
        slab: Slab,
        (ctx, kernels): (Arc<Context>, Arc<FdtdKernels<T>>),
    ) -> Result<Self> {
        if slab.room() > MAX_COUNT {
            return Err(Error::TooManyElements {
                device: ctx.info().label(),
                what: format!("a slab of {} cells", slab.cells()),
                limit: MAX_COUNT,
            });
        }
        let names = match slab.grid.mode() {
            Mode::Te => ["fdtd_te_h", "fdtd_te_e"],
            Mode::Tm => ["fdtd_tm_h", "fdtd_tm_e"],
            Mode::Full => ["fdtd_3d_h", "fdtd_3d_e"],
        };
        let [of_h, of_e] = names.map(|name| kernels.kernel(&ctx, name));
        let sources = problem.sources.iter().map(|_| kernels.kernel(&ctx, "fdtd_source")).collect::<Result<_>>()?;
        let mut fields = [const { None }; 6];
        for &component in slab.grid.mode().components() {
            fields[component as usize] = Some(DeviceVec::zeros(&ctx, slab.room(), component.name())?);
        }
        let all = corrections(problem, &slab).into_iter();
        let correcting = |of: Correction<T>| -> Result<Correcting<T>> {
            let psi = DeviceVec::zeros(&ctx, of.layers.cells(), "an absorbing layer")?;
            let profile = DeviceVec::from_slice(&ctx, &of.profile, "the profile of a layer")?;
            Ok(Correcting { kernel: kernels.kernel(&ctx, "fdtd_layer")?, psi, profile, of })
        };
        let corrections = all.map(correcting).collect::<Result<_>>()?;
        let table = |half| {
            let table = Table::<T>::new(&problem.materials, half, problem.vacuum, problem.dt, &problem.grid);
            DeviceVec::from_slice(&ctx, &table.0, "factors of materials")
        };
        let media = Media {
            index: DeviceVec::from_slice(&ctx, slab.of_cells(&problem.index), "the material of each cell")?,
            factors: [table(Half::H)?, table(Half::E)?],
            materials: problem.materials.len(),
        };
        let log = DeviceVec::zeros(&ctx, LOG_STEPS * problem.probes.len(), "what probes see")?;
        Ok(Self {
            kernels,
            updates: [of_h?, of_e?],
            sources,
            corrections,
            fields,
            media,
            log,
            logged: 0,
            probes: 0,
            sending: None,
            messages: Vec::new(),
            halos: Vec::new(),
            slab,
            ctx,
        })
    }

    /// Memory for a message: that of one which nobody has any more, if there is one.
    fn message(&mut self, len: usize) -> Result<Pinned<T>> {
        let free = self.messages.iter().position(|message| Arc::strong_count(message) == 1 && message.len() == len);
        if let Some(Ok(message)) = free.map(|k| Arc::try_unwrap(self.messages.swap_remove(k))) {
            return Ok(message);
        }
        Pinned::zeros(&self.ctx, len)
    }
}

/// A component that is there.
fn there<T: Real>(fields: &[Option<DeviceVec<T>>; 6], component: Component) -> &DeviceVec<T> {
    fields[component as usize].as_ref().unwrap_or_else(|| unreachable!("{component} was asked for, which is not there"))
}

fn there_mut<T: Real>(fields: &mut [Option<DeviceVec<T>>; 6], component: Component) -> &mut DeviceVec<T> {
    fields[component as usize].as_mut().unwrap_or_else(|| unreachable!("{component} was asked for, which is not there"))
}

impl<T: Real> Backend<T> for OpenCl<T> {
    fn slab(&self) -> &Slab {
        &self.slab
    }

    fn update(&mut self, half: Half, planes: Range<usize>, driven: &[Driven]) -> Result<()> {
        if planes.is_empty() {
            return Ok(());
        }
        let Self { ctx, kernels, slab, fields, media, .. } = self;
        let (nx, ny, plane) = (slab.grid.cells[0], slab.grid.cells[1], slab.plane());
        // in two dimensions there is no z, and the whole grid may have more cells than kernels count
        let strides = [nx, if slab.grid.mode() == Mode::Full { plane } else { 0 }];
        let number = usize::from(half == Half::E);
        let wall = if slab.planes.start == 0 { plane } else { 0 };
        let more: &[usize] = match (slab.grid.mode(), half) {
            (Mode::Full, Half::H) => &[plane],
            (Mode::Full, Half::E) => &[ny, wall],
            (_, Half::H) => &[],
            (_, Half::E) => &[wall],
        };
        let arrays = [Component::Hx, Component::Hy, Component::Hz, Component::Ex, Component::Ey, Component::Ez];
        let arrays: Vec<&DeviceVec<T>> = arrays.iter().filter_map(|c| fields[*c as usize].as_ref()).collect();
        let rows = Rows { first: planes.start * plane, rows: planes.len() * plane / nx, nx };
        kernels.update(ctx, &self.updates[number], rows, more, (&arrays, plane), (media, number))?;
        for Correcting { of, kernel, psi, profile } in self.corrections.iter_mut().filter(|c| c.of.half == half) {
            let cells = of.layers.in_planes(slab, &planes);
            if cells.is_empty() {
                continue;
            }
            let [far, near] = slab.difference(half, of.term.axis);
            let walls =
                slab.walls(of.target).iter().zip([1, 2, 4]).map(|(is_wall, bit)| u32::from(*is_wall) * bit).sum();
            let mut target = fields[of.target as usize].take();
            let layer = Layer {
                size: of.layers.size,
                axis: of.layers.axis,
                low: of.layers.low,
                shift: of.layers.shift,
                strides,
                walls,
                offsets: [slab.offset(half), far, near],
                adds: of.adds,
                source: there(fields, of.term.source),
                profile,
            };
            let done = match &mut target {
                Some(target) => {
                    kernels.layer(ctx, kernel, (cells.start, cells.end), &layer, (target, psi), (media, number))
                }
                None => Ok(()),
            };
            fields[of.target as usize] = target;
            done?;
        }
        for source in driven.iter().filter(|source| source.component.half() == half) {
            let Some(cells) = source.in_planes(slab, &planes) else { continue };
            let place = (cells.first + slab.offset(half), cells.size);
            let value = (T::from_f64(source.value), source.hard);
            let target = there_mut(fields, source.component);
            kernels.source(ctx, &self.sources[source.number], place, strides, value, target)?;
        }
        Ok(())
    }

    fn send(&mut self, half: Half) -> Result<()> {
        let after = self.ctx.marker()?;
        self.ctx.flush(Queue::Compute)?;
        let components = self.slab.exchanged(half);
        let plane = self.slab.sent(half);
        let to = self.message(components.len() * plane.len())?;
        let pieces: Vec<_> = components.iter().map(|&c| (there(&self.fields, c), plane.clone())).collect();
        let sending =
            DeviceVec::start_reads(&self.ctx, Queue::Transfer, &pieces, to, Some(&after), "a plane for a neighbour")?;
        self.ctx.flush(Queue::Transfer)?;
        self.sending = Some(sending);
        Ok(())
    }

    fn sent(&mut self, _: Half) -> Result<Message<T>> {
        self.ctx.flush(Queue::Compute)?;
        let Some(sending) = self.sending.take() else { unreachable!("a plane was sent before") };
        let message = Arc::new(sending.wait(&self.ctx)?);
        self.messages.truncate(MESSAGES);
        self.messages.insert(0, Arc::clone(&message));
        Ok(Message::Host(message))
    }

    fn receive(&mut self, half: Half, message: Message<T>) -> Result<()> {
        let Message::Host(message) = message else { unreachable!("ranks send what is in the host's memory") };
        // Kernels that have read the former halo are over: the plane that they made of it has been sent.
        self.halos.clear();
        let (ctx, halo) = (&self.ctx, self.slab.halo(half));
        for (k, component) in self.slab.exchanged(half).into_iter().enumerate() {
            let part = k * halo.len()..(k + 1) * halo.len();
            let field = there_mut(&mut self.fields, component);
            self.halos.push(field.start_write(ctx, Queue::Transfer, halo.start, Arc::clone(&message), part)?);
        }
        ctx.flush(Queue::Transfer)?;
        ctx.compute_after(&self.halos)
    }

    fn record(&mut self, probes: &[OwnProbe]) -> Result<()> {
        for (k, probe) in probes.iter().enumerate() {
            let at = probe.cell + self.slab.offset(probe.component.half());
            let place = LOG_STEPS * k + self.logged;
            let field = there(&self.fields, probe.component);
            field.copy_part(&self.ctx, at..at + 1, &mut self.log, place)?;
        }
        self.probes = probes.len();
        self.logged += 1;
        Ok(())
    }

    fn recorded(&mut self) -> Result<Vec<Vec<f64>>> {
        self.ctx.finish()?;
        self.halos.clear();
        let logged = std::mem::take(&mut self.logged);
        let mut values = vec![T::default(); logged];
        let read = |k: usize| {
            self.log.read(&self.ctx, LOG_STEPS * k, &mut values)?;
            Ok(values.iter().map(|v| v.to_f64()).collect())
        };
        (0..self.probes).map(read).collect()
    }

    fn read(&mut self, component: Component, to: &mut [T]) -> Result<()> {
        there(&self.fields, component).read(&self.ctx, self.slab.offset(component.half()), to)
    }

    fn write(&mut self, component: Component, from: &[T]) -> Result<()> {
        let at = self.slab.offset(component.half());
        there_mut(&mut self.fields, component).write(&self.ctx, at, from)
    }

    fn layers(&self) -> Vec<(LayerName, usize)> {
        self.corrections.iter().map(|correcting| (correcting.of.name(), correcting.psi.len())).collect()
    }

    fn read_layer(&mut self, k: usize, to: &mut [T]) -> Result<()> {
        self.corrections[k].psi.read(&self.ctx, 0, to)
    }

    fn write_layer(&mut self, k: usize, from: &[T]) -> Result<()> {
        self.corrections[k].psi.write(&self.ctx, 0, from)
    }
}
