//! What formats would read of a matrix.

use declive::solve::{Format, FormatSurvey};
use serde::Serialize;

use super::layout::Text;
use super::units::{bytes, figure};

/// The formats that a matrix could have on one device that has all of it, in double precision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Formats {
    pub(super) each: Vec<FormatBytes>,
    /// What `auto` takes by bytes on a GPU for which there are rows enough.
    pub(super) auto_on_gpu: Format,
    /// The same on a CPU.
    pub(super) auto_on_cpu: Format,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FormatBytes {
    pub(super) format: Format,
    /// Bytes that a product reads and writes, vectors among them; none if the rows do not fit the format.
    pub(super) bytes: Option<u64>,
    pub(super) bytes_per_entry: Option<f64>,
    /// Why the rows do not fit it.
    pub(super) obstacle: Option<String>,
}

impl Formats {
    /// Of a matrix with so many entries.
    pub(crate) fn new(survey: &FormatSurvey, nnz: usize) -> Self {
        let of = |(format, found): &(Format, Result<u64, String>)| {
            let bytes = found.as_ref().ok().copied();
            FormatBytes {
                format: *format,
                bytes,
                bytes_per_entry: bytes.filter(|_| nnz > 0).map(|bytes| bytes as f64 / nnz as f64),
                obstacle: found.as_ref().err().cloned(),
            }
        };
        Self { each: survey.formats.iter().map(of).collect(), auto_on_gpu: survey.on_gpu, auto_on_cpu: survey.on_cpu }
    }

    /// What `auto` takes, in words.
    pub(super) fn auto(&self) -> String {
        let Self { auto_on_gpu: gpu, auto_on_cpu: cpu, .. } = self;
        if gpu == cpu { format!("{gpu} by bytes") } else { format!("by bytes {gpu} on a GPU, {cpu} on a CPU") }
    }

    /// A section of the text.
    pub(super) fn describe(&self, text: &mut Text) {
        text.section("Formats");
        for one in &self.each {
            let words = match (one.bytes, one.bytes_per_entry, &one.obstacle) {
                (Some(all), Some(each), _) => format!("{} a product, {} B an entry", bytes(all), figure(each)),
                (Some(all), None, _) => format!("{} a product", bytes(all)),
                (None, _, why) => format!("does not fit: {}", why.as_deref().unwrap_or_default()),
            };
            text.line(one.format.name(), &words);
        }
    }
}
