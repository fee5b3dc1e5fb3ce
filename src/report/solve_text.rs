//! The report of a solve for people.

use std::fmt;
use std::time::Duration;

use declive::distributed::ProcessInfo;
use declive::solve::{
    Candidate, DenseFactors, FormatCandidate, Hierarchy, Indefinite, Method, Move, Precision, Precond, RankInfo,
    Reason, Split, Switch, candidates,
};

use super::distinct;
use super::layout::Text;
use super::solve::{Options, Rank, Report, Solve};
use super::units::{bytes, count, exact, figure, percent, plural, scientific};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&self.verdict());
        self.system(&mut text);
        self.devices(&mut text);
        self.method(&mut text);
        self.result(&mut text);
        self.time(&mut text);
        f.write_str(&text.finish())
    }
}

/// A row of the table of processes.
fn of_process(process: &ProcessInfo) -> [String; 7] {
    let ProcessInfo { process, host, devices, rows, nnz, halo, peak_bytes, .. } = process;
    let [rows, nnz, halo] = [rows, nnz, halo].map(|n| count(*n as u64));
    [
        process.to_string(),
        rows,
        nnz,
        halo,
        peak_bytes.map_or_else(String::new, bytes),
        host.clone(),
        devices.join(" + "),
    ]
}

impl Report {
    /// The outcome in a sentence.
    pub(super) fn verdict(&self) -> String {
        let iterations = plural(self.figures.iterations, "iteration");
        let failed = self.solves.iter().filter(|s| !s.figures.converged).count();
        match (self.solves.len(), failed) {
            (1, 0) if self.figures.reason == "LeastSquares" => {
                let residual = scientific(self.figures.residual_2);
                format!("Least squares found in {iterations}: ‖b − A x‖ = {residual}, and no x has less.")
            }
            (1, 0) => {
                let residual = scientific(self.figures.rel_residual_2);
                format!("Converged in {iterations}, true relative residual {residual}.")
            }
            (1, _) => format!("Not converged after {iterations}. {}.", self.figures.reason_text),
            (all, 0) => format!("All {all} right-hand sides converged, in {iterations} together."),
            (all, _) => format!("{failed} of {all} right-hand sides did not converge. {}.", self.figures.reason_text),
        }
    }

    /// What each thread of the command did, and when, but for what took no time to speak of.
    pub(crate) fn lanes(&self) -> Vec<String> {
        let of_lane = |lane: &String| {
            let stages = self.timeline.iter().filter(|stage| stage.lane == *lane && stage.seconds >= 0.001);
            let stages: Vec<String> =
                stages.map(|stage| format!("{} {:.3} to {:.3} s", stage.stage, stage.start, stage.end())).collect();
            format!("{lane}: {}", stages.join(", "))
        };
        distinct(self.timeline.iter().map(|stage| &stage.lane)).into_iter().map(of_lane).collect()
    }

    fn system(&self, text: &mut Text) {
        let matrix = &self.matrix;
        text.section("System");
        text.line("matrix", &matrix.source);
        text.line(
            "size",
            &format!(
                "{}, {}{}; {} to {} a row, mean {}",
                plural(matrix.rows as u64, "row"),
                if matrix.columns == matrix.rows {
                    String::new()
                } else {
                    plural(matrix.columns as u64, "column") + ", "
                },
                plural(matrix.nnz, "entry"),
                count(matrix.row_min as u64),
                count(matrix.row_max as u64),
                figure(matrix.row_mean),
            ),
        );
        text.line("structure", &self.structure());
        if let Some(form) = self.real_form() {
            text.line("solved as", &form);
        }
        text.line("order", &self.order.text);
        if let Some(equilibrated) = &self.equilibrated {
            text.line("transversal", &equilibrated.to_string());
        }
        if matrix.duplicates > 0 {
            text.line("duplicates", &format!("{} of the file, added up", count(matrix.duplicates)));
        }
        let rhs = &self.rhs;
        let default = if rhs.default { " (none given)" } else { "" };
        let norm = scientific(self.figures.rhs_2);
        let columns = match rhs.columns {
            1 => format!("norm {norm}"),
            n => format!("{n} columns, largest norm {norm}"),
        };
        text.line("right-hand side", &format!("{}{default}; {columns}", rhs.source));
        text.line("initial guess", &self.initial_guess());
    }

