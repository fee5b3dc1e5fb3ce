//! The page as a reader, and a program that reads it, gets it.

mod fixture;

use declive::experiments::Experiment;
use declive::tune::Found;
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use scraper::{ElementRef, Html, Selector};

use self::fixture::{cpu, experiments, large_gpu, small_gpu, three};
use super::{dated, page};
use crate::report::html::STYLE;
use crate::report::tests::reading::{self, all, headings_are_in_order, number, rows, same, svgs, words};

/// The page, with what all pages must be.
fn read(found: &[Found], experiments: &[Experiment]) -> (String, Html) {
    let text = dated("21 November 2026, 17:00 UTC", found, experiments, &["one device is left out: why".into()]);
    let html = reading::read(&text);
    (text, html)
}

#[test]
fn the_table_has_the_numbers_that_were_found() {
    let found = three();
    let (_, html) = read(&found, &[]);
    for (one, has_blocks, factor) in [(&found[0], true, 1e6), (&found[1], true, 1e6), (&found[2], true, 1e6)] {
        let rows = rows(&html, &format!("Chosen parameters, {}", one.device.name));
        assert_eq!(rows.len(), one.kernels.len());
        for (row, kernel) in rows.iter().zip(&one.kernels) {
            assert_eq!(row.len(), 7 + 2 * usize::from(has_blocks));
            let launch = kernel.chosen.launch;
            assert_eq!(row[0], kernel.kernel);
            assert!(same(&row[1], factor * kernel.chosen.timing.median, 0.0), "{row:?}");
            assert_eq!(number(&row[2]), launch.groups_per_unit as f64);
            assert_eq!(number(&row[3]), launch.group_size as f64);
            assert_eq!(row[4].is_empty(), launch.block_nnz == 0);
            assert!(row[4].is_empty() || number(&row[4]) == launch.block_nnz as f64);
            assert_eq!(row[5].is_empty(), launch.block_nnz == 0);
            assert!(row[5].is_empty() || number(&row[5]) == launch.items_per_row as f64);
            assert!(same(&row[6], 1e-9 * kernel.bytes_per_second(), 0.0), "{row:?}");
            let part = kernel.bytes_per_second() / one.limit_bytes_per_second;
            assert!(same(&row[7], 100.0 * part, 1.0), "{row:?}");
            assert!(same(&row[8], kernel.speedup(), 0.01), "{row:?}");
        }
    }
}

#[test]
fn each_kernel_has_a_chart_with_a_line_for_each_group_size() {
    let one = large_gpu();
    let (text, html) = read(std::slice::from_ref(&one), &[]);
    assert_eq!(all(&html, "#curves svg").len(), one.kernels.len());
    assert_eq!(svgs(&text).len(), one.kernels.len());
    assert_eq!(all(&html, "svg[role=img] > title").len(), one.kernels.len());
    assert_eq!(all(&html, "svg[role=img] > desc").len(), one.kernels.len());
    for (figure, kernel) in all(&html, "#curves figure").into_iter().zip(&one.kernels) {
        let count = |selector: &str| figure.select(&Selector::parse(selector).unwrap()).count();
        assert_eq!([count("path.line"), count("path.line.strong"), count("path.band")], [8, 1, 1]);
        assert_eq!(count("circle.chosen"), 1);
        let marks = words(figure);
        assert!(marks.contains(&format!(": {}", kernel.chosen.launch.groups_per_unit)), "{marks}");
    }
}

#[test]
fn sizes_of_one_device_are_told_apart() {
    let mut block = small_gpu();
    (block.order, block.nnz, block.halo) = (1000, 6400, 100);
    let (_, html) = read(&[small_gpu(), block], &[]);
    let heads: Vec<String> = all(&html, "#devices thead th").into_iter().map(words).collect();
    assert_eq!(heads, ["Radeon HD 6750M, 8,388,608 rows", "Radeon HD 6750M, 1,000 rows"]);
    assert_eq!(rows(&html, "Chosen parameters, Radeon HD 6750M, 1,000 rows").len(), 12);
    let halos = rows(&html, "Matrix and devices").into_iter().find(|row| row[0] == "Halo").unwrap();
    assert_eq!(halos[1..], ["0 columns", "100 columns"]);
}

