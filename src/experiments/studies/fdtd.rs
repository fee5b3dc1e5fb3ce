//! Finite differences in the time domain, over the side of the grid, in groups of several sizes.

use super::{HOST, Panel, Run, Study, rising};
use crate::device::{Choice, Info, Pick};
use crate::error::Result;
use crate::fdtd::{Component, Grid, Material, Mode, Options, Pml, Problem, Simulation, Source, Vacuum, Waveform};
use crate::kernels::{Shape, Tuning};
use crate::timing::timing;

/// Work-items of a group.
const GROUPS: [usize; 5] = [64, 128, 256, 512, 1024];
/// Cells of the absorbing layers on each side.
const LAYERS: usize = 25;
/// The side of a cell, in m.
const STEP: f64 = 0.01;
/// Seconds that a measurement takes at least.
const LEAST: f64 = 0.1;

/// Million cells a second that a step updates, of square grids with so many cells along a side in two dimensions, TE: between conducting
/// walls, and with absorbing layers of 25 cells in front of them. In both panels of each device there are groups of 64 to 1024 work-items, as far as it
/// takes them, on a processor also the usual groups of one; beside them the host's own threads. `least` seconds of steps make a measurement.
#[must_use]
pub fn fdtd(devices: &[Info], sides: &[usize], run: Run<'_>) -> Study {
    study(devices, sides, run, LEAST)
}

fn study(devices: &[Info], sides: &[usize], run: Run<'_>, least: f64) -> Study {
    let mut study = Study::new();
    let sides = rising(sides);
    let labels: Vec<String> =
        if devices.is_empty() { vec![HOST.into()] } else { devices.iter().map(Info::label).collect() };
    let both = [("walls", 0), ("absorbing layers of 25 cells", LAYERS)];
    let new = |device: &String| {
        both.map(|(title, _)| Panel {
            device: device.clone(),
            title: title.into(),
            x: "cells along a side",
            y: "million cells/s",
            at: sides.clone(),
            series: Vec::new(),
        })
    };
    let mut panels: Vec<[Panel; 2]> = labels.iter().map(new).collect();
    for (k, (title, layers)) in both.into_iter().enumerate() {
        for (place, &side) in sides.iter().enumerate() {
            if side < 2 * layers {
                study.notes.push(format!("{side} cells have no room for {title} on both sides."));
                continue;
            }
            let mut measure = |what: String, open: &dyn Fn() -> Result<Simulation>| {
                let what = format!("{side} x {side} cells, {title}, {what}");
                (run.progress)(&what);
                let cells = 1e-6 * (side as f64).powi(2);
                study
                    .found(&what, open().and_then(|simulation| seconds(simulation, run.repeat, least)))
                    .map(|s| cells / s)
            };
            for (device, panels) in devices.iter().zip(&mut panels) {
                for (name, group_size) in groups(device) {
                    let open = || Simulation::in_groups(problem(side, layers)?, device, run.precision, group_size);
                    let value = measure(format!("groups of {group_size} on {}", device.label()), &open);
                    panels[k].series(&name, false).values[place] = value;
                }
            }
            let options = Options::default().with_devices(Choice::List(vec![Pick::Host])).with_precision(run.precision);
            let value = measure("on the host".into(), &|| Simulation::new(problem(side, layers)?, &options));
            panels.iter_mut().for_each(|panels| panels[k].series(HOST, true).values[place] = value);
        }
    }
    study.panels.extend(panels.into_iter().flatten().filter_map(Panel::tidied));
    study
}

/// The sizes of groups that a device takes, and their names: the usual one is called so.
fn groups(device: &Info) -> Vec<(String, usize)> {
    let usual = Tuning::default_for(device, Shape::of(device)).launch("fdtd").group_size;
    let more = GROUPS.into_iter().filter(|&size| size <= device.max_work_group);
    let sizes = rising(&more.chain([usual]).collect::<Vec<_>>());
    sizes.into_iter().map(|size| (format!("{size}{}", if size == usual { " (usual)" } else { "" }), size)).collect()
}

/// A square in vacuum, with a source in the middle.
fn problem(side: usize, layers: usize) -> Result<Problem> {
    let grid = Grid::new(Mode::Te, &[side, side], &[STEP, STEP])?;
    let mut problem = Problem::new(grid, Vacuum::default(), vec![Material::vacuum("vacuum")])?;
    if layers > 0 {
        problem.set_pml(Pml::all_around(&grid, layers))?;
    }
    let middle = vec![side / 2, side / 2];
    let duration = 40.0 * problem.time_step();
    problem.add_source(Source {
        component: Component::Hz,
        from: middle.clone(),
        to: middle,
        hard: false,
        waveform: Waveform::SmoothPulse { amplitude: 1.0, duration },
    })?;
    Ok(problem)
}

/// The median time of a step, from measurements that take `least` seconds or more.
fn seconds(mut simulation: Simulation, repeat: usize, least: f64) -> Result<f64> {
    let mut timed = |steps: u64| -> Result<f64> {
        let before = simulation.stepping();
        simulation.advance(steps)?;
        Ok((simulation.stepping() - before).as_secs_f64())
    };
    timed(1)?; // drivers allocate late
    let (mut steps, mut first) = (1, timed(1)?);
    while first < least {
        steps = (steps as f64 * 1.2 * least / first.max(1e-9)).clamp(2.0 * steps as f64, 16.0 * steps as f64) as u64;
        first = timed(steps)?;
    }
    let more = (1..repeat).map(|_| timed(steps)).collect::<Result<Vec<f64>>>()?;
    let times = std::iter::once(first).chain(more).map(|time| time / steps as f64).collect();
    Ok(timing(times).median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::real::Precision;

    #[test]
    fn tiny_grids() {
        let device = list().devices.remove(0);
        let study = study(std::slice::from_ref(&device), &[60, 30], Run::new(Precision::F32, 2, &|_| {}), 1e-4);
        assert_eq!(study.failure, None, "{:?}", study.notes);
        assert_eq!(study.notes, ["30 cells have no room for absorbing layers of 25 cells on both sides."]);
        let [walls, layers] = &study.panels[..] else { panic!("{study:?}") };
        assert_eq!((&walls.at[..], &layers.at[..], &walls.device), (&[30, 60][..], &[60][..], &device.label()));
        for panel in [walls, layers] {
            let names: Vec<_> = panel.series.iter().map(|series| &*series.name).collect();
            assert!(names.contains(&"64") && names.iter().filter(|name| name.ends_with(" (usual)")).count() == 1);
            assert_eq!((names.last(), panel.series.len()), (Some(&HOST), groups(&device).len() + 1));
            assert!(panel.series.iter().all(|series| series.values.iter().all(|value| value.unwrap() > 0.0)));
        }
    }

    #[test]
    fn the_host_alone() {
        let study = study(&[], &[20], Run::new(Precision::F64, 1, &|_| {}), 1e-4);
        let [panel] = &study.panels[..] else { panic!("{study:?}") };
        assert!(panel.series.len() == 1 && panel.series[0].is_host && panel.series[0].values[0].unwrap() > 0.0);
    }

    #[test]
    fn groups_compute_the_same_fields() {
        let device = list().devices.remove(0);
        let field = |group_size| {
            let problem = problem(70, LAYERS).unwrap();
            let mut simulation = Simulation::in_groups(problem, &device, Precision::F64, group_size).unwrap();
            simulation.advance(30).unwrap();
            simulation.field(Component::Hz).unwrap()
        };
        let expected = field(1);
        assert!(expected[35 + 70 * 40] != 0.0 && field(64) == expected);
    }
}
