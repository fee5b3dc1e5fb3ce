//! Whole simulations: against published figures, laws of physics, and each other.

use std::ops::Range;
use std::sync::Arc;

use super::backend::Backend;
use super::host::Host;
use super::opencl::OpenCl;
use super::ranks::Rank;
use super::slab::Slab;
use super::team::{Ranks, Team};
use super::*;
use crate::device::{Context, list};
use crate::kernels::fdtd::FdtdKernels;
use crate::real::Real;

/// Empty space as the regression has it.
const SPACE: Vacuum = Vacuum { epsilon: 8.854e-12, mu: 4e-7 * std::f64::consts::PI };

fn on_host(problem: Problem) -> Simulation {
    Simulation::new(problem, &Options::default().with_devices("host".parse().unwrap())).unwrap()
}

fn source(component: Component, at: &[usize], hard: bool, waveform: Waveform) -> Source {
    Source { component, from: at.into(), to: at.into(), hard, waveform }
}

/// 150 × 150 cells of vacuum with a hard source in the middle, at half of Δ / v: the problem of which the figures are.
fn published() -> Problem {
    let grid = Grid::new(Mode::Te, &[150, 150], &[0.01, 0.01]).unwrap();
    let mut problem = Problem::new(grid, SPACE, vec![Material::vacuum("vacuum")]).unwrap();
    problem.set_time_step(TimeStep::Courant(0.5_f64.sqrt())).unwrap();
    let duration = 40.0 * problem.time_step();
    let waveform = Waveform::SmoothPulse { amplitude: 1.0, duration };
    problem.add_source(source(Component::Hz, &[75, 75], true, waveform)).unwrap();
    problem
}

#[test]
fn published_figures() {
    // n, max |Hz|, Hz(95, 75), Hz(95, 95), ‖Hz‖₂, W
    let table = [
        [20.0, 1.000000000, 0.0, 0.0, 2.267432576, 1.757470920e-9],
        [40.0, 2.460676874e-1, 6.372027280e-5, 0.0, 4.252914970, 4.984266134e-9],
        [60.0, 1.746580432e-1, 1.651726405e-1, 2.920123663e-4, 4.508632982, 4.987630925e-9],
        [80.0, 1.429921420e-1, 3.519020386e-2, 1.359136909e-1, 4.629760949, 4.988539778e-9],
        [100.0, 1.240907103e-1, 1.995544695e-2, 2.751578381e-2, 4.706264233, 4.988948314e-9],
        [150.0, 9.770505061e-2, 9.631935827e-3, 1.104807107e-2, 4.820842474, 4.989371510e-9],
        [200.0, 1.645513700e-1, 6.219226766e-3, 6.895579036e-3, 5.849538405, 4.988059040e-9],
    ];
    let mut simulation = on_host(published());
    for [n, most, right, diagonal, norm, energy] in table {
        simulation.advance(n as u64 - simulation.step()).unwrap();
        let [hz, ex, ey] = [Component::Hz, Component::Ex, Component::Ey].map(|c| simulation.field(c).unwrap());
        let squares = |field: &[f64]| field.iter().map(|v| v * v).sum::<f64>();
        let w = 0.5e-4 * (SPACE.mu * squares(&hz) + SPACE.epsilon * (squares(&ex) + squares(&ey)));
        let found = [
            hz.iter().fold(0.0, |most: f64, v| most.max(v.abs())),
            hz[95 + 150 * 75],
            hz[95 + 150 * 95],
            squares(&hz).sqrt(),
            w,
        ];
        for (found, expected) in found.into_iter().zip([most, right, diagonal, norm, energy]) {
            // ten figures are printed; what is 0 there may be 1e-12 here
            assert!((found - expected).abs() <= 1e-9 * expected.abs() + 1e-13, "n = {n}: {found:e} for {expected:e}");
        }
    }
}