#[test]
fn experiments_as_tables_and_bars() {
    let experiments = experiments();
    let (_, html) = read(&three(), &experiments);
    assert_eq!(words(all(&html, "#time h2")[0]), "Where the time of 100 iterations goes");
    let methods: Vec<String> = all(&html, "#time h3").into_iter().map(words).collect();
    assert_eq!(methods, ["cg", "cg-classic"]);
    let table = rows(&html, "Time of kernels and overhead, cg");
    let heads: Vec<&str> = table.iter().map(|row| &*row[0]).collect();
    assert_eq!(heads, ["spmv_dot_csr", "cg_step", "halo_pack", "overhead", "total"]);
    assert_eq!(table[0][1..], ["100", "24.9", "6.40"]);
    assert_eq!(table[2][1..], ["100", "–\u{2008}\u{2007}\u{2007}\u{2007}", "0.600"].map(|cell| cell.trim()));
    for (k, one) in experiments[..2].iter().enumerate() {
        assert!(same(&table[3][2 + k], 1e3 * one.overhead_seconds(), 0.0));
        assert!(same(&table[4][2 + k], 1e3 * one.total_seconds, 0.0));
    }
    let rates = rows(&html, "Rates, cg");
    assert_eq!(rates.len(), 6);
    for (k, one) in experiments[..2].iter().enumerate() {
        let cell = |row: usize| &*rates[row][1 + k];
        assert!(same(cell(0), 1e3 * one.least_seconds, 0.0) && same(cell(1), 1e3 * one.most_seconds, 0.0));
        assert!(same(cell(2), 1e6 * one.seconds_per_iteration(), 0.0));
        assert!(same(cell(3), 1e-9 * one.bytes_per_second(), 0.0));
        let copy = one.copy_bytes_per_second.unwrap();
        assert!(same(cell(4), 100.0 * one.bytes_per_second() / copy, 1.0));
    }
    assert_eq!(rates[5], ["speed-up", "", "1.90"]);
    // a piece for each kernel, and one for the overhead: of the first method and of the second
    let charts = all(&html, "#time svg");
    let width = |rect: ElementRef<'_>| rect.value().attr("width").unwrap().parse::<f64>().unwrap();
    let pieces = |k: usize| charts[k].select(&Selector::parse("rect").unwrap()).map(width).collect::<Vec<f64>>();
    assert_eq!([0, 1].map(|k| pieces(k).len()), [3 + 4, 6]);
    let (first, second): (f64, f64) = (pieces(0)[..3].iter().sum(), pieces(0)[3..].iter().sum());
    let ratio = experiments[0].total_seconds / experiments[1].total_seconds;
    assert!((first / second - ratio).abs() < 0.01);
}

#[test]
fn experiments_alone() {
    let mut experiments = experiments();
    experiments[1].iterations = 50;
    experiments[1].notes.push("ended after 50 iterations".into());
    let (text, html) = read(&[], &experiments);
    assert_eq!(words(all(&html, "h1")[0]), "Where the time of conjugate gradients goes");
    assert_eq!(words(all(&html, "#time h2")[0]), "Where the time goes");
    assert!(text.contains("ended after 50 iterations") && text.contains("one device is left out: why."));
    assert!(all(&html, "#chosen, #curves, #devices, #notes").is_empty());
    read(&[], &[]);
}

#[test]
fn strange_names_are_harmless() {
    let bad = "<script>alert(1)</script>\u{0}\u{1b}\u{202e}&\"'</title></svg>";
    let mut found = vec![small_gpu()];
    let one = &mut found[0];
    let device = &mut one.device;
    for text in [&mut device.name, &mut device.vendor, &mut device.platform, &mut device.driver, &mut device.opencl] {
        *text = bad.into();
    }
    device.kind = bad.into();
    (one.matrix, one.precision) = (bad.into(), bad.into());
    for kernel in &mut one.kernels {
        kernel.kernel = bad.into();
    }
    one.kernels[0].curves.clear();
    let mut experiments = experiments();
    let first = &mut experiments[0];
    (first.name, first.method, first.devices[0], first.kernels[0].kernel) =
        (bad.into(), bad.into(), bad.into(), bad.into());
    let (text, html) = read(&found, &experiments);
    assert!(all(&html, "script").is_empty());
    assert_eq!(all(&html, "title").len(), 1 + svgs(&text).len());
    let shown = "<script>alert(1)</script>\u{fffd}\u{fffd}\u{fffd}&\"'</title></svg>";
    assert_eq!(words(all(&html, "h3")[0]), shown);
    assert!(words(all(&html, "#time h3")[0]) == shown && words(all(&html, "#time li")[0]).contains(shown));
    assert!(!text.contains(['\u{0}', '\u{1b}', '\u{202e}']));
}

#[test]
fn kernels_without_curves_are_named() {
    let mut one = small_gpu();
    one.kernels[3].curves.clear();
    one.kernels[4].curves.iter_mut().for_each(|curve| curve.points.clear());
    let (_, html) = read(&[one], &[]);
    assert_eq!(all(&html, "#curves svg").len(), 10);
    let missing = all(&html, "#curves p.small");
    assert_eq!(words(missing[0]), "No curve was measured for next_direction, scale_diagonal.");
}

#[test]
fn a_single_point() {
    let mut one = cpu();
    one.kernels.truncate(1);
    one.kernels[0].curves[0].points.truncate(1);
    one.kernels[0].chosen.launch.groups_per_unit = 1;
    let (_, html) = read(&[one], &[]);
    assert_eq!(all(&html, "#curves circle.dot").len(), 1);
    assert_eq!(all(&html, "#curves circle.chosen").len(), 1);
}

