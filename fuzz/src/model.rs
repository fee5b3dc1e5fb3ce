//! A second reader of Matrix Market text, as plain as can be: a line at a time, into an ordered map. Slow, and
//! written without a look at the crate's own.

use std::collections::BTreeMap;

/// What the crate promises to read.
#[derive(Debug, PartialEq)]
pub struct Model {
    pub rows: u64,
    pub cols: u64,
    pub complex: bool,
    pub duplicates: u64,
    /// All entries, symmetric files expanded, places from 0; values by their bits.
    pub entries: BTreeMap<(u64, u64), (u64, u64)>,
}

/// Why a file is refused.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// For what stands in this line, from 1.
    Line(u64),
    /// For what all lines together say.
    Whole,
}

/// Longer lines are not for this reader, comments aside.
const LINE: usize = 65_536;

/// Reads a text; `None` if it has a line that is longer than this reader knows how to judge.
pub fn read(text: &[u8]) -> Option<Result<Model, Refusal>> {
    let mut lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
    if lines.last() == Some(&&b""[..]) {
        lines.pop();
    }
    // a comment is known by its beginning
    for line in lines.iter_mut().skip(1).filter(|line| line.len() > LINE) {
        let start = &line[..LINE];
        if start.iter().find(|b| !b" \t".contains(b)) != Some(&b'%') {
            return None;
        }
        *line = b"%";
    }
    if lines.first().is_some_and(|line| line.len() > LINE) {
        return None;
    }
    Some(judge(&lines))
}

fn judge(lines: &[&[u8]]) -> Result<Model, Refusal> {
    let count = lines.len() as u64;
    let mut lines = (1..).zip(lines.iter().map(|line| words(line)));
    let (_, banner) = lines.next().ok_or(Refusal::Line(1))?;
    let (vector, array, field, symmetry) = self::banner(&banner).ok_or(Refusal::Line(1))?;
    let mut lines = lines.filter(|(_, words)| words.first().is_some_and(|word| word[0] != b'%'));
    let (at, size) = lines.next().ok_or(Refusal::Line(count))?;
    let (rows, cols, claimed) = self::size(&size, vector, array, &symmetry).ok_or(Refusal::Line(at))?;

    let mut places = Places { rows, symmetry: symmetry.clone(), next: None };
    let mut read: Vec<(u64, u64, u64, f64, f64)> = Vec::new();
    let mut late = None;
    for (at, line) in lines {
        if read.len() as u64 == claimed {
            return Err(Refusal::Line(at));
        }
        let mut line = line.into_iter();
        let (i, j) = if array {
            places.after()
        } else {
            let mut index = |max| line.next().and_then(whole).filter(|&i| i >= 1 && i <= max);
            let place = (|| Some((index(rows)? - 1, if vector { 0 } else { index(cols)? - 1 })))();
            place.ok_or(Refusal::Line(at))?
        };
        let mut number = || line.next().and_then(|word| value(word, &field)).ok_or(Refusal::Line(at));
        let (re, im) = match field.as_str() {
            "pattern" => (1.0, 0.0),
            "complex" => (number()?, number()?),
            _ => (number()?, 0.0),
        };
        if line.next().is_some() {
            return Err(Refusal::Line(at));
        }
        let wrong = match symmetry.as_str() {
            "skew-symmetric" => (re, im) != (0.0, 0.0),
            "hermitian" => im != 0.0,
            _ => false,
        };
        if i == j && wrong {
            // of an array, places are known late
            if !array {
                return Err(Refusal::Line(at));
            }
            late = late.or(Some(Refusal::Line(at)));
        }
        read.push((at, i, j, re, im));
    }
    if (read.len() as u64) < claimed {
        return Err(Refusal::Line(count));
    }
    if let Some(refusal) = late {
        return Err(refusal);
    }
    sum(
        &read,
        array,
        &symmetry,
        Model { rows, cols, complex: field == "complex", duplicates: 0, entries: BTreeMap::new() },
    )
}

