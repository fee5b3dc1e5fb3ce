//! `.npz` files: raw bytes, and archives that are sound as such, made of members that may be anything.

#![no_main]

use std::io::{Cursor, Write};

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

#[derive(Debug, Arbitrary)]
struct File {
    format: Format,
    shape: (Small, Small),
    members: Vec<Member>,
}

#[derive(Debug, Arbitrary)]
enum Format {
    Csr,
    Csc,
    Coo,
    Bsr,
    Dia,
    Other(Vec<u8>),
}

/// Mostly small.
#[derive(Debug, Arbitrary)]
enum Small {
    Byte(u8),
    Nibble(u8),
    Any(i64),
}

impl Small {
    fn value(&self) -> i64 {
        match *self {
            Self::Byte(n) => n.into(),
            Self::Nibble(n) => (n % 8).into(),
            Self::Any(n) => n,
        }
    }
}

#[derive(Debug, Arbitrary)]
struct Member {
    name: u8,
    kind: u8,
    big_endian: bool,
    deflated: bool,
    fortran: bool,
    shape: Shape,
    numbers: Vec<Small>,
    /// The header, in place of the one that follows from the rest.
    header: Option<String>,
}

#[derive(Debug, Arbitrary)]
enum Shape {
    Vector,
    Pairs,
    Blocks,
    Claimed(Vec<Small>),
}

const NAMES: [&str; 8] = ["data", "indices", "indptr", "row", "col", "offsets", "coords", "shape"];

/// The types that NumPy writes.
const KINDS: [&str; 13] = ["i4", "f8", "i8", "c16", "f4", "u4", "b1", "i2", "u8", "c8", "i1", "u1", "f2"];

impl Member {
    fn kind(&self) -> &'static str {
        KINDS[self.kind as usize % KINDS.len()]
    }

    fn data(&self) -> Vec<u8> {
        let one = |n: &Small| {
            let n = n.value();
            let mut bytes = match self.kind() {
                "f8" => (n as f64 / 8.0).to_le_bytes().to_vec(),
                "f4" => (n as f32 / 8.0).to_le_bytes().to_vec(),
                "c16" => return [(n as f64).to_le_bytes(), (-(n as f64)).to_le_bytes()].concat(),
                "c8" => return [(n as f32).to_le_bytes(), (-(n as f32)).to_le_bytes()].concat(),
                "i4" | "u4" => (n as i32).to_le_bytes().to_vec(),
                "i2" | "u2" | "f2" => (n as i16).to_le_bytes().to_vec(),
                "i1" | "u1" => vec![n as u8],
                "b1" => vec![n as u8 % 2],
                _ => n.to_le_bytes().to_vec(),
            };
            if self.big_endian {
                bytes.reverse();
            }
            bytes
        };
        self.numbers.iter().flat_map(one).collect()
    }

    fn npy(&self) -> Vec<u8> {
        let n = self.numbers.len();
        let shape = match &self.shape {
            Shape::Vector => format!("({n},)"),
            Shape::Pairs => format!("(2, {})", n / 2),
            Shape::Blocks => format!("({}, 2, 2)", n / 4),
            Shape::Claimed(dims) => {
                format!("({},)", dims.iter().map(|d| d.value().to_string()).collect::<Vec<_>>().join(", "))
            }
        };
        let order = match self.kind() {
            "b1" | "i1" | "u1" => '|',
            _ if self.big_endian => '>',
            _ => '<',
        };
        let fortran = if self.fortran { "True" } else { "False" };
        let usual = format!("{{'descr': '{order}{}', 'fortran_order': {fortran}, 'shape': {shape}, }}", self.kind());
        npy(self.header.as_ref().unwrap_or(&usual), &self.data())
    }
}

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut header = header.as_bytes().to_vec();
    header.truncate(4000);
    header.resize((header.len() + 11).next_multiple_of(64) - 11, b' ');
    header.push(b'\n');
    [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], &header, data].concat()
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let format: &[u8] = match &self.format {
            Format::Csr => b"csr",
            Format::Csc => b"csc",
            Format::Coo => b"coo",
            Format::Bsr => b"bsr",
            Format::Dia => b"dia",
            Format::Other(name) => name,
        };
        let header = format!("{{'descr': '|S{}', 'fortran_order': False, 'shape': (), }}", format.len());
        let mut members = vec![("format", false, npy(&header, format))];
        let shape = [self.shape.0.value().to_le_bytes(), self.shape.1.value().to_le_bytes()].concat();
        members.push(("shape", false, npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", &shape)));
        for member in &self.members {
            members.push((NAMES[member.name as usize % NAMES.len()], member.deflated, member.npy()));
        }
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, deflated, content) in members {
            let method = if deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
            let options = SimpleFileOptions::default().compression_method(method);
            // the writer takes no name twice
            if zip.start_file(format!("{name}.npy"), options).is_ok() {
                zip.write_all(&content).expect("memory can be written");
            }
        }
        zip.finish().expect("memory can be written").into_inner()
    }
}

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"PK") {
        return declive_fuzz::check::npz(bytes);
    }
    if let Ok(file) = File::arbitrary_take_rest(Unstructured::new(bytes)) {
        declive_fuzz::check::npz(&file.bytes());
    }
});
