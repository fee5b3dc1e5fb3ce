//! In place of decoders, where the crate is built without them.

use std::io;
use std::path::PathBuf;

use super::source::{Input, Packing};

/// Refuses the stream.
pub(super) fn unpack(packing: Packing, _: Input<'_>) -> io::Result<Input<'_>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, NoDecoder { format: packing.name() }))
}

/// The error for data that were refused here, if that is behind an error of reading.
pub(super) fn refusal(file: &str, _: u64, error: &io::Error) -> Option<crate::Error> {
    let NoDecoder { format } = error.get_ref()?.downcast_ref()?;
    let what = format!("data compressed by {format}");
    Some(crate::Error::MissingFeature { path: PathBuf::from(file), what, feature: "compression" })
}

#[derive(Debug, thiserror::Error)]
#[error("no decoder for {format}")]
struct NoDecoder {
    format: &'static str,
}

#[cfg(test)]
mod tests {
    use crate::matrix_market::read_matrix_from;

    #[test]
    fn errors_name_the_feature() {
        for (start, format) in [(&b"\x1f\x8b\x08"[..], "gzip"), (b"BZh9", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd")] {
            let error = read_matrix_from(start, "A.mtx.packed").unwrap_err().to_string();
            assert!(error.starts_with("A.mtx.packed: ") && error.contains(format), "{error}");
            assert!(error.contains("\"compression\""), "{error}");
        }
    }
}
