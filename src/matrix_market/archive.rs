//! Archives as the SuiteSparse collection ships them: `NAME/NAME.mtx`, and beside it perhaps `NAME/NAME_b.mtx`.

use std::io::{self, Read};

use super::source::Corrupt;

const BLOCK: usize = 512;

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its path as the archive has it.
    pub(super) path: String,
    pub(super) size: u64,
}

/// What a member is by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Matrix,
    Rhs,
    Other,
}

impl Member {
    /// `NAME/NAME.mtx` is the matrix and `NAME/NAME_b.mtx` the right-hand side, in whatever directory; without one,
    /// NAME is that of the archive.
    pub(super) fn role(&self, archive: &str) -> Role {
        let mut parts = self.path.rsplit('/');
        let file = parts.next().unwrap_or_default();
        let name = parts.next().filter(|dir| !dir.is_empty() && *dir != ".").unwrap_or_else(|| stem(archive));
        match file.strip_suffix(".mtx") {
            Some(stem) if stem == name => Role::Matrix,
            Some(stem) if stem.strip_suffix("_b") == Some(name) => Role::Rhs,
            _ => Role::Other,
        }
    }
}

/// A file's name without directories and without what follows the first dot.
fn stem(path: &str) -> &str {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    file.split('.').next().unwrap_or(file)
}

/// What failed while an archive was read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Failed {
    /// The archive itself, or its input.
    Archive(#[from] io::Error),
    /// A member.
    Member(#[from] crate::Error),
}

/// Calls `each` with every file of a tar archive and its content, of which it may leave something unread.
pub(super) fn for_each_member<R: Read>(
    mut input: R,
    mut each: impl FnMut(Member, &mut io::Take<&mut R>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    loop {
        let mut block = [0; BLOCK];
        // two blocks of zeros end an archive, and so does the end of the file
        if !read_block(&mut input, &mut block)? || block.iter().all(|&b| b == 0) {
            io::copy(&mut input, &mut io::sink())?; // a checksum may come at the very end
            return Ok(());
        }
        let header = tar::Header::from_byte_slice(&block);
        if header.cksum().ok() != Some(checksum(&block)) {
            return Err(damaged("the header of a member is damaged").into());
        }
        let size = header.entry_size().map_err(|_| damaged("the size of a member is damaged"))?;
        let mut content = input.by_ref().take(size);
        if header.entry_type().is_file() {
            let path = String::from_utf8_lossy(&header.path_bytes()).into_owned();
            each(Member { path, size }, &mut content)?;
        }
        let padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        let rest = content.limit().saturating_add(padding);
        if io::copy(&mut input.by_ref().take(rest), &mut io::sink())? < rest {
            return Err(damaged("it ends within a member").into());
        }
    }
}

fn damaged(cause: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Corrupt { format: "tar", cause: cause.into() })
}

/// Fills a block; `false` at the end of the input.
fn read_block(input: &mut impl Read, block: &mut [u8; BLOCK]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < BLOCK {
        match input.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(damaged("it ends within a header")),
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// The sum of a header's bytes, those of the checksum itself taken as blanks.
fn checksum(block: &[u8; BLOCK]) -> u32 {
    block.iter().enumerate().map(|(i, &b)| if (148..156).contains(&i) { u32::from(b' ') } else { u32::from(b) }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_by_name() {
        let role = |path: &str, archive: &str| Member { path: path.into(), size: 0 }.role(archive);
        assert_eq!(role("bus/bus.mtx", "x.tar.gz"), Role::Matrix);
        assert_eq!(role("HB/bus/bus.mtx", "-"), Role::Matrix);
        assert_eq!(role("bus/bus_b.mtx", "x.tar.gz"), Role::Rhs);
        assert_eq!(role("./bus.mtx", "some/where/bus.tar.gz"), Role::Matrix);
        assert_eq!(role("bus_b.mtx", "bus.tgz"), Role::Rhs);
        for other in ["bus/bus_coord.mtx", "bus/README.txt", "bus/other.mtx", "bus.mtx", "bus/bus_b.txt", "bus/_b.mtx"]
        {
            assert_eq!(role(other, "x.tar.gz"), Role::Other, "{other}");
        }
    }

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, path, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn members(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Failed> {
        let mut found = Vec::new();
        for_each_member(archive, |member, content| {
            let mut bytes = Vec::new();
            // of the second one only a part is read
            let limit = if found.len() == 1 { 3 } else { u64::MAX };
            content.by_ref().take(limit).read_to_end(&mut bytes)?;
            found.push((member.path, bytes));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn members_are_found_in_order() {
        let long = [7u8; 1500];
        let found = members(&archive(&[("a/a.mtx", b"first"), ("a/b", &long), ("c", b""), ("d", b"last")])).unwrap();
        let expected: [(&str, &[u8]); 4] = [("a/a.mtx", b"first"), ("a/b", &long[..3]), ("c", b""), ("d", b"last")];
        assert!(found.iter().map(|(p, c)| (p.as_str(), c.as_slice())).eq(expected));
    }

    #[test]
    fn damaged_archives() {
        let whole = archive(&[("a", &[1; 700])]);
        let error = |bytes: &[u8]| format!("{:?}", members(bytes).unwrap_err());
        assert!(error(&whole[..100]).contains("within a header"));
        assert!(error(&whole[..1000]).contains("within a member"));
        let mut flipped = whole.clone();
        flipped[0] ^= 1;
        assert!(error(&flipped).contains("is damaged"));
        assert!(members(&[]).unwrap().is_empty());
    }
}
