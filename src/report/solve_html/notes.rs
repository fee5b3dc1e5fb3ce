//! How to read the page.

use declive::matrix::reorder::Locality;
use declive::timeline::{FIRST_ITERATIONS, LATER_ITERATIONS};
use maud::{Markup, html};

/// The same for all pages.
pub(super) fn section() -> Markup {
    html! {
        dl {
            dt { "What was recorded" }
            dd {
                "The first " (FIRST_ITERATIONS) " iterations, and of the later ones each " (LATER_ITERATIONS) "th. "
                "Charts and tables of iterations come from these. Recording costs something: a device that times a "
                "kernel takes some microseconds more for each launch, so that short iterations are longer while they "
                "are recorded. Without this page, a solve records nothing, and times the kernels of one iteration in "
                "64."
            }
            dt { "Residual" }
            dd {
                "r as the recurrence has it, which drifts from b − A x. The true residual is b − A x, recomputed on "
                "the host in twice the working precision from the data as they were read; only that decides whether a "
                "solve converged."
            }
            dt { "Method" }
            dd {
                "\"auto\" is cg, or a method for matrices that are not definite if a number on the diagonal is not positive. "
                "Where p·Ap ≤ 0 for a direction p of cg, that method goes on from x: the residual, which has risen and fallen "
                "before, only falls from then on."
            }
            dt { "Kernels" }
            dd { "From start to end on the device, by the events of OpenCL; on the host, by its clock." }
            dt { "Sums over ranks, halos" }
            dd {
                "In each iteration the ranks add up their parts of two dot products, and exchange those elements of a "
                "vector that neighbouring blocks of rows need. Both times include the wait for ranks that are behind."
            }
            dt { "Waiting for the device" }
            dd {
                "The host waits until a sum has arrived, or, for a device that works alone, until some iterations are "
                "done."
            }
            dt { "GB/s" }
            dd {
                "Bytes by the byte rule over the time of the iterations: each array that an operation must read counts "
                "once, and each that it must write. What caches save, halos and sums are not counted."
            }
            dt { "Order" }
            dd {
                "Of the rows on the devices. A window is " (Locality::ROWS) " neighbouring rows; the fewer cache lines of "
                "64 bytes of x it touches, the less a product waits for single numbers. \"rcm\" is reverse "
                "Cuthill–McKee. All else on this page is in the order given, but for the elements of halos."
            }
            dt { "Time of the command" }
            dd {
                "Ranks are prepared at the same time: \"prepare\" and \"upload\" are the longest over ranks, and may "
                "together exceed what passed. The total is without what it takes to write this page."
            }
        }
    }
}
