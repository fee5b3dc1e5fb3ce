//! Pages as a program reads them, for tests.

use scraper::{ElementRef, Html, Selector};

/// A page without scripts, links or other things from elsewhere, and without text that stands for no number.
pub(in crate::report) fn read(text: &str) -> Html {
    let html = Html::parse_document(text);
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    for word in ["http", "<script", "<link", "<img", "url(", "@import", "NaN", "inf ", "inf<", "\"inf"] {
        assert!(!text.contains(word), "{word}");
    }
    for svg in svgs(text) {
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    }
    html
}

/// The charts as they stand in the file.
pub(in crate::report) fn svgs(text: &str) -> Vec<&str> {
    let rest = text.split("<svg").skip(1);
    rest.map(|piece| &text[piece.as_ptr() as usize - text.as_ptr() as usize - 4..])
        .map(|from| &from[..from.find("</svg>").unwrap() + 6])
        .collect()
}

/// All elements that a selector of CSS names.
pub(in crate::report) fn all<'a>(html: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    html.select(&Selector::parse(selector).unwrap()).collect()
}

/// The text of an element.
pub(in crate::report) fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().trim().into()
}

/// The rows of the table with this label, heads included.
pub(in crate::report) fn rows(html: &Html, label: &str) -> Vec<Vec<String>> {
    let cells = Selector::parse("th, td").unwrap();
    let rows = all(html, &format!("div[aria-label=\"{label}\"] tbody tr"));
    rows.into_iter().map(|row| row.select(&cells).map(words).collect()).collect()
}

/// A number of the page.
pub(in crate::report) fn number(text: &str) -> f64 {
    text.replace(',', "").replace('−', "-").parse().unwrap_or_else(|_| panic!("'{text}' is no number"))
}

/// Whether a number of the page is `value`, as far as three figures or `step` tell.
pub(in crate::report) fn same(text: &str, value: f64, step: f64) -> bool {
    (number(text) - value).abs() <= (0.0051 * value.abs()).max(0.51 * step)
}

/// Headings begin with the one `h1` and leave no level out.
pub(in crate::report) fn headings_are_in_order(html: &Html) {
    let levels: Vec<char> =
        all(html, "h1, h2, h3, h4").into_iter().filter_map(|h| h.value().name().chars().nth(1)).collect();
    assert_eq!(levels[0], '1');
    assert!(levels.windows(2).all(|two| two[1] as u32 <= two[0] as u32 + 1), "{levels:?}");
    assert_eq!(levels.iter().filter(|&&level| level == '1').count(), 1);
    assert_eq!(all(html, "html")[0].value().attr("lang"), Some("en"));
}

/// The parser that these tests rest on finds what is wrong.
#[test]
fn errors_of_html_are_seen() {
    assert!(!Html::parse_document("<!doctype html><p><b>a</i></p>").errors.is_empty());
    assert!(roxmltree::Document::parse("<svg><path></svg>").is_err());
}
