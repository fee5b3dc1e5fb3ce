//! Headers of NumPy's `.npy` format.

use crate::error::npz::{ErrorKind, quote};

/// The first bytes of every array.
pub(super) const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// A header has at most so many bytes; NumPy's own limit for its text is 10 000.
pub(super) const MAX: usize = 10_012;

/// What a header says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    /// The type of the elements.
    pub(super) dtype: Dtype,
    /// Whether the first index of an element runs fastest, not the last.
    pub(super) fortran: bool,
    /// Elements in each dimension.
    pub(super) shape: Vec<usize>,
    /// Bytes before the first element.
    pub(super) len: usize,
}

/// A type of elements, as `<f8`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dtype {
    /// Whether the first byte of a number is the most significant one.
    pub(super) big_endian: bool,
    /// NumPy's letter: `f`, `c`, `i`, `u`, `b`, `S`, `U`, ….
    pub(super) kind: u8,
    /// Bytes of an element; characters, of `U`.
    pub(super) size: usize,
    /// As the header has it.
    pub(super) name: String,
}

impl Dtype {
    fn parse(name: &[u8]) -> Option<Self> {
        let (&order, rest) = name.split_first()?;
        let (&kind, size) = rest.split_first()?;
        let big_endian = match order {
            b'>' => true,
            b'<' | b'|' => false,
            b'=' => cfg!(target_endian = "big"),
            _ => return None,
        };
        let size = std::str::from_utf8(size).ok()?;
        let digits = !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit());
        let size = size.parse().ok().filter(|&size| digits && size > 0)?;
        Some(Self { big_endian, kind, size, name: quote(name) })
    }

    /// Bytes of an element.
    pub(super) fn bytes(&self) -> usize {
        if self.kind == b'U' { self.size.saturating_mul(4) } else { self.size }
    }

    /// Whether numbers have this machine's byte order.
    pub(super) fn is_native(&self) -> bool {
        self.big_endian == cfg!(target_endian = "big")
    }
}

