//! Files from which a simulation goes on.
//!
//! | bytes | |
//! |---|---|
//! | 12 | `89 64 65 63 6c 66 64 74 0d 0a 1a 0a`: the name, and what transfers of text would change |
//! | 4 | version of the format, 1 |
//! | 32 | SHA-256 of the problem |
//! | 4 × 8 | steps made, components, layers, probes |
//! | 8 | of each component: its elements |
//! | 3 × 8 | of each layer: its component, its axis, its elements |
//! | 8 | of each probe: its values |
//! | | all of these, in the format binary64 |
//! | 4 | CRC-32 of all before |
//!
//! Numbers are little-endian. The file has nothing of devices.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crc32fast::Hasher;

use super::grid::Component;
use super::slab::LayerName;
use crate::cache::Digest;
use crate::error::{Error, Result};

const MAGIC: [u8; 12] = *b"\x89declfdt\r\n\x1a\n";
const VERSION: u32 = 1;
/// Elements that are written at a time.
const PIECE: usize = 1 << 16;

/// The fields of a problem after some steps, and what its probes have seen.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub(crate) identity: Digest,
    pub(crate) step: u64,
    /// Of each component of the mode.
    pub(crate) fields: Vec<Vec<f64>>,
    pub(crate) layers: Vec<(LayerName, Vec<f64>)>,
    pub(crate) seen: Vec<Vec<f64>>,
}

impl State {
    /// Steps made.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Writes a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut crc = Hasher::new();
        let mut put = |bytes: &[u8]| {
            crc.update(bytes);
            out.write_all(bytes)
        };
        put(&MAGIC)?;
        put(&VERSION.to_le_bytes())?;
        put(&self.identity.0)?;
        let mut head = vec![self.step];
        head.extend([self.fields.len(), self.layers.len(), self.seen.len()].map(|n| n as u64));
        head.extend(self.fields.iter().map(|field| field.len() as u64));
        for ((component, axis), psi) in &self.layers {
            head.extend([*component as u64, *axis as u64, psi.len() as u64]);
        }
        head.extend(self.seen.iter().map(|seen| seen.len() as u64));
        put(&head.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>())?;
        let arrays = self.fields.iter().chain(self.layers.iter().map(|(_, psi)| psi)).chain(&self.seen);
        for piece in arrays.flat_map(|array| array.chunks(PIECE)) {
            put(&piece.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())?;
        }
        let crc = crc.finalize();
        out.write_all(&crc.to_le_bytes())
    }

    /// Reads a file, and makes sure that it is whole. Takes its size twice in memory.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Checkpoint`] for a file that is no such checkpoint, one of a later version, or a damaged one.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|e| Error::io(path, e))?;
        parse(&bytes).map_err(|reason| Error::Checkpoint { path: path.into(), reason })
    }
}

/// What is left of a file.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> std::result::Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("it ends too early: truncated")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> std::result::Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }

    /// So many numbers as `each` gives, if there is room for them in the file.
    fn many<R>(
        &mut self,
        count: u64,
        each: impl Fn(&mut Self) -> std::result::Result<R, String>,
    ) -> std::result::Result<Vec<R>, String> {
        if count > self.0.len() as u64 {
            return Err("it ends too early: truncated".into());
        }
        (0..count).map(|_| each(self)).collect()
    }

    fn array(&mut self, len: u64) -> std::result::Result<Vec<f64>, String> {
        let bytes = usize::try_from(len).ok().and_then(|len| len.checked_mul(8));
        let (taken, rest) = bytes.and_then(|n| self.0.split_at_checked(n)).ok_or("it ends too early: truncated")?;
        self.0 = rest;
        Ok(taken.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
    }
}

fn parse(bytes: &[u8]) -> std::result::Result<State, String> {
    let mut rest = Rest(bytes);
    if bytes.get(..MAGIC.len()) != Some(&MAGIC[..]) {
        return Err("this is no checkpoint of declive fdtd".into());
    }
    rest.take::<12>()?;
    let version = u32::from_le_bytes(rest.take()?);
    if version != VERSION {
        return Err(format!("a checkpoint in version {version} of the format; this program knows version {VERSION}"));
    }
    let identity = Digest(rest.take()?);
    let [step, fields, layers, probes] = [rest.number()?, rest.number()?, rest.number()?, rest.number()?];
    let fields = rest.many(fields, Rest::number)?;
    let layers = rest.many(layers, |rest| Ok([rest.number()?, rest.number()?, rest.number()?]))?;
    let probes = rest.many(probes, Rest::number)?;
    let fields = fields.into_iter().map(|len| rest.array(len)).collect::<std::result::Result<_, _>>()?;
    let mut all_layers = Vec::new();
    for [component, axis, len] in layers {
        let component = Component::ALL.iter().copied().find(|c| *c as u64 == component).filter(|_| axis < 3);
        let component = component.ok_or("the file is damaged: its header contradicts itself")?;
        all_layers.push(((component, axis as usize), rest.array(len)?));
    }
    let seen = probes.into_iter().map(|len| rest.array(len)).collect::<std::result::Result<_, _>>()?;
    let mut crc = Hasher::new();
    crc.update(&bytes[..bytes.len() - rest.0.len()]);
    let sum = u32::from_le_bytes(rest.take()?);
    if !rest.0.is_empty() {
        return Err("something follows its end".into());
    }
    if sum != crc.finalize() {
        return Err("the file is damaged: its checksum is not that of its content".into());
    }
    Ok(State { identity, step, fields, layers: all_layers, seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_damaged() {
        let state = State {
            identity: Digest([7; 32]),
            step: 12,
            fields: vec![vec![1.0, -0.0, 1e300], vec![2.0]],
            layers: vec![((Component::Hz, 1), vec![0.5; 3])],
            seen: vec![vec![], vec![3.5]],
        };
        let mut bytes = Vec::new();
        state.write(&mut bytes).unwrap();
        assert_eq!(parse(&bytes).unwrap(), state);
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(parse(&changed).is_err(), "byte {at}");
        }
        bytes.push(0);
        assert!(parse(&bytes).unwrap_err().contains("follows"));
    }
}
