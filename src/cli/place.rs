//! Where a file goes, and what it is by the ending of its name.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use declive::Csr;
use declive::matrix_market::{Packing, WriteOptions, write_matrix, write_vectors};
use declive::npz::{self, Element};

use super::failure::Failure;
use super::output::Target;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Matrix Market, text
    Mtx,
    /// SciPy's sparse matrices, binary
    Npz,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) format: Format,
    pub(crate) packing: Option<Packing>,
    pub(crate) target: Target,
}

impl Place {
    /// Finds out the format, which `wanted` overrides, and makes sure that the file can be written.
    pub(crate) fn probe(path: &Path, wanted: Option<Format>) -> Result<Self, Failure> {
        let (ending, packing) = endings(path);
        let is_stdout = path == Path::new("-");
        let Some(format) = wanted.or(ending).or(is_stdout.then_some(Format::Mtx)) else {
            return Err(Failure::usage(format!(
                "{}: the name should end in .npz, .mtx, .mtx.gz, .mtx.bz2, .mtx.xz or .mtx.zst, \
                 or --format should tell what to write",
                path.display()
            )));
        };
        if format == Format::Npz {
            if is_stdout || fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
                return Err(Failure::usage(
                    "a .npz file is not written from its beginning to its end: give it a file of its own, \
                     not standard output or a pipe",
                ));
            }
            if packing.is_some() {
                let name = path.display();
                return Err(Failure::usage(format!(
                    "{name}: a .npz file is not compressed again; end the name in .npz"
                )));
            }
        }
        Ok(Self { format, packing, target: Target::probe(path)? })
    }

    /// As [`probe`](Self::probe), but a name that says nothing is that of a Matrix Market file.
    pub(crate) fn probe_usual(path: &Path) -> Result<Self, Failure> {
        let (ending, _) = endings(path);
        Self::probe(path, ending.or(Some(Format::Mtx)))
    }

    /// As [`probe`](Self::probe), but only for Matrix Market files, named by `option`.
    pub(crate) fn probe_mtx(path: &Path, option: &str) -> Result<Self, Failure> {
        match endings(path) {
            (Some(Format::Mtx), _) => Self::probe(path, None),
            _ => Err(Failure::usage(format!("{option} {}: the name should end in .mtx or .mtx.gz", path.display()))),
        }
    }

    /// The same, or a `.npy` file.
    pub(crate) fn probe_vectors(path: &Path, option: &str) -> Result<Self, Failure> {
        let target = Target::probe(path)?;
        if target.has_extension("npy") {
            return Ok(Self { format: Format::Mtx, packing: None, target });
        }
        Self::probe_mtx(path, option)
    }

    /// Writes a matrix; `options` are those of a Matrix Market file.
    pub(crate) fn write<T: Element>(&self, a: &Csr<T>, options: &WriteOptions) -> Result<(), Failure> {
        match self.format {
            Format::Mtx => self.write_text(|out| write_matrix(out, a, options)),
            Format::Npz => self.target.write_seekable(|out| npz::write(out, a)),
        }
    }

    /// Writes the columns of an array file, or of a `.npy` one, which has no comments.
    pub(crate) fn write_columns(&self, columns: &[Vec<f64>], comments: &[String]) -> Result<(), Failure> {
        if self.target.has_extension("npy") {
            let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            return self.target.write(|out| npz::write_vectors(out, &columns));
        }
        self.write_text(|out| write_vectors(out, columns, comments))
    }

    fn write_text(&self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        self.target.write(|out| match self.packing {
            Some(packing) => packing.pack(out, fill),
            None => fill(out),
        })
    }
}

impl Format {
    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mtx => "mtx",
            Self::Npz => "npz",
        }
    }
}

/// What the ending of a name says, in either case.
fn endings(path: &Path) -> (Option<Format>, Option<Packing>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let (name, packing) = match Packing::of_name(&name) {
        Some((stem, packing)) => (stem, Some(packing)),
        None => (name.as_str(), None),
    };
    let format = match name.rsplit_once('.') {
        Some((_, "mtx")) => Some(Format::Mtx),
        Some((_, "npz")) => Some(Format::Npz),
        _ => None,
    };
    (format, packing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_the_format() {
        for (name, format, packing) in [
            ("a.mtx", Some(Format::Mtx), None),
            ("dir.npz/A.MTX.GZ", Some(Format::Mtx), Some(Packing::Gzip)),
            ("a.b.mtx.bz2", Some(Format::Mtx), Some(Packing::Bzip2)),
            ("a.mtx.xz", Some(Format::Mtx), Some(Packing::Xz)),
            ("a.mtx.zst", Some(Format::Mtx), Some(Packing::Zstd)),
            ("a.npz", Some(Format::Npz), None),
            ("a.npz.gz", Some(Format::Npz), Some(Packing::Gzip)),
            ("a.gz", None, Some(Packing::Gzip)),
            ("a.tar.gz", None, Some(Packing::Gzip)),
            ("mtx", None, None),
            ("-", None, None),
        ] {
            assert_eq!(endings(Path::new(name)), (format, packing), "{name}");
        }
    }
}
