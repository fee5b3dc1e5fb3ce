//! Options that are set one by one.

/// Declares methods of a struct that take it, set one of its fields, and give it back. What stands behind `as` wraps the value.
macro_rules! setters {
    ($type:ident $(<$life:lifetime>)?: $($name:ident = $field:ident: $value:ty $(as $wrap:ident)?;)+) => {
        impl $(<$life>)? $type $(<$life>)? {
            $(
                #[doc = concat!("The same, but for [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $name(mut self, $field: $value) -> Self {
                    self.$field = $($wrap)? ($field);
                    self
                }
            )+
        }
    };
}

pub(crate) use setters;
