//! The page as a reader, and a program that reads it, gets it.

mod fixture;

use std::time::Duration;

use declive::Solver;
use declive::device::Kind;
use declive::matrix::gallery;
use declive::solve::{Method, Precond, Setup};
use declive::timeline::{Lane, Span, Timeline};
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use scraper::{Html, Selector};

use self::fixture::{PERIOD, history, recording, timelines};
use super::super::recording::Recording;
use super::super::solve::{Report, Stage};
use super::super::tests::reading::{self, all, headings_are_in_order, number, rows, same, svgs, words};
use super::super::tests::report;
use super::dated;

fn read(report: &Report, recording: &Recording<'_>) -> (String, Html) {
    let text = dated("21 November 2026, 17:00 UTC", report, recording);
    let html = reading::read(&text);
    (text, html)
}

#[test]
fn headings_and_links() {
    for (ranks, columns) in [(1, 1), (8, 1), (2, 5), (8, 40)] {
        let report = report(ranks, &vec![1e-9; columns]);
        let (history, timelines) = (history(150), timelines(ranks as u64, 100));
        let (text, html) = read(&report, &recording(columns, &history, &timelines));
        headings_are_in_order(&html);
        let links = all(&html, "nav a");
        assert_eq!(links.len(), 7);
        for link in links {
            assert_eq!(all(&html, link.value().attr("href").unwrap()).len(), 1);
        }
        assert_eq!(svgs(&text).len(), 4);
        assert_eq!(all(&html, "svg[role=img] > title").len(), 4);
        assert_eq!(all(&html, "svg[role=img] > desc").len(), 4);
        assert_eq!(all(&html, "#convergence path.solid").len(), columns);
        assert_eq!(words(all(&html, ".summary")[0]), report.verdict());
    }
}

#[test]
fn the_kernels_of_an_iteration() {
    let (history, timelines) = (history(150), timelines(3, 100));
    let (_, html) = read(&report(3, &[1e-9]), &recording(1, &history, &timelines));
    // 40, 50 and 60 µs on three ranks, of 100
    let table = rows(&html, "Kernels");
    let row = |k: usize| -> Vec<&str> { table[k].iter().map(String::as_str).collect() };
    assert_eq!(row(0)[..2], ["spmv_dot_csr", "1.00"]);
    for (k, [mean, least, most]) in [[50.0, 40.0, 60.0], [20.0; 3], [0.25; 3]].into_iter().enumerate() {
        for (cell, value) in [(2, mean), (3, mean), (4, mean), (5, least), (6, most)] {
            assert!(same(row(k)[cell].trim_end_matches(" %"), value, if cell == 4 { 0.1 } else { 0.0 }), "{table:?}");
        }
    }
    // 60.25, 70.25 and 80.25 µs
    assert_eq!(words(all(&html, "#kernels b.imbalance")[0]), "1.14");
    let loads = rows(&html, "A rank's iteration");
    for (row, (kernels, relative)) in loads.iter().zip([(60.25, 0.86), (70.25, 1.0), (80.25, 1.14)]) {
        assert!(same(&row[1], kernels, 0.0) && same(&row[2], relative, 0.01) && same(&row[3], 30.0, 0.0), "{row:?}");
    }
    let text = words(all(&html, "#kernels p")[0]);
    assert!(text.starts_with("100 iterations of 123,456 were recorded, which took 100 µs each"), "{text}");
}

#[test]
fn iterations_out_of_the_middle() {
    let (history, timelines) = (history(150), timelines(2, 100));
    let (_, html) = read(&report(2, &[1e-9]), &recording(1, &history, &timelines));
    assert_eq!(words(all(&html, "#timeline figcaption b")[0]), "Iterations 49 to 52, 398 µs");
    let rects = all(&html, "#timeline rect");
    // four iterations on two ranks; the shortest kernel can still be seen
    assert_eq!(rects.len(), 4 * 2 * 4);
    let width = |k: usize| rects[k].value().attr("width").unwrap().parse::<f64>().unwrap();
    assert!((0..rects.len()).all(|k| width(k) >= 1.0));
    let scale = width(0) / 40.0;
    assert!((width(1) / scale - 20.0).abs() < 0.1);
    let tips = all(&html, "#timeline rect > title");
    assert_eq!(words(tips[0]), "spmv_dot_csr: 40.0 µs, iteration 49");
    let labels: Vec<String> = all(&html, "#timeline text").into_iter().map(words).collect();
    for label in ["iteration 49", "iteration 52", "rank 0 kernels", "rank 1 kernels", "host", "spmv_dot_csr"] {
        assert!(labels.contains(&label.into()), "{label}: {labels:?}");
    }
    assert_eq!(PERIOD, 100);
}

