use super::*;
use std::time::Instant;

#[test]
#[ignore]
fn measure() {
    let device = list().devices.remove(0);
    for spec in ["poisson3d:60", "tetrahedra:20"] {
        let a: Matrix = spec.parse::<gallery::Spec>().unwrap().build().unwrap();
        let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        for format in [Format::Csr, Format::Auto, Format::Sell] {
            let ctx = Context::open(&device).unwrap();
            let kernels = Kernels::<f64, f64>::build(&ctx, Tuning::default_for(&device, Shape::Cpu)).unwrap();
            let block = DeviceBlock::<f64>::upload(&ctx, &kernels.tuning, &part, 1.0, format).unwrap();
            let mut of = |k: usize| {
                let n = a.n_rows();
                let x = DeviceVec::from_slice(&ctx, &vec![1.5; n * k], "x").unwrap();
                let mut y = DeviceVec::<f64>::zeros(&ctx, n * k, "y").unwrap();
                let partials = DeviceVec::<f64>::zeros(&ctx, 2 * k * 64, "sums").unwrap();
                let done = DeviceVec::zeros(&ctx, 1, "the state").unwrap();
                let mut best = f64::INFINITY;
                for _ in 0..40 {
                    let start = Instant::now();
                    for rows in block.launches(Which::All) {
                        rows.make_room(&ctx, k).unwrap();
                        let product =
                            Product::Dots { y: &mut y, partials: &partials, first: 0, done: &done, sending: None };
                        kernels.product(&ctx, rows, k, &x, &product, None).unwrap();
                    }
                    ctx.finish().unwrap();
                    best = best.min(start.elapsed().as_secs_f64());
                }
                best * 1e3
            };
            let one = of(1);
            let many = [2, 4, 8, 16].map(|k| (k, of(k)));
            print!("{spec} n {} nnz {} {} {one:.3} ms;", a.n_rows(), a.nnz(), block.format());
            many.iter().for_each(|(k, t)| print!(" k={k}: {t:.3} ms, {:.2} of k singles;", t / (one * *k as f64)));
            println!();
        }
    }
}
