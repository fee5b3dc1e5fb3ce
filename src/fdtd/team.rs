//! All ranks together, in one precision.

use super::grid::{Component, Grid};
use super::problem::Problem;
use super::ranks::{Rank, advance};
use super::slab::LayerName;
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::real::Real;

/// Ranks, whose elements are of some precision.
pub(crate) trait Team: Send {
    /// Makes steps, and hands out what each probe has seen.
    ///
    /// # Errors
    /// A failing device.
    fn advance(&mut self, problem: &Problem, begin: u64, steps: usize) -> Result<Vec<Vec<f64>>>;

    /// A component in all cells.
    ///
    /// # Errors
    /// A failing device; [`Error::OutOfMemory`].
    fn field(&mut self, component: Component) -> Result<Vec<f64>>;

    /// Sets it.
    ///
    /// # Errors
    /// A failing device.
    fn set_field(&mut self, component: Component, values: &[f64]) -> Result<()>;

    /// The ψ of all layers: those of the ranks one behind the other, which is the same for any number of ranks.
    ///
    /// # Errors
    /// A failing device.
    fn layers(&mut self) -> Result<Vec<(LayerName, Vec<f64>)>>;

    /// Sets them.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are others; a failing device.
    fn set_layers(&mut self, layers: &[(LayerName, Vec<f64>)]) -> Result<()>;
}

/// The ranks.
pub(crate) struct Ranks<T> {
    pub(crate) ranks: Vec<Rank<T>>,
    pub(crate) grid: Grid,
}

impl<T: Real> Team for Ranks<T> {
    fn advance(&mut self, problem: &Problem, begin: u64, steps: usize) -> Result<Vec<Vec<f64>>> {
        Ok(advance(&mut self.ranks, problem, begin, steps)?)
    }

    fn field(&mut self, component: Component) -> Result<Vec<f64>> {
        let mut all: Vec<f64> = zeros(self.grid.len()).map_err(|e| e.into_error("a component of the fields"))?;
        let mut rest = &mut all[..];
        for rank in &mut self.ranks {
            let (own, others) = rest.split_at_mut(rank.backend.slab().cells());
            rest = others;
            T::fill(own, |own| rank.backend.read(component, own))?;
        }
        Ok(all)
    }

    fn set_field(&mut self, component: Component, values: &[f64]) -> Result<()> {
        let mut rest = values;
        for rank in &mut self.ranks {
            let (own, others) = rest.split_at(rank.backend.slab().cells());
            rest = others;
            rank.backend.write(component, &T::scaled(own, 1.0))?;
        }
        Ok(())
    }

    fn layers(&mut self) -> Result<Vec<(LayerName, Vec<f64>)>> {
        let mut all: Vec<(LayerName, Vec<f64>)> = Vec::new();
        for rank in &mut self.ranks {
            for (k, (name, len)) in rank.backend.layers().into_iter().enumerate() {
                let mut own = vec![T::default(); len];
                rank.backend.read_layer(k, &mut own)?;
                let own = own.into_iter().map(T::to_f64);
                match all.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, psi)) => psi.extend(own),
                    None => all.push((name, own.collect())),
                }
            }
        }
        all.sort_by_key(|((component, axis), _)| (*component as usize, *axis));
        Ok(all)
    }

    fn set_layers(&mut self, layers: &[(LayerName, Vec<f64>)]) -> Result<()> {
        let other = || Error::Usage("the layers are of another problem".into());
        let mut rest: Vec<(LayerName, &[f64])> = layers.iter().map(|(name, psi)| (*name, &psi[..])).collect();
        for rank in &mut self.ranks {
            for (k, (name, len)) in rank.backend.layers().into_iter().enumerate() {
                let (_, psi) = rest.iter_mut().find(|(known, _)| *known == name).ok_or_else(other)?;
                let (own, others) = psi.split_at_checked(len).ok_or_else(other)?;
                *psi = others;
                rank.backend.write_layer(k, &T::scaled(own, 1.0))?;
            }
        }
        if rest.iter().all(|(_, psi)| psi.is_empty()) { Ok(()) } else { Err(other()) }
    }
}
