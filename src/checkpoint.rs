//! Files from which a solve goes on: iterates, what they are iterates of, and how far they are.
//!
//! [`Control::checkpoint`](crate::Control::checkpoint) hands out iterates while a solve runs. This module writes them to a
//! file, and gives them back only for the system that they belong to. The file is the same on every machine, and has
//! nothing of devices: a solve may go on with others, another method or another tolerance.
//!
//! | bytes | |
//! |---|---|
//! | 12 | `89 64 65 63 6c 69 76 65 0d 0a 1a 0a`: the name, and what transfers of text would change |
//! | 4 | version of the format, 1 |
//! | 3 × 8 | unknowns and entries of A, columns of b |
//! | 2 × 32 | SHA-256 of A, of b |
//! | 2 × 8 | columns k that follow, bytes of the note |
//! | k × 16 | of each: iterations done, ‖r‖₂ / ‖b‖₂ |
//! | | the note, in UTF-8: by what program, with what options |
//! | k × unknowns × 8 | the columns of x |
//! | 4 | CRC-32 of all before |
//!
//! Numbers are little-endian, residuals and x in the format binary64. There are as many columns as were begun: those behind
//! the last one have yet to be solved for.
//!
//! ```
//! use std::sync::Mutex;
//! use std::time::Duration;
//!
//! use declive::checkpoint::{Column, Identity, Saved};
//! use declive::matrix::gallery;
//! use declive::solve::{Checkpoint, Checkpoints};
//! use declive::{Control, Setup, Solver, Stop};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let a = gallery::poisson2d([30, 30])?;
//! let b = vec![1.0; a.n_rows()];
//! let identity = Identity::of(&a, &[&b]);
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("x.ckpt");
//! # let setup = Setup::default().with_devices("host".parse()?);
//!
//! // Some iterations, each of which hands out its iterate. A program that may be killed would write to another file, and
//! // rename that.
//! let save = |at: &Checkpoint<'_>| {
//!     let mut file = std::fs::File::create(&path).expect("a place for the checkpoint");
//!     identity.write(&mut file, "an example", &[*at]).expect("room for the checkpoint");
//! };
//! let control = Control::default().with_checkpoint(Checkpoints::new(Duration::ZERO, &save));
//! let stop = Stop::default().with_max_iters(20);
//! Solver::new(a.clone(), &setup)?.solve(&b, None, &stop, control)?;
//!
//! // Later, perhaps on another machine: on from there.
//! let Column { x, iterations, .. } = Saved::read(&path)?.of(&identity)?.remove(0);
//! let control = Control::default().with_done(iterations);
//! let outcome = Solver::new(a, &setup)?.solve(&b, Some(&x), &Stop::default(), control)?;
//! assert!(outcome.reason.converged() && outcome.iterations > iterations);
//! # Ok(())
//! # }
//! ```

mod among;
mod source;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use rayon::prelude::*;

use self::source::Source;
use crate::cache::Digest;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::solve::Checkpoint;

/// How a file begins.
const MAGIC: [u8; 12] = *b"\x89declive\r\n\x1a\n";
/// The version of the format.
const VERSION: u32 = 1;
/// Bytes up to the columns' numbers.
const HEADER: usize = 12 + 4 + 3 * 8 + 2 * 32 + 2 * 8;
/// The longest note.
const MAX_NOTE: usize = 1 << 16;
/// Elements that are hashed, or written, at a time.
const PIECE: usize = 1 << 16;

/// What tells a system from others: A and all columns of b, to the last bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Columns of A, which x has an element for each of. How many rows there are is part of the hash.
    unknowns: u64,
    entries: u64,
    columns: u64,
    a: Digest,
    b: Digest,
}

/// How far one column of x is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// Iterations done.
    pub iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ then.
    pub rel_residual_2: f64,
    /// The iterate.
    pub x: Vec<f64>,
}

impl<'a> From<&'a Column> for Checkpoint<'a> {
    fn from(Column { iterations, rel_residual_2, x }: &'a Column) -> Self {
        Self { x, iterations: *iterations, rel_residual_2: *rel_residual_2 }
    }
}

/// A file that is whole, of whatever system.
#[derive(Debug, Clone)]
pub struct Saved {
    path: PathBuf,
    identity: Identity,
    /// What wrote it, with which options.
    pub note: String,
    columns: Vec<Column>,
}

impl Identity {
    /// Of A x = b with these columns of b. Hashes 12 bytes an entry on all threads of the host.
    #[must_use]
    pub fn of<B: AsRef<[f64]>>(a: &Csr, b: &[B]) -> Self {
        let arrays = [
            of_pieces(a.row_ptr(), |&v| (v as u64).to_le_bytes()),
            of_pieces(a.col_idx(), |v| v.to_le_bytes()),
            of_pieces(a.values(), |v| v.to_le_bytes()),
        ];
        let columns: Vec<Digest> = b.iter().map(|b| of_pieces(b.as_ref(), |v| v.to_le_bytes())).collect();
        Self {
            unknowns: a.n_cols() as u64,
            entries: a.values().len() as u64,
            columns: b.len() as u64,
            a: Digest::of(arrays.iter().map(|d| &d.0[..])),
            b: Digest::of(columns.iter().map(|d| &d.0[..])),
        }
    }

