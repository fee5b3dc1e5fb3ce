//! Solves with matrices that are too long for one buffer of their device: as processes whose environment says how
//! long that is.

use crate::common::process::{Place, Run};
use crate::common::relative_residual;
use declive::Csr;
use declive::matrix::gallery::Spec;

/// `declive` where no buffer has more than so many bytes.
fn limited(place: &Place, bytes: u64, args: &str) -> Run {
    let mut command = place.command(args);
    command.env("DECLIVE_MAX_BUFFER", bytes.to_string());
    Run::of(command, "")
}

/// Into how many segments each rank's matrix was cut, as the log has it.
fn segments(run: &Run) -> Vec<usize> {
    let count = |line: &str| line.split_once("the matrix is cut into ")?.1.split(' ').next()?.parse().ok();
    run.err.lines().filter_map(count).collect()
}

#[test]
fn segments_change_no_answer() {
    crate::common::require_opencl();
    let place = Place::new();
    // vectors and logs fit, and so does a slice; but matrices are several times as long
    for (system, limit, formats) in [
        ("poisson3d:13", 20_000, &["csr", "sell"][..]),
        ("elasticity3d:7", 80_000, &["csr", "sell"]),
        ("random-spd:2000,seed=7", 21_000, &["csr", "sell"]),
        ("variable:16,sigma=1", 40_000, &["pattern"]),
    ] {
        let a: Csr = system.parse::<Spec>().unwrap().build().unwrap();
        let b = vec![1.0; a.n_rows()];
        for format in formats {
            for (k, devices) in ["0", "0,0", "0,0,0", "0,0,0,0,0", "0,host,0"].into_iter().enumerate() {
                let others = ["cg", "cg-pipelined"];
                for method in ["cg-classic", others[k % 2]] {
                    let args = format!(
                        "solve -v --generate {system} --format {format} --devices {devices} --method {method} --precond \
                         jacobi --tune off --json -o x.mtx"
                    );
                    let iterations = |run: &Run| run.json()["iterations"].as_u64().unwrap();
                    let whole = place.run(&args).ends(0);
                    assert!(segments(&whole).is_empty(), "{args}");
                    let expected = place.vectors("x.mtx");

                    let cut = limited(&place, limit, &args).ends(0);
                    let x = place.vectors("x.mtx");
                    let is_cut = segments(&cut);
                    assert!(is_cut.iter().all(|&count| count > 1), "{args}");
                    if devices == "0" {
                        assert_eq!(is_cut.len(), 1, "{args}");
                    }
                    assert!(relative_residual(&a, &b, &x[0]) <= 1.01e-8, "{args}");
                    let (before, after) = (iterations(&whole), iterations(&cut));
                    if method == "cg-classic" && std::env::var("DECLIVE_SHAPE").is_err() {
                        // its dot products are no part of the matrix's, so that not a bit changes
                        assert!(x == expected && before == after, "{args}: {before}, {after}");
                    } else {
                        // partial sums are of other rows
                        assert!(before.abs_diff(after) <= 1 + before / 50, "{args}: {before}, {after}");
                    }
                }
            }
        }
    }
}

#[test]
fn tuning_with_segments() {
    let place = Place::new();
    for shape in ["", "DECLIVE_SHAPE=gpu"] {
        let mut command =
            place.command("tune --generate random-spd:700,seed=7 --devices 0 --search first-minimum --dry-run --json");
        command.env("DECLIVE_MAX_BUFFER", "8192");
        if let Some((name, value)) = shape.split_once('=') {
            command.env(name, value);
        }
        let report = Run::of(command, "").ends(0).json();
        assert!(report.to_string().contains("spmv_dot_csr"), "{report}");
    }
}

#[test]
fn a_vector_that_is_too_long_is_refused_with_numbers() {
    crate::common::require_opencl();
    let place = Place::new();
    // 1728 rows
    let args = "solve --generate poisson3d:12 --devices";
    limited(&place, 13_824, &format!("{args} 0")).ends(0);
    limited(&place, 13_823, &format!("{args} 0")).fails(
        3,
        &["a vector of a share of 1728 rows", "13824 bytes", "its largest buffer is 13823 bytes", "--precision f32"],
    );
    limited(&place, 6_911, &format!("{args} 0")).fails(3, &["--devices host"]);
    // what is no number of bytes changes nothing
    let mut command = place.command(&format!("{args} 0 -q"));
    command.env("DECLIVE_MAX_BUFFER", "4 MB");
    let run = Run::of(command, "").ends(0);
    assert_eq!(run.err, "");
    let mut command = place.command(&format!("{args} 0"));
    command.env("DECLIVE_MAX_BUFFER", "4 MB");
    assert!(Run::of(command, "").ends(0).err.contains("'4 MB', which is no number of bytes"));
}
