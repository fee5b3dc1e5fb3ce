//! Levels made on a device, beside those that the host makes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::tests::{first, laplacian, largest, rigid, system};
use super::exchanged::Exchanged;
use super::lattice::LatticeLevels;
use super::nodes::By;
use super::set_up::SetUp;
use super::{Launcher, OfRanks, Vectors};
use crate::backend::opencl::OpenClBackend;
use crate::comm::Alone;
use crate::device::list;
use crate::device::{Context, DeviceVec, Stay};
use crate::kernels::amg::Blocked;
use crate::kernels::amg::strength::BLOCK;
use crate::kernels::cycle::CycleKernels;
use crate::kernels::products::Product;
use crate::kernels::{Kernels, ProductsFor, Shape, Tuning};
use crate::matrix::stats::Stats;
use crate::matrix::{Csr, gallery};
use crate::operator::Format;
use crate::operator::device_rows::Which;
use crate::operator::opencl::DeviceBlock;
use crate::operator::plan::Layout;
use crate::operator::sell::made::SellOfMoved;
use crate::operator::sell::moved::Moved;
use crate::partition::split;
use crate::precond::amg::coarser;
use crate::precond::amg::cycle;
use crate::precond::amg::exchanged::Exchanged as NotAmong;
use crate::precond::amg::lattice::Lattice;
use crate::precond::amg::lattice::tables::Tables;
use crate::precond::amg::scales;
use crate::precond::amg::unsymmetric::mean;
use crate::precond::near_null::NearNull;

/// On a device of each platform, and whether that is simulated.
fn each(test: impl Fn(&SetUp<f64, f64>, bool)) {
    let devices = list().devices;
    let platforms: BTreeSet<&str> = devices.iter().map(|device| device.platform.as_str()).collect();
    for platform in platforms {
        let device = devices.iter().find(|device| device.platform == platform).unwrap();
        let ctx = Arc::new(Context::open(device).unwrap());
        let tuning = Tuning::default_for(device, Shape::Gpu);
        test(&SetUp::new(&ctx, &tuning).unwrap().unwrap(), platform == "Oclgrind");
    }
}

fn down(on: &SetUp<f64, f64>, v: &DeviceVec<f32>) -> Vec<f32> {
    let mut all = vec![0.0; v.len()];
    v.read(&on.ctx, 0, &mut all).unwrap();
    all
}

/// Level by level the host's integers, and the same numbers.
fn compare(on: &SetUp<f64, f64>, name: &str, a: &Csr) {
    let is_symmetric = Stats::of(a).asymmetry.is_none();
    let (mut matrix, mut b) = first(a, &NearNull::default());
    let mut same = on.moved(a, &scales(&a.diagonal()), 0..a.n_rows()).unwrap();
    let mut same_b = DeviceVec::from_slice(&on.ctx, &b.values, "b").unwrap();
    for level in 0.. {
        let read = on.read(&same).unwrap();
        assert!(read.compressed() == matrix.compressed(), "{name}, matrix of level {level}");
        assert_eq!(down(on, &same_b), b.values, "{name}, near-null vector of level {level}");
        let blocks = on.kernels.row_blocks(&on.ctx, &same, BLOCK).unwrap();
        let blocked = Blocked { matrix: &same, blocks: &blocks };
        let made = if is_symmetric {
            let (largest, _) = on.kernels.strength(&on.ctx, blocked, &same_b).unwrap();
            on.coarser(blocked, None, &same_b, &largest).unwrap()
        } else {
            let transpose = on.kernels.transposed(&on.ctx, &same).unwrap();
            let found = on.read(&on.kernels.mean(&on.ctx, &same, &transpose).unwrap()).unwrap();
            let expected = mean(&matrix, &matrix.transposed());
            assert!(found.compressed() == expected.compressed(), "{name}, the mean of level {level}");
            on.coarser_unsymmetric(blocked, &same_b).unwrap()
        };
        let expected = coarser(&matrix, &b, is_symmetric.then_some(2.0));
        assert_eq!(made.is_some(), expected.is_some(), "{name}, level {level}");
        let (Some((p, restriction, next, coarse)), Some(expected)) = (made, expected) else { break };
        let mut p = on.read(&p).unwrap();
        p.change(|_, _, values| values.iter_mut().for_each(|v| *v = -*v));
        assert!(p.compressed() == expected.0.compressed(), "{name}, P of level {level}");
        let restriction = on.read(&restriction).unwrap();
        assert!(restriction.compressed() == expected.1.compressed(), "{name}, its transpose of level {level}");
        (matrix, b, same, same_b) = (expected.2, expected.3, next, coarse);
    }
}

