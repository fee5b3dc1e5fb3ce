//! The elements of an array, verified.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use crc32fast::Hasher;
use rayon::prelude::*;

use super::archive::Archive;
use super::decode;
use super::element::Element;
use super::header::Header;
use crate::error::npz::ErrorKind;
use crate::memory::{Elements, zeros};
use crate::{Error, Result};

/// How many bytes of the result are read at a time: few enough to stay in a cache while they are checked.
const CHUNK: usize = 1 << 18;

/// How many bytes are decoded at a time.
const SCRATCH: usize = 1 << 14;

/// An array in a file.
pub(super) struct Array<'a> {
    pub(super) archive: &'a Archive<'a>,
    /// The member's name.
    pub(super) name: String,
    /// Its number in the archive.
    pub(super) index: usize,
    /// Where it begins in the file, if it is not compressed.
    pub(super) stored_at: Option<u64>,
    /// The checksum it should have.
    pub(super) crc: u32,
    /// What its header says; the size of the elements is that of the member.
    pub(super) header: Header,
    /// The bytes before the first element.
    pub(super) head: Vec<u8>,
    /// How many elements there are.
    pub(super) len: usize,
}

/// Counts bytes for somebody who watches.
pub(super) struct Progress<'a> {
    hook: &'a (dyn Fn(u64, u64) + Sync),
    done: AtomicU64,
    total: u64,
}

impl<'a> Progress<'a> {
    /// For reading these arrays.
    pub(super) fn new(hook: &'a (dyn Fn(u64, u64) + Sync), arrays: &[&Array]) -> Self {
        let total = arrays.iter().map(|a| a.len as u64 * a.header.dtype.bytes() as u64).sum();
        Self { hook, done: AtomicU64::new(0), total }
    }

    fn add(&self, bytes: usize) {
        let before = self.done.fetch_add(bytes as u64, Ordering::Relaxed);
        (self.hook)(before + bytes as u64, self.total);
    }
}

/// How elements become those wanted.
enum Decode<'a, T> {
    /// They are the same, bit by bit.
    InPlace,
    /// By a function, from so many bytes each.
    By(usize, Conversion<'a, T>),
}

/// A function from bytes to elements, given the position of the first.
type Conversion<'a, T> = &'a (dyn Fn(usize, &[u8], &mut [T]) -> Kind<()> + Sync);

/// What is checked of a chunk while it is in the cache, given the position of its first element.
type Check<'a, T, R> = &'a (dyn Fn(usize, &[T]) -> Kind<R> + Sync);

/// A result without the name of the member.
type Kind<T> = std::result::Result<T, ErrorKind>;

/// What was found in chunks, and their checksums.
type Summed<R> = Vec<(Hasher, Kind<R>)>;

/// Some elements of an array.
pub(super) struct Part<T> {
    pub(super) elements: Vec<T>,
    /// The checksum of their bytes.
    pub(super) crc: u32,
    /// What is wrong with them first.
    pub(super) checked: Result<()>,
}

impl<T: Pod> Decode<'_, T> {
    /// Bytes of an element in the file.
    fn size(&self) -> usize {
        match self {
            Self::InPlace => size_of::<T>(),
            Self::By(size, _) => *size,
        }
    }

    /// Fills `to`, whose first element is at position `at`, and checks it. `read` gives the bytes, one after another.
    fn fill<R>(
        &self,
        at: usize,
        to: &mut [T],
        check: Check<T, R>,
        mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Kind<R>> {
        let mut decoded = Ok(());
        match self {
            Self::InPlace => read(bytemuck::cast_slice_mut(to))?,
            Self::By(size, decode) => {
                let mut scratch = [0; SCRATCH];
                let step = SCRATCH / size;
                for (i, part) in to.chunks_mut(step).enumerate() {
                    let bytes = &mut scratch[..part.len() * size];
                    read(bytes)?;
                    // the bytes after a bad element are read nevertheless, for the checksum
                    decoded = decoded.and_then(|()| decode(at + i * step, bytes, part));
                }
            }
        }
        Ok(decoded.and_then(|()| check(at, to)))
    }
}