    /// Writes a file of this system: the columns that are done, and the one in work.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// If a column has not as many elements as the matrix has columns, or if there are more than of b.
    pub fn write(&self, out: &mut dyn Write, note: &str, columns: &[Checkpoint<'_>]) -> io::Result<()> {
        let facts: Vec<(u64, f64)> = columns.iter().map(|one| (one.iterations, one.rel_residual_2)).collect();
        self.write_by(out, note, &facts, |put| {
            for column in columns {
                assert_eq!(column.x.len() as u64, self.unknowns, "elements of a column");
                column.x.chunks(PIECE).try_for_each(&mut *put)?;
            }
            Ok(())
        })
    }

    /// The same of columns of which these are the iterations and residuals, and whose pieces `each` gives to the function that it gets.
    fn write_by(
        &self,
        out: &mut dyn Write,
        note: &str,
        facts: &[(u64, f64)],
        each: impl FnOnce(&mut dyn FnMut(&[f64]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        assert!(facts.len() as u64 <= self.columns, "{} columns of {}", facts.len(), self.columns);
        let mut end = note.len().min(MAX_NOTE);
        while !note.is_char_boundary(end) {
            end -= 1;
        }
        let note = &note.as_bytes()[..end];
        let mut head = Vec::with_capacity(HEADER);
        head.extend(MAGIC);
        head.extend(VERSION.to_le_bytes());
        head.extend([self.unknowns, self.entries, self.columns].into_iter().flat_map(u64::to_le_bytes));
        head.extend([self.a.0, self.b.0].concat());
        head.extend([facts.len() as u64, note.len() as u64].into_iter().flat_map(u64::to_le_bytes));
        for (iterations, rel_residual_2) in facts {
            head.extend(iterations.to_le_bytes());
            head.extend(rel_residual_2.to_le_bytes());
        }
        head.extend(note);
        let mut crc = Hasher::new();
        crc.update(&head);
        out.write_all(&head)?;
        let mut bytes = Vec::new();
        each(&mut |piece| {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|v| v.to_le_bytes()));
            crc.update(&bytes);
            out.write_all(&bytes)
        })?;
        out.write_all(&crc.finalize().to_le_bytes())
    }

    /// Checks that a file is of this system.
    fn check(&self, saved: &Self, path: &Path) -> Result<()> {
        self.difference(saved).map_or(Ok(()), |reason| Err(Error::Checkpoint { path: path.into(), reason }))
    }

    /// In what the system of `saved` is another one.
    fn difference(&self, saved: &Self) -> Option<String> {
        let sizes = [
            ("unknowns", self.unknowns, saved.unknowns),
            ("entries", self.entries, saved.entries),
            ("columns of b", self.columns, saved.columns),
        ];
        if let Some((what, here, there)) = sizes.into_iter().find(|(_, here, there)| here != there) {
            return Some(format!("it is of another system, with {there} {what}; this one has {here}"));
        }
        let what = if self.a != saved.a { "the matrix" } else { "the right-hand side" };
        (self != saved).then(|| format!("it is of another system of the same size: {what} is not the same"))
    }
}

/// The hash of an array, in pieces on all threads.
fn of_pieces<T: Sync, const N: usize>(array: &[T], bytes: impl Fn(&T) -> [u8; N] + Sync) -> Digest {
    let of = |piece: &[T]| Digest::of([&piece.iter().flat_map(&bytes).collect::<Vec<u8>>()[..]]);
    let pieces: Vec<Digest> = array.par_chunks(PIECE).map(of).collect();
    Digest::of(pieces.iter().map(|digest| &digest.0[..]))
}

impl Saved {
    /// Reads a file, and makes sure that it is whole.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Checkpoint`] for a file that is no checkpoint, one of a later version, or a damaged one.
    pub fn read(path: &Path) -> Result<Self> {
        let (identity, note, columns) = Source::open(path)?.read().map_err(|e| e.of(path))?;
        Ok(Self { path: path.into(), identity, note, columns })
    }