/// The same of nodes with several unknowns.
fn compare_nodes(on: &SetUp<f64, f64>, name: &str, a: &Csr, near_null: &NearNull) {
    let (mut matrix, mut modes) = first(a, near_null);
    let mut same = on.moved(a, &scales(&a.diagonal()), 0..a.n_rows()).unwrap();
    let By::Nodes(mut blocks, mut same_modes) = on.told((&same, None), &a.diagonal(), near_null).unwrap() else {
        panic!("{name} has no nodes")
    };
    let moved = on.moved_blocks(a, &scales(&a.diagonal()), near_null.unknowns()).unwrap();
    let moved = on.read(&on.kernels.rows_of(&on.ctx, &moved).unwrap()).unwrap();
    assert!(moved.compressed() == matrix.compressed(), "{name}, blocks that were moved");
    for level in 0.. {
        assert!(on.read(&same).unwrap().compressed() == matrix.compressed(), "{name}, matrix of level {level}");
        let again = on.kernels.rows_of(&on.ctx, &blocks).unwrap();
        assert!(on.read(&again).unwrap().compressed() == matrix.compressed(), "{name}, blocks of level {level}");
        assert_eq!((same_modes.unknowns, same_modes.width), (modes.unknowns, modes.width));
        assert_eq!(down(on, &same_modes.values), modes.values, "{name}, near-null vectors of level {level}");
        let largest = largest(&matrix, &modes);
        let made = on.coarser_nodes(&blocks, &same_modes, largest).unwrap();
        let expected = coarser(&matrix, &modes, Some(largest));
        assert_eq!(made.is_some(), expected.is_some(), "{name}, level {level}");
        let (Some((p, restriction, next, By::Nodes(next_blocks, next_modes))), Some(expected)) = (made, expected)
        else {
            break;
        };
        let mut p = on.read(&p).unwrap();
        p.change(|_, _, values| values.iter_mut().for_each(|v| *v = -*v));
        assert!(p.compressed() == expected.0.compressed(), "{name}, P of level {level}");
        let restriction = on.read(&restriction).unwrap();
        assert!(restriction.compressed() == expected.1.compressed(), "{name}, its transpose of level {level}");
        (matrix, modes, same, blocks, same_modes) = (expected.2, expected.3, next, next_blocks, next_modes);
    }
}

#[test]
fn levels_of_nodes_are_those_of_the_host() {
    each(|on, is_simulated| {
        let elastic = |side: usize| system(&format!("elasticity3d-jumps:{side}"));
        compare_nodes(on, "rigid bodies", &elastic(2), &rigid([2; 3]));
        if is_simulated {
            return;
        }
        compare_nodes(on, "translations", &elastic(7), &NearNull::of_unknowns(3).unwrap());
        compare_nodes(on, "rigid bodies", &elastic(9), &rigid([9; 3]));
        compare_nodes(on, "tetrahedra", &system("tetrahedra:6"), &NearNull::of_unknowns(3).unwrap());
        let a = system("poisson2d:23x31");
        let v: Vec<Vec<f64>> = (1..4).map(|k| (0..a.n_rows()).map(|i| (i % (7 * k)) as f64 - 3.0).collect()).collect();
        compare_nodes(on, "three vectors", &a, &NearNull::of_vectors(1, &v).unwrap());
        // more blocks in a row than there is room for at once
        let a = system("poisson3d:12");
        let v: Vec<Vec<f64>> = (0..16).map(|k| gallery::random_vector(a.n_rows(), k)).collect();
        compare_nodes(on, "sixteen vectors", &a, &NearNull::of_vectors(1, &v).unwrap());
        // on a line, rotations about it depend on the others
        let line = elastic(1);
        compare_nodes(on, "a bar", &line, &rigid([1; 3]));
    });
}