/// Some of everything that a problem may have.
fn crowded(mode: Mode, cells: &[usize], pml: bool) -> Problem {
    let step: Vec<f64> = [0.01, 0.012, 0.009].into_iter().take(cells.len()).collect();
    let grid = Grid::new(mode, cells, &step).unwrap();
    let lossy = Material { sigma: 0.02, sigma_star: 300.0, mu: 1.5, ..Material::dielectric("wet", 4.0) };
    let materials =
        vec![Material::vacuum("air"), Material::dielectric("glass", 2.25), lossy, Material::conductor("metal")];
    let mut problem = Problem::new(grid, Vacuum::default(), materials).unwrap();
    for (k, material) in problem.index.iter_mut().enumerate() {
        *material = [0, 0, 1, 0, 2, 0, 0, 3, 0, 1, 2][(k * k + k / 3) % 11];
    }
    if pml {
        let layers = [0, 1, 2].map(|axis| {
            let n = cells.get(axis).copied().unwrap_or(0);
            [(n / 4).min(3), (n / 3).min(2)]
        });
        problem.set_pml(Pml { layers, growth: Growth { kappa: 3.0, alpha: 0.05, ..Growth::default() } }).unwrap();
    }
    let middle: Vec<usize> = cells.iter().map(|n| n / 2).collect();
    let gaussian = Waveform::Gaussian { amplitude: 1.0, delay: 6e-11, width: 3e-11 };
    for &component in mode.components() {
        let walls = problem.grid.walls(component);
        let is_wall = middle.iter().zip(walls).any(|(at, is_wall)| is_wall && *at == 0);
        if !is_wall {
            problem.add_source(source(component, &middle, component == Component::Ez, gaussian)).unwrap();
        }
        let probe = Probe { name: component.name().into(), component, at: middle.clone() };
        problem.add_probe(probe).unwrap();
    }
    // a whole box of magnetic sources, over all ranks
    let component = mode.components().iter().copied().find(|c| !c.is_electric()).unwrap();
    let from = vec![0; cells.len()];
    let to = cells.iter().map(|n| n - 1).collect();
    problem.add_source(Source { component, from, to, hard: false, waveform: gaussian }).unwrap();
    problem
}

/// Fields, layers and probes after some steps, by ranks with these planes.
fn run<T: Real>(
    problem: &Problem,
    slabs: &[Range<usize>],
    open: &dyn Fn(usize, Slab) -> Box<dyn Backend<T>>,
    steps: usize,
) -> State {
    let grid = problem.grid;
    let rank = |(k, planes): (usize, &Range<usize>)| Rank::new(open(k, Slab { grid, planes: planes.clone() }), problem);
    let mut team = Ranks { ranks: slabs.iter().enumerate().map(rank).collect(), grid };
    let mut seen = vec![Vec::new(); problem.probes.len()];
    for (begin, count) in [(1, steps / 3), (1 + steps / 3, steps - steps / 3)] {
        let some = team.advance(problem, begin as u64, count).unwrap();
        seen.iter_mut().zip(some).for_each(|(all, some)| all.extend(some));
    }
    let fields = grid.mode().components().iter().map(|&c| team.field(c).unwrap()).collect();
    State { identity: problem.identity(), step: steps as u64, fields, layers: team.layers().unwrap(), seen }
}

fn host<T: Real>(problem: &Problem) -> impl Fn(usize, Slab) -> Box<dyn Backend<T>> {
    |_, slab| Box::new(Host::new(problem, slab).unwrap())
}

/// Planes in so many ranks, some of which may have none.
fn parts(planes: usize, ranks: usize) -> Vec<Range<usize>> {
    (0..ranks).map(|rank| planes * rank / ranks..planes * (rank + 1) / ranks).collect()
}

fn bits(state: &State) -> Vec<u64> {
    let layers = state.layers.iter().map(|(_, psi)| psi);
    state.fields.iter().chain(layers).chain(&state.seen).flatten().map(|v| v.to_bits()).collect()
}

fn sizes(mode: Mode) -> &'static [&'static [usize]] {
    match mode {
        Mode::Full => &[&[1, 1, 1], &[2, 1, 3], &[1, 5, 2], &[7, 6, 9], &[17, 4, 5]],
        _ => &[&[1, 1], &[2, 1], &[1, 2], &[63, 5], &[64, 9], &[65, 7], &[13, 31]],
    }
}

