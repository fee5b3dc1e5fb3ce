//! The same files as of one process, whatever the rows of each.

use std::io;

use super::*;
use crate::comm::processes::simulated::processes;
use crate::distributed::rows::tests::divided;
use crate::matrix::Csr;
use crate::matrix::gallery::{poisson2d, random_vector};
use crate::solve::Checkpoint;

/// Systems of several pieces, in parts that end within them and at their ends.
fn cases() -> Vec<(Csr, Vec<u64>)> {
    let long = 2 * PIECE as u64 + 1;
    let mut cases = Vec::new();
    for (shape, n) in [([6, 3], 18), ([long as usize, 1], long), ([PIECE, 1], PIECE as u64)] {
        let a = poisson2d(shape).unwrap();
        for starts in [vec![0, n], vec![0, n / 3, n], vec![0, 0, 5, n], vec![0, 1, 2, n / 2 + 1, n, n]] {
            cases.push((a.clone(), starts));
        }
    }
    cases
}

/// This process's part of a vector.
fn part(v: &[f64], starts: &[u64], process: usize) -> Vec<f64> {
    v[starts[process] as usize..starts[process + 1] as usize].to_vec()
}

#[test]
fn the_identity_is_that_of_one_process() {
    for (a, starts) in cases() {
        let b = [random_vector(a.n_rows(), 1), random_vector(a.n_rows(), 2)];
        let expected = Identity::of(&a, &b);
        let found = processes(starts.len() - 1, |all| {
            let rows = divided(&a, &starts).swap_remove(all.process());
            let own = [0, 1].map(|k| part(&b[k], &starts, all.process()));
            Identity::among(&*all, &rows, &own).unwrap()
        });
        assert!(found.iter().all(|found| *found == expected), "{starts:?}");
    }
}

#[test]
fn files_of_several_are_those_of_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ckpt");
    for (a, starts) in cases() {
        let n = a.n_rows();
        let (x, b) = ([random_vector(n, 3), random_vector(n, 4)], [vec![1.0; n], vec![2.0; n]]);
        let identity = Identity::of(&a, &b);
        let mut expected = Vec::new();
        let of_one = [Checkpoint::new(&x[0], 7, 0.5), Checkpoint::new(&x[1], 3, 0.25)];
        identity.write(&mut expected, "a note", &of_one).unwrap();
        std::fs::write(&path, &expected).unwrap();
        let files = processes(starts.len() - 1, |all| {
            let (note, read) = identity.saved_among(&*all, &starts, &path).unwrap();
            assert_eq!(note, if all.process() == 0 { "a note" } else { "" });
            for (k, column) in read.iter().enumerate() {
                let x = part(&x[k], &starts, all.process());
                assert_eq!(*column, Column { iterations: [7, 3][k], rel_residual_2: [0.5, 0.25][k], x });
            }
            let mut columns = Columns::new(&*all, &starts, read.iter().map(|column| &column.x[..]).collect());
            let mut file = Vec::new();
            if all.process() == 0 {
                identity.write_columns(&mut file, "a note", &[(7, 0.5), (3, 0.25)], &mut columns).unwrap();
            }
            columns.finish().unwrap();
            file
        });
        assert!(files[0] == expected, "{starts:?}");
    }
}

/// A file that gets no further.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_goes_wrong_is_told_to_all() {
    let directory = tempfile::tempdir().unwrap();
    let a = poisson2d([20, 10]).unwrap();
    let (b, starts) = ([vec![1.0; 200]], [0, 90, 90, 200]);
    let identity = Identity::of(&a, &b);
    let mut file = Vec::new();
    identity.write(&mut file, "", &[Checkpoint::new(&[1.0; 200], 7, 0.5)]).unwrap();
    let other = Identity::of(&a, &[vec![2.0; 200]]);
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("whole"), &file).unwrap();
    file[1000] ^= 1;
    std::fs::write(path("damaged"), &file).unwrap();
    std::fs::write(path("short"), &file[..1500]).unwrap();
    for (name, identity, said) in [
        ("none", identity, "none"),
        ("damaged", identity, "checksum"),
        ("short", identity, "truncated"),
        ("whole", other, "right-hand side"),
    ] {
        let errors = processes(3, |all| identity.saved_among(&*all, &starts, &path(name)).unwrap_err().to_string());
        assert!(errors.iter().all(|error| error.contains(said)), "{errors:?}");
        assert!(errors[1].starts_with("process 0 failed"), "{errors:?}");
    }
    // a full disk at any place, and what is no number
    for (room, value) in [(0, 1.0), (500, 1.0), (1739, 1.0), (5000, f64::NAN)] {
        processes(3, |all| {
            let x = vec![value; (starts[all.process() + 1] - starts[all.process()]) as usize];
            let mut columns = Columns::new(&*all, &starts, vec![&x]);
            if all.process() == 0 {
                identity.write_columns(&mut Full(room), "", &[(7, 0.5)], &mut columns).unwrap_err();
            }
            columns.finish().unwrap();
        });
    }
}