#[test]
fn levels_are_those_of_the_host() {
    each(|on, is_simulated| {
        let star: Vec<(u32, u32)> = (1..40).map(|j| (0, j)).collect();
        compare(on, "a star", &laplacian(40, &star));
        compare(on, "no edges", &laplacian(3, &[]));
        compare(on, "two parts", &laplacian(7, &[(0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (4, 6)]));
        compare(on, "jumps", &system("jumps:4,seed=3"));
        compare(on, "upwind", &system("convection3d:4x5x3,peclet=6"));
        if is_simulated {
            return;
        }
        let complete: Vec<(u32, u32)> = (0..60).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
        compare(on, "all with all", &laplacian(60, &complete));
        let small = ["jumps:5,seed=3", "poisson2d:20", "tridiagonal:300", "convection3d:13,peclet=40", "markov:20"];
        small.iter().for_each(|spec| compare(on, spec, &system(spec)));
        let large =
            ["poisson3d:17", "variable:13,sigma=2", "neumann2d:40x30", "circuit:40", "tetrahedra:9", "elasticity3d:7"];
        large.iter().for_each(|spec| compare(on, spec, &system(spec)));
    });
}

/// Of rows by their patterns, with values of their own and without, with one diagonal and with several.
#[test]
fn first_level_of_patterns() {
    each(|on, _| {
        for (spec, format) in [
            ("poisson3d:8", Format::Dictionary),
            ("neumann2d:23x20", Format::Dictionary),
            ("poisson3d:8", Format::Pattern),
            ("variable:8,sigma=2", Format::Pattern),
            ("tridiagonal:77", Format::Pattern),
        ] {
            let a = system(spec);
            let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            let tuning = Tuning::default_for(on.ctx.info(), Shape::Gpu);
            let block = DeviceBlock::<f64>::upload(&on.ctx, &tuning, &part, 0.5, format).unwrap();
            let of = OfRanks { factor: 0.5, rows: None, scaled_by: None };
            let made = on.first_of_patterns(block.rows().patterns().unwrap(), of).unwrap().unwrap();
            let (expected, b) = first(&a, &NearNull::default());
            assert!(on.read(&made.matrix).unwrap().compressed() == expected.compressed(), "{spec}");
            assert_eq!(down(on, &made.vectors.b), b.values, "{spec}");
            // with x = 1, 2, …
            let x: Vec<f32> = (0..a.n_rows()).map(|i| (i % 50 + 1) as f32).collect();
            let v = DeviceVec::from_slice(&on.ctx, &x, "x").unwrap();
            let mut y = DeviceVec::from_slice(&on.ctx, &x, "y").unwrap();
            let kernels = Kernels::<f32, f64>::build(&on.ctx, tuning).unwrap();
            for rows in made.rows.unwrap().launches(Which::All) {
                kernels.prepare(&on.ctx, rows, ProductsFor::Columns(1)).unwrap();
                kernels.product(&on.ctx, rows, 1, &v, &Product::Store(&mut y), None).unwrap();
            }
            for (i, y) in down(on, &y).into_iter().enumerate() {
                assert!((y - expected.rows().times(i, &x)).abs() <= 1e-4, "{spec}: row {i}");
            }
        }
    });
}

/// Of rows as they are, laid out as slices by the device, and not at all; of nodes with one unknown, and with three.
#[test]
fn first_level_of_compressed_rows() {
    each(|on, _| {
        for spec in ["tetrahedra:7", "circuit:20", "elasticity3d:4", "tridiagonal:77"] {
            let a = system(spec);
            let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
            let tuning = Tuning::default_for(on.ctx.info(), Shape::Gpu);
            let moved = Arc::new(Moved::<f64>::new(&on.ctx, &part, 0.5).unwrap());
            let slices = SellOfMoved::plan(&on.ctx, &part, 0.5, &moved).unwrap().upload(&on.ctx, &tuning).unwrap();
            let block = DeviceBlock::<f64>::upload(&on.ctx, &tuning, &part, 0.5, Format::Csr).unwrap();
            for rows in [&slices, block.rows()] {
                let of = OfRanks { factor: 0.5, rows: Some(rows), scaled_by: None };
                let unknowns = if spec.starts_with("elasticity") { 3 } else { 1 };
                let compressed = rows.compressed(&on.ctx).unwrap().unwrap();
                let made = on.first_of_compressed(compressed, of, unknowns).unwrap();
                let (expected, b) = first(&a, &NearNull::default());
                assert!(on.read(&made.matrix).unwrap().compressed() == expected.compressed(), "{spec}");
                assert_eq!(down(on, &made.vectors.b), b.values, "{spec}");
                let of_host = on.first_of_rows(&a, of, unknowns).unwrap();
                let [ours, theirs] = [made.blocks, of_host.blocks].map(|blocks| {
                    let rows_of = |blocks| on.read(&on.kernels.rows_of(&on.ctx, &blocks).unwrap()).unwrap();
                    blocks.map(|blocks| rows_of(blocks).compressed().2.to_vec())
                });
                assert!(ours == theirs && ours.is_some() == (unknowns > 1), "{spec}");
            }
        }
    });
}

/// z = M⁻¹ r of levels of a lattice, in both shapes, beside the host's.
#[test]
fn cycles_of_a_lattice() {
    each(|on, is_simulated| {
        let specs = ["poisson2d:23x17", "poisson3d:11x7x9", "neumann2d:26", "anisotropic:12x10x9", "poisson2d:400x3"];
        for spec in &specs[..if is_simulated { 2 } else { specs.len() }] {
            let a = system(spec);
            let tables = Tables::of(Lattice::of(a.patterns().unwrap()).unwrap()).unwrap();
            let (n, b): (_, Vec<f32>) = (a.n_rows(), (0..a.n_rows()).map(|i| ((i * 7) % 13) as f32 - 6.0).collect());
            let sizes = tables.hierarchy.levels.iter().map(|level| level.rows);
            let mut on_host: Vec<_> = sizes.map(|n| cycle::Vectors::new(n, NotAmong::Nothing)).collect();
            on_host[0].b.copy_from_slice(&b);
            tables.cycle(&mut on_host);
            let largest = on_host[0].x.iter().fold(0f32, |m, v| m.max(v.abs()));
            let kernels = CycleKernels::<f64>::build(&on.ctx, Shape::Gpu).unwrap();
            let products = Kernels::build(&on.ctx, Tuning::default_for(on.ctx.info(), Shape::Gpu)).unwrap();
            let backend = OpenClBackend::new(Arc::clone(&on.ctx), products, 0, Box::new(Alone::default())).unwrap();
            let launcher = Launcher { backend, kernels };
            for shape in [Shape::Gpu, Shape::Cpu] {
                let mut v = Vectors::of_several(&on.ctx, n, 0, [n, n], Exchanged::Nothing).unwrap();
                v.b = DeviceVec::from_slice(&on.ctx, &b, "b").unwrap();
                let mut levels = LatticeLevels::new(&on.ctx, shape, &tables, None).unwrap();
                for _turn in 0..2 {
                    levels.cycle(&launcher, &mut v).unwrap();
                    for (x, expected) in down(on, &v.x).iter().zip(&on_host[0].x) {
                        assert!((x - expected).abs() < 2e-5 * largest, "{spec}");
                    }
                }
            }
        }
    });
}

/// Rows that no table in local memory holds: two hubs, each with a ring of its own around it.
#[test]
fn long_rows() {
    each(|on, is_simulated| {
        if is_simulated {
            return; // it takes long
        }
        let n = 3600;
        let of_hub = |hub: u32| (0..n / 2 - 1).map(move |k| (hub, 2 + 2 * k + hub));
        let ring = |hub: u32| (0..n / 2 - 2).map(move |k| (2 + 2 * k + hub, 4 + 2 * k + hub));
        let edges: Vec<(u32, u32)> = (0..2).flat_map(|hub| of_hub(hub).chain(ring(hub))).collect();
        let a = laplacian(n as usize, &edges);
        let (matrix, _) = first(&a, &NearNull::default());
        let on_device = on.moved(&a, &scales(&a.diagonal()), 0..a.n_rows()).unwrap();
        let lengths = on.kernels.product_lengths(&on.ctx, &on_device, &on_device, Stay::Short).unwrap();
        let square = on.read(&on.kernels.product(&on.ctx, &on_device, &on_device, lengths, true).unwrap()).unwrap();
        let expected = crate::precond::amg::product(&matrix, &matrix, true);
        assert!(square.compressed() == expected.compressed());
        compare(on, "two hubs", &a);
    });
}
