//! How the numbers of the page were measured.

use maud::{Markup, html};

/// The same for all reports.
pub(super) fn section() -> Markup {
    html! {
        dl {
            dt { "Time" }
            dd {
                "The time of a launch on the device, from start to end, by the events of OpenCL. What the host needs to "
                "launch it is not in it."
            }
            dt { "Medians and quartiles" }
            dd {
                "Each number of work-groups was launched several times; the median stands for them. The band of a chart "
                "holds the middle half. The chosen and the default launch were measured again after all candidates, in "
                "turns, so that neither has the better moments of the device."
            }
            dt { "GB/s" }
            dd {
                "Bytes by the byte rule over the median time: each array that a kernel must read counts once, and each "
                "that it must write. What caches save or scattered reads cost is not counted."
            }
            dt { "Limit" }
            dd {
                "The bandwidth of a plain copy of a vector on the same device in the same run, its bytes read and "
                "written. It is measured, not from a data sheet: a kernel that mostly reads, or whose data stay in a "
                "cache, may exceed it."
            }
            dt { "× default" }
            dd { "Time with the parameters that are used without tuning, over the best time." }
        }
    }
}