#[test]
fn restarts_are_marked() {
    let history = history(150);
    let mut timelines = timelines(1, 100);
    timelines[0].runs = vec![70, 120, 150, 150];
    let mut report = report(1, &[1e-9]);
    report.figures.restarts = 2;
    let (_, html) = read(&report, &recording(1, &history, &timelines));
    assert_eq!(all(&html, "#convergence circle.chosen").len(), 2);
    assert!(words(all(&html, "#convergence figcaption")[0]).contains("Discs"));
}

#[test]
fn targets_and_true_residuals() {
    let (history, timelines) = (history(150), timelines(1, 100));
    let marks = |report: &Report| {
        let (_, html) = read(report, &recording(report.solves.len(), &history, &timelines));
        let marks = all(&html, "#convergence text.mark").into_iter().map(words).collect::<Vec<_>>();
        (all(&html, "#convergence path.limit").len(), all(&html, "#convergence path.stop").len(), marks)
    };
    let mut one = report(1, &[9.31e-9]);
    assert_eq!(marks(&one), (1, 1, vec!["target 1e-8".into(), "true residual 9.31e-9".into()]));
    // ‖b‖ = 1, but for one of two
    (one.options.stop.rtol, one.options.stop.atol) = (0.0, 1e-3);
    assert_eq!(marks(&one).2[0], "target 1e-3");
    one.options.stop.atol = 0.0;
    assert_eq!((marks(&one).0, marks(&one).1), (0, 1));
    let mut two = report(1, &[1e-9, 1e-4]);
    (two.options.stop.atol, two.solves[1].figures.rhs_2) = (1e-3, 10.0);
    assert_eq!((marks(&two).0, marks(&two).1), (2, 2));
}

#[test]
fn without_an_iteration_there_is_nothing_to_draw() {
    let mut report = report(2, &[0.0]);
    (report.figures.iterations, report.figures.microseconds_per_iteration) = (0, None);
    report.seconds.solve = 0.0;
    report.solves[0].figures = report.figures.clone();
    let nothing = vec![Timeline::default(); 2];
    let mut recording = recording(1, &[0.0], &nothing);
    recording.columns[0].origin = None;
    let (text, html) = read(&report, &recording);
    assert_eq!(svgs(&text).len(), 1);
    assert!(all(&html, "#timeline, #kernels").is_empty());
    assert!(words(all(&html, "#convergence p")[0]).starts_with("No iteration was made. Name: "));
    assert_eq!(rows(&html, "Results").len(), 1);
}

#[test]
fn a_rank_of_the_host_has_one_bar() {
    let mut report = report(2, &[1e-9]);
    (report.ranks[1].info.index, report.ranks[1].info.kind) = (None, Kind::Host);
    let (history, mut timelines) = (history(150), timelines(2, 100));
    timelines[1].spans.retain(|span| span.lane == Lane::Kernels);
    let mut recording = recording(1, &history, &timelines);
    recording.drivers[1] = None;
    let (_, html) = read(&report, &recording);
    let label = "Time in the iteration, by rank";
    let table = rows(&html, label);
    // of 10 s: kernels 8, sums 1, halos 0.5, waits 0.25
    assert_eq!(
        table[0][1..],
        ["8.00 (80 %)", "2.00 (20 %)", "1.00 (10 %)", "0.500 (5.0 %)", "0.250 (2.5 %)", "8.25 (82 %)"]
    );
    assert_eq!(table[1][1..], ["8.00 (80 %)", "–", "1.00 (10 %)", "0.500 (5.0 %)", "–", "0.250 (2.5 %)"]);
    let bars: Vec<String> = all(&html, "#time text.name").into_iter().map(words).collect();
    assert_eq!(bars, ["total", "rank 0 device", "host", "rank 1 host"]);
    assert_eq!(words(all(&html, "div[aria-label=Drivers] thead th")[0]), "rank 0");
    assert_eq!(all(&html, "div[aria-label=Drivers] thead th").len(), 1);
}

