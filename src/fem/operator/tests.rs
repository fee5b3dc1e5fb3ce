use std::sync::Arc;

use super::super::tests::distorted;
use super::*;
use crate::backend::opencl::OpenClBackend;
use crate::backend::{Backend, LinearOperator};
use crate::comm::Alone;
use crate::device::list;
use crate::fem::{Condition, Parts, System};
use crate::kernels::{Kernels, Shape, Tuning};
use crate::krylov::Method;
use crate::operator::Exchange;
use crate::operator::opencl::DeviceBlock;
use crate::partition::HaloPlan;
use crate::precond::Precond;
use crate::real::Precision;
use crate::{Control, OperatorSolver, Setup, Solver, Stop};

fn physics(mesh: &Mesh, is_elastic: bool) -> Physics {
    let regions = mesh.region_names().len();
    if is_elastic {
        Physics::Elasticity { young: vec![3.0; regions], poisson: vec![0.3; regions] }
    } else {
        Physics::Diffusion { conductivity: vec![2.5; regions] }
    }
}

/// Known values, sources, what comes in and springs, on all sides that there are.
fn problem(mesh: &Mesh, is_elastic: bool) -> Problem<'_> {
    let mut problem = Problem::new(mesh, physics(mesh, is_elastic)).unwrap();
    for component in 0..problem.unknowns() {
        let value = Condition::Value { component, value: Box::new(|p| 1.0 + p[1] - 0.5 * p[0]) };
        let flux = Condition::Flux { component, value: Box::new(|p| 0.3 * p[0]) };
        let robin = Condition::Robin { component, coefficient: 0.7, outside: 2.0 };
        problem = problem.with_condition("left", value).unwrap().with_condition("right", robin).unwrap();
        problem = problem.with_condition("top", flux).unwrap().with_source(component, |p| p[0] - p[1]).unwrap();
    }
    problem
}

fn meshes() -> Vec<Mesh> {
    let mut all = distorted();
    all.extend([Mesh::unit_square([9, 17]).unwrap(), Mesh::unit_cube([5, 3, 4]).unwrap()]);
    let straight = all[all.len() - 1].second_order();
    all.push(straight.ordered().0);
    // edges that are bent
    let bend = |p: [f64; 3]| [p[0] + 0.1 * (3.0 * p[1]).sin(), p[1] + 0.05 * p[0] * p[0], p[2]];
    all.push(Mesh::unit_square([3, 4]).unwrap().second_order().moved(bend).unwrap());
    all.push(Mesh::unit_cube([2, 2, 1]).unwrap().second_order().moved(bend).unwrap());
    all
}

