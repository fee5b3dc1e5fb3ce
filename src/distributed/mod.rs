//! Systems of which each of several processes has some rows, and none ever has all.
//!
//! ```text
//! file ─ part of each process ─ entries ─ owner of their row ─ Rows ─ Share: its window of the matrix, and what it exchanges
//! ```
//!
//! | file | what is there |
//! |---|---|
//! | `rows` | [`Rows`], what a process has |
//! | `system` | rows of files, of generated systems, and of callers |
//! | `assembly` | from entries, sent to the owners of their rows, to rows |
//! | `entry` | entries on their way |
//! | `balance` | boundaries such that all parts cost as much |
//! | `nodes` | rows that belong together |
//! | `moved` | the same rows between other boundaries |
//! | `read` | Matrix Market files, read together |
//! | `npz` | SciPy's files, of which each process looks at its part |
//! | `generated` | rows of generated systems |
//! | `share` | where a process's rows are among all, and what is exchanged for a product |
//! | `facts` | what is known of the matrix |
//! | `connected` | which rows are connected, across processes |
//! | `pieces` | vectors to and from the first process |
//! | `info` | what each tells of itself |
//!
//! Every function is collective: all processes call it, with the same arguments but for their own part, and all succeed or
//! none does.

mod assembly;
pub(crate) mod balance;
pub(crate) mod connected;
mod entry;
pub(crate) mod facts;
mod generated;
mod info;
mod moved;
pub(crate) mod nodes;
mod npz;
mod pieces;
mod read;
pub(crate) mod rows;
pub(crate) mod share;
mod system;

pub use crate::comm::processes::agreed;
pub use crate::comm::{Bytes, HostMemory, Processes};
pub use generated::generated;
pub use info::ProcessInfo;
pub use pieces::{Columns, from_first};
pub use rows::{Rows, Triplets};
pub use system::read;