#[test]
fn without_numbers_there_are_dashes() {
    let mut one = small_gpu();
    one.limit_bytes_per_second = 0.0;
    one.kernels[0].chosen.timing.median = 0.0;
    for curve in &mut one.kernels[2].curves {
        for point in &mut curve.points {
            (point.timing.low, point.timing.high) = (f64::NAN, f64::INFINITY);
        }
        curve.points[1].timing.median = f64::NAN;
    }
    for point in one.kernels[3].curves.iter_mut().flat_map(|curve| &mut curve.points) {
        (point.timing.median, point.groups_per_unit) = (0.0, 0);
    }
    let mut experiments = experiments();
    experiments[0].total_seconds = f64::NAN;
    experiments[1].total_seconds = 0.001; // less than its kernels
    experiments[2].kernels.clear();
    let (_, html) = read(&[one.clone()], &experiments);
    let table = rows(&html, "Chosen parameters, Radeon HD 6750M");
    assert_eq!([&*table[0][6], &*table[0][7]], ["–"; 2]);
    assert!(table[1..].iter().all(|row| row[7] == "–"));
    one.kernels.clear();
    let (_, html) = read(&[one], &[]);
    assert!(words(all(&html, ".summary")[0]).ends_with("no kernel was timed."));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_was_measured_makes_a_page(
        points in prop::collection::vec((any::<f64>(), any::<f64>(), 0..200usize), 1..12),
        magnitude in -20..20i32,
        [limit, total] in any::<[f64; 2]>(),
        at in 0..200usize,
        bytes in any::<u32>(),
    ) {
        let mut one = cpu();
        one.kernels.truncate(2);
        one.limit_bytes_per_second = limit;
        // numbers of any size, and such as lie together
        for (k, kernel) in one.kernels.iter_mut().enumerate() {
            let value = |x: f64| if k == 0 { x } else { (1.0 + (x.to_bits() % 1000) as f64) * 10f64.powi(magnitude) };
            let curve = &mut kernel.curves[0];
            curve.points.truncate(points.len());
            for (point, (median, high, groups)) in curve.points.iter_mut().zip(&points) {
                (point.timing.median, point.timing.high) = (value(*median), value(*high));
                point.groups_per_unit = *groups;
            }
            kernel.chosen.launch.groups_per_unit = at;
            kernel.bytes = bytes.into();
            kernel.chosen.timing.median = value(points[0].0);
        }
        let mut experiments = experiments();
        experiments[0].total_seconds = total;
        experiments[1].kernels[0].seconds = limit;
        read(&[one], &experiments);
    }
}

#[test]
fn headings() {
    headings_are_in_order(&read(&three(), &experiments()).1);
}

#[test]
fn links_lead_somewhere() {
    let (_, html) = read(&three(), &experiments());
    let links = all(&html, "nav a");
    assert_eq!(links.len(), 4);
    for link in links {
        assert_eq!(all(&html, link.value().attr("href").unwrap()).len(), 1);
    }
}

/// 12 kernels, 8 sizes of groups, 64 points each: 6144 points. `DECLIVE_SAMPLE` names a file for a page to look at.
#[test]
fn the_largest_report_is_small() {
    let text = page(&[large_gpu()], &experiments(), &[]);
    assert!((50_000..400_000).contains(&text.len()), "{} bytes", text.len());
    if let Some(file) = std::env::var_os("DECLIVE_SAMPLE") {
        std::fs::write(file, page(&three(), &experiments(), &[])).unwrap();
    }
}

/// The colour variables of a block of the style sheet.
fn colours(block: &str) -> std::collections::HashMap<&str, [f64; 3]> {
    let channel = |hex: &str, k: usize| {
        let (digits, scale) = if hex.len() == 3 { (&hex[k..=k], 17.0) } else { (&hex[2 * k..2 * k + 2], 1.0) };
        let value = scale * f64::from(u8::from_str_radix(digits, 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let variables = block.split(';').filter_map(|one| one.trim().strip_prefix("--")?.split_once(": #"));
    variables.map(|(name, hex)| (name, [0, 1, 2].map(|k| channel(hex, k)))).collect()
}

/// Text stands out by a ratio of 4.5 (WCAG 2.1, 1.4.3), the lines of chosen sizes by 3 (1.4.11 asks no more).
#[test]
fn colours_stand_out() {
    let blocks: Vec<&str> = STYLE.split(":root {").skip(1).map(|rest| &rest[..rest.find('}').unwrap()]).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let colours = colours(block);
        let light = |name: &str| {
            let [r, g, b] = colours[name];
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let ratio = |name: &str| (light(name) / light("back")).max(light("back") / light(name));
        for name in ["text", "soft", "link"] {
            assert!(ratio(name) >= 4.5, "{name}: {}", ratio(name));
        }
        for k in 0..8 {
            assert!(ratio(&format!("c{k}")) >= 3.0, "c{k}: {}", ratio(&format!("c{k}")));
        }
    }
}
