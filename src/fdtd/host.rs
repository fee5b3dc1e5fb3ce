//! A rank that is the host's threads; also what kernels have to agree with to the last bit.

mod layers;
mod rows;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::backend::{Backend, Driven, OwnProbe};
use super::grid::{Component, Half, Update};
use super::problem::Problem;
use super::slab::{Correction, LayerName, Slab, corrections};
use crate::comm::Message;
use crate::error::Result;
use crate::memory::zeros;
use crate::real::Real;
use layers::apply;
use rows::{Media, update_row};

/// Cells that a thread updates at a time, about: their rows stay in its cache from component to component.
const TILE: usize = 1 << 13;

/// The fields of a slab, by half and axis; what is not there is empty.
pub(crate) struct Host<T> {
    slab: Slab,
    fields: Fields<T>,
    media: Media<T>,
    corrections: Vec<(Correction<T>, Vec<T>)>,
    /// What probes have seen since somebody took it.
    log: Vec<Vec<f64>>,
}

/// Arrays of a half by their axes.
pub(crate) struct Fields<T> {
    h: [Vec<T>; 3],
    e: [Vec<T>; 3],
}

impl<T: Real> Fields<T> {
    fn zeros(slab: &Slab) -> Result<Self> {
        let of = |half: Half| -> Result<[Vec<T>; 3]> {
            let mut all = [const { Vec::new() }; 3];
            for (axis, array) in all.iter_mut().enumerate() {
                if slab.grid.mode().components().contains(&Component::of(half, axis)) {
                    *array = zeros(slab.room()).map_err(|e| e.into_error("a component of the fields"))?;
                }
            }
            Ok(all)
        };
        Ok(Self { h: of(Half::H)?, e: of(Half::E)? })
    }

    fn of(&self, component: Component) -> &Vec<T> {
        let half = if component.is_electric() { &self.e } else { &self.h };
        &half[component.axis()]
    }

    fn of_mut(&mut self, component: Component) -> &mut Vec<T> {
        let half = if component.is_electric() { &mut self.e } else { &mut self.h };
        &mut half[component.axis()]
    }

    /// The arrays of a half, to be changed, and those of the other.
    fn halves(&mut self, half: Half) -> (&mut [Vec<T>; 3], &[Vec<T>; 3]) {
        match half {
            Half::H => (&mut self.h, &self.e),
            Half::E => (&mut self.e, &self.h),
        }
    }
}

impl<T: Real> Host<T> {
    /// A slab without fields.
    pub(crate) fn new(problem: &Problem, slab: Slab) -> Result<Self> {
        let all = corrections(problem, &slab);
        let with_psi = |correction: Correction<T>| {
            let psi = zeros(correction.layers.cells()).map_err(|e| e.into_error("the layers"))?;
            Ok((correction, psi))
        };
        let corrections = all.into_iter().map(with_psi).collect::<Result<_>>()?;
        Ok(Self {
            fields: Fields::zeros(&slab)?,
            media: Media::new(problem, &slab),
            slab,
            corrections,
            log: Vec::new(),
        })
    }

    /// The update of these planes without layers.
    pub(crate) fn update_plainly(&mut self, half: Half, planes: &Range<usize>) {
        let (slab, media) = (&self.slab, &self.media);
        let (nx, plane) = (slab.grid.cells[0], slab.plane());
        let (targets, sources) = self.fields.halves(half);
        let updates: Vec<Update> = slab.grid.mode().updates(half).collect();
        let tile = (TILE / nx).max(1) * nx;
        let cells = planes.start * plane..planes.end * plane;
        let mut tiles: Vec<Vec<&mut [T]>> = Vec::new();
        tiles.resize_with(cells.len().div_ceil(tile), Vec::new);
        let own = slab.offset(half)..slab.offset(half) + slab.cells();
        for target in targets.iter_mut().filter(|array| !array.is_empty()) {
            let chunks = target[own.clone()][cells.clone()].chunks_mut(tile);
            tiles.iter_mut().zip(chunks).for_each(|(tile, chunk)| tile.push(chunk));
        }
        tiles.into_par_iter().enumerate().for_each(|(k, mut parts)| {
            let first_row = (cells.start + k * tile) / nx;
            let rows = parts[0].len() / nx;
            for row in 0..rows {
                for (update, part) in updates.iter().zip(&mut parts) {
                    let to = &mut part[row * nx..(row + 1) * nx];
                    update_row(slab, media, half, update, first_row + row, sources, to);
                }
            }
        });
    }

