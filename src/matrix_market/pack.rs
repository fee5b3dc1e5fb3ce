//! Text that is written compressed.

use std::io::{self, Write};

use super::source::Packing;

const ENDINGS: [(&str, Packing); 4] =
    [(".gz", Packing::Gzip), (".bz2", Packing::Bzip2), (".xz", Packing::Xz), (".zst", Packing::Zstd)];

impl Packing {
    /// What the ending of a name in lower case says, and the name without it: of the features, this needs `compression`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<(&str, Self)> {
        ENDINGS.into_iter().find_map(|(ending, packing)| Some((name.strip_suffix(ending)?, packing)))
    }

    /// Compresses what `fill` writes, as hard as the program of that name does unless told otherwise: of the features, this needs `compression`.
    ///
    /// ```
    /// use declive::matrix_market::{Packing, WriteOptions, read_matrix_from, write_matrix};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, 0.1, 2.0])?;
    /// let mut file = Vec::new();
    /// Packing::Gzip.pack(&mut file, |out| write_matrix(out, &a, &WriteOptions::default()))?;
    /// assert_eq!(read_matrix_from(&file[..], "a.mtx.gz")?.a, a);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `fill` and `out` give.
    pub fn pack(self, out: &mut dyn Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Gzip => {
                let mut packed = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                fill(&mut packed)?;
                packed.finish()?;
            }
            Self::Bzip2 => {
                let mut packed = bzip2::write::BzEncoder::new(out, bzip2::Compression::best());
                fill(&mut packed)?;
                packed.finish()?;
            }
            Self::Xz => {
                let mut packed = lzma_rust2::XzWriter::new(out, lzma_rust2::XzOptions::with_preset(6))?;
                fill(&mut packed)?;
                packed.finish()?;
            }
            Self::Zstd => {
                let mut packed = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                fill(&mut packed)?;
                packed.finish()?;
            }
        }
        Ok(())
    }
}
