//! The banner, the comments and the size line.

use super::super::{Field, Layout, Symmetry};

/// How many bytes of a comment go on a line; the format allows lines of 1024.
const COMMENT: usize = 1000;

/// All lines before the entries.
pub(super) fn head(layout: Layout, field: Field, symmetry: Symmetry, comments: &[String], size: &str) -> String {
    let mut head = format!("%%MatrixMarket matrix {layout} {field} {symmetry}\n");
    for comment in comments {
        // some programs take a carriage return alone for the end of a line
        for line in comment.replace("\r\n", "\n").split(['\n', '\r']) {
            put_comment(&mut head, line.trim_end());
        }
    }
    head + size + "\n"
}

/// Adds a comment without line breaks, on as many lines as it takes.
fn put_comment(head: &mut String, mut comment: &str) {
    if comment.is_empty() {
        head.push_str("%\n");
    }
    while !comment.is_empty() {
        let cut = (0..=COMMENT.min(comment.len())).rev().find(|&at| comment.is_char_boundary(at)).unwrap_or_default();
        let (part, rest) = comment.split_at(cut);
        head.extend(["% ", part, "\n"]);
        comment = rest;
    }
}