impl Header {
    /// Reads the header of an array that begins with `bytes`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ErrorKind> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else {
            return Err(ErrorKind::NotNpy { found: quote(&bytes[..bytes.len().min(MAGIC.len())]) });
        };
        let incomplete = || ErrorKind::Header { found: quote(rest) };
        let (&[major, minor], rest) = rest.split_first_chunk().ok_or_else(incomplete)?;
        let (len, rest) = match (major, minor) {
            (1, 0) => rest.split_first_chunk().map(|(&len, rest)| (usize::from(u16::from_le_bytes(len)), rest)),
            (2 | 3, 0) => rest.split_first_chunk().map(|(&len, rest)| (u32::from_le_bytes(len) as usize, rest)),
            _ => return Err(ErrorKind::Version { major, minor }),
        }
        .ok_or_else(incomplete)?;
        let text = rest.get(..len).ok_or_else(|| ErrorKind::Header { found: quote(rest) })?;
        let len = bytes.len() - rest.len() + len;
        let (descr, fortran, shape) = Literal(text).dict().ok_or_else(|| ErrorKind::Header { found: quote(text) })?;
        let unknown = || ErrorKind::Dtype { expected: "a number or text", found: quote(descr) };
        Ok(Self { dtype: Dtype::parse(descr).ok_or_else(unknown)?, fortran, shape, len })
    }

    /// How many elements there are; 2¹²⁸ − 1 if they are more.
    pub(super) fn elements(&self) -> u128 {
        self.shape.iter().fold(1, |product: u128, &n| product.saturating_mul(n as u128))
    }

    /// The shape as Python writes it.
    pub(super) fn shape_text(&self) -> String {
        match self.shape[..] {
            [one] => format!("({one},)"),
            _ => format!("({})", self.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Writes the header of an array, whose elements then begin at a multiple of 64 bytes. `shape` is a Python tuple.
pub(super) fn write(descr: &str, fortran: bool, shape: &str) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let start = MAGIC.len() + 4;
    let len = (start + text.len() + 1).next_multiple_of(64) - start;
    let mut header = [&MAGIC[..], &[1, 0], &(len as u16).to_le_bytes(), text.as_bytes()].concat();
    header.resize(start + len - 1, b' ');
    header.push(b'\n');
    header
}

/// What is left of a Python literal.
struct Literal<'a>(&'a [u8]);

impl<'a> Literal<'a> {
    /// The values of `descr`, `fortran_order` and `shape`, each there once and nothing else.
    fn dict(mut self) -> Option<(&'a [u8], bool, Vec<usize>)> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.token(b"{")?;
        while self.token(b"}").is_none() {
            let key = self.string()?;
            self.token(b":")?;
            let is_new = match key {
                b"descr" => descr.replace(self.string()?).is_none(),
                b"fortran_order" => fortran.replace(self.boolean()?).is_none(),
                b"shape" => shape.replace(self.tuple()?).is_none(),
                _ => false,
            };
            if !is_new {
                return None;
            }
            if self.token(b",").is_none() {
                self.token(b"}")?;
                break;
            }
        }
        let all = (descr?, fortran?, shape?);
        self.0.trim_ascii().is_empty().then_some(all)
    }

    /// Takes `token`, if it comes next.
    fn token(&mut self, token: &[u8]) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(token)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let (&quote, rest) = self.0.trim_ascii_start().split_first()?;
        let end = rest.iter().position(|&b| b == quote).filter(|_| matches!(quote, b'\'' | b'"'))?;
        self.0 = &rest[end + 1..];
        Some(&rest[..end])
    }

    fn boolean(&mut self) -> Option<bool> {
        let value = self.token(b"True").is_some();
        if !value {
            self.token(b"False")?;
        }
        Some(value)
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        let mut items = Vec::new();
        self.token(b"(")?;
        while self.token(b")").is_none() {
            let text = self.0.trim_ascii_start();
            let (digits, rest) = text.split_at(text.iter().take_while(|b| b.is_ascii_digit()).count());
            items.push(std::str::from_utf8(digits).ok()?.parse().ok()?);
            // Python 2 marks long integers
            self.0 = rest.strip_prefix(b"L").unwrap_or(rest);
            if self.token(b",").is_none() {
                self.token(b")")?;
                break;
            }
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v1(text: &str) -> Vec<u8> {
        [&MAGIC[..], &[1, 0], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = write("<f8", false, "(3,)");
        assert_eq!(bytes.len() % 64, 0);
        assert!(bytes.ends_with(b"(3,), }                                                            \n"));
        let header = Header::parse(&bytes).unwrap();
        let dtype = Dtype { big_endian: false, kind: b'f', size: 8, name: "<f8".into() };
        assert_eq!(header, Header { dtype, fortran: false, shape: vec![3], len: bytes.len() });
        assert_eq!((header.elements(), header.shape_text()), (3, "(3,)".into()));
        assert_eq!(Header::parse(&write("|S3", false, "()")).unwrap().shape_text(), "()");
    }

    #[test]
    fn versions_and_spellings() {
        let text = "{\"shape\":(2L, 3),'fortran_order':True ,'descr':'>c16'}\n";
        let one = Header::parse(&v1(text)).unwrap();
        assert_eq!((one.fortran, &one.shape[..], one.shape_text()), (true, &[2, 3][..], "(2, 3)".into()));
        assert!(one.dtype.big_endian && one.dtype.kind == b'c' && one.dtype.bytes() == 16);
        for version in [2, 3] {
            let long =
                [&MAGIC[..], &[version, 0], &(text.len() as u32).to_le_bytes(), text.as_bytes(), b"data"].concat();
            assert_eq!(Header::parse(&long).unwrap(), Header { len: one.len + 2, ..one.clone() });
        }
        let dtype = |name: &str| Dtype::parse(name.as_bytes());
        assert_eq!(dtype("<U3").unwrap().bytes(), 12);
        assert!(dtype("=f8").unwrap().is_native());
        for bad in ["", "<", "f8", "<f", "<f+8", "<f8[ns]", "?f8", "<f0", "<f99999999999999999999"] {
            assert_eq!(dtype(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_no_header() {
        for text in [
            "",
            "{}",
            "{'descr': '<f8', 'fortran_order': False}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x",
            "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': 3}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (), 'more': ''}",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f8, 'fortran_order': False, 'shape': ()}",
            "{,}",
        ] {
            assert_eq!(Header::parse(&v1(text)), Err(ErrorKind::Header { found: quote(text.as_bytes()) }), "{text}");
        }
        assert_eq!(Header::parse(b"PK"), Err(ErrorKind::NotNpy { found: "PK".into() }));
        assert_eq!(Header::parse(b"\x93NUMPY\x01\x01xx"), Err(ErrorKind::Version { major: 1, minor: 1 }));
        assert!(matches!(Header::parse(b"\x93NUMPY\x02\0\xff\xff\xff\xff{}"), Err(ErrorKind::Header { .. })));
        let whole = write("<f8", false, "(3,)");
        for len in 0..whole.len() {
            assert!(Header::parse(&whole[..len]).is_err());
        }
    }
}
