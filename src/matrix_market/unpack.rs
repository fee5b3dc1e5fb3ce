//! Decoders whose memory is bounded, whatever a file asks for.
//!
//! | | a decoder's memory | at most |
//! |---|---|---|
//! | gzip | a window of 32 KiB | |
//! | bzip2 | blocks of up to 900 kB, four bytes for each of theirs | 3.5 MiB |
//! | xz | the dictionary that the file asks for: 8 MiB from `xz -6`, 64 MiB from `xz -9` | 72 MiB |
//! | zstd | the window that the file asks for: 2 MiB from `zstd -3`, 8 MiB from `-19`, 128 MiB with `--long` | 128 MiB |
//!
//! Windows fill as text comes out. Those of more than 8 MiB may hold 4 MiB and beyond only [`PER_BYTE`] times what has
//! come in of the file. So a few kilobytes of nothing but repetitions do not fill 128 MiB. Large matrices, which shrink
//! by a factor of some 30 at best, have come to enough by then.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::BzDecoder;
use lzma_rust2::{Action, XzStream};
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer};

use super::source::{Corrupt, Input, Packing};
use super::{Error, ErrorKind};

/// Decompresses a stream. Several files after each other count as one, as their programs have it.
pub(super) fn unpack(packing: Packing, input: Input<'_>) -> io::Result<Input<'_>> {
    let input: Input<'_> = match packing {
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(input)),
        Packing::Bzip2 => Box::new(Bzip2::new(input)),
        Packing::Xz => Box::new(Windowed::xz(input)),
        Packing::Zstd => Box::new(Windowed::zstd(input)?),
    };
    Ok(Box::new(Unpacked { packing, input }))
}

/// The error for data that were refused here, if that is behind an error of reading.
pub(super) fn refusal(file: &str, line: u64, error: &io::Error) -> Option<crate::Error> {
    let Greedy { format, limit, preset } = Greedy::behind(error)?;
    Some(Error::whole(file, line, ErrorKind::Window { format, limit, preset }))
}

/// A decompressed stream, whose errors name the compression.
struct Unpacked<'a> {
    packing: Packing,
    input: Input<'a>,
}

impl Read for Unpacked<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.input.read(to).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ if Greedy::behind(&e).is_some() => e,
            kind => io::Error::new(kind, Corrupt { format: self.packing.name(), cause: e.to_string() }),
        })
    }
}

const MIB: u64 = 1 << 20;

/// The memory that a decoder takes for a window of 8 MiB, which it is given unasked.
const SMALL: u64 = 9 * MIB;

/// What it may fill of a larger one at first.
const FREE: u64 = 4 * MIB;

/// What it may fill beyond for each byte that has come in.
const PER_BYTE: u64 = 128;

/// What an xz file is given at most: as much as the program `xz` needs for files of its highest preset, 65 MiB, and
/// little more.
const XZ_MOST: u64 = 72 * MIB;

/// The largest window of a zstd file, as a power of two: what the program `zstd` takes unless it is told otherwise.
const ZSTD_WINDOW_LOG: u32 = 27;

/// What is read, and what is decompressed, at a time.
const STEP: usize = 64 << 10;

/// Text compressed by bzip2. Several files behind each other count as one.
struct Bzip2<R>(Option<BzDecoder<BufReader<R>>>);

impl<R: Read> Bzip2<R> {
    fn new(input: R) -> Self {
        Self(Some(BzDecoder::new(BufReader::with_capacity(STEP, input))))
    }
}

impl<R: Read> Read for Bzip2<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.0 {
            let read = decoder.read(to)?;
            if read > 0 || to.is_empty() || decoder.get_mut().fill_buf()?.is_empty() {
                return Ok(read);
            }
            // the memory of one file goes before that of the next one comes
            self.0 = self.0.take().map(BzDecoder::into_inner).map(BzDecoder::new);
        }
        Ok(0)
    }
}

/// A decoder with a window of the file's choice.
trait Decoder {
    /// Decompresses some of `from` into `to`, or what is left if `from` is empty, which is the end; tells how much of
    /// both was used.
    fn step(&mut self, from: &[u8], to: &mut [u8]) -> io::Result<(usize, usize)>;

    /// The memory, in bytes, that its present window takes when it is full.
    fn memory(&self) -> u64;

