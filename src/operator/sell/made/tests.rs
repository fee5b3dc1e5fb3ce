//! Slices that a device has made, beside those of the host.

use std::sync::Arc;

use super::super::moved::{Mover, WORTHWHILE};
use super::super::tests::random_complex;
use super::*;
use crate::device::list;
use crate::matrix::equivalent::real_form;
use crate::matrix::{Csr, gallery};
use crate::partition::{row_ranges, split};

/// All that a block tells the kernels.
type Told = (Vec<u32>, Vec<(Range<usize>, Vec<u8>)>, Sets<SliceSet>, Vec<u32>, [u32; 2]);

fn told<T: Real>(ctx: &Context, (block, sets): (Arc<SellBlock<T>>, Sets<SliceSet>)) -> Told {
    fn read<V: crate::memory::Plain>(ctx: &Context, v: &DeviceVec<V>) -> Vec<V> {
        let mut all = vec![V::default(); v.len()];
        v.read(ctx, 0, &mut all).unwrap();
        all
    }
    let segment = |s: &crate::kernels::sell::SellSegment| (s.slices.clone(), read(ctx, &s.data));
    let segments = block.segments.iter().map(segment).collect();
    (read(ctx, &block.slices), segments, sets, read(ctx, &block.long_rows), [block.few, block.block])
}

fn context() -> Context {
    Context::open(&list().devices.remove(0)).unwrap()
}

fn build(spec: &str) -> Csr {
    spec.parse::<gallery::Spec>().unwrap().build().unwrap()
}

/// Values of one, two, four and eight bytes, a slice or a few of each.
fn of_all_widths(a: &Csr) -> Csr {
    let value = |row: usize| [3.0, -300.0, 1.5, 0.1, -0.0][row / 100 % 5];
    let values = (0..a.n_rows()).flat_map(|row| vec![value(row); a.row(row).0.len()]).collect();
    Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
}

fn matrices() -> Vec<(&'static str, Csr)> {
    let mut all: Vec<_> = ["random-spd:1500,seed=7", "elasticity3d:6", "dense-rows:3000", "band:2000,width=3"]
        .into_iter()
        .map(|spec| (spec, build(spec)))
        .collect();
    all.push(("complex numbers", real_form(&random_complex(700, 9)).unwrap()));
    all.push(("all widths", of_all_widths(&build("poisson2d:40x40"))));
    all.push(("a row", Csr::new(1, 1, vec![0, 1], vec![0], vec![0.1]).unwrap()));
    all.push(("no entries", Csr::new(70, 70, vec![0; 71], vec![], vec![]).unwrap()));
    all
}

#[test]
fn the_bytes_of_the_host() {
    type Shared<T> = Arc<Mutex<LayoutKernels<T>>>;
    fn of<T: Real>(ctx: &Context, kernels: &Shared<T>, name: &str, a: &Csr, factor: f64, ranks: usize) {
        for part in split(a, &row_ranges(a, ranks)) {
            let moved = Arc::new(Moved::by(kernels, ctx, &part, factor).unwrap());
            let on_device = SellOfMoved::plan(ctx, &part, factor, &moved).unwrap();
            let on_host = Sell::<T>::plan(&part, factor);
            let bytes = [Layout::bytes(&on_device), Layout::bytes(&on_host)];
            let both = [on_device.block(ctx).unwrap(), on_host.block(ctx).unwrap()].map(|block| told(ctx, block));
            assert!(both[0] == both[1] && bytes[0] == bytes[1], "{name}, {ranks} ranks, times {factor}");
        }
    }
    fn built<T: Real>(ctx: &Context) -> Shared<T> {
        Arc::new(Mutex::new(LayoutKernels::build(ctx).unwrap()))
    }
    let ctx = context();
    let (double, in_single) = (built(&ctx), built(&ctx));
    for (name, a) in matrices() {
        for (factor, ranks) in [(1.0, 1), (0.125, 3), (4.0, 5)] {
            of::<f64>(&ctx, &double, name, &a, factor, ranks);
            // numbers in single precision, as what becomes one by rounding may be narrow there only
            let rounded = a.values().iter().map(|v| f64::from(*v as f32)).collect();
            let single = Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), rounded).unwrap();
            of::<f32>(&ctx, &in_single, name, &single, factor, ranks);
        }
    }
}

