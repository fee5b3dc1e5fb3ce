//! What multigrid is to interpolate well, as files have it.

use declive::Csr;
use declive::matrix::AnyVectors;
use declive::solve::NearNull;

use crate::cli::failure::Failure;
use crate::cli::input::{Input, of_length};
use crate::cli::progress::Screen;

/// What was said about it.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// The file of coordinates of nodes.
    pub(super) coordinates: Option<Input>,
    /// The file of near-null vectors.
    pub(super) vectors: Option<Input>,
    /// Unknowns of a node.
    pub(super) unknowns: Option<usize>,
}

impl Near {
    /// The files.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.coordinates.iter().chain(&self.vectors)
    }

    /// Reads it for a matrix.
    pub(super) fn read(&self, a: &Csr, is_complex: bool, screen: Screen) -> Result<Option<NearNull>, Failure> {
        let n = a.n_rows();
        if is_complex && (self.inputs().next().is_some() || self.unknowns.is_some()) {
            return Err(Failure::usage("--coordinates, --near-null and --block-size are for real matrices"));
        }
        if let Some(input) = &self.coordinates {
            let (coordinates, nodes) = real_columns(input, screen)?;
            let unknowns = self.unknowns.unwrap_or(n / nodes.max(1));
            if unknowns * nodes != n {
                return Err(Failure::usage(format!(
                    "{input} has the coordinates of {nodes} nodes, but the matrix {n} rows: that is no whole number of unknowns for each"
                )));
            }
            return Ok(Some(NearNull::of_coordinates(unknowns, &coordinates)?));
        }
        if let Some(input) = &self.vectors {
            let vectors = of_length(real_columns(input, screen)?.0, n, input.to_string())?;
            let unknowns = self.unknowns.unwrap_or_else(|| NearNull::of_matrix(a).unknowns());
            return Ok(Some(NearNull::of_vectors(unknowns, &vectors)?));
        }
        Ok(self.unknowns.map(NearNull::of_unknowns).transpose()?)
    }
}

/// The columns of a real file, and their length.
fn real_columns(input: &Input, screen: Screen) -> Result<(Vec<Vec<f64>>, usize), Failure> {
    match input.columns(screen)? {
        AnyVectors::Real(columns) => {
            let len = columns.first().map_or(0, Vec::len);
            Ok((columns, len))
        }
        AnyVectors::Complex(_) => Err(Failure::usage(format!("{input} is complex; real numbers are needed"))),
    }
}
