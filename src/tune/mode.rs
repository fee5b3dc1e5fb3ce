//! How much is looked for.

use crate::named::named;

named! {
    /// Where the launch parameters of kernels come from, and the formats of [`Format::Auto`](crate::operator::Format::Auto): `quick` and `full`
    /// measure what is not kept of these.
    Tune, "way of tuning":
    Off = "off", "Usual values.";
    Stored = "stored", "What is kept from former runs, and usual values for the rest; nothing is tried.";
    Quick = "quick", "What is kept; for the rest, iterations after the 100th try other numbers of work-groups.";
    Full = "full", "What 'declive tune' would find for systems of about this size: looked for now, unless it is kept.";
}