    /// The error for more of it than so many bytes.
    fn too_greedy(limit: u64) -> io::Error;
}

/// Text decompressed by such a decoder. Several files behind each other count as one.
struct Windowed<D, R> {
    decoder: D,
    input: BufReader<R>,
    /// Bytes that have come in.
    read: u64,
    /// Bytes that have come out.
    written: u64,
}

impl<R: Read> Windowed<Xz, R> {
    fn xz(input: R) -> Self {
        Self::new(Xz(XzStream::new_mem_limit(true, (XZ_MOST >> 10) as u32)), input)
    }
}

impl<R: Read> Windowed<Zstd, R> {
    fn zstd(input: R) -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).map_err(zstd_error)?;
        Ok(Self::new(Zstd { context, within_frame: false }, input))
    }
}

impl<D: Decoder, R: Read> Windowed<D, R> {
    fn new(decoder: D, input: R) -> Self {
        Self { decoder, input: BufReader::with_capacity(STEP, input), read: 0, written: 0 }
    }
}

impl<D: Decoder, R: Read> Read for Windowed<D, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let room = to.len().min(STEP);
        loop {
            let from = self.input.fill_buf()?;
            let at_end = from.is_empty();
            let (read, written) = self.decoder.step(from, &mut to[..room])?;
            self.input.consume(read);
            self.read += read as u64;
            self.written += written as u64;
            let limit = FREE + PER_BYTE * self.read;
            // the next step is taken into account: a window that is full may double
            let filled = self.decoder.memory().min(self.written + STEP as u64);
            if filled > limit && self.decoder.memory() > SMALL {
                return Err(D::too_greedy(limit));
            }
            if written > 0 || at_end {
                return Ok(written);
            }
            if read == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "there is no end to it"));
            }
        }
    }
}

/// See [`XzStream`].
struct Xz(XzStream);

impl Decoder for Xz {
    fn step(&mut self, from: &[u8], to: &mut [u8]) -> io::Result<(usize, usize)> {
        let action = if from.is_empty() { Action::Finish } else { Action::Run };
        let done = self.0.process(from, to, action).map_err(|e| match e.kind() {
            io::ErrorKind::OutOfMemory => Self::too_greedy(XZ_MOST),
            _ => e,
        })?;
        Ok((done.bytes_consumed, done.bytes_produced))
    }

    fn memory(&self) -> u64 {
        self.0.memory_usage().map_or(0, |kib| u64::from(kib) << 10)
    }

    fn too_greedy(limit: u64) -> io::Error {
        Greedy { format: "xz", limit: limit / MIB, preset: "xz -6" }.into()
    }
}

/// The library of zstd itself.
struct Zstd {
    context: DCtx<'static>,
    within_frame: bool,
}

impl Decoder for Zstd {
    fn step(&mut self, from: &[u8], to: &mut [u8]) -> io::Result<(usize, usize)> {
        if from.is_empty() && !self.within_frame {
            return Ok((0, 0)); // a step would begin another frame
        }
        let (mut input, mut output) = (InBuffer::around(from), OutBuffer::around(to));
        let wanted = self.context.decompress_stream(&mut output, &mut input).map_err(zstd_error)?;
        self.within_frame = wanted > 0;
        let (read, written) = (input.pos(), output.pos());
        if from.is_empty() && written == 0 && self.within_frame {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the last frame is incomplete"));
        }
        Ok((read, written))
    }

    fn memory(&self) -> u64 {
        self.context.sizeof() as u64
    }

    fn too_greedy(limit: u64) -> io::Error {
        Greedy { format: "zstd", limit: limit / MIB, preset: "zstd -19" }.into()
    }
}

fn zstd_error(code: zstd_safe::ErrorCode) -> io::Error {
    match zstd_safe::get_error_name(code) {
        "Frame requires too much memory for decoding" => Zstd::too_greedy(1 << ZSTD_WINDOW_LOG),
        cause => io::Error::new(io::ErrorKind::InvalidData, cause),
    }
}

/// Compressed data that can be decompressed only with more memory than they are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{format}: more than {limit} MiB")]
struct Greedy {
    format: &'static str,
    /// What they are given, in MiB.
    limit: u64,
    /// A command that compresses with a small window.
    preset: &'static str,
}