#[test]
fn any_ranks_have_the_same_bits() {
    for &mode in Mode::ALL {
        for &cells in sizes(mode) {
            for pml in [false, true] {
                let problem = crowded(mode, cells, pml);
                let planes = *cells.last().unwrap();
                let whole = run::<f64>(&problem, &parts(planes, 1), &host(&problem), 30);
                let largest = whole.fields.iter().flatten().fold(0.0, |most: f64, v| most.max(v.abs()));
                assert!(largest.is_finite() && (largest > 1e-6 || cells.iter().product::<usize>() < 4), "{largest}");
                for ranks in [2, 3, 5] {
                    let parted = run::<f64>(&problem, &parts(planes, ranks), &host(&problem), 30);
                    assert_eq!(bits(&whole), bits(&parted), "{mode} {cells:?}, {ranks} ranks");
                }
                let mut uneven = vec![0..0, 0..planes.min(1), planes.min(1)..planes, planes..planes];
                uneven.insert(2, planes.min(1)..planes.min(1));
                assert_eq!(bits(&whole), bits(&run::<f64>(&problem, &uneven, &host(&problem), 30)), "{mode} {cells:?}");
            }
        }
    }
}

/// Kernels in groups of so many work-items against the host, on 1, 2, 3 and 5 ranks: all of them devices, or the one in the middle.
fn devices_agree<T: Real>(group_size: usize, mode: Mode) {
    // a context for each rank, as they are in threads of their own
    let device = list().devices.remove(0);
    let opened = || {
        let ctx = Context::open(&device).unwrap();
        let kernels = FdtdKernels::in_groups(&ctx, group_size, 3).unwrap();
        (Arc::new(ctx), Arc::new(kernels))
    };
    let devices: Vec<_> = (0..5).map(|_| opened()).collect();
    // whose queues are not for several threads at once
    let is_simulated = device.platform.contains("Oclgrind");
    for &cells in sizes(mode) {
        for pml in [false, true] {
            let problem = crowded(mode, cells, pml);
            let planes = *cells.last().unwrap();
            let steps = 9;
            let expected = run::<T>(&problem, &parts(planes, 1), &host(&problem), steps);
            let open = |k: usize, slab: Slab| -> Box<dyn Backend<T>> {
                Box::new(OpenCl::with(&problem, slab, devices[k].clone()).unwrap())
            };
            let all: &[usize] = if cells.iter().product::<usize>() > 300 { &[1, 2, 3, 5] } else { &[1, 3] };
            for &ranks in all {
                if ranks == 1 || !is_simulated {
                    let found = run::<T>(&problem, &parts(planes, ranks), &open, steps);
                    assert!(bits(&expected) == bits(&found), "{mode} {cells:?}, {ranks} ranks, layers: {pml}");
                }
                let mixed = |k: usize, slab: Slab| -> Box<dyn Backend<T>> {
                    if k == ranks / 2 { open(k, slab) } else { Box::new(Host::new(&problem, slab).unwrap()) }
                };
                let found = run::<T>(&problem, &parts(planes, ranks), &mixed, steps);
                assert!(
                    bits(&expected) == bits(&found),
                    "{mode} {cells:?}, {ranks} ranks with the host, layers: {pml}"
                );
            }
        }
    }
}

