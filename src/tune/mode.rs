//! How much is looked for.

use crate::named::named;

named! {
    /// Where the launch parameters of kernels come from, and the formats of [`Format::Auto`](crate::operator::Format::Auto), which `quick`
    /// and `full` measure if they are not kept.
    Tune, "candidate of tuning":
    Off = "off", "Usual values.";
    Stored = "stored", "What is kept from former runs, and usual values for the rest; nothing is measured.";
    Quick = "quick", "What is kept from former runs, and usual values for the rest; formats are measured.";
    Full = "full", "What is kept for systems of about this size, or else a search for all kernels.";
}
