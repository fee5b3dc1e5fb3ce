//! Reports made by hand: layout, and numbers that are none.

pub(super) mod reading;

use std::time::Duration;

use declive::device::Kind;
use declive::matrix::gallery;
use declive::solve::{
    Cause, Exchange, Forecast, Indefinite, Method, Move, OnFailure, Precond, RankInfo, Reason, Setup, ShareSource,
    Solver, Split, Stop, Switch,
};

use super::json;
use super::solve::{
    Failed, Figures, Files, Halos, HostMemory, Matrix, NotUsed, Options, Order, Rank, Report, Rhs, Seconds, Solve,
    SolveSeconds,
};

fn figures(residual: f64) -> Figures {
    Figures {
        converged: residual < 1e-8,
        reason: if residual < 1e-8 { "Converged" } else { "MaxIters" },
        reason_text: "Name: what the library says about it in a sentence that may have some length".into(),
        iterations: 123_456,
        resumed_iterations: 0,
        restarts: 1,
        side_by_side: 1,
        rel_residual_2: residual,
        recurrence_rel_residual_2: residual,
        backward_error: 1e-16,
        optimality: None,
        residual_2: residual,
        residual_inf: residual,
        rhs_2: 1.0,
        bytes_per_iteration: 1_000_000,
        microseconds_per_iteration: Some(81.0),
        gigabytes_per_second: Some(12.3),
        switches: Vec::new(),
    }
}

/// A rank as a solver has it, but for what a report tells of a larger one.
fn rank_info(index: usize) -> RankInfo {
    let setup = Setup::default().with_devices("host".parse().unwrap());
    let solver = Solver::new(gallery::poisson2d([2, 2]).unwrap(), &setup).unwrap();
    let mut info = solver.ranks()[0].clone();
    (info.device, info.kind, info.index) = ("NVIDIA H200".into(), Kind::Gpu, Some(index));
    (info.rows, info.nnz, info.halo, info.cut) = (100_000_000, 700_000_000, 1_000_000, 2_000_000);
    (info.share, info.share_source, info.bytes) = (0.5, ShareSource::Even, 9 << 30);
    info
}

/// A report of so many ranks, with a right-hand side for each residual.
pub(super) fn report(ranks: usize, residuals: &[f64]) -> Report {
    let [kernels, sums, halos, host_wait] = [8.0, 1.0, 0.5, 0.25].map(Duration::from_secs_f64);
    let mut split = Split::default();
    (split.kernels, split.sums, split.halos, split.host_wait) = (kernels, sums, halos, host_wait);
    let rank = |index| Rank { info: rank_info(index), row_share: 0.5, nnz_share: 0.5, split };
    let solve = |(k, residual): (usize, &f64)| Solve {
        rhs: k + 1,
        figures: figures(*residual),
        seconds: SolveSeconds { solve: 10.0, gather: 0.1, verify: 0.2 },
        moves: vec![Move {
            iteration: 69,
            kernels: vec![120e-6; ranks],
            shares: vec![1.0 / ranks as f64; ranks],
            time: Duration::from_millis(120),
        }],
        split: vec![split; ranks],
    };
    let matrix = Matrix {
        source: "A.mtx".into(),
        rows: 200_000_000,
        columns: 200_000_000,
        nnz: 1_400_000_000,
        complex: false,
        symmetric: true,
        hermitian: true,
        real_form: None,
        bandwidth: 10_000,
        row_min: 4,
        row_max: 7,
        row_mean: 6.95,
        duplicates: 3,
    };
    let setup = Setup::default()
        .with_method(Method::Cg)
        .with_devices("gpu".parse().unwrap())
        .with_exchange(Exchange::HostStaged)
        .with_on_failure(OnFailure::Continue);
    let options = Options {
        setup,
        method_reason: None,
        checkpoint_every: Some(60.0),
        stop: Stop::default().with_max_iters(200_000).with_time_limit(Duration::from_secs(60)),
    };
    let mut forecast = Forecast::default();
    forecast.seconds = Some(154.4e-6);
    Report {
        figures: figures(residuals.iter().copied().fold(0.0, f64::max)),
        seconds: Seconds { solve: 10.0, total: 12.5, ..Seconds::default() },
        timeline: Vec::new(),
        host_memory: HostMemory { peak: Some(20 << 30), matrix: 18_400_000_008 },
        matrix,
        rhs: Rhs { source: "b.mtx".into(), default: false, columns: residuals.len() },
        x0: None,
        options,
        order: Order {
            rcm: true,
            cause: Cause::Gain,
            text: "rcm: 31 lines of x a window in place of 1180, 0.04 elements of halos a row in place of 1.40, \
                   10.21 s"
                .into(),
            lines_given: Some(1180.0),
            lines_rcm: Some(31.0),
        },
        equilibrated: None,
        remembered: None,
        hierarchy: None,
        dense: None,
        precond_entries: Vec::new(),
        ranks: (0..ranks).map(rank).collect(),
        halos: Halos {
            elements: 1_000_000 * ranks,
            bytes: 8_000_000 * ranks as u64,
            cut_entries: 2_000_000 * ranks,
            cut_share: 2e6 * ranks as f64 / 1.4e9,
        },
        processes: Vec::new(),
        rejected: vec![NotUsed {
            device: "pthread-skylake-avx512-AMD EPYC".into(),
            kind: "CPU".into(),
            index: 9,
            reason: "a CPU, and --devices gpu asks for GPUs; add cpu to the list to use it as well".into(),
        }],
        failures: vec![Failed {
            process: None,
            device: "NVIDIA H200".into(),
            index: 8,
            error: "[8] NVIDIA H200: launching cg_step in iteration 131: clEnqueueNDRangeKernel failed: \
                    CL_OUT_OF_RESOURCES"
                .into(),
            iterations: Some(130),
            lost_iterations: 30,
        }],
        note: None,
        forecast,
        files: Files {
            resumed: None,
            checkpoint: Some("x.ckpt".into()),
            output: Some("x.mtx".into()),
            history: Some("h.csv".into()),
            report: Some("out.html".into()),
            trace: Some("t.json".into()),
        },
        solves: residuals.iter().enumerate().map(solve).collect(),
    }
}