/// Adds what shares a place, and mirrors.
fn sum(read: &[(u64, u64, u64, f64, f64)], array: bool, symmetry: &str, mut model: Model) -> Result<Model, Refusal> {
    let mirrors = symmetry != "general";
    let mut triangle = BTreeMap::new();
    let mut sums: BTreeMap<(u64, u64), (f64, f64)> = BTreeMap::new();
    let mut infinite = false;
    for &(at, i, j, re, im) in read {
        if mirrors && i != j && *triangle.entry((i.min(j), i.max(j))).or_insert(i < j) != (i < j) {
            return Err(Refusal::Line(at));
        }
        if array && (re, im) == (0.0, 0.0) {
            continue;
        }
        if let Some((r, m)) = sums.get_mut(&(i, j)) {
            (*r, *m) = (*r + re, *m + im);
            infinite |= !r.is_finite() || !m.is_finite();
            model.duplicates += 1;
        } else {
            sums.insert((i, j), (re, im));
        }
    }
    if infinite {
        return Err(Refusal::Whole);
    }
    for ((i, j), (re, im)) in sums {
        model.entries.insert((i, j), (re.to_bits(), im.to_bits()));
        if mirrors && i != j {
            let (re, im) = match symmetry {
                "skew-symmetric" => (-re, if model.complex { -im } else { im }),
                "hermitian" => (re, -im),
                _ => (re, im),
            };
            model.entries.insert((j, i), (re.to_bits(), im.to_bits()));
        }
    }
    Ok(model)
}

/// The places of an array, down the columns.
struct Places {
    rows: u64,
    symmetry: String,
    next: Option<(u64, u64)>,
}

impl Places {
    fn after(&mut self) -> (u64, u64) {
        let first = |j| match self.symmetry.as_str() {
            "general" => 0,
            "skew-symmetric" => j + 1,
            _ => j,
        };
        let (i, j) = self.next.unwrap_or((first(0), 0));
        self.next = Some(if i + 1 < self.rows { (i + 1, j) } else { (first(j + 1), j + 1) });
        (i, j)
    }
}

/// The words of a line.
fn words(line: &[u8]) -> Vec<&[u8]> {
    let end = line.iter().rposition(|&b| b != b'\r').map_or(0, |last| last + 1);
    line[..end].split(|b| b" \t".contains(b)).filter(|word| !word.is_empty()).collect()
}

/// Whether it is a vector, whether it is an array, the field and the symmetry.
fn banner(words: &[&[u8]]) -> Option<(bool, bool, String, String)> {
    let words: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["%%matrixmarket", object, layout, field, symmetry] = words[..] else { return None };
    let vector = match object {
        "matrix" => false,
        "vector" if symmetry == "general" => true,
        _ => return None,
    };
    let array = match layout {
        "array" => true,
        "coordinate" => false,
        _ => return None,
    };
    let allowed: &[&str] = match field {
        "real" | "double" | "integer" => &["general", "symmetric", "skew-symmetric"],
        "complex" => &["general", "symmetric", "skew-symmetric", "hermitian"],
        "unsigned-integer" => &["general", "symmetric"],
        "pattern" if !array => &["general", "symmetric"],
        _ => return None,
    };
    allowed.contains(&symmetry).then(|| (vector, array, field.into(), symmetry.into()))
}

fn size(words: &[&[u8]], vector: bool, array: bool, symmetry: &str) -> Option<(u64, u64, u64)> {
    let mut counts: Vec<u64> = words.iter().map(|word| whole(word)).collect::<Option<_>>()?;
    if vector {
        counts.insert(counts.len().min(1), 1);
    }
    let (rows, cols) = (*counts.first()?, *counts.get(1)?);
    if rows.max(cols) > u32::MAX.into() || symmetry != "general" && rows != cols {
        return None;
    }
    let claimed = match (array, symmetry, &counts[2..]) {
        (false, _, &[claimed]) => claimed,
        (true, "general", []) => rows * cols,
        (true, "skew-symmetric", []) => (rows * rows - rows) / 2,
        (true, _, []) => (rows * rows + rows) / 2,
        _ => return None,
    };
    (u128::from(rows.max(cols)) <= (1 << 20) + 64 * u128::from(claimed)).then_some((rows, cols, claimed))
}

/// A whole number from 0 up.
fn whole(word: &[u8]) -> Option<u64> {
    let word = std::str::from_utf8(word).ok()?;
    match word.strip_prefix('-') {
        Some(digits) => (!digits.is_empty() && digits.bytes().all(|b| b == b'0')).then_some(0),
        None => word.parse().ok(),
    }
}

fn value(word: &[u8], field: &str) -> Option<f64> {
    let word = std::str::from_utf8(word).ok()?;
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let value: f64 = match field {
        "integer" | "unsigned-integer" if !is_integer => return None,
        // one mark of an exponent, whichever
        _ => word.replacen(['d', 'D'], "e", 1).parse().ok()?,
    };
    (value.is_finite() && !(field == "unsigned-integer" && value < 0.0)).then_some(value)
}