impl Array<'_> {
    /// An error in this member.
    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        self.archive.error(Some(&self.name), kind)
    }

    /// An error unless the shape is the one given.
    pub(super) fn expect_shape(&self, shape: &[usize]) -> Result<()> {
        if self.header.shape == shape {
            return Ok(());
        }
        let expected = Header { shape: shape.to_vec(), ..self.header.clone() }.shape_text();
        Err(self.shape_error(expected))
    }

    /// The only dimension of a vector.
    pub(super) fn expect_vector(&self) -> Result<usize> {
        match self.header.shape[..] {
            [len] => Ok(len),
            _ => Err(self.shape_error("one dimension".into())),
        }
    }

    /// An error about the shape.
    pub(super) fn shape_error(&self, expected: String) -> Error {
        self.error(ErrorKind::Shape { expected, found: self.header.shape_text() })
    }

    fn expect_dtype(&self, is_right: bool, expected: &'static str) -> Result<()> {
        let found = || self.header.dtype.name.clone();
        if is_right { Ok(()) } else { Err(self.error(ErrorKind::Dtype { expected, found: found() })) }
    }

    /// Whether the elements are complex numbers; an error if they are no numbers.
    pub(super) fn is_complex(&self) -> Result<bool> {
        const EXPECTED: &str = "truth values, integers, or floating-point numbers of 32 or 64 bits, real or complex";
        self.expect_dtype(decode::is_number(&self.header.dtype), EXPECTED)?;
        Ok(self.header.dtype.kind == b'c')
    }

    /// Reads text, as characters of 8 or 32 bits.
    pub(super) fn text(&self) -> Result<Vec<u8>> {
        const MAX: usize = 64;
        let dtype = &self.header.dtype;
        self.expect_dtype(matches!(dtype.kind, b'S' | b'U'), "text")?;
        self.expect_shape(&[])?;
        self.expect_dtype(dtype.bytes() <= MAX, "a few characters")?;
        let (bytes, _) = self.read(dtype.bytes(), &Decode::<u8>::InPlace, &|_, _| Ok(()), None)?;
        // the names of formats are ASCII: of a wide character, the other bytes are zero, as is what pads the text
        Ok(bytes.iter().copied().filter(|&b| b != 0).collect())
    }

    /// Reads integers that `T` can hold. `expected` tells what they should be.
    pub(super) fn integers<T>(&self, expected: &str, progress: Option<&Progress>) -> Result<Vec<T>>
    where
        T: Pod + Send + Sync + TryFrom<i64>,
    {
        let dtype = &self.header.dtype;
        self.expect_dtype(decode::is_integer(dtype), "integers")?;
        let whole = |at: usize, bytes: &[u8], to: &mut [T]| {
            decode::whole(dtype, bytes, to).map_err(|(k, found)| ErrorKind::Pointer {
                position: at + k,
                found,
                expected: expected.to_string(),
            })
        };
        let (all, _) = self.read(self.len, &Decode::By(dtype.size, &whole), &|_, _| Ok(()), progress)?;
        Ok(all.into_vec())
    }

    /// Reads the first `used` indices, all below `count`, and what `check` makes of each chunk. `what` is counted.
    pub(super) fn indices<R: Send>(
        &self,
        used: usize,
        what: &'static str,
        count: usize,
        check: &(dyn Fn(usize, &[u32]) -> R + Sync),
        progress: &Progress,
    ) -> Result<(Elements<u32>, Vec<R>)> {
        let dtype = &self.header.dtype;
        self.expect_dtype(decode::is_integer(dtype), "integers")?;
        let wrong = |position, found| ErrorKind::Index { what, position, found, count };
        let whole = |at: usize, bytes: &[u8], to: &mut [u32]| {
            decode::whole(dtype, bytes, to).map_err(|(k, found)| wrong(at + k, found))
        };
        // signed or not, what is below 2³¹ has the same bits
        let in_place = dtype.is_native() && dtype.size == 4;
        let signed = dtype.kind == b'i';
        let decode = if in_place { Decode::InPlace } else { Decode::By(dtype.size, &whole) };
        let limit = if in_place && signed { count.min(1 << 31) } else { count };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX); // dimensions have at most 32 bits
        let checked = |at: usize, chunk: &[u32]| {
            let chunk = &chunk[..chunk.len().min(used.saturating_sub(at))];
            // a search that may end at each element is not vectorised
            if chunk.iter().fold(false, |any, &j| any | (j >= limit)) {
                let k = chunk.iter().position(|&j| j >= limit).unwrap_or(0);
                let found = if in_place && signed { i64::from(chunk[k] as i32) } else { i64::from(chunk[k]) };
                return Err(wrong(at + k, found));
            }
            Ok(check(at, chunk))
        };
        let (indices, parts) = self.read(self.len, &decode, &checked, Some(progress))?;
        Ok((indices.truncated(used), parts))
    }

    /// Reads all values, of which the first `used` must be finite.
    pub(super) fn values<T: Element>(&self, used: usize, progress: &Progress) -> Result<Elements<T>> {
        let dtype = &self.header.dtype;
        let floats = |_, bytes: &[u8], to: &mut [T]| {
            decode::floats(dtype, bytes, bytemuck::cast_slice_mut(to));
            Ok(())
        };
        let in_place = dtype.is_native() && matches!((dtype.kind, dtype.size), (b'f', 8) | (b'c', 16));
        let decode = if in_place { Decode::InPlace } else { Decode::By(dtype.size, &floats) };
        let check = |at: usize, chunk: &[T]| {
            let chunk = &chunk[..chunk.len().min(used.saturating_sub(at))];
            // as above
            if chunk.iter().fold(true, |all, v| all & v.is_finite()) {
                return Ok(());
            }
            let k = chunk.iter().position(|v| !v.is_finite()).unwrap_or(0);
            Err(ErrorKind::NotFinite { position: at + k, value: format!("{:?}", chunk[k]) })
        };
        self.read(self.len, &decode, &check, Some(progress)).map(|(values, _)| values)
    }

    /// Reads all `len` elements, and what `check` makes of each chunk, in order.
    fn read<T: Pod + Send + Sync, R: Send>(
        &self,
        len: usize,
        decode: &Decode<T>,
        check: Check<T, R>,
        progress: Option<&Progress>,
    ) -> Result<(Elements<T>, Vec<R>)> {
        let done = |bytes| progress.iter().for_each(|progress| progress.add(bytes));
        let (all, parts) = match self.stored_at.map(|start| start + self.head.len() as u64) {
            Some(start) => match self.in_place(start, len, decode) {
                Some(all) => {
                    let parts = self.look_through(&all, check, &done)?;
                    (all, parts)
                }
                None => self.read_stored(start, len, decode, check, &done).map(|(all, parts)| (all.into(), parts))?,
            },
            None => self.inflate(len, decode, check, &done).map(|(all, parts)| (all.into(), parts))?,
        };
        // the bytes are those of the checksum: what is wrong now was wrong when the file was written
        let parts = parts.into_iter().collect::<Kind<Vec<R>>>().map_err(|kind| self.error(kind))?;
        Ok((all, parts))
    }

    /// The elements where the file is mapped, if they can be used there.
    fn in_place<T: Pod>(&self, start: u64, len: usize, decode: &Decode<T>) -> Option<Elements<T>> {
        let map = self.archive.map.as_ref().filter(|_| matches!(decode, Decode::InPlace))?;
        Elements::mapped(map, usize::try_from(start).ok()?, len)
    }

    /// Checks elements where they are, in parallel chunks.
    fn look_through<T: Pod + Send + Sync, R: Send>(
        &self,
        all: &Elements<T>,
        check: Check<T, R>,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Kind<R>>> {
        let chunk = CHUNK / size_of::<T>();
        let look = |i: usize| {
            let elements = &all[i * chunk..all.len().min((i + 1) * chunk)];
            let mut crc = Hasher::new();
            crc.update(bytemuck::cast_slice(elements));
            let part = check(i * chunk, elements);
            done(size_of_val(elements));
            (crc, part)
        };
        self.sound((0..all.len().div_ceil(chunk)).into_par_iter().map(look).collect())
    }

    /// Reads chunks in parallel, each to its place.
    fn read_stored<T: Pod + Send + Sync, R: Send>(
        &self,
        start: u64,
        len: usize,
        decode: &Decode<T>,
        check: Check<T, R>,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<(Vec<T>, Vec<Kind<R>>)> {
        let (all, parts) = self.read_chunks(start, 0..len, decode, check, done)?;
        Ok((all, self.sound(parts)?))
    }

    /// The same of some elements, each chunk with its checksum.
    fn read_chunks<T: Pod + Send + Sync, R: Send>(
        &self,
        start: u64,
        elements: Range<usize>,
        decode: &Decode<T>,
        check: Check<T, R>,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<(Vec<T>, Summed<R>)> {
        // the system gives zeros when they are first touched: by the thread that reads
        let mut all: Vec<T> = zeros(elements.len()).map_err(|bytes| bytes.into_error(&self.name))?;
        let chunk = CHUNK / size_of::<T>();
        let read_chunk = |(i, to): (usize, &mut [T])| {
            let (at, bytes) = (elements.start + i * chunk, to.len() * decode.size());
            let mut offset = start + (at * decode.size()) as u64;
            let mut crc = Hasher::new();
            let part = decode.fill(at, to, check, |bytes| {
                self.archive.source.read_exact_at(bytes, offset)?;
                offset += bytes.len() as u64;
                crc.update(bytes);
                Ok(())
            })?;
            done(bytes);
            Ok((crc, part))
        };
        let parts: io::Result<Vec<_>> = all.par_chunks_mut(chunk).enumerate().map(read_chunk).collect();
        Ok((all, parts.map_err(|e| self.archive.read_error(&self.name, e))?))
    }

    /// What was found in the chunks, if they have the checksum of the archive.
    fn sound<R>(&self, parts: Summed<R>) -> Result<Vec<Kind<R>>> {
        self.expect_sum(parts.iter().map(|(part, _)| part))?;
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// An error unless what has these checksums, part by part, has that of the archive.
    fn expect_sum<'h>(&self, parts: impl Iterator<Item = &'h Hasher>) -> Result<()> {
        let mut crc = Hasher::new();
        crc.update(&self.head);
        parts.for_each(|part| crc.combine(part));
        match (self.crc, crc.finalize()) {
            (expected, found) if expected == found => Ok(()),
            (expected, found) => Err(self.error(ErrorKind::Checksum { expected, found })),
        }
    }

    /// An error unless parts with these checksums and numbers of elements have, one after another, that of the archive.
    pub(super) fn expect_sums(&self, parts: &[(u32, usize)]) -> Result<()> {
        let bytes = self.header.dtype.bytes() as u64;
        let hashers = parts.iter().map(|&(crc, len)| Hasher::new_with_initial_len(crc, len as u64 * bytes));
        self.expect_sum(hashers.collect::<Vec<_>>().iter())
    }

    /// Some indices of an array that is not compressed, all below `count` as far as they are among the first `used`, and the
    /// checksum of their bytes. `what` is counted.
    pub(super) fn some_indices(
        &self,
        elements: Range<usize>,
        used: usize,
        what: &'static str,
        count: u64,
    ) -> Result<Part<u64>> {
        let dtype = &self.header.dtype;
        self.expect_dtype(decode::is_integer(dtype), "integers")?;
        let wrong = |position, found| ErrorKind::Index { what, position, found, count: count as usize };
        let whole = |at: usize, bytes: &[u8], to: &mut [u64]| {
            // behind what is used may be anything
            decode::whole(dtype, bytes, to).or_else(|(k, found)| match at + k {
                position if position < used => Err(wrong(position, found)),
                _ => Ok(()),
            })
        };
        let check = |at: usize, chunk: &[u64]| {
            let chunk = &chunk[..chunk.len().min(used.saturating_sub(at))];
            match chunk.iter().position(|j| *j >= count) {
                Some(k) => Err(wrong(at + k, chunk[k] as i64)),
                None => Ok(()),
            }
        };
        self.some(elements, &whole, &check)
    }

    /// Some values of an array that is not compressed, all finite as far as they are among the first `used`, and the checksum
    /// of their bytes.
    pub(super) fn some_values(&self, elements: Range<usize>, used: usize) -> Result<Part<f64>> {
        let dtype = &self.header.dtype;
        let floats = |_: usize, bytes: &[u8], to: &mut [f64]| {
            decode::floats(dtype, bytes, to);
            Ok(())
        };
        let check = |at: usize, chunk: &[f64]| {
            let chunk = &chunk[..chunk.len().min(used.saturating_sub(at))];
            match chunk.iter().position(|v| !v.is_finite()) {
                Some(k) => Err(ErrorKind::NotFinite { position: at + k, value: format!("{:?}", chunk[k]) }),
                None => Ok(()),
            }
        };
        self.some(elements, &floats, &check)
    }

    fn some<T: Pod + Send + Sync>(
        &self,
        elements: Range<usize>,
        convert: Conversion<T>,
        check: Check<T, ()>,
    ) -> Result<Part<T>> {
        let start = self.stored_at.unwrap_or(0) + self.head.len() as u64;
        let decode = Decode::By(self.header.dtype.bytes(), convert);
        let (found, parts) = self.read_chunks(start, elements, &decode, check, &|_| ())?;
        let mut crc = Hasher::new();
        let mut checked = Ok(());
        for (part, result) in parts {
            crc.combine(&part);
            checked = checked.and(result);
        }
        Ok(Part { elements: found, crc: crc.finalize(), checked: checked.map_err(|kind| self.error(kind)) })
    }

    /// Reads a compressed array from its beginning to its end, where the `zip` crate compares the checksum.
    fn inflate<T: Pod, R>(
        &self,
        len: usize,
        decode: &Decode<T>,
        check: Check<T, R>,
        done: &dyn Fn(usize),
    ) -> Result<(Vec<T>, Vec<Kind<R>>)> {
        let read_error = |e| self.archive.read_error(&self.name, e);
        let mut zip = self.archive.zip.clone();
        let mut stream = zip.by_index(self.index).map_err(|e| self.archive.zip_error(&self.name, e))?;
        stream.read_exact(&mut vec![0; self.head.len()]).map_err(read_error)?;
        let (mut all, mut parts) = (Vec::new(), Vec::new());
        while all.len() < len {
            let at = all.len();
            let more = (len - at).min(CHUNK / size_of::<T>());
            if all.capacity() < at + more {
                // twice as much as has arrived, whatever is announced
                let room = at.max(more).min(len - at);
                all.try_reserve_exact(room).map_err(|_| self.no_memory::<T>(at + room))?;
            }
            all.resize(at + more, T::zeroed());
            let part = decode.fill(at, &mut all[at..], check, |bytes| stream.read_exact(bytes));
            parts.push(part.map_err(read_error)?);
            done(more * decode.size());
        }
        match stream.read(&mut [0]).map_err(read_error)? {
            0 => Ok((all, parts)),
            _ => Err(self.error(ErrorKind::Deflate { what: "more bytes than announced".into() })),
        }
    }

    fn no_memory<T>(&self, len: usize) -> Error {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        Error::OutOfMemory { what: format!("{} of {}", self.name, self.archive.name()), bytes }
    }
}