    /// Whether the matrix is symmetric, and how wide its band is.
    pub(super) fn structure(&self) -> String {
        let matrix = &self.matrix;
        let (kind, other) =
            if matrix.complex { ("Hermitian", "not Hermitian") } else { ("symmetric", "not symmetric") };
        let symmetry = match (matrix.hermitian, self.options.setup.assume_symmetric) {
            _ if matrix.rows != matrix.columns => "rectangular".into(),
            (true, _) => kind.to_owned(),
            (false, true) => format!("{other}, but assumed to be (--assume-symmetric)"),
            (false, false) if matrix.symmetric => "symmetric".into(),
            (false, false) => other.into(),
        };
        let complex = if matrix.complex { "complex, " } else { "" };
        format!("{complex}{symmetry}; bandwidth {}", count(matrix.bandwidth))
    }

    /// The real system that is solved in place of a complex one.
    pub(super) fn real_form(&self) -> Option<String> {
        let form = self.matrix.real_form?;
        let (rows, entries) = (plural(form.rows, "row"), plural(form.nnz, "entry"));
        Some(format!("a real system of twice the order: {rows}, {entries}"))
    }

    /// Where the iteration began.
    pub(super) fn initial_guess(&self) -> String {
        match (&self.files.resumed, &self.x0) {
            (Some(file), _) => format!("{file}, after {}", plural(self.figures.resumed_iterations, "iteration")),
            (None, Some(file)) => file.clone(),
            (None, None) => "zero".into(),
        }
    }

    fn devices(&self, text: &mut Text) {
        text.section("Devices");
        for (k, rank) in self.ranks.iter().enumerate() {
            let share = if self.ranks.len() == 1 && self.processes.is_empty() { ", all rows" } else { "" };
            text.line(
                &format!("rank {k}"),
                &format!("{}, {}{share}, stored as {}", rank.label(), bytes(rank.info.bytes), rank.stored()),
            );
        }
        if let Some(memory) = self.host_memory.text() {
            text.line("host memory", &memory);
        }
        for device in &self.rejected {
            text.line("not used", &format!("{} ({} {}): {}", device.device, device.kind, device.index, device.reason));
        }
        for failed in &self.failures {
            text.line("failed", &format!("{}, {}", failed.name(), failed.story()));
            text.line("", &failed.error);
        }
        if let Some(note) = &self.note {
            text.line("note", note);
        }
        if self.ranks.len() > 1 {
            let rows: Vec<_> = self.ranks.iter().enumerate().map(|(k, rank)| rank.share(k)).collect();
            text.gap();
            text.table(
                ["rank", "rows", "", "entries", "", "halo", "work", "by"],
                [false, false, false, false, false, false, false, true],
                &rows,
            );
            text.gap();
            text.line("halos", &self.halos());
        }
        for line in self.moves() {
            text.line("moved", &line);
        }
        if !self.processes.is_empty() {
            let rows: Vec<_> = self.processes.iter().map(of_process).collect();
            text.gap();
            text.table(
                ["process", "rows", "entries", "halo", "memory", "host", "devices"],
                [false, false, false, false, false, true, true],
                &rows,
            );
        }
    }

    /// What a product exchanges, and how.
    pub(super) fn halos(&self) -> String {
        let halos = &self.halos;
        format!(
            "{}, {} a product, {}; edge cut: {} of all entries",
            plural(halos.elements as u64, "element"),
            bytes(halos.bytes),
            self.options.setup.exchange,
            percent(halos.cut_share, 1.0),
        )
    }

    /// When rows were moved in the course of the solve, and to whom.
    pub(super) fn moves(&self) -> Vec<String> {
        let line = |solve: &Solve, moved: &Move| {
            let of = if self.solves.len() > 1 { format!(" of right-hand side {}", solve.rhs) } else { String::new() };
            let shares: Vec<_> = moved.shares.iter().map(|&share| percent(share, 1.0)).collect();
            let (iterations, shares) = (plural(moved.iteration, "iteration"), shares.join(", "));
            format!("rows, after {iterations}{of}, to shares of {shares}; {:.2} s", moved.time.as_secs_f64())
        };
        self.solves.iter().flat_map(|solve| solve.moves.iter().map(move |moved| line(solve, moved))).collect()
    }

