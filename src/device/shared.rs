//! One OpenCL context for several devices.

use std::collections::BTreeSet;
use std::ptr;
use std::sync::Arc;

use opencl3::context::Context as ClContext;
use opencl3::types::cl_device_id;

use super::Info;
use super::context::opening;
use crate::error::{Error, Result};

/// A context whose devices can copy from the arrays of each other. Each has queues and programs of its own in it; what is
/// large belongs to one of them, since a driver may move a whole array to the device that uses a part of it.
pub(crate) struct SharedContext {
    pub(super) context: Arc<ClContext>,
}

impl SharedContext {
    /// The context of these devices; `None` is the host.
    ///
    /// # Errors
    /// [`Error::Usage`] if they are not all devices of one platform, [`Error::OpenCl`] if the driver refuses.
    pub(crate) fn among(devices: &[Option<Info>]) -> Result<Self> {
        let Some(first) = devices.iter().flatten().next() else {
            return Err(Error::Usage("a shared context is one of OpenCL devices; the host is none".into()));
        };
        let stranger = devices.iter().find(|device| device.as_ref().map(|d| &d.platform) != Some(&first.platform));
        if let Some(stranger) = stranger {
            let stranger = stranger.as_ref().map_or_else(
                || "the host is none".into(),
                |device| {
                    format!("[{}] is of {}, [{}] of {}", first.index, first.platform, device.index, device.platform)
                },
            );
            return Err(Error::Usage(format!(
                "a shared context is one of devices of one platform, as a list such as devices = 0,1 can name them; \
                 {stranger}"
            )));
        }
        let ids: BTreeSet<usize> = devices.iter().flatten().map(|device| device.id).collect();
        let ids: Vec<cl_device_id> = ids.into_iter().map(|id| id as cl_device_id).collect();
        let context =
            ClContext::from_devices(&ids, &[], None, ptr::null_mut()).map_err(opening(first, "clCreateContext"))?;
        Ok(Self { context: Arc::new(context) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Context, DeviceVec, Queue, list};

    #[test]
    fn devices_copy_from_each_other() {
        let device = list().devices.remove(0);
        let shared = SharedContext::among(&[Some(device.clone()), Some(device.clone())]).unwrap();
        let [one, other] = [(); 2].map(|()| Context::open_in(&device, &shared).unwrap());
        let from = DeviceVec::from_slice(&one, &[1_u32, 2, 3, 4, 5], "five").unwrap();
        let mut to = DeviceVec::from_slice(&other, &[9_u32; 7], "seven").unwrap();
        let ready = one.marker().unwrap();
        to.start_copy(&other, Queue::Transfer, 3, (&from, 1..4), Some(&ready), "three").unwrap().wait().unwrap();
        let mut back = [0; 7];
        to.read(&other, 0, &mut back).unwrap();
        assert_eq!(back, [9, 9, 9, 2, 3, 4, 9]);
    }

    #[test]
    fn only_devices_of_one_platform_share_a_context() {
        let device = list().devices.remove(0);
        let foreign = Info { platform: "another platform".into(), index: 7, ..device.clone() };
        let refused = |devices: &[Option<Info>]| SharedContext::among(devices).err().unwrap().to_string();
        let message = refused(&[Some(device.clone()), Some(foreign)]);
        assert!(message.contains("[7] of another platform"), "{message}");
        assert!(refused(&[Some(device), None]).contains("host"));
        assert!(refused(&[None]).contains("host"));
    }
}
