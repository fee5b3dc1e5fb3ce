//! Problems whose solutions are known, and meshes that are none.

use super::local::Geometry;
use super::*;
use crate::krylov::Method;
use crate::solve::Outcome;
use crate::{Control, Setup, Solver, Stop};

/// Squares and cubes of few elements, of both orders, whose nodes are out of line inside.
pub(super) fn distorted() -> Vec<Mesh> {
    let bend = |p: [f64; 3], is_flat: bool| {
        let bubble = |x: f64| x * (1.0 - x);
        let inside = bubble(p[0]) * bubble(p[1]) * if is_flat { 1.0 } else { bubble(p[2]) };
        let by = |k: usize, size: f64| size * inside * (7.0 * p[0] + 5.0 * p[1] + 3.0 * p[2] + k as f64).sin();
        [p[0] + by(0, 0.8), p[1] + by(1, 0.7), if is_flat { 0.0 } else { p[2] + by(2, 0.6) }]
    };
    let square = Mesh::unit_square([4, 3]).unwrap().moved(|p| bend(p, true)).unwrap();
    let cube = Mesh::unit_cube([2, 3, 2]).unwrap().moved(|p| bend(p, false)).unwrap();
    vec![square.second_order(), cube.second_order(), square, cube]
}

pub(super) fn solved(system: &System) -> Vec<f64> {
    let setup = Setup::default().with_devices("host".parse().unwrap()).with_method(Method::Direct);
    let mut solver = Solver::new(system.matrix.clone(), &setup).unwrap();
    let Outcome { reason, x, .. } =
        solver.solve(&system.rhs, None, &Stop::default().with_rtol(1e-13), Control::default()).unwrap();
    assert!(reason.converged(), "{reason}");
    let residual = |i: usize| {
        let (cols, values) = system.matrix.row(i);
        system.rhs[i] - cols.iter().zip(values).map(|(&j, a)| a * x[j as usize]).sum::<f64>()
    };
    let size = system.rhs.iter().map(|b| b.abs()).fold(0.0, f64::max);
    assert!((0..x.len()).all(|i| residual(i).abs() <= 1e-10 * size));
    x
}

pub(super) fn value<'a>(component: usize, f: impl Fn([f64; 3]) -> f64 + Sync + 'a) -> Condition<'a> {
    Condition::Value { component, value: Box::new(f) }
}

pub(super) fn all_around<'a>(
    mut problem: Problem<'a>,
    mesh: &Mesh,
    component: usize,
    f: fn([f64; 3]) -> f64,
) -> Problem<'a> {
    for side in mesh.side_names() {
        problem = problem.with_condition(side, value(component, f)).unwrap();
    }
    problem
}

/// Patch test: what shape functions can be, the solution is.
#[test]
fn polynomials_are_found_again() {
    for mesh in distorted() {
        let is_flat = mesh.cell().dimensions() == 2;
        let linear: fn([f64; 3]) -> f64 = |p| 1.0 + 2.0 * p[0] - 3.0 * p[1] + 0.5 * p[2];
        let square: fn([f64; 3]) -> f64 = |p| p[0] * p[0] - 2.0 * p[0] * p[1] + 3.0 * p[1] * p[1] + p[2] * p[2];
        let kappa = 2.5;
        let mut cases = vec![(linear, 0.0)];
        if mesh.cell().order() == 2 {
            // the sum of second derivatives
            cases.push((square, -kappa * (2.0 + 6.0 + if is_flat { 0.0 } else { 2.0 })));
        }
        for (u, source) in cases {
            let problem = Problem::new(&mesh, Physics::Diffusion { conductivity: vec![kappa] }).unwrap();
            let problem = all_around(problem, &mesh, 0, u).with_source(0, |_| source).unwrap();
            let x = solved(&problem.assemble().unwrap());
            for (x, &p) in x.iter().zip(mesh.points()) {
                assert!((x - u(p)).abs() < 1e-11, "{}: {x} at {p:?}", mesh.cell());
            }
        }
    }
}

#[test]
fn displacements_are_found_again() {
    for mesh in distorted() {
        let b = mesh.cell().dimensions();
        let parts: [fn([f64; 3]) -> f64; 3] =
            [|p| 0.1 + 0.2 * p[0] - 0.3 * p[1], |p| 0.4 * p[0] + 0.1 * p[1] - 0.2 * p[2], |p| 0.3 * p[1] + 0.5 * p[2]];
        let physics = Physics::Elasticity { young: vec![3.0], poisson: vec![0.3] };
        let mut problem = Problem::new(&mesh, physics).unwrap();
        for (component, part) in parts.into_iter().enumerate().take(b) {
            problem = all_around(problem, &mesh, component, part);
        }
        let system = problem.assemble().unwrap();
        let x = solved(&system);
        for (node, &p) in mesh.points().iter().enumerate() {
            for component in 0..b {
                let expected = parts[component](p);
                assert!((x[b * node + component] - expected).abs() < 1e-12, "{} at {p:?}", mesh.cell());
            }
        }
    }
}