#[test]
fn several_segments() {
    let mut ctx = context();
    let a = build("random-spd:1500,seed=7");
    let part = split(&a, std::slice::from_ref(&(0..1500))).remove(0);
    let moved = Arc::new(Moved::<f64>::new(&ctx, &part, 1.0).unwrap());
    ctx.max_band_bytes = 20_000;
    let on_device = SellOfMoved::plan(&ctx, &part, 1.0, &moved).unwrap();
    let both = [on_device.block(&ctx).unwrap(), Sell::<f64>::plan(&part, 1.0).block(&ctx).unwrap()];
    let [device, host] = both.map(|block| told(&ctx, block));
    assert!(device.1.len() > 2 && device == host);
}

#[test]
fn other_values_take_their_places() {
    let ctx = context();
    for (name, a) in matrices() {
        let a = Arc::new(a);
        let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        let moved = Arc::new(Moved::<f64>::new(&ctx, &part, 0.5).unwrap());
        let layout = SellOfMoved::plan(&ctx, &part, 0.5, &moved).unwrap();
        let (block, sets) = layout.block(&ctx).unwrap();
        let places = layout.places(&ctx, Arc::clone(&block)).unwrap();
        let new = |values: Vec<f64>, factor| {
            let (rows, col_idx) = (0..a.n_rows(), a.col_idx().into());
            places.replace(&ctx, &NewValues::new(&a, rows, col_idx, Some(values), factor)).unwrap()
        };
        let others: Vec<f64> = a.values().iter().map(|v| -v + 0.0).collect();
        let is_same_kind = !name.contains("widths"); // 0 is narrower than −0
        assert!(new(others.clone(), 0.5), "{name}");
        if is_same_kind {
            let b =
                Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), others.clone()).unwrap();
            let part = split(&b, std::slice::from_ref(&(0..b.n_rows()))).remove(0);
            let on_host = Sell::<f64>::plan(&part, 0.5).block(&ctx).unwrap();
            assert!(told(&ctx, (block, sets)) == told(&ctx, on_host), "{name}");
        }
        assert!(!new(a.values().to_vec(), 0.25), "{name}");
        // and come back from there
        let CsrBlock { row_ptr, segments, .. } = places.compressed(&ctx).unwrap().unwrap();
        let mut back = (vec![9; a.n_rows() + 1], vec![9; a.nnz()], vec![9.0; a.nnz()]);
        row_ptr.read(&ctx, 0, &mut back.0).unwrap();
        segments[0].col_idx.read(&ctx, 0, &mut back.1).unwrap();
        segments[0].values.read(&ctx, 0, &mut back.2).unwrap();
        let halves: Vec<u64> = others.iter().map(|v| (0.5 * v).to_bits()).collect();
        assert!(back.0.iter().zip(a.row_ptr()).all(|(at, expected)| *at as usize == *expected), "{name}");
        assert!(back.1 == a.col_idx() && back.2.iter().map(|v| v.to_bits()).eq(halves), "{name}");
        // what is stored in a few bytes, or as a complex number
        let is_narrow = layout.sell.slices.iter().any(|slice| slice.value != Value::Real || slice.is_complex);
        let uneven = (0..a.nnz()).map(|k| 0.1 + k as f64).collect();
        assert!(a.nnz() == 0 || new(uneven, 0.5) != is_narrow, "{name}");
    }
}

#[test]
fn what_is_worth_moving() {
    let ctx = context();
    let of = |entries: usize, factor, room| {
        let (row_ptr, values) = ([0, entries], vec![1.0; entries]);
        let part = Part {
            rows: 0..1,
            row_ptr: &row_ptr,
            col_idx: vec![0; entries].into(),
            values: values.as_slice().into(),
            halo: crate::partition::HaloPlan::default(),
            of: None,
        };
        Mover::<f64>::new(&ctx, &part, factor, room).is_some()
    };
    assert!(of(WORTHWHILE, 0.5, u64::MAX) && !of(WORTHWHILE - 1, 0.5, u64::MAX));
    assert!(!of(WORTHWHILE, 0.3, u64::MAX) && !of(WORTHWHILE, 0.5, 30 * WORTHWHILE as u64));
}