#[test]
fn bars_are_as_long_as_their_times() {
    let mut report = report(1, &[1e-9]);
    (report.seconds.read, report.seconds.prepare, report.seconds.solve) = (1.0, 0.5, 10.0);
    let (history, timelines) = (history(150), timelines(1, 100));
    let (_, html) = read(&report, &recording(1, &history, &timelines));
    let svg = all(&html, "#time svg")[0];
    let widths: Vec<f64> = svg
        .select(&Selector::parse("rect").unwrap())
        .map(|rect| rect.value().attr("width").unwrap().parse().unwrap())
        .collect();
    let second = widths[0];
    // read, prepare, solve, and what is left of 12.5 s
    for (width, seconds) in widths.iter().zip([1.0, 0.5, 10.0, 1.0]) {
        assert!((width / second - seconds).abs() < 0.02, "{widths:?}");
    }
    let table = rows(&html, "Time of the command");
    assert_eq!(table[6], ["solve", "10.0000", "80 %"]);
    assert_eq!(table[11], ["total", "12.5000", "100 %"]);
}

#[test]
fn levels_of_multigrid_are_drawn() {
    let setup = Setup::default().with_devices("host".parse().unwrap());
    let setup = setup.with_method(Method::Cg).with_precond(Precond::Amg);
    let solver = Solver::new(gallery::poisson3d([12; 3]).unwrap(), &setup).unwrap();
    let mut report = report(1, &[1e-9]);
    report.hierarchy = solver.hierarchy().cloned();
    let levels = &solver.hierarchy().unwrap().levels;
    let (history, timelines) = (history(20), timelines(1, 20));
    let (text, html) = read(&report, &recording(1, &history, &timelines));
    headings_are_in_order(&html);
    assert_eq!((all(&html, "nav a").len(), svgs(&text).len()), (8, 6));
    assert!(
        all(&html, "#multigrid p").into_iter().map(words).any(|text| text.starts_with("All levels together have "))
    );
    let table = rows(&html, "Levels");
    assert_eq!(table.len(), levels.len());
    assert_eq!(table[0][..5], ["level 0", "1,728", "100 %", "11,232", "100 %"]);
    assert_eq!(number(&table[1][1]), levels[1].rows as f64);
    // bars end where the logarithms are
    let bars = all(&html, "#multigrid svg")[0];
    let widths: Vec<f64> = bars
        .select(&Selector::parse("rect").unwrap())
        .map(|rect| rect.value().attr("width").unwrap().parse().unwrap())
        .collect();
    let sizes: Vec<f64> = levels.iter().flat_map(|level| [level.rows as f64, level.nnz as f64]).collect();
    let unit = widths[1] / sizes[1].ln();
    assert_eq!(widths.len(), sizes.len());
    assert!(widths.iter().zip(&sizes).all(|(width, size)| (width - unit * size.ln()).abs() < 0.1), "{widths:?}");
}

#[test]
fn threads_of_the_command_have_rows() {
    let mut report = report(1, &[1e-9]);
    let stage = |stage, lane: &str, start, seconds| Stage { stage, lane: lane.into(), start, seconds };
    report.timeline =
        vec![stage("read", "main", 0.0, 5.0), stage("list", "driver", 0.0, 2.5), stage("solve", "main", 5.0, 5.0)];
    let (history, timelines) = (history(150), timelines(1, 100));
    let (_, html) = read(&report, &recording(1, &history, &timelines));
    let number = |rect: &scraper::ElementRef<'_>, name| rect.value().attr(name).unwrap().parse::<f64>().unwrap();
    let figure = "#time figure.gantt";
    let rects: Vec<[f64; 3]> = all(&html, &format!("{figure} rect"))
        .iter()
        .map(|rect| ["x", "y", "width"].map(|of| number(rect, of)))
        .collect();
    let [read, solve, list] = rects[..] else { panic!("{rects:?}") };
    assert!(read[0] == list[0] && (read[0] + read[2] - solve[0]).abs() < 0.2 && (read[2] - 2.0 * list[2]).abs() < 0.2);
    assert!(read[1] == solve[1] && list[1] > read[1]);
    assert_eq!(words(all(&html, &format!("{figure} g > title"))[2]), "list for 2.50 s, from 0.00 ns on");
    let entries: Vec<String> = all(&html, &format!("{figure} .entry")).into_iter().map(words).collect();
    assert_eq!(entries, ["aread", "blist", "csolve"]);
}