    /// The methods that iterated, and why not `cg` from the start, if that was known.
    pub(super) fn methods(&self) -> String {
        match (&self.figures.switches[..], &self.options.method_reason) {
            ([first, ..], _) => {
                let all = self.figures.switches.iter().map(|switch| switch.candidate().to_string());
                let began = self.remembered.as_ref().map(|remembered| remembered.best.candidate.to_string());
                [began.unwrap_or_else(|| first.from.to_string())]
                    .into_iter()
                    .chain(all)
                    .collect::<Vec<_>>()
                    .join(", then ")
            }
            ([], Some(reason)) => format!("{} (auto: {reason})", self.options.setup.method),
            ([], None) => self.options.setup.method.to_string(),
        }
    }

    /// What `auto` began with, if it was told by former solves.
    pub(super) fn remembered(&self) -> Option<String> {
        self.remembered.as_ref().map(|remembered| format!("auto began with {remembered}"))
    }

    /// When other methods took over, and why.
    pub(super) fn switches(&self) -> Vec<String> {
        let line = |solve: &Solve, switch: &Switch| {
            let of = if self.solves.len() > 1 { format!(" of right-hand side {}", solve.rhs) } else { String::new() };
            let why = match switch.why {
                Reason::IndefiniteOperator(Indefinite::Direction { curvature, .. }) => {
                    format!("p·Ap = {} shows that the matrix is not positive definite", scientific(curvature))
                }
                why => why.text(),
            };
            format!("{} from iteration {}{of} on: {why}", switch.candidate(), count(switch.iteration + 1))
        };
        self.solves
            .iter()
            .flat_map(|solve| solve.figures.switches.iter().map(move |switch| line(solve, switch)))
            .collect()
    }

    fn method(&self, text: &mut Text) {
        let Options { setup, stop, .. } = &self.options;
        text.section("Method");
        let cycles =
            if setup.method == Method::Gmres { format!(", in cycles of {}", setup.restart) } else { String::new() };
        // factors need none
        let has_precond = !setup.method.factorises();
        let precond = if has_precond { format!(", preconditioner {}", setup.precond) } else { String::new() };
        text.line("method", &format!("{}{cycles}{precond}", self.methods()));
        for line in self.remembered().into_iter().chain(self.switches()) {
            text.line("", &line);
        }
        if let Some(hierarchy) = &self.hierarchy {
            text.line("multigrid", &multigrid(hierarchy));
        }
        if let Some(inverse) = self.inverse() {
            text.line("inverse", &inverse);
        }
        if let Some(DenseFactors { kind, precision, devices, times, condition, exchanges, .. }) = &self.dense {
            let place = if devices.is_empty() { "the host".into() } else { devices.join(", ") };
            let seconds = figure(times.transform + times.upload + times.factorise);
            text.line("factors", &format!("{kind} of a dense matrix in {precision}, on {place}, in {seconds} s"));
            if let Some(exchanges) = exchanges {
                text.line("", &format!("with exchanges of rows, as {exchanges}"));
            }
            if let Some(condition) = condition {
                text.line("condition", &format!("about {condition:.1e}, in the 1-norm"));
            }
        }
        text.line("precision", setup.precision.name());
        text.line("devices", &setup.devices.to_string());
        let time = stop.time_limit.map_or_else(|| "no time limit".into(), |limit| format!("{} s", limit.as_secs_f64()));
        let is_asked = stop.backward_error > 0.0;
        let error = if is_asked { format!(", backward error {}", exact(stop.backward_error)) } else { String::new() };
        text.line(
            "stop at",
            &format!(
                "rtol {}, atol {}{error}; at most {}, {time}",
                exact(stop.rtol),
                exact(stop.atol),
                plural(stop.max_iters.unwrap_or_default(), "iteration")
            ),
        );
    }