/// A bar that is pulled: u = F x / E along it, and −ν F y / E across.
#[test]
fn a_bar_in_tension() {
    let (young, poisson, force) = (200.0, 0.25, 3.0);
    for mesh in distorted().into_iter().filter(|mesh| mesh.cell().dimensions() == 3) {
        let physics = Physics::Elasticity { young: vec![young], poisson: vec![poisson] };
        let flux = Condition::Flux { component: 0, value: Box::new(|_| force) };
        let problem = Problem::new(&mesh, physics).unwrap().with_condition("right", flux).unwrap();
        let sides = [("left", 0), ("front", 1), ("bottom", 2)];
        let held =
            sides.into_iter().try_fold(problem, |problem, (side, k)| problem.with_condition(side, value(k, |_| 0.0)));
        let x = solved(&held.unwrap().assemble().unwrap());
        for (node, p) in mesh.points().iter().enumerate() {
            let expected = [p[0], -poisson * p[1], -poisson * p[2]].map(|part| force / young * part);
            (0..3).for_each(|k| assert!((x[3 * node + k] - expected[k]).abs() < 1e-13, "{} at {p:?}", mesh.cell()));
        }
    }
}

/// A wall with heat from the left and a film of air on the right: u is linear.
#[test]
fn a_wall_with_a_film() {
    let (h, v, flux) = (4.0, -1.0, 2.0);
    for mesh in distorted() {
        let physics = Physics::Diffusion { conductivity: vec![0.5] };
        let problem = Problem::new(&mesh, physics)
            .unwrap()
            .with_condition("left", Condition::Flux { component: 0, value: Box::new(|_| flux) })
            .unwrap()
            .with_condition("right", Condition::Robin { component: 0, coefficient: h, outside: v })
            .unwrap();
        let x = solved(&problem.assemble().unwrap());
        for (x, p) in x.iter().zip(mesh.points()) {
            let expected = v + flux / h + flux / 0.5 * (1.0 - p[0]);
            assert!((x - expected).abs() < 1e-11, "{}: {x} at {p:?}", mesh.cell());
        }
    }
}

/// ‖u − x‖ over the mesh.
fn l2_error(mesh: &Mesh, x: &[f64], u: impl Fn([f64; 3]) -> f64) -> f64 {
    let cell = mesh.cell();
    let of_element = |element: usize| -> f64 {
        let nodes = mesh.element(element);
        let at = |point: &cell::Point| {
            let shapes = cell.shapes(point.corners);
            let sum = |f: &dyn Fn(usize) -> f64| nodes.iter().zip(shapes).map(|(&k, s)| s * f(k as usize)).sum::<f64>();
            let place = std::array::from_fn(|k| sum(&|node| mesh.points()[node][k]));
            Geometry::of(mesh, element, point).volume(cell, point) * (sum(&|node| x[node]) - u(place)).powi(2)
        };
        cell.points().iter().map(at).sum()
    };
    (0..mesh.len()).map(of_element).sum::<f64>().sqrt()
}

/// Half the size of elements, a quarter of the error, or an eighth.
#[test]
fn errors_fall_with_the_order() {
    use std::f64::consts::PI;
    for (dimensions, order, sizes) in [(2, 1, [8, 16]), (2, 2, [4, 8]), (3, 1, [6, 12]), (3, 2, [3, 6])] {
        let errors = sizes.map(|n| {
            let mesh = if dimensions == 2 { Mesh::unit_square([n, n]) } else { Mesh::unit_cube([n, n, n]) }.unwrap();
            let mesh = if order == 2 { mesh.second_order() } else { mesh };
            let wave = |p: [f64; 3]| p[..dimensions].iter().map(|x| (PI * x).sin()).product::<f64>();
            let mut problem = Problem::new(&mesh, Physics::Diffusion { conductivity: vec![1.0] }).unwrap();
            for side in mesh.side_names() {
                problem = problem.with_condition(side, value(0, |_| 0.0)).unwrap();
            }
            let problem = problem.with_source(0, |p| dimensions as f64 * PI * PI * wave(p)).unwrap();
            l2_error(&mesh, &solved(&problem.assemble().unwrap()), wave)
        });
        let rate = (errors[0] / errors[1]).log2();
        assert!((rate - (order + 1) as f64).abs() < 0.25, "order {order} in {dimensions}: {errors:?}");
    }
}

/// The unit square of 33 × 33 nodes between 0 and 48, by `cg` without a preconditioner to an absolute residual of 1e-6.
#[test]
fn a_square_between_plates() {
    let mesh = Mesh::unit_square([32, 32]).unwrap();
    let problem = Problem::new(&mesh, Physics::Diffusion { conductivity: vec![1.0] })
        .unwrap()
        .with_condition("left", value(0, |_| 0.0))
        .unwrap()
        .with_condition("right", value(0, |_| 48.0))
        .unwrap();
    let System { matrix, rhs } = problem.assemble().unwrap();
    let setup = Setup::default()
        .with_devices("host".parse().unwrap())
        .with_method(Method::Cg)
        .with_precond(crate::precond::Precond::None);
    let stop = Stop::default().with_rtol(0.0).with_atol(1e-6);
    let outcome = Solver::new(matrix, &setup).unwrap().solve(&rhs, None, &stop, Control::default()).unwrap();
    assert!(outcome.reason.converged() && (110..=114).contains(&outcome.iterations), "{}", outcome.iterations);
    assert!(outcome.x.iter().zip(mesh.points()).all(|(u, p)| (u - 48.0 * p[0]).abs() < 2e-7));
}

