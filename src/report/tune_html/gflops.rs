//! Floating-point operations a second: what the memory allows, and what was reached (Bueno 2013, tables 4.7 to 4.12 and
//! figure 4.22).
//!
//! Table 4.7 counts 44 bytes for an element of the product; tables 4.9 and 4.11 divide by 24. Here it is 44 throughout.

use declive::tune::{Found, KernelFound};
use maud::{Markup, html};

use super::figures::{column, hundredths, percent};
use super::scale::Scale;
use super::svg::{chart, line, rectangle, text};
use super::table::{Column, table};
use crate::report::units::count;

/// Table 4.7: kernels, bytes read for an element in single precision, operations on it.
const COUNTED: [(&[&str], f64, f64); 3] = [
    (&["dot_partial"], 8.0, 1.0),
    (&["next_direction", "next_residual", "next_iterate"], 12.0, 2.0),
    (&["spmv_csr"], 44.0, 2.0),
];

/// Operations a second that the memory allows, and those reached.
#[derive(Debug, Clone, Copy)]
struct Rate {
    /// Bytes and operations that are counted: of an element, or of a launch.
    bytes: f64,
    flops: f64,
    theoretical: f64,
    reached: f64,
}

impl Rate {
    fn part(&self) -> f64 {
        self.reached / self.theoretical
    }

    /// By the formula of the dissertation; none for kernels that it has not.
    fn of_dissertation(kernel: &KernelFound, found: &Found) -> Option<Self> {
        let (_, bytes, flops) = *COUNTED.iter().find(|(names, ..)| names.contains(&&*kernel.kernel))?;
        let bytes = bytes / 4.0 * if found.precision == "f32" { 4.0 } else { 8.0 };
        let theoretical = flops / bytes * found.limit_bytes_per_second;
        let reached = flops * kernel.elements as f64 / kernel.chosen.timing.median;
        Some(Self { bytes, flops, theoretical, reached })
    }

    /// By the byte rule; none for kernels that only move.
    fn of_byte_rule(kernel: &KernelFound, found: &Found) -> Option<Self> {
        let (bytes, flops) = (kernel.bytes as f64, kernel.flops as f64);
        let rate = Self {
            bytes,
            flops,
            theoretical: flops / bytes * found.limit_bytes_per_second,
            reached: flops / kernel.chosen.timing.median,
        };
        (kernel.flops > 0).then_some(rate)
    }
}

/// The counts, as they are called here and in the style sheet.
const COUNTS: [(&str, &str); 2] = [("dissertation", "dissertation"), ("byte rule", "byte-rule")];

/// A kernel, and its rates by each of [`COUNTS`].
struct Row<'a> {
    kernel: &'a str,
    rates: [Option<Rate>; 2],
}

fn rows(found: &Found) -> Vec<Row<'_>> {
    let rows = found.kernels.iter().map(|kernel| Row {
        kernel: &kernel.kernel,
        rates: [Rate::of_dissertation(kernel, found), Rate::of_byte_rule(kernel, found)],
    });
    rows.filter(|row| row.rates.iter().any(Option::is_some)).collect()
}

/// A table and a chart for each device.
pub(super) fn section(found: &[Found]) -> Markup {
    html! {
        dl {
            dt { "Dissertation" }
            dd {
                "Operations over bytes of an element, times bandwidth (Bueno 2013, section 4.4.1): the bytes are those of "
                "its table 4.7, which counts words of 4 bytes, times the width of the precision over 4; elements of the "
                "product are rows, whatever the number of their entries."
            }
            dt { "Byte rule" }
            dd {
                "All operations of a launch over all bytes that it must move, times bandwidth: each array that is read "
                "counts once, and each that is written."
            }
        }
        p { "The bandwidth is that of a copy in the same run. Kernels that only move data are left out." }
        @for one in found {
            @let rows = rows(one);
            h3 { (one.device.name) }
            @if rows.is_empty() {
                p.small { "No kernel computes." }
            } @else {
                (rates(one, &rows))
                figure.wide {
                    figcaption {
                        b { "Reached, % of the theoretical GFLOP/s" }
                        span.legend {
                            @for (name, class) in COUNTS { span.entry { span class={ "key " (class) } {} (name) } }
                        }
                    }
                    (bars(one, &rows))
                }
            }
        }
    }
}

