//! A page without what it can't hold, which may come from devices and files.

/// Without control characters, which neither HTML nor XML takes, and those that turn the direction of what follows.
pub(in crate::report) fn text(text: &mut String) {
    let bad = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fdd0}'..='\u{fdef}')
            || u32::from(c) & 0xfffe == 0xfffe
    };
    if text.contains(bad) {
        *text = text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect();
    }
}
