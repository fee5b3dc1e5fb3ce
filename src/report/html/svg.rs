//! Parts of charts. Colours, strokes and sizes of text are the style sheet's.

use maud::{Markup, html};

/// A chart: its content, and in words what it shows.
pub(in crate::report) fn chart([width, height]: [f64; 2], title: &str, description: &str, content: Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (n(width)) " " (n(height)) } role="img" {
            title { (title) }
            desc { (description) }
            (content)
        }
    }
}

/// A coordinate, to a tenth.
pub(in crate::report) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

/// A path through some points, for the attribute `d`.
pub(in crate::report) fn path(points: impl IntoIterator<Item = [f64; 2]>) -> String {
    let mut path = String::new();
    for [x, y] in points {
        path.push(if path.is_empty() { 'M' } else { 'L' });
        path += &format!("{} {}", n(x), n(y));
    }
    path
}

/// A straight line.
pub(in crate::report) fn line(class: &str, from: [f64; 2], to: [f64; 2]) -> Markup {
    html! { path class=(class) d=(path([from, to])) {} }
}

/// A rectangle: its upper left corner, width and height.
pub(in crate::report) fn rectangle(class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) -> Markup {
    html! { rect class=(class) x=(n(x)) y=(n(y)) width=(n(width.max(0.0))) height=(n(height)) {} }
}

/// Text that begins, has its middle or ends at a place.
pub(in crate::report) fn text(class: &str, anchor: &str, [x, y]: [f64; 2], text: &str) -> Markup {
    html! { text class=(class) text-anchor=(anchor) x=(n(x)) y=(n(y)) { (text) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates() {
        assert_eq!([1.0, 0.25, -0.04, 12.34].map(n), ["1", "0.2", "0", "12.3"]);
        assert_eq!(path([[1.0, 2.0], [3.5, 4.0], [5.0, 6.0]]), "M1 2L3.5 4L5 6");
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            text("a", "end", [1.0, 2.0], "x < \"y\"").into_string(),
            "<text class=\"a\" text-anchor=\"end\" x=\"1\" y=\"2\">x &lt; &quot;y&quot;</text>"
        );
    }
}
