//! What the banner of the written file says of the values.

use declive::Csr;
use declive::matrix::Scalar;
use declive::matrix_market::{Field, Header, Layout, Symmetry, Unwritable, WriteOptions};

/// Which entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entries {
    /// A lower triangle if the input had one only, otherwise all.
    AsRead,
    /// A lower triangle.
    Lower,
    /// All.
    All,
}

/// How to write `a`, of which `header` is what its file said, none if it came from elsewhere: in the same layout, with
/// the same field and symmetry as far as they are still true.
///
/// # Errors
/// If a lower triangle is asked for but the matrix has no symmetry: what speaks against `symmetric`.
pub(super) fn options<T: Scalar>(
    a: &Csr<T>,
    header: Option<&Header>,
    entries: Entries,
) -> Result<WriteOptions, Unwritable> {
    Ok(WriteOptions::default()
        .with_layout(header.map_or(Layout::Coordinate, |header| header.layout))
        .with_field(field(a, header))
        .with_symmetry(symmetry(a, header, entries)?)
        // reading has made the one symmetry, a check has found the other
        .with_trusted(true))
}

/// The field of the input, or the next one that has words for all values: where entries were added up, or zeros kept in
/// a pattern, it may not be the same.
fn field<T: Scalar>(a: &Csr<T>, header: Option<&Header>) -> Field {
    let narrow: &[Field] = match header.map(|header| header.field) {
        Some(Field::Pattern) => &[Field::Pattern, Field::Integer],
        Some(Field::Integer) => &[Field::Integer],
        Some(Field::UnsignedInteger) => &[Field::UnsignedInteger, Field::Integer],
        _ => &[],
    };
    let fits = |field: &&Field| WriteOptions::default().with_field(**field).check(a).is_ok();
    let widest = if T::IS_COMPLEX { Field::Complex } else { Field::Real };
    narrow.iter().find(fits).copied().unwrap_or(widest)
}

fn symmetry<T: Scalar>(a: &Csr<T>, header: Option<&Header>, entries: Entries) -> Result<Symmetry, Unwritable> {
    let read = header.map_or(Symmetry::General, |header| header.symmetry);
    match entries {
        Entries::All => Ok(Symmetry::General),
        Entries::AsRead => Ok(read),
        Entries::Lower if read != Symmetry::General => Ok(read),
        Entries::Lower => {
            let holds = |symmetry| WriteOptions::default().with_symmetry(symmetry).check(a);
            holds(Symmetry::Symmetric).map(|()| Symmetry::Symmetric).or_else(|obstacle| {
                let others = [Symmetry::Hermitian, Symmetry::SkewSymmetric];
                others.into_iter().find(|&other| holds(other).is_ok()).ok_or(obstacle)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use declive::matrix::Complex64;
    use declive::matrix_market::Reader;

    use super::*;

    fn header(banner: &str) -> Header {
        let text = format!("%%MatrixMarket matrix {banner}\n0 0 0\n");
        Reader::new().any_matrix_from(text.as_bytes(), "test").unwrap().header
    }

    fn matrix<T: Scalar>(entries: [(u32, u32, T); 3]) -> Csr<T> {
        let (rows, cols, values) = (entries.map(|e| e.0), entries.map(|e| e.1), entries.map(|e| e.2));
        Csr::from_triplets(2, 2, &rows, &cols, &values).unwrap()
    }

    /// Diagonal entry, one above and one below the diagonal.
    fn three<T: Scalar>(diagonal: T, upper: T, lower: T) -> Csr<T> {
        matrix([(0, 0, diagonal), (0, 1, upper), (1, 0, lower)])
    }

    #[test]
    fn the_field_stays_as_long_as_it_is_true() {
        for (was, values, is) in [
            ("pattern", [1.0, 1.0, 1.0], Field::Pattern),
            ("pattern", [1.0, 2.0, 1.0], Field::Integer),
            ("integer", [1.0, 1.0, 1.0], Field::Integer),
            ("integer", [-3.0, 0.0, 9.0], Field::Integer),
            ("integer", [1.0, 1e16, 1.0], Field::Real), // no longer the whole number of the file
            ("unsigned-integer", [1.0, 0.0, 3.0], Field::UnsignedInteger),
            ("real", [1.0, 1.0, 1.0], Field::Real),
        ] {
            let header = header(&format!("coordinate {was} general"));
            let [d, u, l] = values;
            let options = options(&three(d, u, l), Some(&header), Entries::AsRead).unwrap();
            assert_eq!(options.field, Some(is), "{was} {values:?}");
        }
        let one = Complex64::ONE;
        assert_eq!(options(&three(one, one, one), None, Entries::All).unwrap().field, Some(Field::Complex));
    }

    #[test]
    fn the_symmetry_that_holds() {
        fn of<T: Scalar>(d: T, u: T, l: T) -> Result<Symmetry, Unwritable> {
            options(&three(d, u, l), None, Entries::Lower).map(|options| options.symmetry)
        }
        let c = Complex64::new;
        assert_eq!(of(1.0, 2.0, 2.0), Ok(Symmetry::Symmetric));
        assert_eq!(of(0.0, 2.0, -2.0), Ok(Symmetry::SkewSymmetric));
        assert_eq!(of(c(1.0, 1.0), c(0.0, 1.0), c(0.0, 1.0)), Ok(Symmetry::Symmetric));
        assert_eq!(of(c(1.0, 0.0), c(0.0, 1.0), c(0.0, -1.0)), Ok(Symmetry::Hermitian));
        assert_eq!(of(c(0.0, 0.0), c(1.0, 1.0), c(-1.0, -1.0)), Ok(Symmetry::SkewSymmetric));
        let obstacle = of(1.0, 2.0, 3.0).unwrap_err().to_string();
        assert!(obstacle.contains("not symmetric: a(1,2) is 2e0, but a(2,1) is 3e0"), "{obstacle}");
    }

    #[test]
    fn without_a_wish_as_it_was() {
        let a = three(1.0, 2.0, 2.0);
        let symmetric = header("coordinate real symmetric");
        let of = |header, entries| options(&a, header, entries).unwrap().symmetry;
        assert_eq!(of(Some(&symmetric), Entries::AsRead), Symmetry::Symmetric);
        assert_eq!(of(Some(&symmetric), Entries::All), Symmetry::General);
        assert_eq!(of(None, Entries::AsRead), Symmetry::General);
    }
}