fn vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.5).collect()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let size = expected.iter().fold(1e-300_f64, |most, v| most.max(v.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * size, "{what}: element {i} is {found}, not {expected}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn all_rows(n: usize) -> OwnRows {
    OwnRows { rows: 0..n, halo: Vec::new() }
}

/// Of straight elements, fewer places are exact for products of derivatives; of bent ones, both are formed at the same places.
#[test]
fn the_host_has_the_products_of_the_matrix() {
    for (mesh, is_elastic) in meshes().iter().flat_map(|mesh| [(mesh, false), (mesh, true)]) {
        let problem = problem(mesh, is_elastic);
        let (operator, rhs) = problem.operator().unwrap();
        let System { matrix, rhs: expected } = problem.assemble().unwrap();
        let (n, what) = (operator.order(), format!("{}, {is_elastic}", mesh.cell()));
        assert_near(&rhs, &expected, 1e-13, &what);
        let x = vector(n);
        let mut y = vec![f64::NAN; n];
        ProductsIn::<f64>::on_host(&operator, &all_rows(n)).multiply(&x, &mut y);
        assert_near(&y, &matrix.mul_vec(&x), 1e-13, &what);
        let diagonal: Vec<f64> = (0..n).map(|i| matrix.get(i, i).unwrap()).collect();
        assert_near(&operator.diagonal().unwrap(), &diagonal, 1e-13, &what);
        // Gershgorin's bound by elements is one for the whole
        let largest = (0..50).fold(vector(n), |x, _| {
            let y = matrix.mul_vec(&x);
            let scaled: Vec<f64> = y.iter().zip(&diagonal).map(|(y, d)| y / d).collect();
            let norm = scaled.iter().map(|v| v * v).sum::<f64>().sqrt();
            scaled.iter().map(|v| v / norm).collect()
        });
        let weighted = |y: &[f64]| largest.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let by_diagonal: Vec<f64> = largest.iter().zip(&diagonal).map(|(x, d)| x * d).collect();
        let found = weighted(&matrix.mul_vec(&largest)) / weighted(&by_diagonal);
        assert!(operator.largest_of_scaled().unwrap() >= found, "{what}: {found}");
    }
}

/// A x and b − A x by a device, in all ways.
fn on_device<T: Real>(operator: &ElementOperator<'_>, scale: Option<&[T]>, x: &[T], b: &[T]) -> [Vec<f64>; 3] {
    let device = list().devices.remove(0);
    let ctx = Arc::new(Context::open(&device).unwrap());
    let kernels = Kernels::<T, f64>::build(&ctx, Tuning::default_for(&device, Shape::of(&device))).unwrap();
    let n = operator.order();
    let backend = OpenClBackend::new(Arc::clone(&ctx), kernels, n, Box::new(Alone::default())).unwrap();
    let rows = operator.on_device(&ctx, &all_rows(n), scale).unwrap();
    let block = DeviceBlock::of_operator(&ctx, rows, n, (&HaloPlan::default(), Exchange::HostStaged)).unwrap();
    let mut v = [(); 3].map(|()| backend.vector(0, "a vector").unwrap());
    backend.write(x, &mut v[0]).unwrap();
    backend.write(b, &mut v[2]).unwrap();
    let [of_x, of_y, of_b] = &mut v;
    let mut y = vec![T::default(); n];
    let read = |v: &_, y: &mut Vec<T>| {
        backend.read(v, y).unwrap();
        y.iter().map(|v| v.to_f64()).collect::<Vec<f64>>()
    };
    block.apply(&backend, of_x, of_y).unwrap();
    let product = read(of_y, &mut y);
    block.residual(&backend, of_b, of_x, of_y).unwrap();
    let residual = read(of_y, &mut y);
    backend.write(&vec![T::from_f64(9.0); n], of_y).unwrap();
    let mut sums = backend.product_sums().unwrap();
    block.multiply(&backend, &mut v, [0, 1], None, &mut sums).unwrap();
    let again = read(&v[1], &mut y);
    assert_eq!(again, product);
    let (partials, first, count) = sums.parts();
    let mut parts = vec![0.0; partials.len()];
    partials.read(&ctx, 0, &mut parts).unwrap();
    let parts = &parts[2 * first as usize..][..2 * count as usize];
    let sum = |k: usize| parts.iter().skip(k).step_by(2).sum::<f64>();
    [product, residual, vec![sum(0), sum(1)]]
}

fn check_on_device<T: Real>(operator: &ElementOperator<'_>, matrix: &crate::Csr, scale: Option<&[T]>, what: &str) {
    let n = operator.order();
    let tolerance = if size_of::<T>() == 8 { 1e-12 } else { 3e-5 };
    let [x, b] = [vector(n), vector(n + 3).split_off(3)].map(|v| v.into_iter().map(T::from_f64).collect::<Vec<T>>());
    let [product, residual, sums] = on_device(operator, scale, &x, &b);
    let factor = |i: usize| scale.map_or(1.0, |scale| scale[i].to_f64());
    let scaled: Vec<f64> = x.iter().enumerate().map(|(i, x)| factor(i) * x.to_f64()).collect();
    let expected: Vec<f64> = matrix.mul_vec(&scaled).iter().enumerate().map(|(i, y)| factor(i) * y).collect();
    assert_near(&product, &expected, tolerance, what);
    let rest: Vec<f64> = b.iter().zip(&expected).map(|(b, y)| b.to_f64() - y).collect();
    assert_near(&residual, &rest, tolerance, what);
    let dot = |u: &mut dyn Iterator<Item = f64>| u.zip(&product).map(|(u, y)| u * y).sum::<f64>();
    let by_host = [dot(&mut x.iter().map(|x| x.to_f64())), dot(&mut product.iter().copied())];
    assert_near(&sums, &by_host, 1e-9, what);
}

#[test]
fn devices_have_the_products_of_the_matrix() {
    let mut meshes = meshes();
    meshes.remove(1); // larger ones of this shape take long enough
    for (k, (mesh, is_elastic)) in meshes.iter().flat_map(|mesh| [(mesh, false), (mesh, true)]).enumerate() {
        let problem = problem(mesh, is_elastic);
        let operator = problem.operator().unwrap().0;
        let matrix = problem.assemble().unwrap().matrix;
        let scale: Vec<f64> =
            (0..operator.order()).map(|i| if operator.is_known(i) { 1.0 } else { 0.5 + (i % 3) as f64 }).collect();
        for (place, summation) in Summation::ALL.iter().enumerate() {
            let operator = operator.clone().with_summation(*summation);
            let what = format!("{}, {is_elastic}, {summation}", mesh.cell());
            // each of these for some meshes, which is enough: compilers take their time
            if (k / 2 + place) % 2 == 0 {
                check_on_device::<f64>(&operator, &matrix, None, &what);
                continue;
            }
            match k % 3 {
                0 => check_on_device::<f64>(&operator, &matrix, Some(&scale), &format!("{what}, scaled")),
                1 => check_on_device::<f32>(&operator, &matrix, None, &format!("{what}, single precision")),
                _ => {
                    check_on_device::<f64>(&operator.with_stored_matrices(), &matrix, None, &format!("{what}, stored"))
                }
            }
        }
    }
}

/// Any number of ranks, devices or the host, also without nodes.
#[test]
fn ranks_have_the_answer_of_the_matrix() {
    let mesh = Mesh::unit_cube([4, 3, 3]).unwrap().second_order().ordered().0;
    for is_elastic in [false, true] {
        let problem = problem(&mesh, is_elastic);
        let (operator, rhs) = problem.operator().unwrap();
        let System { matrix, rhs: expected } = problem.assemble().unwrap();
        assert_near(&rhs, &expected, 1e-13, "b");
        let stop = Stop::default().with_rtol(1e-10);
        let host = Setup::default()
            .with_devices("host".parse().unwrap())
            .with_method(Method::Cg)
            .with_precond(Precond::Jacobi);
        let mut solver = Solver::new(matrix.clone(), &host).unwrap();
        let reference = solver.solve(&rhs, None, &stop, Control::default()).unwrap();
        for (devices, shares) in [
            ("host", None),
            ("0", None),
            ("0,0", None),
            ("0,0,0", Some("1:0:2")),
            ("0,0,0,0,0", None),
            ("host,0", None),
        ] {
            for precision in [Precision::F64, Precision::Mixed] {
                let mut setup = host.clone().with_devices(devices.parse().unwrap()).with_precision(precision);
                setup.shares = shares.map(|shares| shares.parse().unwrap());
                let summation = Summation::ALL[usize::from(devices.len() % 2 == 1)];
                let operator = operator.clone().with_summation(summation);
                let mut solver = OperatorSolver::new(operator, &setup).unwrap();
                let outcome = solver.solve(&rhs, None, &stop, Control::default()).unwrap();
                let what = format!("{devices} {precision} {is_elastic}");
                assert!(outcome.reason.converged(), "{what}: {}", outcome.reason);
                let residual = crate::verify::residual(&matrix, &rhs, &outcome.x);
                assert!(residual.relative_2 <= 1.1e-10, "{what}: {}", residual.relative_2);
                assert_near(&outcome.x, &reference.x, 1e-7, &what);
                assert_eq!(solver.ranks().iter().map(|rank| rank.rows).sum::<usize>(), rhs.len());
                if precision == Precision::F64 {
                    assert!(outcome.iterations.abs_diff(reference.iterations) <= 2, "{what}: {}", outcome.iterations);
                }
            }
        }
    }
}

#[test]
fn methods_and_preconditioners_plug_in() {
    let mesh = Mesh::unit_square([15, 13]).unwrap().second_order().ordered().0;
    let problem = problem(&mesh, true);
    let (operator, rhs) = problem.operator().unwrap();
    let matrix = problem.assemble().unwrap().matrix;
    for (method, precond) in [
        (Method::Auto, Precond::None),
        (Method::CgTextbook, Precond::Jacobi),
        (Method::CgTextbook, Precond::Chebyshev),
        (Method::Cg, Precond::Chebyshev),
        (Method::CgPipelined, Precond::Jacobi),
        (Method::Minres, Precond::Jacobi),
        (Method::Bicgstab, Precond::Jacobi),
        (Method::Gmres, Precond::Jacobi),
    ] {
        for devices in ["0,0", "host"] {
            let setup =
                Setup::default().with_devices(devices.parse().unwrap()).with_method(method).with_precond(precond);
            let mut solver = OperatorSolver::new(operator.clone(), &setup).unwrap();
            let outcome = solver.solve(&rhs, None, &Stop::default(), Control::default()).unwrap();
            let residual = crate::verify::residual(&matrix, &rhs, &outcome.x);
            assert!(outcome.reason.converged(), "{method} {precond} {devices}: {}", outcome.reason);
            assert!(residual.relative_2 <= 1.1e-8, "{method} {precond} {devices}: {}", residual.relative_2);
        }
    }
    for (method, precond, words) in [
        (Method::Direct, Precond::None, "factors"),
        (Method::Lsmr, Precond::None, "transpose"),
        (Method::Cg, Precond::Fsai, "entries"),
        (Method::Minres, Precond::Amg, "can't have precond = amg"),
    ] {
        let setup = Setup::default().with_devices("host".parse().unwrap()).with_method(method).with_precond(precond);
        let error = OperatorSolver::new(operator.clone(), &setup).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// Blocks on the diagonal are those of the matrix. The matrix for multigrid is that of elements of first order, and Pᵀ A P of those of second order.
#[test]
fn what_preconditioners_are_made_from() {
    for (mesh, is_elastic) in meshes().iter().flat_map(|mesh| [(mesh, false), (mesh, true)]) {
        let problem = problem(mesh, is_elastic);
        let (operator, matrix) = (problem.operator().unwrap().0, problem.assemble().unwrap().matrix);
        let (n, what) = (operator.order(), format!("{}, {is_elastic}", mesh.cell()));
        let size = if is_elastic { problem.unknowns() } else { 4 };
        let blocks = operator.block_diagonal().unwrap();
        for row in 0..n {
            let columns: Vec<usize> = (row / size * size..n.min(row / size * size + size)).collect();
            let of = |a: &crate::Csr| columns.iter().map(|&j| a.get(row, j).unwrap_or_default()).collect::<Vec<_>>();
            assert_eq!(blocks.row(row).0.len(), columns.len());
            assert_near(&of(&blocks), &of(&matrix), 1e-12, &what);
        }
        let space = operator.first_order().unwrap();
        let unit = |j: usize| (0..n).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
        let Some(p) = space.interpolation else {
            assert_eq!(mesh.cell().order(), 1);
            assert_near(space.matrix.values(), matrix.values(), 1e-12, &what);
            assert_eq!((space.matrix.row_ptr(), space.matrix.col_idx()), (matrix.row_ptr(), matrix.col_idx()));
            continue;
        };
        let transpose = p.transposed().unwrap();
        let is_corner: Vec<bool> = (0..n).map(|row| transpose.row(row).0.contains(&(row as u32))).collect();
        for j in (0..n).step_by(5) {
            let expected =
                if is_corner[j] { transpose.mul_vec(&matrix.mul_vec(&p.mul_vec(&unit(j)))) } else { unit(j) };
            if !is_curved(mesh) || !is_corner[j] {
                assert_near(&space.matrix.mul_vec(&unit(j)), &expected, 1e-12, &what);
            }
        }
    }
}

/// On any number of ranks, some of them without nodes: as many iterations, few with levels, and the answer.
#[test]
fn preconditioners_of_entries_on_ranks() {
    let second = Mesh::unit_cube([5, 4, 4]).unwrap().second_order().ordered().0;
    let first = Mesh::unit_square([30, 20]).unwrap().ordered().0;
    for (mesh, is_elastic, precond) in [
        (&second, false, Precond::Amg),
        (&second, true, Precond::Amg),
        (&first, false, Precond::Amg),
        (&first, true, Precond::BlockJacobi),
        (&second, false, Precond::BlockJacobi),
    ] {
        let problem = problem(mesh, is_elastic);
        let (operator, rhs) = problem.operator().unwrap();
        let matrix = problem.assemble().unwrap().matrix;
        let b = problem.unknowns();
        let coordinates: Vec<Vec<f64>> = (0..b).map(|k| mesh.points().iter().map(|p| p[k]).collect()).collect();
        let stop = Stop::default().with_rtol(1e-9);
        let iterations = |devices: &str, shares: Option<&str>, method, precision, precond| {
            let mut setup = Setup::default().with_devices(devices.parse().unwrap()).with_precision(precision);
            setup = setup.with_method(method).with_precond(precond);
            if is_elastic {
                setup = setup.with_near_null(crate::solve::NearNull::of_coordinates(b, &coordinates).unwrap());
            }
            setup.shares = shares.map(|shares| shares.parse().unwrap());
            let mut solver = OperatorSolver::new(operator.clone(), &setup).unwrap();
            let outcome = solver.solve(&rhs, None, &stop, Control::default()).unwrap();
            let what = format!("{devices} {method} {precision} {precond} {} {is_elastic}", mesh.cell());
            assert!(outcome.reason.converged(), "{what}: {}", outcome.reason);
            let residual = crate::verify::residual(&matrix, &rhs, &outcome.x);
            assert!(residual.relative_2 <= 1.1e-9, "{what}: {}", residual.relative_2);
            outcome.iterations
        };
        let alone = iterations("host", None, Method::Cg, Precision::F64, precond);
        let by_diagonal = iterations("host", None, Method::Cg, Precision::F64, Precond::Jacobi);
        let few = if precond == Precond::Amg { 2 * by_diagonal / 3 } else { by_diagonal };
        assert!(alone < few, "{precond} {}: {alone} and {by_diagonal}", mesh.cell());
        for (devices, shares, method, precision) in [
            ("0", None, Method::Cg, Precision::F64),
            ("0,0", None, Method::Cg, Precision::Mixed),
            ("0,0,0", Some("1:0:2"), Method::Cg, Precision::F64),
            ("host,0", None, Method::Auto, Precision::F64),
            ("0,0,0,0,0", None, Method::Gmres, Precision::F64),
        ] {
            if method == Method::Gmres && precond == Precond::BlockJacobi {
                continue; // which takes many cycles
            }
            let found = iterations(devices, shares, method, precision, precond);
            let few = if method == Method::Cg && precision == Precision::F64 { 2 } else { alone / 2 + 10 };
            assert!(found.abs_diff(alone) <= few, "{devices} {method} {precond}: {found} and {alone}");
        }
    }
}

/// Numbers of elements around the size of a block, and blocks that are full of nodes.
#[test]
fn blocks_of_any_size() {
    for count in [1, 31, 32, 33, 64, 65, 200] {
        let mesh = Mesh::unit_square([count, 1]).unwrap();
        let problem = problem(&mesh, false);
        let (operator, matrix) = (problem.operator().unwrap().0, problem.assemble().unwrap().matrix);
        check_on_device::<f64>(&operator, &matrix, None, &format!("{count} squares"));
        if count < 64 {
            let coloured = operator.with_summation(Summation::Coloured);
            check_on_device::<f64>(&coloured, &matrix, None, &format!("{count} squares by colours"));
        }
    }
    let mesh = Mesh::unit_cube([4, 4, 4]).unwrap();
    let rank = RankNodes::new(&mesh, 0..mesh.points().len());
    for [size, most] in [[64, 1000], [64, 20], [16, 8], [1, 8]] {
        let lists = blocks::BlockLists::new(&mesh, &rank, [size, most], |_| false);
        let heads = lists.heads.chunks_exact(crate::kernels::elements::HEAD);
        assert!(heads.clone().all(|head| head[3] as usize <= most && head[4] as usize <= size && head[1] <= head[2]));
        assert_eq!(heads.map(|head| head[4] as usize).sum::<usize>(), mesh.len());
        let elements: Vec<u32> = lists.elements.iter().copied().filter(|&k| k != u32::MAX).collect();
        assert_eq!(elements, (0..mesh.len() as u32).collect::<Vec<_>>());
        // each place is that of one node of one block
        let mut slots = lists.slots.clone();
        slots.sort_unstable();
        assert_eq!(slots, (0..lists.sum_ends.last().copied().unwrap_or(0)).collect::<Vec<_>>());
    }
}

#[test]
fn what_has_no_room_in_lists_is_refused() {
    let names: Vec<String> = (0..=1 << 16).map(|k| format!("region {k}")).collect();
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let elements = Parts { nodes: vec![0, 1, 2], groups: vec![1 << 16], names };
    let mesh = Mesh::new(Cell::Triangle3, points, elements, Parts::default()).unwrap();
    let error = Problem::new(&mesh, physics(&mesh, false)).unwrap().operator().err().unwrap().to_string();
    assert!(error.contains("1 elements in 65537 regions"), "{error}");
}
