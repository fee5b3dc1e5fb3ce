//! The matrix of the comparison and its files.

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use declive::matrix::gallery;
use declive::matrix_market::{Symmetry, WriteOptions, write_matrix};
use declive::{Csr, npz};

/// Where the files of one matrix are.
pub struct Files {
    dir: PathBuf,
    size: usize,
}

impl Files {
    /// Those of the matrix of a grid of `size`³ points.
    pub fn new(dir: &Path, size: usize) -> Self {
        Self { dir: dir.into(), size }
    }

    /// The file with that ending, made if it is not there yet.
    pub fn get(&self, ending: &str) -> Result<PathBuf, Box<dyn Error>> {
        let path = self.dir.join(format!("grid{}.{ending}", self.size));
        if path.exists() {
            return Ok(path);
        }
        fs::create_dir_all(&self.dir)?;
        eprintln!("making {}", path.display());
        let part = path.with_extension("part");
        self.make(ending, File::create(&part)?)?;
        fs::rename(part, &path)?;
        Ok(path)
    }

    fn make(&self, ending: &str, mut file: File) -> Result<(), Box<dyn Error>> {
        let text = || -> Result<File, Box<dyn Error>> { Ok(File::open(self.get("mtx")?)?) };
        match ending {
            "mtx" => write_matrix(file, &matrix(self.size)?, &symmetric())?,
            "npz" => npz::write(file, &matrix(self.size)?)?,
            "mtx.gz" => {
                let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
                io::copy(&mut text()?, &mut packed)?;
                packed.finish()?;
            }
            "mtx.zst" => {
                let mut packed = zstd::Encoder::new(&mut file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                io::copy(&mut text()?, &mut packed)?;
                packed.finish()?;
            }
            _ => return Err(format!("there is no file with the ending {ending}").into()),
        }
        Ok(())
    }
}

/// The lower triangle, column by column, with as few digits as give the same bits.
pub fn symmetric() -> WriteOptions {
    WriteOptions::default().with_symmetry(Symmetry::Symmetric)
}

/// The 7-point Poisson matrix A scaled to D A D, with random numbers from 1 to 2 on the diagonal of D: the pattern of a
/// discretisation, and values that need all their digits.
fn matrix(size: usize) -> declive::Result<Csr> {
    let (rows, cols, row_ptr, col_idx, mut values) = gallery::poisson3d([size; 3])?.into_raw_parts();
    let d: Vec<f64> = gallery::random_vector(rows, 1).iter().map(|r| 1.5 + 0.5 * r).collect();
    for i in 0..rows {
        for k in row_ptr[i]..row_ptr[i + 1] {
            values[k] *= d[i] * d[col_idx[k] as usize];
        }
    }
    Csr::new(rows, cols, row_ptr, col_idx, values)
}
