//! L U over the order of the matrix, by tiles of the product, and by columns of a block.

use super::{HOST, Panel, Run, Study, rising};
use crate::dense::{Blocks, Element, Factor, Kind};
use crate::device::{Context, Info};
use crate::error::Result;
use crate::experiments::blas;
use crate::kernels::Shape;
use crate::kernels::gemm::Tiles;
use crate::real::{Precision, Real};
use crate::tune::products;

/// Columns of a block where tiles are compared.
const COLUMNS: usize = 128;
/// Columns of a block that are compared.
const BLOCKS: [usize; 4] = [32, 64, 128, 256];
/// Tiles that are compared beside the tuned ones and those of single elements.
const OTHERS: usize = 3;

/// 10⁹ multiplications and additions a second of L U, without transfers: the best of some runs. Two panels for each device: one
/// with several tiles of the product, and one with blocks of several numbers of columns and the tuned tiles; beside them the host's own.
/// On GPUs there are also tiles with an element for each work-item.
#[must_use]
pub fn lu(devices: &[Info], orders: &[usize], run: Run<'_>) -> Study {
    match run.precision {
        Precision::F64 => study::<f64>(devices, orders, run),
        _ => study::<f32>(devices, orders, run),
    }
}

fn study<T: Element + Real>(devices: &[Info], orders: &[usize], run: Run<'_>) -> Study {
    let mut study = Study::new();
    let orders = rising(orders);
    let new = |device: String, title: &str| Panel {
        device,
        title: title.into(),
        x: "order",
        y: "GFLOP/s",
        at: orders.clone(),
        series: Vec::new(),
    };
    let mut host = new(HOST.into(), "LU");
    time::<T>(&mut study, &mut host, HOST, None, COLUMNS.into(), run);
    for device in devices {
        let tiles = study.found(&format!("LU on {}", device.label()), tiles::<T>(device));
        let Some(tiles) = tiles else { continue };
        let mut by_tiles = new(device.label(), "tiles/items of the product, blocks of 128 columns");
        for (name, tiles) in tiles {
            let blocks = Blocks { tiles: Some(tiles), ..COLUMNS.into() };
            time::<T>(&mut study, &mut by_tiles, &name, Some(device), blocks, run);
        }
        let mut by_columns = new(device.label(), "columns of a block, tuned tiles");
        for columns in BLOCKS {
            time::<T>(&mut study, &mut by_columns, &columns.to_string(), Some(device), columns.into(), run);
        }
        for mut panel in [by_tiles, by_columns] {
            panel.series.extend(host.series.iter().cloned());
            study.panels.extend(panel.tidied());
        }
    }
    if devices.is_empty() {
        study.panels.extend(host.tidied());
    }
    study
}

/// Tiles and their names.
fn tiles<T: Real>(device: &Info) -> Result<Vec<(String, Tiles)>> {
    let (ctx, shape) = (Context::open(device)?, Shape::of(device));
    let tuned = products::tiles::<T>(&ctx);
    let mut all = Vec::new();
    if shape == Shape::Gpu {
        let plain = [8, 16, 32].map(Tiles::of_single_elements).into_iter().filter(|tiles| tiles.fits::<T>(&ctx));
        all.extend(plain.map(|tiles| (name(&tiles), tiles)));
    }
    all.push((format!("tuned {}", name(&tuned)), tuned));
    let mut others: Vec<Tiles> = Vec::new();
    let is_other = |tiles: &Tiles| !tiles.mma && name(tiles) != name(&tuned);
    for tiles in Tiles::candidates::<T>(&ctx, shape).into_iter().filter(is_other) {
        if others.iter().all(|other| other.tile != tiles.tile) {
            others.push(tiles);
        }
    }
    all.extend(others.into_iter().take(OTHERS).map(|tiles| (name(&tiles), tiles)));
    Ok(all)
}

/// The tile of a group, and what a work-item has of it.
fn name(tiles: &Tiles) -> String {
    let Tiles { tile, item, mma, .. } = tiles;
    format!("{}x{}/{}x{}{}", tile[0], tile[1], item[0], item[1], if *mma { " mma" } else { "" })
}

/// Times the factorisation of each order on a device, or on the host.
fn time<T: Element + Real>(
    study: &mut Study,
    panel: &mut Panel,
    name: &str,
    device: Option<&Info>,
    blocks: Blocks,
    run: Run<'_>,
) {
    let on = device.map_or_else(|| HOST.into(), Info::label);
    for place in 0..panel.at.len() {
        let n = panel.at[place];
        let what = format!("LU of order {n} on {on}, {name}");
        (run.progress)(&what);
        let found = study.found(&what, factorised::<T>(device, n, blocks, run.repeat));
        if let Some((seconds, error)) = found
            && study.is_right(&what, error, 100.0 * n as f64 * run.precision.epsilon())
        {
            let flops = 2.0 / 3.0 * (n as f64).powi(3);
            panel.series(name, device.is_none()).values[place] = Some(1e-9 * flops / seconds);
        }
    }
}

/// The seconds of the fastest factorisation, and the backward error of a solve by it.
fn factorised<T: Element + Real>(device: Option<&Info>, n: usize, blocks: Blocks, repeat: usize) -> Result<(f64, f64)> {
    let a = blas::matrix::<T>(Kind::Lu, n)?;
    let b: Vec<T> = (0..n).map(|k| T::from_f64((k % 17) as f64 - 8.0)).collect();
    let devices: Vec<Info> = device.into_iter().cloned().collect();
    let (mut best, mut error) = (f64::INFINITY, 0.0);
    for run in 0..=repeat {
        let mut factor = Factor::on(a.clone(), Kind::Lu, &devices, blocks)?;
        if run > 0 {
            best = factor.times().factorise.min(best);
            continue;
        }
        // drivers compile and allocate late, so that the first is looked at, and not timed
        let mut x = b.clone();
        factor.solve(&mut x)?;
        error = blas::backward_error(&a, &b, &x);
    }
    Ok((best, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn tiny_orders() {
        let device = list().devices.remove(0);
        let study = lu(std::slice::from_ref(&device), &[40, 7], Run::new(Precision::F32, 1, &|_| {}));
        assert_eq!((study.failure, &study.notes[..]), (None, &[][..]));
        let [tiles, columns] = &study.panels[..] else { panic!("{study:?}") };
        for panel in [tiles, columns] {
            assert_eq!((&panel.at[..], &panel.device, panel.y), (&[7, 40][..], &device.label(), "GFLOP/s"));
            assert!(panel.series.iter().all(|series| series.values.iter().all(|value| value.unwrap() > 0.0)));
            assert_eq!(panel.series.iter().filter(|series| series.is_host).count(), 1);
        }
        let names = |panel: &Panel| panel.series.iter().map(|series| series.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(columns), ["32", "64", "128", "256", HOST]);
        let names = names(tiles);
        let tuned = names.iter().filter(|name| name.starts_with("tuned ")).count();
        assert!(tuned == 1 && names.len() >= 4 && names.last().unwrap() == HOST, "{names:?}");
    }

    #[test]
    fn the_host_alone() {
        let study = lu(&[], &[9], Run::new(Precision::F64, 1, &|_| {}));
        let [panel] = &study.panels[..] else { panic!("{study:?}") };
        assert!(panel.series[0].is_host && panel.series[0].values[0].unwrap() > 0.0);
    }
}
