//! Enums whose values have names.

/// Declares an enum whose values have names and one-line descriptions: one table serves parsing, printing and help.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal: $($(#[$vdoc:meta])* $variant:ident = $name:literal, $text:literal;)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type { $($(#[$vdoc])* #[doc = $text] $variant,)+ }

        impl $type {
            /// All of them, in the order of the help.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// One line of description.
            #[must_use]
            pub fn describe(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            fn from_str(s: &str) -> std::result::Result<Self, $crate::error::Error> {
                Self::ALL.iter().copied().find(|v| v.name() == s).ok_or_else(|| {
                    let names = $crate::named::names(Self::ALL);
                    $crate::error::Error::Usage(format!("unknown {} '{s}'; there are: {names}", $what))
                })
            }
        }
    };
}

pub(crate) use named;

/// The names of all values, in a line.
pub(crate) fn names(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Serialises what has a text of its own as that.
pub(crate) fn as_text<S: serde::Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
