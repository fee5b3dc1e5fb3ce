//! The first lines of a byte stream, counted, of bounded length but for comments.

use std::io::{ErrorKind as IoErrorKind, Read};
use std::ops::Range;

use memchr::memchr;

use super::fault::{Fault, reading};
use super::token::trim_start;
use crate::error::matrix_market::{Error, ErrorKind, quote};

/// The longest line that is read, comments aside; the format itself allows 1024 characters.
pub(super) const MAX_LINE: usize = 64 << 10;

/// Whether a line is a comment, by the beginning that any line may have.
pub(super) fn is_comment(line: &[u8]) -> bool {
    trim_start(&line[..line.len().min(MAX_LINE)]).first() == Some(&b'%')
}

/// Room for the longest line and then some, so that few lines straddle two reads.
const BUFFER: usize = 4 * MAX_LINE;

/// The lines of `input`, without their ends.
pub(super) struct Lines<R> {
    input: R,
    name: String,
    buffer: Box<[u8]>,
    /// What of the buffer is filled and not yet given out.
    start: usize,
    end: usize,
    at_end: bool,
    /// Where in the buffer the line given out last is.
    current: Range<usize>,
    line: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R, name: &str) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Self { input, name: name.into(), buffer, start: 0, end: 0, at_end: false, current: 0..0, line: 0 }
    }

    /// The number of the line given out last; of the file's last line after its end, but at least 1.
    pub(super) fn line(&self) -> u64 {
        self.line.max(1)
    }

    /// The name of the input.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// An error in the line given out last.
    pub(super) fn error(&self, fault: Fault) -> crate::Error {
        Error { file: self.name.clone(), line: self.line(), column: fault.column, kind: fault.kind }.into()
    }

    /// What was not given out: the bytes that were read already, and the rest of the input.
    pub(super) fn into_rest(self) -> (Vec<u8>, R) {
        (self.buffer[self.start..self.end].to_vec(), self.input)
    }

    /// The line given out last.
    fn current(&self) -> &[u8] {
        &self.buffer[self.current.clone()]
    }

    /// The next line, `None` at the end of the file. Of a comment that is too long for a line, only the beginning, unless the
    /// file begins with it.
    pub(super) fn next(&mut self) -> crate::Result<Option<&[u8]>> {
        Ok(self.advance()?.then(|| self.current()))
    }

    /// Makes the next line the current one; `false` at the end of the file.
    fn advance(&mut self) -> crate::Result<bool> {
        let mut searched = 0;
        let (mut end, next) = loop {
            let waiting = &self.buffer[self.start..self.end];
            if let Some(found) = waiting[searched..].iter().position(|&b| b == b'\n') {
                let end = self.start + searched + found;
                break (end, end + 1);
            }
            if self.at_end || waiting.len() > MAX_LINE {
                break (self.end, self.end);
            }
            searched = waiting.len();
            self.fill()?;
        };
        if self.start == next {
            return Ok(false);
        }
        self.line += 1;
        if end - self.start > MAX_LINE {
            if self.line > 1 && is_comment(&self.buffer[self.start..end]) {
                self.current = 0..MAX_LINE;
                return self.skip_comment();
            }
            let found = quote(&self.buffer[self.start..end]);
            return Err(self.error(ErrorKind::LineTooLong { max: MAX_LINE, found }.into()));
        }
        while end > self.start && self.buffer[end - 1] == b'\r' {
            end -= 1;
        }
        self.current = self.start..end;
        self.start = next;
        Ok(true)
    }

    /// Keeps the beginning of the line that is waiting, and reads on to its end.
    fn skip_comment(&mut self) -> crate::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (MAX_LINE, self.end - self.start);
        loop {
            let rest = &self.buffer[self.start..self.end];
            if let Some(end) = memchr(b'\n', rest) {
                self.start += end + 1;
                return Ok(true);
            }
            self.end = self.start;
            if self.at_end {
                return Ok(true);
            }
            self.read()?;
        }
    }

    /// Moves what is waiting to the front of the buffer and reads more behind it.
    fn fill(&mut self) -> crate::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        self.read()
    }

    /// Reads more behind what is waiting.
    fn read(&mut self) -> crate::Result<()> {
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == IoErrorKind::Interrupted => continue,
                Err(e) => return Err(reading(&self.name, self.line(), e)),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(text, "test");
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn line_ends() {
        assert_eq!(all(b"a\nb\r\n\n\r\r\nc"), [b"a".to_vec(), b"b".to_vec(), vec![], vec![], b"c".to_vec()]);
        assert_eq!(all(b"a\n"), [b"a"]);
        assert!(all(b"").is_empty());
    }

    #[test]
    fn lines_across_the_buffers_edge_and_short_reads() {
        struct Drip<'a>(&'a [u8], usize);
        impl std::io::Read for Drip<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                self.1 += 1;
                if self.1.is_multiple_of(3) {
                    return Err(IoErrorKind::Interrupted.into());
                }
                let n = to.len().min(self.0.len()).min(1 + self.1 * 7919 % 50_000);
                to[..n].copy_from_slice(&self.0[..n]);
                self.0 = &self.0[n..];
                Ok(n)
            }
        }
        let expected: Vec<String> = (0..200).map(|i| i.to_string().repeat(i * 131 % 20_000)).collect();
        let text = expected.join("\n") + "\n";
        let input = std::io::BufReader::with_capacity(7, Drip(text.as_bytes(), 0));
        let mut lines = Lines::new(input, "test");
        for (i, line) in expected.iter().enumerate() {
            assert_eq!(lines.next().unwrap(), Some(line.as_bytes()), "line {}", i + 1);
            assert_eq!(lines.line(), i as u64 + 1);
        }
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn longest_line() {
        let longest = vec![b'x'; MAX_LINE];
        assert_eq!(all(&longest), std::slice::from_ref(&longest));
        for end in ["x", "x\n", "xxxxxxx"] {
            let text = [b"\n", &longest[..], end.as_bytes()].concat();
            let mut lines = Lines::new(&text[..], "test");
            assert!(lines.next().is_ok());
            let error = lines.next().unwrap_err();
            assert!(error.to_string().starts_with("test:2: the line is longer than 65536 bytes: \"xxx"), "{error}");
        }
    }
}
