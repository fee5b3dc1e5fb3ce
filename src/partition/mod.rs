//! The distribution of a matrix over ranks: contiguous blocks of rows, and who sends which columns to whom.
//!
//! ```text
//!            columns of rank:  0      1      2
//!                          ┌──────┬──────┬──────┐
//!  rows of rank 0          │ own  │ halo │      │    rank 0 receives some elements of a vector from 1
//!                          ├──────┼──────┼──────┤
//!  rows of rank 1          │ halo │ own  │ halo │    rank 1 from ranks 0 and 2
//!                          ├──────┼──────┼──────┤
//!  rows of rank 2          │      │ halo │ own  │
//!                          └──────┴──────┴──────┘
//! ```
//!
//! On a rank, columns are renumbered: its own become `0..n_owned`, those of the halo, in the order of their global
//! numbers, `n_owned..n_owned + n_halo`.

mod column_indices;
mod halo;
mod rows;
mod values;

pub use column_indices::ColumnIndices;
pub use halo::{HaloPlan, Part, Receive, Receiver, split};
pub(crate) use halo::{columns_outside, halo_sizes, join_neighbours, join_plans, part_alone, parts, plans, plans_of};
pub(crate) use rows::{ENTRY_BYTES, compressed_bytes, cost_of, row_ranges_of};
pub use rows::{cost, row_ranges, row_ranges_by};
pub use values::NewValues;
pub(crate) use values::Unscaled;
