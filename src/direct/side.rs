//! What becomes of the rows of a matrix, or of its columns, before they are eliminated.

use crate::matrix::power::scaled;

/// What becomes of the rows, or of the columns.
#[derive(Debug)]
pub(super) struct Side {
    /// When each is eliminated.
    pub(super) place: Vec<u32>,
    /// Each is multiplied by two to the power of this.
    pub(super) exponent: Vec<i32>,
}

impl Side {
    /// To = scaled from, in the order of elimination.
    pub(super) fn gather(&self, from: &[f64], to: &mut [f64]) {
        for ((v, &place), &e) in from.iter().zip(&self.place).zip(&self.exponent) {
            to[place as usize] = scaled(*v, e);
        }
    }

    /// To = scaled from, which is in the order of elimination.
    pub(super) fn scatter(&self, from: &[f64], to: &mut [f64]) {
        for ((v, &place), &e) in to.iter_mut().zip(&self.place).zip(&self.exponent) {
            *v = scaled(from[place as usize], e);
        }
    }

    /// Which rows, or columns, are at these places.
    pub(super) fn at(&self, places: &[u32]) -> Vec<u32> {
        if places.is_empty() {
            return Vec::new();
        }
        let mut at = vec![0u32; self.place.len()];
        (0..).zip(&self.place).for_each(|(i, &place)| at[place as usize] = i);
        places.iter().map(|&place| at[place as usize]).collect()
    }
}
