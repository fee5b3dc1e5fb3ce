//! Options of the library as the command's flags.

/// Fields of the library's set-up that its errors, reasons and notes may name.
const FIELDS: [&str; 7] = ["devices", "method", "precision", "format", "shares", "tune", "assume_symmetric"];

/// The library's words, with each `field = value` written as the flag that sets it.
pub(crate) fn in_flags(text: impl ToString) -> String {
    let mut text = text.to_string();
    for field in FIELDS {
        let (assignment, flag) = (format!("{field} = "), format!("--{}", field.replace('_', "-")));
        let is_whole = |at: usize, text: &str| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let mut from = 0;
        while let Some(at) = text[from..].find(&assignment).map(|at| from + at) {
            let mut end = at + assignment.len();
            from = end;
            if is_whole(at, &text) {
                let flag = if text[end..].starts_with("true") {
                    end += "true".len();
                    flag.clone()
                } else {
                    format!("{flag} ")
                };
                text.replace_range(at..end, &flag);
                from = at + flag.len();
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags() {
        for (words, expected) in [
            (
                "it has no double precision (precision = f32 would use it)",
                "it has no double precision (--precision f32 would use it)",
            ),
            ("devices = 0,1, or devices = host", "--devices 0,1, or --devices host"),
            ("(assume_symmetric = true solves)", "(--assume-symmetric solves)"),
            ("my_devices = 3; a(1,1) = 2; tune", "my_devices = 3; a(1,1) = 2; tune"),
            ("", ""),
        ] {
            assert_eq!(in_flags(words), expected);
        }
    }
}
