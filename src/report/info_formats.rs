//! What formats would read of a matrix.

use declive::solve::FormatSurvey;

use super::layout::Text;
use super::units::{bytes, figure};

/// What `auto` takes of them.
pub(super) fn auto(FormatSurvey { on_gpu: gpu, on_cpu: cpu, .. }: &FormatSurvey) -> String {
    if gpu == cpu { format!("{gpu} by bytes") } else { format!("by bytes {gpu} on a GPU, {cpu} on a CPU") }
}

/// The section on them.
pub(super) fn describe(survey: &FormatSurvey, text: &mut Text) {
    text.section("Formats");
    for one in &survey.formats {
        let words = match (one.bytes, one.bytes_per_entry, &one.obstacle) {
            (Some(all), Some(each), _) => format!("{} a product, {} B an entry", bytes(all), figure(each)),
            (Some(all), None, _) => format!("{} a product", bytes(all)),
            (None, _, why) => format!("does not fit: {}", why.as_deref().unwrap_or_default()),
        };
        text.line(one.format.name(), &words);
    }
}
