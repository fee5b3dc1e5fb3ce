//! How much is looked for.

use crate::named::named;

named! {
    /// Where the launch parameters of kernels, the formats of [`Format::Auto`](crate::operator::Format::Auto) and the shares of devices come
    /// from.
    Tune, "candidate of tuning":
    Off = "off", "Usual values.";
    Stored = "stored", "What is kept from former runs, and usual values for the rest; nothing is measured.";
    Quick = "quick", "The same, but the speed of devices that share the rows is measured.";
    Full = "full", "What is kept for systems of about this size, or else a search for all kernels, and formats are measured.";
}
