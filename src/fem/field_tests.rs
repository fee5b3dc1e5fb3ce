//! What solutions say, and the capacitor.

use super::tests::{all_around, distorted, solved, value};
use super::*;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a:e} for {b:e}");
}

fn middle(mesh: &Mesh, element: usize) -> [f64; 3] {
    let corners = &mesh.element(element)[..mesh.cell().corners()];
    std::array::from_fn(|x| {
        corners.iter().map(|&node| mesh.points()[node as usize][x]).sum::<f64>() / corners.len() as f64
    })
}

fn diffusion(mesh: &Mesh, conductivity: f64) -> Problem<'_> {
    Problem::new(mesh, Physics::Diffusion { conductivity: vec![conductivity] }).unwrap()
}

#[test]
fn gradients_of_polynomials() {
    for mesh in distorted() {
        let d = mesh.cell().dimensions();
        let problem = diffusion(&mesh, 2.0);
        let linear: Vec<f64> = mesh.points().iter().map(|p| 1.0 + 2.0 * p[0] - 3.0 * p[1] + 0.5 * p[2]).collect();
        let gradients = problem.gradients(&linear);
        let fluxes = problem.fluxes(&gradients).unwrap();
        let expected = [2.0, -3.0, if d == 3 { 0.5 } else { 0.0 }];
        for (gradient, flux) in gradients.iter().zip(fluxes) {
            (0..3).for_each(|x| close(gradient[0][x], expected[x], 1e-12));
            (0..3).for_each(|x| close(flux[x], -2.0 * expected[x], 1e-12));
        }
        let energy = expected.iter().map(|g| g * g).sum::<f64>();
        close(problem.energy(&linear), energy, 1e-12);
        assert!(problem.stresses(&gradients).is_none());
        if mesh.cell().order() == 2 {
            // linear in an element, so that its mean is that in the middle
            let square: Vec<f64> = mesh.points().iter().map(|p| p[0] * p[0] - 2.0 * p[0] * p[1]).collect();
            for (element, gradient) in problem.gradients(&square).iter().enumerate() {
                let [x, y, _] = middle(&mesh, element);
                close(gradient[0][0], 2.0 * x - 2.0 * y, 1e-12);
                close(gradient[0][1], -2.0 * x, 1e-12);
            }
        }
    }
}

