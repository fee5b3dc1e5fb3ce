//! Numbers and names of a Gmsh file, as text or binary.

use crate::error::{Error, Result};

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As words.
    Text,
    /// As bytes, those of an integer the other way round than here if it is `swapped`.
    Binary {
        /// See above.
        swapped: bool,
    },
}

/// The rest of a file.
#[derive(Debug, Clone)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(super) form: Form,
}

impl<'a> Input<'a> {
    /// All of a file, which begins with text.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, form: Form::Text }
    }

    /// An error here.
    pub(super) fn error(&self, message: impl std::fmt::Display) -> Error {
        let place = match self.form {
            Form::Text => {
                format!("line {}", self.bytes[..self.at].iter().filter(|byte| **byte == b'\n').count() + 1)
            }
            Form::Binary { .. } => format!("byte {}", self.at + 1),
        };
        Error::Usage(format!("{place}: {message}"))
    }

    fn ended(&self) -> Error {
        self.error("the file ends here, before it is complete")
    }

    fn skip_space(&mut self) {
        self.at += self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// The next word of text.
    pub(super) fn word(&mut self) -> Result<&'a str> {
        self.skip_space();
        let rest = &self.bytes[self.at..];
        let word = &rest[..rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.ended());
        }
        self.at += word.len();
        std::str::from_utf8(word).map_err(|_| self.error("this is no text"))
    }

    fn parsed<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.word()?;
        word.parse().map_err(|_| self.error(format!("'{}' is no {what}", shown(word))))
    }

    fn array<const N: usize>(&mut self, swapped: bool) -> Result<[u8; N]> {
        let bytes = self.bytes.get(self.at..self.at + N).ok_or_else(|| self.ended())?;
        let mut all = [0; N];
        all.copy_from_slice(bytes);
        if swapped {
            all.reverse();
        }
        self.at += N;
        Ok(all)
    }

    /// A whole number, of four bytes.
    pub(super) fn int(&mut self) -> Result<i64> {
        match self.form {
            Form::Text => self.parsed("whole number"),
            Form::Binary { swapped } => Ok(i32::from_ne_bytes(self.array(swapped)?).into()),
        }
    }

    /// A count or the number of something, of eight bytes.
    pub(super) fn size(&mut self) -> Result<u64> {
        match self.form {
            Form::Text => self.parsed("number of something"),
            Form::Binary { swapped } => Ok(u64::from_ne_bytes(self.array(swapped)?)),
        }
    }

    /// What is text in binary files, too.
    pub(super) fn with_text<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let form = std::mem::replace(&mut self.form, Form::Text);
        let value = read(self);
        self.form = form;
        value
    }

    /// A real number.
    pub(super) fn real(&mut self) -> Result<f64> {
        match self.form {
            Form::Text => {
                let word = self.word()?;
                fast_float2::parse(word).map_err(|_| self.error(format!("'{}' is no number", shown(word))))
            }
            Form::Binary { swapped } => Ok(f64::from_ne_bytes(self.array(swapped)?)),
        }
    }

    /// A name in quotes, which is text in binary files, too.
    pub(super) fn quoted(&mut self) -> Result<String> {
        self.skip_space();
        let rest = &self.bytes[self.at..];
        let end = rest.iter().skip(1).position(|byte| matches!(byte, b'"' | b'\n')).map(|end| end + 1);
        let end = end.filter(|&end| rest[0] == b'"' && rest[end] == b'"');
        let end = end.ok_or_else(|| self.error("here should be a name in quotes"))?;
        self.at += end + 1;
        Ok(String::from_utf8_lossy(&rest[1..end]).into_owned())
    }

    /// The name of the next section; none at the end of the file.
    pub(super) fn section(&mut self) -> Result<Option<&'a str>> {
        self.skip_space();
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let word = self.word()?;
        match word.strip_prefix('$') {
            Some(name) if !name.is_empty() && !name.starts_with("End") => Ok(Some(name)),
            _ => Err(self.error(format!("here should be the next section, such as $Nodes, not '{}'", shown(word)))),
        }
    }

    /// The end of a section.
    pub(super) fn end(&mut self, name: &str) -> Result<()> {
        let word = self.word()?;
        if word.strip_prefix("$End") == Some(name) {
            return Ok(());
        }
        Err(self.error(format!("here should be $End{name}, not '{}'", shown(word))))
    }

    /// Leaves a section out.
    pub(super) fn skip(&mut self, name: &str) -> Result<()> {
        let end = format!("$End{name}");
        let place = memchr::memmem::find(&self.bytes[self.at..], end.as_bytes());
        let place = place.ok_or_else(|| self.error(format!("section ${name} has no end")))?;
        self.at += place + end.len();
        Ok(())
    }

    /// Goes behind the end of this line, where binary data begin.
    pub(super) fn end_line(&mut self) -> Result<()> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| self.ended())?;
        self.at += end + 1;
        Ok(())
    }

    /// A count that may be believed: each of what is counted takes a byte at the least.
    pub(super) fn count(&self, count: u64) -> Result<usize> {
        let left = self.bytes.len() - self.at;
        usize::try_from(count).ok().filter(|count| *count <= left).ok_or_else(|| {
            self.error(format!("here should be {count} things, but the file has only {left} bytes left"))
        })
    }
}

/// The beginning of a word.
fn shown(word: &str) -> String {
    word.chars().take(40).collect::<String>().replace(char::is_control, "?")
}
