//! Text compressed in each way that is read.

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

/// An xz file with a dictionary of 2^`log` bytes.
#[cfg(target_os = "linux")] // hostile files are read there
pub(crate) fn xz_with_window(text: &[u8], log: u32) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = 1 << log;
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

/// A zstd file with a window of 2^`log` bytes.
#[cfg(target_os = "linux")]
pub(crate) fn zstd_with_window(text: &[u8], log: u32) -> Vec<u8> {
    let mut writer = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    writer.window_log(log).unwrap();
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}