    fn result(&self, text: &mut Text) {
        let (figures, setup, files) = (&self.figures, &self.options.setup, &self.files);
        text.section("Result");
        text.line("stopped", &figures.reason_text);
        if figures.reason == "Stagnation" && setup.precision != Precision::F64 {
            text.line("", "--precision f64 goes further; so does a larger --rtol");
        }
        if figures.reason == "IndefiniteOperator"
            && setup.method.needs_definite()
            && let Some(Candidate { method, .. }) = candidates(setup.precision, Precond::None, true, false).first()
        {
            text.line("", &format!("--method {method} is for matrices that are not definite"));
        }
        let restarts = if figures.restarts == 0 { "no restarts".into() } else { plural(figures.restarts, "restart") };
        text.line("iterations", &format!("{}, {restarts}", count(figures.iterations)));
        let several = self.solves.len() > 1;
        let largest = if several { ", the largest" } else { "" };
        text.line("residual", &format!("{} true, relative{largest}", scientific(figures.rel_residual_2)));
        text.line("", &format!("{} by the recurrence", scientific(figures.recurrence_rel_residual_2)));
        text.line("backward error", &scientific(figures.backward_error));
        if let Some(optimality) = figures.optimality {
            text.line("least squares", &format!("‖b − A x‖ = {}{largest}", scientific(figures.residual_2)));
            text.line(
                "",
                &format!("‖Aᵀ r‖ / (α ‖r‖) = {}, r = b − A x, α of columns{largest}", scientific(optimality)),
            );
        }
        if let Some(output) = &files.output {
            let name = if output == "-" { "standard output" } else { output };
            text.line("solution", name);
        }
        for (label, file) in [
            ("checkpoint", &files.checkpoint),
            ("history", &files.history),
            ("report", &files.report),
            ("trace", &files.trace),
        ] {
            if let Some(file) = file {
                text.line(label, file);
            }
        }
        if several {
            let at_once = figures.side_by_side;
            let how = if at_once > 1 { format!("{at_once} side by side") } else { "one after the other".into() };
            text.line("columns of b", &format!("{}, {how}", count(self.solves.len() as u64)));
            self.columns(text);
        }
    }

    /// One line for each right-hand side.
    fn columns(&self, text: &mut Text) {
        let rows: Vec<_> = self
            .solves
            .iter()
            .map(|solve| {
                [
                    solve.rhs.to_string(),
                    count(solve.figures.iterations),
                    solve.figures.restarts.to_string(),
                    scientific(solve.figures.rel_residual_2),
                    scientific(solve.figures.backward_error),
                    format!("{:.4}", solve.seconds.solve),
                    solve.figures.reason.to_owned(),
                ]
            })
            .collect();
        text.gap();
        text.table(
            ["rhs", "iterations", "restarts", "residual", "backward", "seconds", "stopped"],
            [false, false, false, false, false, false, true],
            &rows,
        );
    }

    fn time(&self, text: &mut Text) {
        let seconds = &self.seconds;
        let line = |text: &mut Text, label: &str, value: f64, more: &str| {
            text.line(label, &format!("{value:>10.4} s{more}"));
        };
        text.section("Time");
        line(text, "read", seconds.read, "");
        line(text, "prepare", seconds.prepare, "");
        if seconds.reorder >= 0.001 {
            line(text, "  reorder", seconds.reorder, "");
        }
        if seconds.compile >= 0.001 {
            line(text, "compile", seconds.compile, "");
        }
        line(text, "upload", seconds.upload, "");
        if seconds.precond >= 0.001 {
            line(text, "precond", seconds.precond, "");
        }
        if seconds.tune >= 0.001 {
            line(text, "tune", seconds.tune, "");
        }
        let figures = &self.figures;
        let rates = match (figures.microseconds_per_iteration, figures.gigabytes_per_second) {
            (Some(us), Some(gb)) => format!("   {} µs an iteration, {} GB/s", figure(us), figure(gb)),
            _ => String::new(),
        };
        line(text, "solve", seconds.solve, &rates);
        if let Some(seconds) = self.forecast.seconds {
            text.line("  expected", &format!("{:>15}{} µs an iteration", "", figure(1e6 * seconds)));
        }
        let mean = |part: fn(&Split) -> Duration| {
            self.ranks.iter().map(|rank| part(&rank.split)).sum::<Duration>().as_secs_f64()
                / self.ranks.len().max(1) as f64
        };
        let of_what = if self.ranks.len() > 1 { " (mean over ranks)" } else { "" };
        let parts = [
            ("kernels", mean(|s| s.kernels)),
            ("sums", mean(|s| s.sums)),
            ("halos", mean(|s| s.halos)),
            ("host wait", mean(|s| s.host_wait)),
        ];
        for (k, (name, part)) in parts.into_iter().enumerate() {
            let of_what = if k == 0 { of_what } else { "" };
            line(text, &format!("  {name}"), part, &format!("  {:>7}{of_what}", percent(part, seconds.solve)));
        }
        let other = (seconds.solve - parts.iter().map(|(_, part)| part).sum::<f64>()).max(0.0); // samples scaled up may exceed the whole
        line(text, "  other", other, &format!("  {:>7}", percent(other, seconds.solve)));
        line(text, "gather", seconds.gather, "");
        line(text, "verify", seconds.verify, "");
        line(text, "write", seconds.write, "");
        line(text, "total", seconds.total, "");
        if self.ranks.len() > 1 {
            let rows: Vec<_> = self.ranks.iter().enumerate().map(|(k, rank)| rank.times(k)).collect();
            text.gap();
            text.table(["rank", "kernels", "sums", "halos", "host wait"], [false; 5], &rows);
        }
    }
}

