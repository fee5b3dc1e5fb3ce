//! Text compressed in each way that is read.

#![allow(clippy::unwrap_used)]

use std::io::Write;

/// How to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

impl Packing {
    /// All, with their names.
    pub(crate) const ALL: [(&'static str, Self); 4] =
        [("gzip", Self::Gzip), ("bzip2", Self::Bzip2), ("xz", Self::Xz), ("zstd", Self::Zstd)];

    /// A whole file.
    pub(crate) fn pack(self, text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        match self {
            Self::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::best());
                writer.write_all(text).unwrap();
                writer.finish().unwrap();
            }
            Self::Bzip2 => {
                let mut writer = bzip2::write::BzEncoder::new(&mut packed, bzip2::Compression::best());
                writer.write_all(text).unwrap();
                writer.finish().unwrap();
            }
            Self::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(6);
                let mut writer = lzma_rust2::XzWriter::new(&mut packed, options).unwrap();
                writer.write_all(text).unwrap();
                writer.finish().unwrap();
            }
            Self::Zstd => packed = zstd::encode_all(text, 3).unwrap(),
        }
        packed
    }
}