    /// The columns, for those who have this system.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if they belong to another one.
    pub fn of(self, identity: &Identity) -> Result<Vec<Column>> {
        identity.check(&self.identity, &self.path)?;
        Ok(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::gallery;

    fn read(file: &[u8]) -> std::result::Result<(Identity, String, Vec<Column>), String> {
        Source::of(file, file.len() as u64).read().map_err(|bad| bad.to_string())
    }

    fn written(identity: &Identity, note: &str, columns: &[Column]) -> Vec<u8> {
        let mut file = Vec::new();
        identity.write(&mut file, note, &columns.iter().map(Checkpoint::from).collect::<Vec<_>>()).unwrap();
        file
    }

    fn identity() -> Identity {
        Identity::of(&gallery::poisson2d([3, 2]).unwrap(), &[[1.0; 6], [2.0; 6]])
    }

    fn column(iterations: u64) -> Column {
        Column { iterations, rel_residual_2: 0.5, x: (0..6).map(|k| k as f64 / 3.0).collect() }
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let file = written(&identity(), "by hand", &[column(7)]);
        assert_eq!(HEADER, 120);
        assert_eq!(file.len(), 120 + 16 + 7 + 6 * 8 + 4);
        assert_eq!(file[..16], *b"\x89declive\r\n\x1a\n\x01\0\0\0");
        assert_eq!([file[16], file[24], file[32], file[104], file[112]], [6, 20, 2, 1, 7]);
        assert_eq!((file[120], &file[136..143]), (7, &b"by hand"[..]));
        assert_eq!(file[143 + 3 * 8..143 + 4 * 8], 1.0f64.to_le_bytes());
        assert_eq!(file[191..], crc32fast::hash(&file[..191]).to_le_bytes());
    }

    #[test]
    fn systems_are_told_apart_by_every_bit() {
        let a = gallery::poisson2d([3, 2]).unwrap();
        let b = [[1.0; 6], [2.0; 6]];
        let identity = identity();
        let difference = |other: &Csr, b: &[[f64; 6]]| identity.difference(&Identity::of(other, b)).unwrap_or_default();
        assert_eq!(difference(&a, &b), "");
        assert!(difference(&gallery::poisson2d([3, 3]).unwrap(), &b).contains("9 unknowns"));
        assert!(difference(&gallery::poisson2d([6, 1]).unwrap(), &b).contains("16 entries"));
        assert!(difference(&a, &b[..1]).contains("1 columns of b"));
        let mut values = a.values().to_vec();
        values[3] = values[3].next_up();
        let other = Csr::new(6, 6, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
        assert!(difference(&other, &b).contains("the matrix"));
        assert!(difference(&a, &[[1.0; 6], [1.0; 6]]).contains("the right-hand side"));
        assert!(difference(&a, &[[2.0; 6], [1.0; 6]]).contains("the right-hand side"));
    }

    #[test]
    fn what_is_no_checkpoint_is_refused_with_the_reason() {
        let whole = written(&identity(), "note", &[column(1), column(2)]);
        let reason = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut file = whole.clone();
            change(&mut file);
            read(&file).unwrap_err()
        };
        assert!(reason(&|file| file.clear()).contains("no checkpoint"));
        assert!(reason(&|file| file[9] = b'\r').contains("no checkpoint"));
        assert!(reason(&|file| file[12] = 2).contains("version 2"));
        assert!(reason(&|file| file.truncate(50)).contains("too early"));
        assert!(reason(&|file| file.truncate(200)).contains("truncated"));
        assert!(reason(&|file| file.push(0)).contains("something follows"));
        assert!(reason(&|file| file[150] ^= 1).contains("checksum"));
        // claims that would take all memory there is
        for at in [16, 104, 112] {
            assert!(reason(&|file| file[at..at + 8].fill(0xFF)).contains("truncated"), "{at}");
        }
        let infinite = Column { x: vec![f64::INFINITY; 6], ..column(1) };
        assert!(read(&written(&identity(), "", &[infinite])).unwrap_err().contains("finite"));
    }

    #[test]
    fn long_notes_are_cut_where_a_letter_ends() {
        let file = written(&identity(), &"ü".repeat(MAX_NOTE), &[]);
        assert_eq!(read(&file).unwrap().1, "ü".repeat(MAX_NOTE / 2));
        let file = written(&identity(), &format!("a{}", "ü".repeat(MAX_NOTE)), &[]);
        assert_eq!(read(&file).unwrap().1.len(), MAX_NOTE - 1);
    }

    #[test]
    fn columns_of_several_pieces() {
        let n = PIECE + 3;
        let a = gallery::poisson2d([n, 1]).unwrap();
        let identity = Identity::of(&a, &[vec![1.0; n]]);
        let column = Column { iterations: 1, rel_residual_2: 1.0, x: (0..n).map(|k| k as f64).collect() };
        assert_eq!(read(&written(&identity, "", std::slice::from_ref(&column))).unwrap().2, [column]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_to_the_last_bit(
            columns in prop::collection::vec((any::<u64>(), -1e300..1e300, prop::collection::vec(-1e300..1e300, 6)), 0..=2),
            note in ".{0,40}",
        ) {
            let columns: Vec<Column> = columns
                .into_iter()
                .map(|(iterations, rel_residual_2, x)| Column { iterations, rel_residual_2, x })
                .collect();
            let (found, text, back) = read(&written(&identity(), &note, &columns)).unwrap();
            prop_assert_eq!((found, text, back), (identity(), note, columns));
        }

        #[test]
        fn any_damage_is_found(at in any::<prop::sample::Index>(), bit in 0..8_u32, note in "[a-z]{0,9}") {
            let file = written(&identity(), &note, &[column(3)]);
            prop_assert!(read(&file[..at.index(file.len())]).is_err());
            let mut changed = file.clone();
            changed[at.index(file.len())] ^= 1_u8 << bit;
            prop_assert!(read(&changed).is_err());
        }
    }
}