fn rates(found: &Found, rows: &[Row<'_>]) -> Markup {
    let names: Vec<&str> = rows.iter().map(|row| row.kernel).collect();
    let texts = |count: usize, of: fn(Rate) -> String| {
        rows.iter().map(|row| row.rates[count].map_or(String::new(), of)).collect::<Vec<_>>()
    };
    let numbers = |count: usize, of: fn(Rate) -> f64| {
        let values: Vec<f64> = rows.iter().map(|row| row.rates[count].map_or(f64::NAN, of)).collect();
        let texts = column(&values).into_iter().zip(rows);
        texts.map(|(text, row)| row.rates[count].map_or(String::new(), |_| text)).collect::<Vec<_>>()
    };
    let mut columns = Vec::new();
    for (k, group) in ["by the dissertation", "by the byte rule"].into_iter().enumerate() {
        let mut add = |head: &str, cells| columns.push(Column { group, head: head.into(), cells });
        if k == 0 {
            add("bytes an element", texts(k, |rate| count(rate.bytes as u64)));
            add("FLOP an element", texts(k, |rate| count(rate.flops as u64)));
        } else {
            add("FLOP a byte", numbers(k, |rate| rate.flops / rate.bytes));
        }
        add("theoretical GFLOP/s", numbers(k, |rate| 1e-9 * rate.theoretical));
        add("reached GFLOP/s", numbers(k, |rate| 1e-9 * rate.reached));
        add("%", texts(k, |rate| hundredths(rate.part())));
    }
    table(&format!("GFLOP/s, {}", found.device.name), "kernel", &names, &columns)
}

const WIDTH: f64 = 460.0;
const LEFT: f64 = 156.0;
const RIGHT: f64 = WIDTH - 22.0;
const BAR: f64 = 15.0;
const TOP: f64 = 6.0;

/// The percentages as bars.
fn bars(found: &Found, rows: &[Row<'_>]) -> Markup {
    let rates = |row: &Row<'_>| -> Vec<(&'static str, f64)> {
        COUNTS.iter().zip(row.rates).filter_map(|((_, class), rate)| Some((*class, rate?.part()))).collect()
    };
    let parts = || rows.iter().flat_map(rates).map(|(_, part)| part).filter(|part| part.is_finite());
    let most = parts().fold(1.0, f64::max);
    let scale = Scale::linear([0.0, most], [LEFT, RIGHT]);
    let x = |part: f64| scale.at(part);
    // where each row begins
    let mut tops = vec![TOP];
    for row in rows {
        tops.push(tops[tops.len() - 1] + BAR * rates(row).len() as f64 + 8.0);
    }
    let bottom = tops[tops.len() - 1];
    chart(
        [WIDTH, bottom + 22.0],
        &format!("Reached part of the theoretical GFLOP/s on {}", found.device.name),
        &rows.iter().map(|row| in_words(row)).collect::<String>(),
        html! {
            @for tick in scale.ticks(5) {
                @let class = if (tick - 1.0).abs() < 1e-9 { "limit" } else { "grid" };
                (line(class, [x(tick), TOP - 4.0], [x(tick), bottom]))
                (text("tick", "middle", [x(tick), bottom + 16.0], &percent(tick)))
            }
            @for (row, top) in rows.iter().zip(&tops) {
                @let rates = rates(row);
                (text("tick name", "end", [LEFT - 8.0, top + 0.5 * BAR * rates.len() as f64 + 4.0], row.kernel))
                @for (k, (class, part)) in rates.into_iter().enumerate() {
                    @let y = top + BAR * k as f64;
                    @if part.is_finite() {
                        (rectangle(class, [LEFT, y + 1.0], [x(part) - LEFT, BAR - 2.0]))
                        @if x(part) - LEFT > 44.0 {
                            (text("key-letter", "end", [x(part) - 5.0, y + 11.0], &percent(part)))
                        } @else {
                            (text("value", "start", [x(part) + 5.0, y + 11.0], &percent(part)))
                        }
                    }
                }
            }
            (line("axis", [LEFT, TOP - 4.0], [LEFT, bottom]))
        },
    )
}

fn in_words(row: &Row<'_>) -> String {
    let part = |((name, _), rate): (&(&str, _), Option<Rate>)| Some(format!("{} by the {name}", percent(rate?.part())));
    let parts: Vec<String> = COUNTS.iter().zip(row.rates).filter_map(part).collect();
    format!("{}: {}. ", row.kernel, parts.join(", "))
}
