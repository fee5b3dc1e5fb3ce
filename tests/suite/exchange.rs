//! Models of exchange: the way of a halo changes no bit of a solve. Each test recomputes b − A x by itself.

use crate::common::process::{Place, Run};
use crate::common::{choice, relative_residual, setup, solve, system};
use declive::device::list;
use declive::matrix::gallery;
use declive::solve::{Exchange, Method, Precision, Precond, Reorder};
use declive::{Csr, Outcome, Setup, Solver};
use serde_json::Value;

/// A plain set-up on these devices, D being the one to be tested, with the rows as given.
fn by(exchange: Exchange, method: Method, precision: Precision, devices: &str) -> Setup {
    let plain = setup(method, Precond::None, precision, &choice(devices));
    plain.with_exchange(exchange).with_reorder(Reorder::None)
}

fn solved(a: &Csr, setup: &Setup) -> Outcome {
    let b = gallery::random_vector(a.n_rows(), 7);
    let outcome = solve(a, &b, setup, 1e-9);
    let found = relative_residual(a, &b, &outcome.x);
    assert!(outcome.reason.converged() && found <= 1.01e-9, "{found:e}: {}", outcome.reason);
    outcome
}

#[test]
fn no_model_changes_a_bit() {
    // halos that are runs of neighbouring rows, halos that are not, and ranks of a row or none
    for (turn, name) in ["poisson3d:9", "random-spd:700,seed=3", "poisson2d:4x1"].into_iter().enumerate() {
        let a = system(name);
        for devices in ["D", "D,D", "D,D,D", "D,D,D,D,D"] {
            // these have no narrow band
            let methods = Method::ALL.iter().filter(|method| **method != Method::Tridiagonal);
            let single = methods.map(|&method| (method, Precision::F64));
            // of halos that are no runs, and of ranks of a row, some methods
            let some = single.chain([(Method::Cg, Precision::Mixed)]).enumerate();
            for (method, precision) in
                some.filter(|(k, _)| turn == 0 || (k + turn).is_multiple_of(3)).map(|(_, one)| one)
            {
                let of = |exchange| solved(&a, &by(exchange, method, precision, devices));
                let staged = of(Exchange::HostStaged);
                for exchange in [Exchange::HostCopied, Exchange::SharedContext] {
                    let other = of(exchange);
                    let what = format!("{name}, {method} in {precision} on {devices} by {exchange}");
                    assert_eq!(other.iterations, staged.iterations, "{what}");
                    assert!(other.x.iter().zip(&staged.x).all(|(x, y)| x.to_bits() == y.to_bits()), "{what}");
                }
            }
        }
    }
}

/// All devices of the first platform, each twice: PoCL can show several.
#[test]
fn devices_of_a_platform_share_a_context() {
    let devices = list().devices;
    let of_first = devices.iter().filter(|device| device.platform == devices[0].platform);
    let names: Vec<String> = of_first.map(|device| format!("{0},{0}", device.index)).collect();
    let a = system("poisson3d:12");
    let of = |exchange| solved(&a, &by(exchange, Method::Cg, Precision::F64, &names.join(",")));
    assert_eq!(of(Exchange::SharedContext).x, of(Exchange::HostStaged).x);
}

#[test]
fn the_host_copies_but_shares_no_context() {
    let a = system("poisson3d:9");
    let of = |exchange, devices: &str| by(exchange, Method::Cg, Precision::F64, devices);
    let staged = solved(&a, &of(Exchange::HostStaged, "D,host,D"));
    assert_eq!(solved(&a, &of(Exchange::HostCopied, "D,host,D")).x, staged.x);
    for devices in ["D,host", "host,host"] {
        let error = Solver::new(a.clone(), &of(Exchange::SharedContext, devices)).err().unwrap().to_string();
        assert!(error.contains("the host is none"), "{error}");
    }
    solved(&a, &of(Exchange::SharedContext, "host")); // alone, there is nothing to share
}

/// Where kernels of devices meet, the host's threads take part: that changes no bit either.
#[test]
fn the_host_takes_part_in_what_kernels_do() {
    let a = system("poisson3d:9");
    let b = gallery::random_vector(a.n_rows(), 7);
    for devices in ["D,host", "host,D", "D,D,host", "host,host"] {
        for method in [Method::Cg, Method::CgTextbook, Method::Minres, Method::Bicgstab] {
            for &precision in Precision::ALL {
                let rtol = if precision == Precision::F32 { 1e-5 } else { 1e-9 };
                let of = |exchange| solve(&a, &b, &by(exchange, method, precision, devices), rtol);
                let [live, staged] = [Exchange::Live, Exchange::HostStaged].map(of);
                let what = format!("{method} in {precision} on {devices}");
                assert!(live.reason.converged() && relative_residual(&a, &b, &live.x) <= 1.01 * rtol, "{what}");
                assert_eq!(live.iterations, staged.iterations, "{what}");
                assert!(live.x.iter().zip(&staged.x).all(|(x, y)| x.to_bits() == y.to_bits()), "{what}");
            }
        }
    }
}

/// A device that fails ends the solve at once, though the host waits for it.
#[test]
fn the_host_does_not_wait_for_a_device_that_fails() {
    let place = Place::new();
    let device = choice("D").to_string();
    for (devices, count) in [(format!("{device},host"), 60), (format!("host,{device}"), 90)] {
        let args = format!("solve --generate poisson3d:16 --precond none --tune off --devices {devices}");
        let mut command = place.command(&args);
        command.env("DECLIVE_FAULT", format!("{device}:launch:{count}"));
        let run = Run::in_time(command);
        assert!(run.err.starts_with(&format!("error: [{device}] ")), "{}", run.err);
        run.fails(3, &["launching ", "in iteration "]);
    }
}

#[test]
fn the_command_says_how_halos_travel() {
    let place = Place::new();
    let run = |exchange: &str, devices: &str, more: &str| {
        place.run(&format!("solve --generate poisson3d:8 --devices {devices} --exchange {exchange} {more}"))
    };
    for &exchange in Exchange::ALL {
        let report: Value = serde_json::from_str(&run(exchange.name(), "0,0", "--json --shares 1:1").ok()).unwrap();
        assert_eq!(report["options"]["exchange"], exchange.name());
        // a plane of 8 × 8 points on each side of the cut, and as many edges
        let halos = &report["halos"];
        assert_eq!([&halos["elements"], &halos["bytes"], &halos["cut_entries"]], [128, 1024, 128]);
        assert_eq!([&report["ranks"][0]["halo"], &report["ranks"][0]["cut"]], [64, 64]);
        let text = run(exchange.name(), "0,0", "--shares 1:1").ok();
        assert!(text.contains(&format!("128 elements, 1.0 KiB a product, {exchange}; edge cut: 4.")), "{text}");
    }
    run("shared-context", "0,host", "").fails(2, &["--devices", "the host is none"]);
    assert_eq!(run("pigeon", "0", "").code, Some(2));
}
