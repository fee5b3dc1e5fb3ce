//! Which kernels an iteration consists of, and how evenly the ranks are loaded.

use declive::timeline::{KernelTotal, Lane, Timeline};
use maud::{Markup, html};

use super::super::distinct;
use super::super::html::figures::{NONE, column, factor, fine_percent, three};
use super::super::html::table::{Column as Cells, table};
use super::super::recording::Column;
use super::super::solve::Report;
use super::super::units::{count, plural};
use super::iterations::mean_time;

/// What a rank did in the iterations recorded.
struct Rank {
    iterations: u64,
    kernels: Vec<KernelTotal>,
    /// Seconds of each thing that the host does.
    host: Vec<(&'static str, f64)>,
}

impl Rank {
    fn new<'a>(timelines: impl Iterator<Item = &'a Timeline>) -> Self {
        let (mut iterations, mut all) = (0, Timeline::default());
        for timeline in timelines {
            iterations += timeline.iterations();
            all.spans.extend(&timeline.spans);
        }
        let mut host: Vec<(&str, f64)> = Vec::new();
        for span in all.spans.iter().filter(|s| s.lane == Lane::Host && s.iteration.is_some()) {
            let seconds = span.duration().as_secs_f64();
            match host.iter_mut().find(|(name, _)| *name == span.name) {
                Some((_, time)) => *time += seconds,
                None => host.push((span.name, seconds)),
            }
        }
        Self { iterations, kernels: all.kernels(), host }
    }

    /// Of something that took `seconds` in all, what an iteration has.
    fn each(&self, seconds: f64) -> f64 {
        seconds / self.iterations as f64
    }

    fn kernel(&self, kernel: &str) -> (u64, f64) {
        let total = self.kernels.iter().find(|total| total.kernel == kernel);
        total.map_or((0, 0.0), |total| (total.calls, total.time.as_secs_f64()))
    }

    /// All kernels of an iteration.
    fn busy(&self) -> f64 {
        self.each(self.kernels.iter().map(|total| total.time.as_secs_f64()).sum())
    }

    fn waits(&self, name: &str) -> Option<f64> {
        self.host.iter().find(|(known, _)| *known == name).map(|(_, time)| self.each(*time))
    }
}

/// Both tables; none if no iteration was recorded.
pub(super) fn section(report: &Report, columns: &[Column<'_>]) -> Option<Markup> {
    let of_rank = |k: usize| Rank::new(columns.iter().filter_map(move |column| column.timelines.get(k)));
    let ranks: Vec<Rank> = (0..report.ranks.len()).map(of_rank).collect();
    let recorded = ranks.iter().map(|rank| rank.iterations).max().filter(|&n| n > 0)?;
    let mean = mean_time(columns);
    let micros = |seconds: f64| format!("{} µs", three(1e6 * seconds));
    Some(html! {
        p {
            (plural(recorded, "iteration")) " of " (count(report.figures.iterations)) " were recorded"
            @if let Some(mean) = mean {
                ", which took " b { (micros(mean)) } " each"
                @if let Some(all) = report.figures.microseconds_per_iteration { "; all took " (three(all)) " µs each" }
            }
            "."
        }
        (kernels(&ranks, mean))
        @if let Some(sentence) = balance(&ranks) { p { (sentence) } }
        (loads(&ranks))
    })
}

fn kernels(ranks: &[Rank], mean: Option<f64>) -> Markup {
    let kernels = distinct(ranks.iter().flat_map(|rank| rank.kernels.iter().map(|total| total.kernel)));
    if kernels.is_empty() {
        return html! { p.small { "No device tells the times of its kernels." } };
    }
    let iterations: u64 = ranks.iter().map(|rank| rank.iterations).sum();
    let total =
        |kernel: &str| ranks.iter().map(|rank| rank.kernel(kernel)).fold((0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let each = |kernel: &str| total(kernel).1 / iterations as f64;
    let all = || kernels.iter().copied();
    // the mean time of a launch on each rank that has any
    let launches = |kernel: &str| {
        let mean = |(calls, time): (u64, f64)| (calls > 0).then(|| 1e6 * time / calls as f64);
        ranks.iter().filter_map(|rank| mean(rank.kernel(kernel))).collect::<Vec<_>>()
    };
    let mut columns = vec![
        Cells::new("launches an iteration", all().map(|k| three(total(k).0 as f64 / iterations as f64)).collect()),
        Cells::new(
            "a\u{a0}launch,\u{a0}µs",
            column(&all().map(|k| 1e6 * total(k).1 / total(k).0 as f64).collect::<Vec<_>>()),
        ),
        Cells::new("an iteration,\u{a0}µs", column(&all().map(|k| 1e6 * each(k)).collect::<Vec<_>>())),
        Cells::new(
            "of the iteration",
            all().map(|k| mean.map_or(NONE.into(), |mean| fine_percent(each(k) / mean))).collect(),
        ),
    ];
    if ranks.len() > 1 {
        let least = |k| launches(k).into_iter().fold(f64::INFINITY, f64::min);
        let most = |k| launches(k).into_iter().fold(0.0, f64::max);
        columns.push(Cells {
            group: "a launch, over ranks",
            head: "least,\u{a0}µs".into(),
            cells: column(&all().map(least).collect::<Vec<_>>()),
        });
        columns.push(Cells {
            group: "a launch, over ranks",
            head: "most,\u{a0}µs".into(),
            cells: column(&all().map(most).collect::<Vec<_>>()),
        });
    }
    table("Kernels", "kernel", &kernels, &columns)
}

/// Kernel time of the busiest rank over that of the mean rank.
fn imbalance(ranks: &[Rank]) -> Option<f64> {
    let busy: Vec<f64> = ranks.iter().filter(|rank| rank.iterations > 0).map(Rank::busy).collect();
    let mean = busy.iter().sum::<f64>() / busy.len() as f64;
    (busy.len() > 1 && mean > 0.0).then(|| busy.iter().copied().fold(0.0, f64::max) / mean)
}

fn balance(ranks: &[Rank]) -> Option<Markup> {
    let imbalance = imbalance(ranks)?;
    Some(html! {
        "Imbalance " b.imbalance { (factor(imbalance)) } ": the kernels of the busiest rank take " (factor(imbalance))
        " times the mean over ranks. The others wait for it in the sums."
    })
}

fn loads(ranks: &[Rank]) -> Markup {
    let waits = distinct(ranks.iter().flat_map(|rank| rank.host.iter().map(|(name, _)| *name)));
    let rows: Vec<String> = (0..ranks.len()).map(|k| format!("rank {k}")).collect();
    let mean = ranks.iter().map(Rank::busy).sum::<f64>() / ranks.len().max(1) as f64;
    let numbers = |of: &dyn Fn(&Rank) -> f64| column(&ranks.iter().map(|rank| 1e6 * of(rank)).collect::<Vec<_>>());
    let mut columns = vec![Cells::new("kernels", numbers(&Rank::busy))];
    if ranks.len() > 1 {
        let relative = |rank: &Rank| if mean > 0.0 { factor(rank.busy() / mean) } else { NONE.into() };
        columns.push(Cells::new("×\u{a0}mean", ranks.iter().map(relative).collect()));
    }
    columns.extend(waits.into_iter().map(|name| Cells {
        group: "the thread on the host",
        head: name.into(),
        cells: numbers(&|rank| rank.waits(name).unwrap_or(f64::NAN)),
    }));
    html! {
        h3 { "A rank's iteration, µs" }
        (table("A rank's iteration", "rank", &rows, &columns))
    }
}
