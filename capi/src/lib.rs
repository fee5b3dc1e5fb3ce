//! The C interface of declive. `include/declive.h` is made from [`interface`], whose comments are written for it; `docs/c.md` tells how to
//! build, link and use it.
//!
//! | module | its one job |
//! |---|---|
//! | [`interface`] | what C calls: pointers in, codes out |
//! | `pointers`, `arrays` | what pointers point to; matrices from arrays, where they are or copied |
//! | `solver` | what a handle stands for |
//! | `report` | its facts as JSON |
//! | `failure` | errors as codes and texts; no panic leaves |
//!
//! `unsafe` stands in `interface` and `pointers` only.

mod arrays;
mod failure;
pub mod interface;
mod pointers;
mod report;
mod solver;