macro_rules! devices_agree {
    ($($name:ident: $type:ty, $group:literal, $mode:ident;)+) => {
        mod kernels {
            $(#[test] fn $name() { super::devices_agree::<$type>($group, super::Mode::$mode); })+
        }
    };
}

devices_agree! {
    te_cpu: f64, 1, Te;
    te_gpu: f64, 64, Te;
    te_single: f32, 64, Te;
    tm_cpu: f64, 1, Tm;
    tm_gpu: f64, 64, Tm;
    full_cpu: f64, 1, Full;
    full_gpu: f64, 64, Full;
    full_single: f32, 1, Full;
}

#[test]
fn a_closed_box_keeps_its_energy() {
    let cases: [(Mode, &[usize]); 3] = [(Mode::Te, &[40, 31]), (Mode::Tm, &[30, 41]), (Mode::Full, &[12, 15, 13])];
    for (mode, cells) in cases {
        let grid = Grid::new(mode, cells, &[0.01, 0.02, 0.015][..cells.len()]).unwrap();
        let materials = vec![
            Material::vacuum("air"),
            Material::dielectric("glass", 2.25),
            Material { mu: 3.0, ..Material::vacuum("iron") },
            Material::conductor("metal"),
        ];
        let mut problem = Problem::new(grid, Vacuum::default(), materials).unwrap();
        problem.index.iter_mut().enumerate().for_each(|(k, m)| *m = [0, 1, 2, 0, 0, 3, 0][k % 7 * (k / 50 % 2)]);
        let component = if mode == Mode::Te { Component::Hz } else { Component::Ez };
        let at: Vec<usize> = cells.iter().map(|n| n / 3).collect();
        let pulse = Waveform::SmoothPulse { amplitude: 1.0, duration: 25.0 * problem.time_step() };
        problem.add_source(source(component, &at, false, pulse)).unwrap();
        let mut simulation = on_host(problem);
        simulation.advance(30).unwrap();
        let before = simulation.energy().unwrap();
        assert!(before > 0.0);
        for _ in 0..5 {
            simulation.advance(200).unwrap();
            let now = simulation.energy().unwrap();
            assert!((now / before - 1.0).abs() < 1e-12, "{mode}: {now:e} after {before:e}");
        }
    }
}

/// The largest difference at a probe near a side between a small grid and one whose walls nothing comes back from.
fn reflected(mode: Mode, pml: bool) -> f64 {
    let (n, far) = (60, 200);
    let of = |cells: usize, pml: bool| {
        let grid = Grid::new(mode, &[cells, cells], &[0.01, 0.01]).unwrap();
        let mut problem = Problem::new(grid, Vacuum::default(), vec![Material::vacuum("air")]).unwrap();
        problem.set_time_step(TimeStep::Courant(0.5_f64.sqrt())).unwrap();
        if pml {
            problem.set_pml(Pml::all_around(&grid, 10)).unwrap();
        }
        let component = if mode == Mode::Te { Component::Hz } else { Component::Ez };
        let middle = cells / 2;
        let pulse = Waveform::SmoothPulse { amplitude: 1.0, duration: 40.0 * problem.time_step() };
        problem.add_source(source(component, &[middle, middle], false, pulse)).unwrap();
        let probe = Probe { name: "near".into(), component, at: vec![middle + n / 2 - 12, middle + 5] };
        problem.add_probe(probe).unwrap();
        let mut simulation = on_host(problem);
        simulation.advance(200).unwrap();
        simulation.seen()[0].clone()
    };
    let (small, large) = (of(n, pml), of(far, false));
    small.iter().zip(&large).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

#[test]
fn layers_reflect_a_thousandth_of_a_wall() {
    for mode in [Mode::Te, Mode::Tm] {
        let [wall, layers] = [false, true].map(|pml| reflected(mode, pml));
        println!("{mode}: {:.3e} of {wall:.3e}", layers / wall);
        assert!(layers < 1e-3 * wall, "{mode}: {layers:e} of {wall:e}");
    }
}

#[test]
fn layers_in_three_dimensions() {
    let of = |n: usize, pml: bool| {
        let grid = Grid::new(Mode::Full, &[n; 3], &[0.01; 3]).unwrap();
        let mut problem = Problem::new(grid, Vacuum::default(), vec![Material::vacuum("air")]).unwrap();
        if pml {
            problem.set_pml(Pml::all_around(&grid, 8)).unwrap();
        }
        let pulse = Waveform::SmoothPulse { amplitude: 1.0, duration: 30.0 * problem.time_step() };
        problem.add_source(source(Component::Ez, &[n / 2; 3], false, pulse)).unwrap();
        let at = vec![n / 2 + 4, n / 2 + 3, n / 2 + 1];
        problem.add_probe(Probe { name: "near".into(), component: Component::Ez, at }).unwrap();
        let mut simulation = on_host(problem);
        simulation.advance(80).unwrap();
        simulation.seen()[0].clone()
    };
    let most = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    let large = of(72, false);
    let [wall, layers] = [false, true].map(|pml| most(&of(30, pml), &large));
    println!("3d: {:.3e} of {wall:.3e}", layers / wall);
    assert!(layers < 1e-3 * wall, "{layers:e} of {wall:e}");
}

#[test]
fn on_from_a_state() {
    let problem = crowded(Mode::Te, &[33, 20], true);
    let mut whole = on_host(problem.clone());
    whole.advance(60).unwrap();
    let mut begun = on_host(problem.clone());
    begun.advance(25).unwrap();
    let mut bytes = Vec::new();
    begun.state().unwrap().write(&mut bytes).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let state = State::read(file.path()).unwrap();
    let options = Options::default().with_devices("host,host,host".parse().unwrap());
    let mut other = Simulation::new(problem.clone(), &options).unwrap();
    other.restore(&state).unwrap();
    other.advance(35).unwrap();
    assert_eq!(bits(&whole.state().unwrap()), bits(&other.state().unwrap()));
    let mut changed = problem;
    changed.index[0] ^= 1;
    assert!(on_host(changed).restore(&state).unwrap_err().to_string().contains("another problem"));
}

#[test]
fn devices_by_choice() {
    let seen = |devices: &str, shares: Option<&str>| {
        let mut options = Options::default().with_devices(devices.parse().unwrap());
        options.shares = shares.map(|shares| shares.parse().unwrap());
        let mut simulation = Simulation::new(crowded(Mode::Tm, &[20, 30], true), &options).unwrap();
        simulation.advance(300).unwrap();
        let planes: Vec<usize> = simulation.ranks().iter().map(|rank| rank.planes).collect();
        (bits(&simulation.state().unwrap()), planes)
    };
    let (expected, planes) = seen("host", None);
    assert_eq!(planes, [30]);
    for (devices, shares) in [("0", None), ("0,host", None), ("host,0,0", Some("1:0:2"))] {
        let (found, planes) = seen(devices, shares);
        assert_eq!((found == expected, planes.iter().sum::<usize>()), (true, 30), "{devices}");
    }
    let mixed = Options::default().with_precision(crate::solve::Precision::Mixed);
    assert!(Simulation::new(published(), &mixed).is_err());
}

#[test]
fn single_precision_follows_double() {
    let of = |precision| {
        let options = Options::default().with_devices("host".parse().unwrap()).with_precision(precision);
        let mut simulation = Simulation::new(published(), &options).unwrap();
        simulation.advance(100).unwrap();
        simulation.field(Component::Hz).unwrap()
    };
    let [double, single] = [crate::solve::Precision::F64, crate::solve::Precision::F32].map(of);
    let error = double.iter().zip(&single).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    assert!(error > 0.0 && error < 1e-6, "{error:e}");
}

#[test]
fn what_makes_no_problem() {
    let of = |problem: Result<(), crate::Error>| problem.unwrap_err().to_string();
    let mut problem = published();
    let limit = problem.largest_step();
    let text = of(problem.set_time_step(TimeStep::Seconds(1.01 * limit)));
    assert!(
        text.contains("largest stable step") && text.contains(&format!("{limit:e}")) && text.contains("courant = 0.99")
    );
    assert!(of(problem.set_time_step(TimeStep::Courant(1.5))).contains("limit of stability"));
    let pulse = Waveform::SmoothPulse { amplitude: 1.0, duration: 1.0 };
    assert!(of(problem.add_source(source(Component::Hz, &[150, 0], true, pulse))).contains("outside the grid"));
    assert!(of(problem.add_source(source(Component::Ex, &[3, 0], true, pulse))).contains("on the wall"));
    assert!(of(problem.add_source(source(Component::Ez, &[3, 3], true, pulse))).contains("mode te has no ez"));
    assert!(
        of(problem.add_probe(Probe { name: "a".into(), component: Component::Hz, at: vec![0, 151] })).contains("'a'")
    );
    let body = Shape::Ball { centre: vec![1.0, 1.0], radius: 1.0 };
    assert!(of(problem.paint(&body, "gold")).contains("no material 'gold'; there are: vacuum"));
    let grid = *problem.grid();
    assert!(of(problem.set_pml(Pml::all_around(&grid, 80))).contains("don't fit"));
    let negative = Material { sigma: -1.0, ..Material::vacuum("sink") };
    assert!(of(Problem::new(grid, SPACE, vec![negative]).map(|_| ())).contains("material 'sink': sigma is -1"));
}
