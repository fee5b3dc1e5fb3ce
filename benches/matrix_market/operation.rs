//! What is timed.

use std::cell::OnceCell;
use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use declive::matrix_market::{Reader, WriteOptions, write_matrix};
use declive::{Csr, npz};

use crate::files::{Files, symmetric};

/// One thing to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    ReadMtx,
    ReadGz,
    ReadZst,
    /// `npz::map`: the arrays are used where they are.
    ReadNpz,
    /// `npz::read`: they are copied.
    ReadNpzCopy,
    WriteMtx,
    WriteGeneral,
    WriteNpz,
    /// `sprs::io::read_matrix_market`: triplets, both triangles.
    Sprs,
    /// `matrix_market_rs::MtxData::from_file`: triplets, as the file has them.
    MatrixMarketRs,
}

impl Operation {
    /// Each with its name; those of other crates last.
    pub const ALL: [(Self, &str); 10] = [
        (Self::ReadMtx, "read-mtx"),
        (Self::ReadGz, "read-gz"),
        (Self::ReadZst, "read-zst"),
        (Self::ReadNpz, "read-npz"),
        (Self::ReadNpzCopy, "read-npz-copy"),
        (Self::WriteMtx, "write-mtx"),
        (Self::WriteGeneral, "write-general"),
        (Self::WriteNpz, "write-npz"),
        (Self::Sprs, "sprs"),
        (Self::MatrixMarketRs, "matrix-market-rs"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(operation, _)| *operation == self).map_or("", |(_, name)| name)
    }

    pub fn parse(word: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == word);
        found.map(|(operation, _)| *operation).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("no operation {word}; there are {}", names.join(", "))
        })
    }

    /// Whether it is another crate's, on one thread, and so slow that few samples do.
    pub fn is_slow_peer(self) -> bool {
        matches!(self, Self::Sprs | Self::MatrixMarketRs)
    }

    /// Whether it ends with a [`Csr`] in memory.
    pub fn reads(self) -> bool {
        matches!(self, Self::ReadMtx | Self::ReadGz | Self::ReadZst | Self::ReadNpz | Self::ReadNpzCopy)
    }

    /// The ending of the file that it reads; what writes takes the matrix from there.
    fn ending(self) -> &'static str {
        match self {
            Self::ReadMtx | Self::Sprs | Self::MatrixMarketRs => "mtx",
            Self::ReadGz => "mtx.gz",
            Self::ReadZst => "mtx.zst",
            Self::ReadNpz | Self::ReadNpzCopy | Self::WriteMtx | Self::WriteGeneral | Self::WriteNpz => "npz",
        }
    }
}

/// An operation with its file.
pub struct Task {
    operation: Operation,
    input: PathBuf,
    output: PathBuf,
    matrix: OnceCell<Csr>,
}

impl Task {
    pub fn new(operation: Operation, files: &Files, out: &Path) -> Result<Self, Box<dyn Error>> {
        let input = files.get(operation.ending())?;
        let output = out.join(format!("declive-bench-{}-{}", operation.name(), std::process::id()));
        Ok(Self { operation, input, output, matrix: OnceCell::new() })
    }

    /// Reads the matrix.
    pub fn read(&self) -> Result<Csr, Box<dyn Error>> {
        let a = match (self.operation, self.operation.ending()) {
            (Operation::ReadNpz, _) => npz::map(&self.input)?,
            (_, "npz") => npz::read(&self.input)?,
            _ => return Ok(Reader::new().matrix(&self.input)?.a),
        };
        a.into_real().ok_or_else(|| "the matrix is complex".into())
    }

    /// The file, and how many bytes of text its entries are: those of the .mtx file if it is compressed.
    pub fn describe(&self, files: &Files) -> Result<(String, u64), Box<dyn Error>> {
        match self.operation {
            Operation::WriteMtx | Operation::WriteGeneral | Operation::WriteNpz => {
                self.sample()?;
                let bytes = self.write()?.1;
                Ok((self.output.display().to_string(), bytes))
            }
            Operation::ReadGz | Operation::ReadZst => {
                Ok((self.input.display().to_string(), fs::metadata(files.get("mtx")?)?.len()))
            }
            _ => Ok((self.input.display().to_string(), fs::metadata(&self.input)?.len())),
        }
    }

    /// Seconds that it takes once. What it makes is dropped afterwards.
    pub fn sample(&self) -> Result<f64, Box<dyn Error>> {
        let seconds = |start: Instant| start.elapsed().as_secs_f64();
        match self.operation {
            Operation::WriteMtx | Operation::WriteGeneral | Operation::WriteNpz => Ok(self.write()?.0),
            Operation::Sprs => {
                let start = Instant::now();
                let _read = sprs::io::read_matrix_market::<f64, usize, _>(&self.input)?;
                Ok(seconds(start))
            }
            Operation::MatrixMarketRs => {
                let start = Instant::now();
                let _read = matrix_market_rs::MtxData::<f64>::from_file(&self.input)?;
                Ok(seconds(start))
            }
            _ => {
                let start = Instant::now();
                let _read = self.read()?;
                Ok(seconds(start))
            }
        }
    }

    /// Seconds and bytes of writing a new file, which does not stay.
    fn write(&self) -> Result<(f64, u64), Box<dyn Error>> {
        if self.matrix.get().is_none() {
            let _ = self.matrix.set(self.read()?);
        }
        let a = self.matrix.get().ok_or("no matrix")?;
        let start = Instant::now();
        let file = File::create_new(&self.output)?;
        match self.operation {
            Operation::WriteMtx => write_matrix(&file, a, &symmetric())?,
            Operation::WriteGeneral => write_matrix(&file, a, &WriteOptions::default())?,
            _ => npz::write(&file, a)?,
        }
        let seconds = start.elapsed().as_secs_f64();
        let bytes = file.metadata()?.len();
        fs::remove_file(&self.output)?;
        Ok((seconds, bytes))
    }
}