    fn correct(&mut self, half: Half, planes: &Range<usize>) {
        let Self { slab, fields, media, corrections, .. } = self;
        for (correction, psi) in corrections.iter_mut().filter(|(correction, _)| correction.half == half) {
            let (targets, sources) = fields.halves(half);
            let target = &mut targets[correction.target.axis()];
            let own = slab.offset(half)..slab.offset(half) + slab.cells();
            let source = &sources[correction.term.source.axis()];
            apply(slab, media, correction, psi, &mut target[own], source, planes);
        }
    }

    /// The field of own cells.
    pub(crate) fn own(&self, component: Component) -> &[T] {
        let from = self.slab.offset(component.half());
        &self.fields.of(component)[from..from + self.slab.cells()]
    }

    /// The same, to be changed.
    pub(crate) fn own_mut(&mut self, component: Component) -> &mut [T] {
        let from = self.slab.offset(component.half());
        let cells = self.slab.cells();
        &mut self.fields.of_mut(component)[from..from + cells]
    }
}

impl<T: Real> Backend<T> for Host<T> {
    fn slab(&self) -> &Slab {
        &self.slab
    }

    fn update(&mut self, half: Half, planes: Range<usize>, driven: &[Driven]) -> Result<()> {
        if planes.is_empty() {
            return Ok(());
        }
        self.update_plainly(half, &planes);
        self.correct(half, &planes);
        for source in driven.iter().filter(|source| source.component.half() == half) {
            let Some(cells) = source.in_planes(&self.slab, &planes) else { continue };
            let value = T::from_f64(source.value);
            let target = self.own_mut(source.component);
            for at in cells.all() {
                target[at] = if source.hard { value } else { target[at] + value };
            }
        }
        Ok(())
    }

    fn send(&mut self, _: Half) -> Result<()> {
        Ok(())
    }

    fn sent(&mut self, half: Half) -> Result<Message<T>> {
        let plane = self.slab.sent(half);
        let of = |component| self.fields.of(component)[plane.clone()].to_vec();
        let message: Vec<T> = self.slab.exchanged(half).into_iter().flat_map(of).collect();
        Ok(Message::Host(Arc::new(message)))
    }

    fn receive(&mut self, half: Half, message: Message<T>) -> Result<()> {
        let Message::Host(message) = message else { unreachable!("ranks send what is in the host's memory") };
        let halo = self.slab.halo(half);
        for (component, plane) in self.slab.exchanged(half).into_iter().zip(message.chunks(halo.len())) {
            self.fields.of_mut(component)[halo.clone()].copy_from_slice(plane);
        }
        Ok(())
    }

    fn record(&mut self, probes: &[OwnProbe]) -> Result<()> {
        self.log.resize_with(probes.len(), Vec::new);
        for (k, probe) in probes.iter().enumerate() {
            let value = self.own(probe.component)[probe.cell].to_f64();
            self.log[k].push(value);
        }
        Ok(())
    }

    fn recorded(&mut self) -> Result<Vec<Vec<f64>>> {
        Ok(std::mem::take(&mut self.log))
    }

    fn read(&mut self, component: Component, to: &mut [T]) -> Result<()> {
        to.copy_from_slice(self.own(component));
        Ok(())
    }

    fn write(&mut self, component: Component, from: &[T]) -> Result<()> {
        self.own_mut(component).copy_from_slice(from);
        Ok(())
    }

    fn layers(&self) -> Vec<(LayerName, usize)> {
        self.corrections.iter().map(|(correction, psi)| (correction.name(), psi.len())).collect()
    }

    fn read_layer(&mut self, k: usize, to: &mut [T]) -> Result<()> {
        to.copy_from_slice(&self.corrections[k].1);
        Ok(())
    }

    fn write_layer(&mut self, k: usize, from: &[T]) -> Result<()> {
        self.corrections[k].1.copy_from_slice(from);
        Ok(())
    }
}
