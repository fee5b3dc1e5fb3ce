//! The fastest method of a device for batches of about this size, as it was measured.

use super::solver::Method;
use super::systems::Shape;
use crate::device::Info;
use crate::kernels::tridiagonal::SOURCES;
use crate::real::Real;
use crate::tune::store::{Device, Store, TridiagonalEntry, TridiagonalKey, source_hash};

/// What was found in a former run, if anything was.
pub(super) fn fastest<T: Real>(store: &Store, device: &Info, shape: Shape) -> Option<Method> {
    let known = store.load(&Device::from(device));
    known.tridiagonal(&key::<T>(device, shape))?.method.parse().ok()
}

/// Keeps it for later solvers.
pub(crate) fn keep<T: Real>(store: &Store, device: &Info, shape: Shape, method: Method, seconds: f64) {
    let entry = TridiagonalEntry::new(key::<T>(device, shape), method.name(), seconds);
    store.insert_tridiagonal(&Device::from(device), entry);
}

fn key<T: Real>(device: &Info, shape: Shape) -> TridiagonalKey {
    TridiagonalKey {
        element: T::CL_NAME.into(),
        driver: device.driver.clone(),
        sources: source_hash(SOURCES),
        layout: shape.layout.name().into(),
        systems: shape.systems.max(1).ilog2(),
        size: shape.size.max(1).ilog2(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::tridiagonal::Layout;

    #[test]
    fn methods_are_kept_by_size() {
        let dir = tempfile::tempdir().unwrap();
        let (store, device) = (Store::at(dir.path()), list().devices.remove(0));
        let shape = Shape::new(1000, 70);
        assert_eq!(fastest::<f64>(&store, &device, shape), None);
        keep::<f64>(&store, &device, shape, Method::ParallelCyclicReduction, 1e-3);
        let of = |shape| fastest::<f64>(&store, &device, shape);
        assert_eq!(of(Shape::new(512, 127)), Some(Method::ParallelCyclicReduction));
        let others = [Shape::new(1024, 70), Shape::new(1000, 128), shape.with_layout(Layout::Interleaved)];
        assert!(others.into_iter().all(|other| of(other).is_none()));
        assert_eq!(fastest::<f32>(&store, &device, shape), None);
        // a later measurement takes its place
        keep::<f64>(&store, &device, shape, Method::Thomas, 1e-4);
        assert_eq!(of(shape), Some(Method::Thomas));
    }
}
