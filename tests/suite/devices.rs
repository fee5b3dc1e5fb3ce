//! What only shows with other devices than the machine's own, run as processes whose environment says what PoCL offers.

use std::process::{Command, Output};

/// PoCL takes its time for binaries of kernels for GPUs: all of them are compiled, used or not.
const NOT_KEPT: (&str, &str) = ("DECLIVE_PROGRAM_CACHE", "off");

fn declive(args: &str, env: &[(&str, &str)]) -> Output {
    crate::common::require_opencl();
    Command::new(env!("CARGO_BIN_EXE_declive"))
        .args(args.split_whitespace())
        .env_remove("POCL_DEVICES")
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn whole_solves_with_the_kernels_for_gpus() {
    let systems = ["poisson3d:9", "random-spd:600", "elasticity3d:3", "tridiagonal:5"];
    for (k, devices) in ["0", "0,0,0", "0,host"].into_iter().enumerate() {
        for (l, rest) in [
            "--method cg",
            "--method cg-classic",
            "--method cg-single-reduction",
            "--method cg-pipelined",
            "--method minres",
            "--precond none",
            "--precision f32 --rtol 1e-4",
        ]
        .into_iter()
        .enumerate()
        {
            // two of them, so that any two of devices, options and systems meet
            for system in [systems[(k + l) % 4], systems[(k + l + 2) % 4]] {
                let args = format!("solve --generate {system} --devices {devices} {rest}");
                let output = declive(&args, &[("DECLIVE_SHAPE", "gpu"), NOT_KEPT]);
                assert_eq!(output.status.code(), Some(0), "{args}\n{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
}

#[test]
fn devices_without_double_precision() {
    let without = [("DECLIVE_F64", "off")];
    for shape in ["cpu", "gpu"] {
        for devices in ["0", "0,0,host"] {
            for method in ["cg", "cg-classic"] {
                let args = format!(
                    "solve --generate jumps:9,contrast=10 --precision f32 --rtol 1e-4 --precond jacobi --method {method} \
                     --devices {devices}"
                );
                let output = declive(&args, &[without[0], ("DECLIVE_SHAPE", shape), NOT_KEPT]);
                assert_eq!(output.status.code(), Some(0), "{args}\n{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }

    // in double precision they are left out: the host works in their place, or beside them, or nothing does
    let output = declive("solve --generate poisson2d:9", &without);
    assert_eq!(output.status.code(), Some(0));
    // lines are wrapped
    let report = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("no double precision (--precision f32 would use it)"), "{report}");
    let output = declive("solve --generate poisson2d:9 --devices 0,host", &without);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("is left out: it has no double precision"), "{}", stderr(&output));
    let output = declive("solve --generate poisson2d:9 --devices 0", &without);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("no double precision"), "{}", stderr(&output));
}

#[test]
fn a_kernel_that_does_not_compile_ends_with_the_log() {
    let output = declive("solve --generate tridiagonal:5 --devices 0", &[("DECLIVE_BUILD_OPTIONS", "-D if=nonsense")]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.contains("building the kernels failed") && text.lines().count() > 1, "{text}");
}

#[test]
fn a_system_that_is_too_large_names_sizes_and_a_way_out() {
    // PoCL with a gigabyte: a bit more is too much for one, not for two
    let args = "solve --generate poisson3d:200 --max-iters 1 --devices";
    let one_gb = ("POCL_MEMORY_LIMIT", "1");
    let output = declive(&format!("{args} 0"), &[one_gb]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("its memory is 1073741824 bytes") && text.contains("--precision f32"), "{text}");

    let two = [one_gb, ("POCL_DEVICES", TWO_DEVICES)];
    let text = stderr(&declive(&format!("{args} 0"), &two));
    assert!(text.contains("it would fit with --devices 0,1"), "{text}");
    assert_eq!(declive(&format!("{args} 0,1"), &two).status.code(), Some(1), "and it does: the limit on iterations");
}

/// PoCL's name for its multi-threaded device changed with version 4; `basic` is there in all.
const TWO_DEVICES: &str = "basic basic";

#[test]
fn several_opencl_devices() {
    let three = [("POCL_DEVICES", "basic basic basic")];
    let output = declive("solve --generate jumps:12 --devices cpu --precond jacobi --json", &three);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ranks"].as_array().unwrap().len(), 3);
    let rows: u64 = report["ranks"].as_array().unwrap().iter().map(|r| r["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, 12 * 12 * 12);

    let output = declive("solve --generate jumps:12 --devices 0,2,host --json", &three);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rejected"].as_array().unwrap().len(), 1);

    // all three are the same processor: it works once, unless one asks for more
    for choice in ["all", "auto"] {
        let output = declive(&format!("solve --generate jumps:12 --method cg --devices {choice} --json"), &three);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["ranks"].as_array().unwrap().len(), 1);
        let rejected = report["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 2);
        assert!(rejected.iter().all(|one| one["reason"] == "the same processor as [0]"), "{rejected:?}");
    }

    let output = declive("solve --generate jumps:12 --devices 3", &three);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("--devices 3") && stderr(&output).contains("[2]"), "{}", stderr(&output));
}