#[test]
fn strange_names_are_harmless() {
    let bad = "<script>alert(1)</script>\u{0}\u{1b}\u{202e}&\"'</title></svg>";
    let mut report = report(2, &[1e-9]);
    for text in [&mut report.matrix.source, &mut report.rhs.source] {
        *text = bad.into();
    }
    (report.x0, report.note) = (Some(bad.into()), Some(bad.into()));
    (report.figures.reason_text, report.solves[0].figures.reason_text) = (bad.into(), bad.into());
    report.ranks[0].info.device = bad.into();
    (report.rejected[0].device, report.rejected[0].reason) = (bad.into(), bad.into());
    let (history, timelines) = (history(20), timelines(2, 20));
    let mut recording = recording(1, &history, &timelines);
    if let Some(driver) = &mut recording.drivers[0] {
        for text in [&mut driver.platform, &mut driver.vendor, &mut driver.driver, &mut driver.opencl] {
            *text = bad.into();
        }
    }
    let (text, html) = read(&report, &recording);
    assert!(all(&html, "script").is_empty());
    assert!(!text.contains(['\u{0}', '\u{1b}', '\u{202e}']));
    assert!(text.matches("alert(1)").count() > 10);
}

#[test]
fn long_histories_make_small_pages() {
    let history: Vec<f64> = (0..200_000).map(|k| 1e-3 * (1.5 + (f64::from(k) * 0.7).sin())).collect();
    let timelines = timelines(8, 100);
    let (one, _) = read(&report(8, &[1e-9]), &recording(1, &history, &timelines));
    let (many, _) = read(&report(8, &[1e-9; 100]), &recording(100, &history, &timelines));
    assert!(one.len() < 120_000 && many.len() < 600_000, "{} and {} bytes", one.len(), many.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_was_recorded_makes_a_page(
        history in prop::collection::vec(any::<f64>(), 0..50),
        spans in prop::collection::vec((0u64..6, 0u64..2000, 0u64..2000, any::<bool>()), 0..40),
        runs in prop::collection::vec(0u64..60, 0..4),
        [residual, total, solve, rhs] in any::<[f64; 4]>(),
    ) {
        let mut report = report(2, &[residual]);
        (report.seconds.total, report.seconds.solve, report.solves[0].figures.rhs_2) = (total, solve, rhs);
        (report.options.stop.rtol, report.options.stop.atol) = (0.0, total.abs());
        let span = |&(iteration, start, length, kernel): &(u64, u64, u64, bool)| Span {
            lane: if kernel { Lane::Kernels } else { Lane::Host },
            name: if kernel { "dot_partial" } else { "halo" },
            iteration: (iteration > 0).then_some(iteration),
            start: Duration::from_nanos(start),
            end: Duration::from_nanos(start + length),
        };
        let spans: Vec<Span> = spans.iter().map(span).collect();
        let timelines = [Timeline { origin: None, spans, runs }, Timeline::default()];
        read(&report, &recording(1, &history, &timelines));
    }
}

#[test]
fn results_of_each_right_hand_side() {
    let mut report = report(1, &[1e-9, f64::NAN]);
    report.solves[1].figures.microseconds_per_iteration = None;
    let (history, timelines) = (history(10), timelines(1, 10));
    let (_, html) = read(&report, &recording(2, &history, &timelines));
    let table = rows(&html, "Results");
    assert_eq!([&*table[0][0], &*table[1][0]], ["1", "2"]);
    assert_eq!([&*table[0][3], &*table[1][3]], ["1.00e-9", "–"]);
    assert_eq!(number(&table[0][1]), 123_456.0);
    assert_eq!([&*table[0][10], &*table[1][10]], ["Converged", "MaxIters"]);
}