impl Greedy {
    /// What is behind an error of reading, if it is this.
    fn behind(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Greedy> for io::Error {
    fn from(cause: Greedy) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, cause)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Gives a few bytes at a time, and an interruption now and then.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = to.len().min(self.0.len()).min(1 + self.1 * 7919 % 5000);
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn xz(text: &[u8], dictionary: u32) -> Vec<u8> {
        let mut options = lzma_rust2::XzOptions::with_preset(1);
        options.lzma_options.dict_size = dictionary;
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn zstd(text: &[u8], window_log: u32) -> Vec<u8> {
        let mut writer = ::zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        writer.window_log(window_log).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn all(mut input: impl Read) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        input.read_to_end(&mut text).map(|_| text)
    }

    fn all_of_xz(packed: &[u8]) -> io::Result<Vec<u8>> {
        all(Windowed::xz(packed))
    }

    fn all_of_zstd(packed: &[u8]) -> io::Result<Vec<u8>> {
        all(Windowed::zstd(packed).unwrap())
    }

    /// Numbers without any pattern, which hardly compress.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    #[test]
    fn files_behind_each_other_in_any_portions() {
        let (text, small) = (noise(300_000), noise(1000));
        let expected = [&text[..], &small, &text].concat();
        let chain = |pack: &dyn Fn(&[u8]) -> Vec<u8>| [pack(&text), pack(b""), pack(&small), pack(&text)].concat();
        let (bzip2, xz) = (chain(&bzip2), chain(&|text| xz(text, 1 << 20)));
        let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        let zstd = [chain(&|text| zstd(text, 20)), skippable].concat();
        assert_eq!(all(Bzip2::new(Drip(&bzip2, 0))).unwrap(), expected);
        assert_eq!(all(Windowed::xz(Drip(&xz, 0))).unwrap(), expected);
        assert_eq!(all(Windowed::zstd(Drip(&zstd, 0)).unwrap()).unwrap(), expected);
    }

    #[test]
    fn cut_off_anywhere() {
        let text = noise(500);
        let (bzip2, xz, zstd) = (bzip2(&text), xz(&text, 1 << 20), zstd(&text, 20));
        for cut in 1..bzip2.len() {
            assert!(all(Bzip2::new(&bzip2[..cut])).is_err(), "bzip2 {cut}");
        }
        for cut in 1..xz.len() {
            assert!(all_of_xz(&xz[..cut]).is_err(), "xz {cut}");
        }
        for cut in 1..zstd.len() {
            assert!(all_of_zstd(&zstd[..cut]).is_err(), "zstd {cut}");
        }
    }

    #[test]
    fn large_windows_are_for_large_files() {
        let zeros = vec![0; 24 << 20];
        // enough comes in for what comes out
        let earned = [noise((21 << 20) / PER_BYTE as usize), zeros.clone()].concat();
        for (name, small, large, fine) in [
            ("xz", xz(&zeros, 1 << 23), xz(&zeros, 1 << 26), xz(&earned, 1 << 26)),
            ("zstd", zstd(&zeros, 23), zstd(&zeros, 27), zstd(&earned, 27)),
        ] {
            let all = if name == "xz" { all_of_xz } else { all_of_zstd };
            assert!(large.len() < 10_000);
            assert!(all(&small).unwrap() == zeros, "{name}");
            assert!(all(&fine).unwrap() == earned, "{name}");
            let error = all(&large).unwrap_err();
            let greedy = Greedy::behind(&error).unwrap();
            assert!(greedy.format == name && (4..=5).contains(&greedy.limit), "{error}");
            // little text fits into any window
            let little = if name == "xz" { xz(b"little", 1 << 26) } else { zstd(b"little", 27) };
            assert_eq!(all(&little).unwrap(), b"little");
        }
    }

    #[test]
    fn windows_beyond_all_limits() {
        let greedy = |result: io::Result<Vec<u8>>| Greedy::behind(&result.unwrap_err()).unwrap();
        let found = greedy(all_of_xz(&xz(b"little", 1 << 27)));
        assert_eq!((found.format, found.limit), ("xz", 72));
        let found = greedy(all_of_zstd(&zstd(b"little", 28)));
        assert_eq!((found.format, found.limit), ("zstd", 128));
    }
}