#[test]
fn matrices_are_symmetric_and_volumes_right() {
    for mesh in distorted() {
        let cell = mesh.cell();
        let volume =
            |element| cell.points().iter().map(|p| Geometry::of(&mesh, element, p).volume(cell, p)).sum::<f64>();
        assert!(((0..mesh.len()).map(volume).sum::<f64>() - 1.0).abs() < 1e-13, "{cell}");
        let physics = Physics::Elasticity { young: vec![1.0], poisson: vec![0.2] };
        let System { matrix, .. } = Problem::new(&mesh, physics).unwrap().assemble().unwrap();
        for i in 0..matrix.n_rows() {
            let (cols, values) = matrix.row(i);
            for (&j, &a) in cols.iter().zip(values) {
                let other = matrix.get(j as usize, i).unwrap();
                assert!((a - other).abs() < 1e-13, "{cell}: {i}, {j}");
            }
        }
    }
}

fn parts(nodes: &[u32], groups: usize) -> Parts {
    Parts { nodes: nodes.to_vec(), groups: vec![0; groups], names: vec!["all".into()] }
}

#[test]
fn what_is_no_mesh() {
    let corners = || vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let refused =
        |points, elements, boundary| Mesh::new(Cell::Triangle3, points, elements, boundary).unwrap_err().to_string();
    let none = Parts::default;
    let cases = [
        (refused(corners(), parts(&[0, 2, 1], 1), none()), "element 1 is inverted"),
        (
            refused(vec![[0.0; 3], [1.0, 1.0, 0.0], [2.0, 2.0, 0.0]], parts(&[0, 1, 2], 1), none()),
            "element 1 has no volume",
        ),
        (refused(corners(), parts(&[0, 1, 3], 1), none()), "element 1: node 4 is not there"),
        (refused(corners(), parts(&[0, 1, 1], 1), none()), "element 1 has node 2 twice"),
        (refused(corners(), parts(&[0, 1, 2, 0], 1), none()), "4 nodes are not 3 for each of 1 elements"),
        (
            refused([corners(), vec![[2.0, 0.0, 0.0]]].concat(), parts(&[0, 1, 2], 1), none()),
            "node 4 belongs to no element",
        ),
        (
            refused(corners(), Parts { names: vec![], ..parts(&[0, 1, 2], 1) }, none()),
            "element 1 is in group 1, which has no name",
        ),
        (refused(corners(), parts(&[0, 1, 2], 1), parts(&[0, 7], 1)), "boundary part 1: node 8"),
        (refused(vec![[f64::NAN, 0.0, 0.0]; 3], parts(&[0, 1, 2], 1), none()), "node 1: its coordinates"),
        (refused(vec![[0.0, 0.0, 1.0]; 3], parts(&[0, 1, 2], 1), none()), "node 1: z = 1"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}");
    }
    assert!(Mesh::unit_square([0, 3]).is_err() && Mesh::unit_cube([1 << 12, 1 << 12, 1 << 12]).is_err());
}

#[test]
fn what_is_no_problem() {
    let mesh = Mesh::unit_square([2, 2]).unwrap();
    let diffusion = |conductivity| Problem::new(&mesh, Physics::Diffusion { conductivity });
    let message = |problem: crate::Result<Problem<'_>>| problem.err().unwrap().to_string();
    assert!(message(diffusion(vec![])).contains("0 values of conductivity for 1 regions: square"));
    assert!(message(diffusion(vec![-1.0])).contains("conductivity = -1 of region square"));
    let physics = Physics::Elasticity { young: vec![1.0], poisson: vec![0.5] };
    assert!(message(Problem::new(&mesh, physics)).contains("poisson = 0.5 of region square"));
    let good = || diffusion(vec![1.0]).unwrap();
    assert!(message(good().with_condition("lid", value(0, |_| 0.0))).contains("no side 'lid'; it has: left, right"));
    assert!(message(good().with_condition("left", value(1, |_| 0.0))).contains("component 1"));
    assert!(message(good().with_source(1, |_| 0.0)).contains("component 1"));
    let robin = Condition::Robin { component: 0, coefficient: -1.0, outside: 0.0 };
    assert!(message(good().with_condition("top", robin)).contains("h = -1"));
    let infinite = good().with_source(0, |_| f64::INFINITY).unwrap().assemble();
    assert!(matches!(infinite, Err(crate::Error::NotFinite { .. })));
}