#[test]
fn stresses_of_a_uniform_strain() {
    let (young, poisson) = (3.0, 0.25);
    let (lambda, mu) = (1.2, 1.2);
    for mesh in distorted() {
        let b = mesh.cell().dimensions();
        let problem = Problem::new(&mesh, Physics::Elasticity { young: vec![young], poisson: vec![poisson] }).unwrap();
        let motion = |p: &[f64; 3]| [0.1 * p[0] + 0.2 * p[1], -0.3 * p[1], 0.4 * p[2] + 0.6 * p[0]];
        let x: Vec<f64> = mesh.points().iter().flat_map(|p| motion(p).into_iter().take(b)).collect();
        let gradients = problem.gradients(&x);
        let zz = if b == 3 { 0.4 } else { 0.0 };
        let pressure = lambda * (0.1 - 0.3 + zz);
        let expected = [
            pressure + 2.0 * mu * 0.1,
            pressure - 2.0 * mu * 0.3,
            pressure + 2.0 * mu * zz,
            mu * 0.2,
            0.0,
            if b == 3 { mu * 0.6 } else { 0.0 },
        ];
        for stress in problem.stresses(&gradients).unwrap() {
            (0..6).for_each(|k| close(stress[k], expected[k], 1e-12));
        }
        assert!(problem.fluxes(&gradients).is_none());
    }
    close(von_mises(&[-7.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 7.0, 1e-14);
    close(von_mises(&[2.0, 2.0, 2.0, 0.0, 1.0, 0.0]), 3.0_f64.sqrt(), 1e-14);
}

/// Sources, fluxes, a film and known values: all that comes in goes out, and the residual is that of the matrix.
#[test]
fn what_comes_in_goes_out() {
    for mesh in distorted() {
        let film = Condition::Robin { component: 0, coefficient: 4.0, outside: -1.0 };
        let flux = Condition::Flux { component: 0, value: Box::new(|p| 1.0 + p[0]) };
        let problem = diffusion(&mesh, 0.5)
            .with_source(0, |p| p[0] + 2.0)
            .unwrap()
            .with_condition("right", film)
            .unwrap()
            .with_condition("top", flux)
            .unwrap()
            .with_condition("left", value(0, |p| p[1]))
            .unwrap()
            .with_condition("bottom", value(0, |_| 0.5))
            .unwrap();
        let system = problem.assemble().unwrap();
        let x = solved(&system);
        let residual = problem.residual(&x);
        // rows with more than a 1 on the diagonal are of unknowns that are not known
        let is_free = |row: usize| system.matrix.row(row).0.len() > 1;
        assert!((0..x.len()).filter(|&row| is_free(row)).all(|row| residual[row].abs() < 1e-12));
        let reactions = problem.reactions(&x);
        assert_eq!(reactions.iter().map(|r| r.side.as_str()).collect::<Vec<_>>(), ["left", "bottom"]);
        // through the film h (v − u): what is left of the residual where hardly anything is conducted
        let through_film: f64 = {
            let only_film = diffusion(&mesh, 1e-300)
                .with_condition("right", Condition::Robin { component: 0, coefficient: 4.0, outside: -1.0 })
                .unwrap();
            -only_film.residual(&x).iter().sum::<f64>()
        };
        let sources = 2.5 + 1.5;
        close(reactions.iter().map(|r| r.total).sum::<f64>() + sources + through_film, 0.0, 1e-11);
    }
}

#[test]
fn supports_bear_the_weight() {
    for mesh in distorted() {
        let (d, down) = (mesh.cell().dimensions(), mesh.cell().dimensions() - 1);
        let physics = Physics::Elasticity { young: vec![100.0], poisson: vec![0.3] };
        let mut problem = Problem::new(&mesh, physics).unwrap().with_source(down, |_| -2.0).unwrap();
        for k in 0..d {
            problem = problem.with_condition("bottom", value(k, |_| 0.0)).unwrap();
        }
        let push = Condition::Flux { component: 0, value: Box::new(|_| 0.25) };
        let problem = problem.with_condition("left", push).unwrap();
        let x = solved(&problem.assemble().unwrap());
        let reactions = problem.reactions(&x);
        assert_eq!(reactions.len(), d);
        for reaction in reactions {
            let expected = [-0.25, 0.0, 0.0];
            let expected = if reaction.component == down { 2.0 } else { expected[reaction.component] };
            close(reaction.total, expected, 1e-12);
        }
        // half the work of weight and push, as nothing else moves
        let work: f64 = problem.residual(&vec![0.0; x.len()]).iter().zip(&x).map(|(load, u)| -load * u).sum();
        close(problem.energy(&x), 0.5 * work, 1e-12);
    }
}

#[test]
fn values_at_places() {
    for mesh in distorted() {
        let d = mesh.cell().dimensions();
        let problem = diffusion(&mesh, 1.0);
        let x: Vec<f64> = mesh.points().iter().map(|p| 1.0 + 2.0 * p[0] - p[1] + 0.5 * p[2]).collect();
        for place in [[0.3, 0.4, 0.0], [0.0, 1.0, 0.0], [0.77, 0.21, if d == 3 { 0.9 } else { 0.0 }]] {
            let sample = problem.sample(&x, place).unwrap();
            close(sample.value[0], 1.0 + 2.0 * place[0] - place[1] + 0.5 * place[2], 1e-12);
            close(sample.gradient[0][1], -1.0, 1e-11);
        }
        assert!(problem.sample(&x, [1.1, 0.5, 0.0]).is_none());
        assert_eq!(problem.sample(&x, [0.5, 0.5, 0.1]).is_some(), d == 3);
    }
    // an edge that is bent outwards: u is not a polynomial of the place, but the values of nodes are found
    let bent = Mesh::unit_square([2, 2]).unwrap().second_order();
    let bent = bent.moved(|p| [p[0] * (1.0 + 0.3 * p[1] * (1.0 - p[1])), p[1], 0.0]).unwrap();
    let x: Vec<f64> = (0..bent.points().len()).map(|node| node as f64).collect();
    for (node, &place) in bent.points().iter().enumerate() {
        close(diffusion(&bent, 1.0).sample(&x, place).unwrap().value[0], node as f64, 1e-6);
    }
}

#[test]
fn facts_of_meshes() {
    let quality = Mesh::unit_square([4, 2]).unwrap().quality();
    assert_eq!((quality.bounds, quality.bandwidth), ([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]], 6));
    close(quality.volume, 1.0, 1e-14);
    // legs of ¼ and ½
    close(quality.worst_shape, 4.0 * 3.0_f64.sqrt() / 16.0 / (2.0 * 5.0 / 16.0), 1e-14);
    let corners = vec![[1.0, 1.0, 1.0], [-1.0, 1.0, -1.0], [1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]];
    let one = Parts { nodes: vec![0, 1, 2, 3], groups: vec![0], names: vec!["one".into()] };
    let regular = Mesh::new(Cell::Tetrahedron4, corners, one, Parts::default()).unwrap();
    close(regular.quality().mean_shape, 1.0, 1e-14);
    let scaled = regular.scaled(1e-3).unwrap();
    close(scaled.quality().volume, 8e-9 / 3.0, 1e-22);
    assert!([0.0, -1.0, f64::NAN, f64::INFINITY].iter().all(|factor| regular.scaled(*factor).is_err()));
}

#[test]
fn the_capacitor_is_what_it_should_be() {
    let inch = 0.0254;
    for across in [1, 2, 3, 4, 7] {
        let mesh = Mesh::capacitor(across).unwrap();
        let (volume, plate) = (mesh.quality().volume, 2.0 * inch * inch / 64.0);
        close(volume, 0.16 * 0.16 - 2.0 * plate, 1e-15);
        let length = |side: u32| -> f64 {
            let place = |node: u32| mesh.points()[node as usize];
            mesh.side(side).map(|edge| (0..2).map(|x| (place(edge[0])[x] - place(edge[1])[x]).abs()).sum::<f64>()).sum()
        };
        close(length(0), 4.0 * inch + inch / 32.0, 1e-15);
        close(length(1), length(0), 1e-15);
        close(length(2), 0.64, 1e-14);
        // Euler: a mesh with two holes
        let edges: usize = (0..3).map(|side| mesh.side(side).count()).sum();
        assert_eq!(mesh.len(), 2 * mesh.points().len() - edges + 2);
        conforming::check(&mesh, &mesh::Numbers::default()).unwrap();
    }
    let first = Mesh::capacitor(4).unwrap();
    assert_eq!((first.points().len(), first.len()), (9277, 18_080));
    assert!(Mesh::capacitor(0).is_err() && Mesh::capacitor(1001).is_err());
}

#[test]
fn the_field_of_the_capacitor() {
    let epsilon = 8.854_187_8e-12;
    let ideal = epsilon * 0.0508 / (0.0254 / 32.0);
    let capacitances = [1, 2, 4].map(|across| {
        let mesh = Mesh::capacitor(across).unwrap();
        let problem = diffusion(&mesh, epsilon)
            .with_condition("upper", value(0, |_| 48.0))
            .unwrap()
            .with_condition("lower", value(0, |_| 0.0))
            .unwrap();
        let x = solved(&problem.assemble().unwrap());
        let reactions = problem.reactions(&x);
        close(reactions[0].total + reactions[1].total, 0.0, 1e-10 * reactions[0].total);
        let field = problem.sample(&x, [1e-5, 1e-5, 0.0]).unwrap().gradient[0][1];
        close(field, 60.47e3, 0.02 * 60.47e3);
        // ½ C ΔV² is what is stored
        let capacitance = reactions[0].total / 48.0;
        close(problem.energy(&x), 0.5 * capacitance * 48.0 * 48.0, 1e-10 * problem.energy(&x));
        capacitance
    });
    let [first, second, third] = capacitances;
    assert!(first > second && second > third && third > ideal, "{capacitances:?}, {ideal}");
    assert!(second - third < 0.6 * (first - second), "{capacitances:?}");
}

#[test]
fn all_around_is_exact_at_the_sides() {
    for mesh in distorted() {
        let problem = all_around(diffusion(&mesh, 1.0), &mesh, 0, |p| p[0]);
        let x = solved(&problem.assemble().unwrap());
        let reactions = problem.reactions(&x);
        // u = x: what comes in is 1 on the right, and goes out on the left; edges count for one of their sides
        close(reactions.iter().map(|r| r.total).sum(), 0.0, 1e-12);
        assert_eq!(reactions.len(), mesh.side_names().len());
    }
}

#[cfg(feature = "picture")]
mod files {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// An array of a file, as bytes without their count.
    fn array(document: &roxmltree::Document<'_>, name: &str) -> Vec<u8> {
        let node = document.descendants().find(|node| node.attribute("Name") == Some(name)).unwrap();
        let bytes = STANDARD.decode(node.text().unwrap().trim()).unwrap();
        let (count, rest) = bytes.split_at(8);
        assert_eq!(u64::from_le_bytes(count.try_into().unwrap()), rest.len() as u64, "{name}");
        rest.to_vec()
    }

    fn reals(document: &roxmltree::Document<'_>, name: &str) -> Vec<f64> {
        let bytes = array(document, name);
        bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    }

    fn integers(document: &roxmltree::Document<'_>, name: &str) -> Vec<i64> {
        let bytes = array(document, name);
        bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
    }

    #[test]
    fn files_for_paraview() {
        for mesh in distorted() {
            let (b, n) = (mesh.cell().dimensions(), mesh.cell().nodes());
            let physics = Physics::Elasticity { young: vec![1.0], poisson: vec![0.0] };
            for problem in [Problem::new(&mesh, physics).unwrap(), diffusion(&mesh, 3.0)] {
                let x: Vec<f64> =
                    mesh.points().iter().flat_map(|p| p.map(|x| 0.5 * x)[..problem.unknowns()].to_vec()).collect();
                let mut file = Vec::new();
                problem.write_vtu(&mut file, &x).unwrap();
                let text = String::from_utf8(file).unwrap();
                let document = roxmltree::Document::parse(&text).unwrap();
                assert_eq!(reals(&document, "Points"), mesh.points().concat());
                let connectivity = integers(&document, "connectivity");
                assert_eq!(
                    integers(&document, "offsets"),
                    (1..=mesh.len()).map(|k| (k * n) as i64).collect::<Vec<_>>()
                );
                let own = &connectivity[..n];
                let expected: Vec<i64> = mesh.element(0).iter().map(|&node| node.into()).collect();
                assert_eq!(own[..n.min(8)], expected[..n.min(8)]);
                if n == 10 {
                    assert_eq!(own[8..], [expected[9], expected[8]]);
                }
                let kind = [(3, 5), (6, 22), (4, 10), (10, 24)].into_iter().find(|(nodes, _)| *nodes == n).unwrap().1;
                assert_eq!(array(&document, "types"), vec![kind; mesh.len()]);
                assert_eq!(integers(&document, "region"), vec![0; mesh.len()]);
                if problem.unknowns() == 1 {
                    assert_eq!(reals(&document, "u"), x);
                    assert!(reals(&document, "flux").chunks_exact(3).all(|flux| (flux[0] + 1.5).abs() < 1e-12));
                } else {
                    assert_eq!(reals(&document, "u").len(), 3 * mesh.points().len());
                    assert_eq!(reals(&document, "gradient").len(), 9 * mesh.len());
                    let stress = reals(&document, "stress");
                    let zz = if b == 3 { 0.5 } else { 0.0 };
                    assert!(stress.chunks_exact(6).all(|s| (s[0] - 0.5).abs() < 1e-12 && (s[2] - zz).abs() < 1e-12));
                    let expected = if b == 3 { 0.0 } else { 0.5 };
                    assert!(reals(&document, "von_mises").iter().all(|v| (v - expected).abs() < 1e-7));
                }
            }
        }
    }

    #[test]
    fn names_that_comments_cannot_have() {
        let corners = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
        let one = Parts { nodes: vec![0, 1, 2], groups: vec![0], names: vec!["-->\u{1} <x".into()] };
        let mesh = Mesh::new(Cell::Triangle3, corners, one, Parts::default()).unwrap();
        let mut file = Vec::new();
        diffusion(&mesh, 1.0).write_vtu(&mut file, &[0.0; 3]).unwrap();
        assert!(roxmltree::Document::parse(&String::from_utf8(file).unwrap()).is_ok());
    }

    fn pixels(picture: &Picture) -> (usize, usize, Vec<[u8; 3]>) {
        let mut file = Vec::new();
        picture.write_png(&mut file).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let all = bytes.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect();
        (info.width as usize, info.height as usize, all)
    }

    #[test]
    fn pictures_in_the_plane() {
        let square = Mesh::unit_square([3, 2]).unwrap();
        for mesh in [square.second_order(), square] {
            let problem = diffusion(&mesh, 1.0);
            let x: Vec<f64> = mesh.points().iter().map(|p| p[1]).collect();
            let picture = problem.picture(&x, None).unwrap();
            let (width, height, all) = pixels(&picture);
            assert_eq!((width, height), (1000, 1000));
            // violet below, yellow above, and no white: all is covered
            assert!(all.iter().all(|pixel| *pixel != [255; 3]));
            assert!(
                all[999 * 1000][2] > 80 && all[999 * 1000][0] < 75 && all[0][0] > 240,
                "{:?} {:?}",
                all[999_000],
                all[0]
            );
            let [least, most] = picture.range();
            assert!((0.0..0.001).contains(&least) && (0.999..1.0).contains(&most));
            // 0 in the middle, a window that goes beyond the mesh
            let x: Vec<f64> = mesh.points().iter().map(|p| p[0] - 0.25).collect();
            let picture = problem.picture(&x, Some([[0.0, 0.5], [2.0, 1.5]])).unwrap();
            let (width, height, all) = pixels(&picture);
            assert_eq!((width, height), (1000, 500));
            assert!(all[0] == [255; 3] && all[499 * 1000 + 999] == [255; 3]);
            assert!(all[499 * 1000][2] > all[499 * 1000][0] && all[499 * 1000 + 498][0] > all[499 * 1000 + 498][2]);
            close(picture.range()[0], -picture.range()[1], 0.0);
            assert!(problem.picture(&x, Some([[0.0, 0.5], [0.0, 1.5]])).is_err());
            let same = problem.picture(&vec![2.0; x.len()], None).unwrap();
            assert_eq!(pixels(&same).2[0], [33, 145, 140]);
        }
        let cube = Mesh::unit_cube([1, 1, 1]).unwrap();
        let error = diffusion(&cube, 1.0).picture(&[0.0; 8], None).unwrap_err().to_string();
        assert!(error.contains("in the plane"), "{error}");
    }
}