#[test]
fn texts_fit_80_columns() {
    for report in [report(1, &[1e-9]), report(2, &[1e-9]), report(8, &[1e-9, 1e-3, 1e-10])] {
        let text = report.to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line:?}");
        }
    }
}

#[test]
fn what_failed_and_where_it_began_are_told() {
    let mut report = report(1, &[1e-9]);
    let text = report.to_string();
    for line in
        ["failed          NVIDIA H200 (8), after 130 iterations; the others went on from", "checkpoint      x.ckpt"]
    {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    report.failures[0].process = Some(3);
    assert!(report.to_string().contains("failed          NVIDIA H200 (8) of process 3, after 130 iterations"));
    report.failures[0].process = None;
    report.failures[0].iterations = None;
    let words = report.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("(8), before the first iteration; the others took its rows"), "{words}");
    report.files.resumed = Some("y.ckpt".into());
    report.figures.resumed_iterations = 1000;
    assert!(report.to_string().contains("initial guess   y.ckpt, after 1,000 iterations"));
}

#[test]
fn why_the_method_is_not_cg_is_told() {
    let words = |report: &super::solve::Report| report.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut report = report(1, &[1e-9, 1e-9]);
    report.options.setup.method = Method::Minres;
    report.options.method_reason = Some("a(17,17) = 0".into());
    assert!(words(&report).contains("method minres (auto: a(17,17) = 0), preconditioner jacobi"));
    report.options.method_reason = None;
    let why = Reason::IndefiniteOperator(Indefinite::Direction { iteration: 1200, curvature: -0.32 });
    let switches =
        vec![Switch { iteration: 1199, from: Method::Cg, to: Method::Minres, precond: Precond::Jacobi, why }];
    (report.figures.switches, report.solves[1].figures.switches) = (switches.clone(), switches);
    let words = words(&report);
    let expected = "method cg, then minres, preconditioner jacobi minres from iteration 1,200 of right-hand side 2 on: p·Ap = \
                    -3.20e-1 shows that the matrix is not positive definite";
    assert!(words.contains(expected), "{words}");
}

#[test]
fn the_verdict_comes_first() {
    let verdict = |residuals: &[f64]| report(1, residuals).to_string().lines().next().unwrap().to_owned();
    assert_eq!(verdict(&[1e-9]), "Converged in 123,456 iterations, true relative residual 1.00e-9.");
    assert!(verdict(&[1e-3]).starts_with("Not converged after 123,456 iterations. Name: "));
    assert!(verdict(&[1e-9, 1e-9]).starts_with("All 2 right-hand sides converged"));
    assert!(verdict(&[1e-9, 1e-3]).starts_with("1 of 2 right-hand sides did not converge."));
}

#[test]
fn parts_of_the_solve_are_means_over_ranks() {
    let text = report(2, &[1e-9]).to_string();
    let line = text.lines().find(|line| line.contains("kernels")).unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["kernels", "8.0000", "s", "80.0", "%", "(mean", "over", "ranks)"]
    );
    assert!(text.contains("other             0.2500 s"));
}

#[test]
fn what_is_not_finite_is_null_in_json() {
    let mut report = report(1, &[f64::NAN]);
    report.figures.rel_residual_2 = f64::NAN;
    report.figures.backward_error = f64::INFINITY;
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    assert!(value["rel_residual_2"].is_null() && value["backward_error"].is_null());
    assert!(value["solves"][0]["rel_residual_2"].is_null());
    assert_eq!(value["version"], 1);
    assert_eq!(value["seconds"]["total"], 12.5);
}
