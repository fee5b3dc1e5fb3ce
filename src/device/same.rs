//! Whether two devices of OpenCL are one and the same in the machine.
//!
//! A driver shows a GPU once, but a machine may have two drivers for it, each with a platform of its own. They are the
//! same device if both are at the same place on the PCI bus (`cl_khr_pci_bus_info`, `cl_nv_device_attribute_query`,
//! `cl_amd_device_attribute_query`), or, where one does not tell that, if they have the same UUID (`cl_khr_device_uuid`).
//! Devices of kind CPU are all the same processor, however many there are, in one platform or in several.

use opencl3::device::Device;

use super::{Info, Kind};

/// What tells a device from others in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity {
    /// The number of its platform: all devices of a platform are different ones, but CPUs.
    platform: usize,
    /// Domain, bus, device and function on the PCI bus. Of the domain, some drivers do not tell.
    pci: Option<(Option<u32>, [u32; 3])>,
    /// From the driver.
    uuid: Option<[u8; 16]>,
}

impl Identity {
    /// What the driver of platform number `platform` tells about a device.
    pub(super) fn of(platform: usize, device: &Device) -> Self {
        let extensions = device.extensions().unwrap_or_default();
        let has = |name: &str| extensions.split_whitespace().any(|extension| extension == name);
        let khr = || {
            let bus = device.pcibusinfokhr_intel().ok()?;
            Some((Some(bus.pci_domain), [bus.pci_bus, bus.pci_device, bus.pci_function]))
        };
        // the slot has the device in its upper bits, and three of the function
        let nvidia = || {
            let (bus, slot) = (device.pci_bus_id_nv().ok()?, device.pci_slot_id_nv().ok()?);
            Some((None, [bus, slot >> 3, slot & 7]))
        };
        let amd = || {
            let place = device.topology_amd().ok()?;
            Some((None, [place.bus, place.device, place.function].map(u32::from)))
        };
        let pci = match () {
            () if has("cl_khr_pci_bus_info") => khr(),
            () if has("cl_nv_device_attribute_query") => nvidia(),
            () if has("cl_amd_device_attribute_query") => amd(),
            () => None,
        };
        let uuid = if has("cl_khr_device_uuid") { device.uuid_khr().ok() } else { None };
        Self { platform, pci, uuid: uuid.filter(|uuid| *uuid != [0; 16]) }
    }

    /// Whether both are of one device, unless they are CPUs.
    fn is_same(&self, other: &Self) -> bool {
        if self.platform == other.platform {
            return false;
        }
        match (self.pci, other.pci) {
            (Some((domain, place)), Some((other_domain, other_place))) => {
                let domains = domain.zip(other_domain);
                place == other_place && domains.is_none_or(|(one, other)| one == other)
            }
            _ => self.uuid.is_some() && self.uuid == other.uuid,
        }
    }
}

/// Whether two devices are one and the same in the machine.
#[must_use]
pub(super) fn is_same(one: &Info, other: &Info) -> bool {
    match (one.kind, other.kind) {
        (Kind::Cpu, Kind::Cpu) => true,
        (Kind::Gpu, Kind::Gpu) => one.identity.is_same(&other.identity),
        _ => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// At a place on the bus of domain 0, if the driver tells, or of some domain.
    pub(in crate::device) fn identity(platform: usize, pci: Option<(bool, u32)>, uuid: Option<u8>) -> Identity {
        let pci = pci.map(|(knows_domain, bus)| (knows_domain.then_some(0), [bus, 0, 0]));
        Identity { platform, pci, uuid: uuid.map(|byte| [byte; 16]) }
    }

    #[test]
    fn by_place_or_else_by_uuid() {
        let same = |one: Identity, other: Identity| {
            assert_eq!(one.is_same(&other), other.is_same(&one));
            one.is_same(&other)
        };
        let here = identity(0, Some((true, 5)), Some(1));
        assert!(same(here, identity(1, Some((true, 5)), Some(1))));
        assert!(same(here, identity(1, Some((false, 5)), None)), "the domain is not told");
        assert!(same(here, identity(1, Some((true, 5)), Some(2))), "drivers make up their own UUIDs");
        assert!(!same(here, identity(1, Some((true, 6)), Some(1))), "two places");
        let other_domain = Identity { pci: Some((Some(1), [5, 0, 0])), ..identity(1, None, None) };
        assert!(!same(here, other_domain));
        assert!(same(here, identity(1, None, Some(1))), "equal UUIDs, where a place is not known");
        assert!(!same(here, identity(1, None, Some(2))));
        assert!(!same(identity(0, None, None), identity(1, None, None)), "nothing is known");
        assert!(!same(here, identity(0, Some((true, 5)), Some(1))), "parts of a GPU in one platform are devices");
    }
}