/// The levels of a multigrid preconditioner.
pub(super) fn multigrid(hierarchy: &Hierarchy) -> String {
    let rows: Vec<String> = hierarchy.levels.iter().map(|level| count(level.rows)).collect();
    let (rows, Hierarchy { operator_complexity: entries, grid_complexity: all, .. }) = (rows.join("; "), hierarchy);
    format!("levels of {rows} rows; {entries:.2} times the entries and {all:.2} times the rows of A")
}

impl Report {
    /// The matrices of a preconditioner that has some.
    pub(super) fn inverse(&self) -> Option<String> {
        let (matrices, entries) = (self.precond_entries.len() as u64, self.precond_entries.iter().sum::<usize>());
        let part = entries as f64 / self.matrix.nnz.max(1) as f64;
        let products = plural(matrices, "product");
        (matrices > 0).then(|| format!("{products} with {} entries, {part:.2} times those of A", count(entries)))
    }
}

impl Rank {
    /// The device, its kind and number.
    pub(super) fn label(&self) -> String {
        let RankInfo { device, kind, index, .. } = &self.info;
        match index {
            Some(index) => format!("{device} ({kind} {index})"),
            None => format!("{device} ({kind})"),
        }
    }

    /// The format and why, with the times that were measured: `sell (measured: sell 19.7 µs, csr 23.5 µs)`.
    pub(super) fn stored(&self) -> String {
        let time = |one: &FormatCandidate| {
            let micros = 1e6 * one.time?.as_secs_f64();
            Some(format!("{} {} µs", one.format, figure(micros)))
        };
        let times: Vec<String> = self.info.format_choice.candidates.iter().filter_map(time).collect();
        let colon = if times.is_empty() { "" } else { ": " };
        format!("{} ({}{colon}{})", self.info.format, self.info.format_choice.why, times.join(", "))
    }

    /// Bytes of a product in each format that was considered: `sell 1.2 MiB, csr 1.9 MiB`.
    pub(super) fn bytes_by_format(&self) -> String {
        let of = |one: &FormatCandidate| format!("{} {}", one.format, bytes(one.bytes));
        self.info.format_choice.candidates.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    fn share(&self, k: usize) -> [String; 8] {
        let info = &self.info;
        [
            k.to_string(),
            count(info.rows),
            percent(self.row_share, 1.0),
            count(info.nnz),
            percent(self.nnz_share, 1.0),
            count(info.halo),
            percent(info.share, 1.0),
            info.share_source.to_string(),
        ]
    }

    fn times(&self, k: usize) -> [String; 5] {
        let Split { kernels, sums, halos, host_wait, .. } = self.split;
        let s = |time: Duration| format!("{:.4} s", time.as_secs_f64());
        [k.to_string(), s(kernels), s(sums), s(halos), s(host_wait)]
    }
}
