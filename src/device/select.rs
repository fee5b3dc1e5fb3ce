//! Which devices there are, and from a choice to the devices used.

use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED;
use opencl3::platform::{Platform, get_platforms};

use super::{Choice, Info, Kind, Pick};
use crate::error::{Error, Result};

/// A device that was looked at and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// The device.
    pub device: Info,
    /// Why not.
    pub reason: String,
}

/// All OpenCL devices, or none and a line that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The devices of all platforms.
    pub devices: Vec<Info>,
    /// Why there is none: no runtime installed, or a runtime without devices.
    pub note: Option<String>,
}

/// The devices a choice leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// One for each rank, in order; `None` is the host.
    pub ranks: Vec<Option<Info>>,
    /// The others.
    pub rejected: Vec<Rejected>,
    /// A line for the user when the choice could not be what one expects (no OpenCL runtime: the host works).
    pub note: Option<String>,
}

/// Lists the OpenCL devices of all platforms.
#[must_use]
pub fn list() -> Listing {
    // Some runtimes set themselves up in the first call, and are not prepared for two first calls at once.
    static FIRST: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = FIRST.lock();
    let none = |note: &str| Listing { devices: Vec::new(), note: Some(note.into()) };
    let platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(e) if e.0 == DLOPEN_RUNTIME_LOAD_FAILED => {
            return none("no OpenCL runtime is installed (libOpenCL.so.1 was not found)");
        }
        Err(_) => Vec::new(), // how loaders say that there is none
    };
    if platforms.is_empty() {
        return none("the OpenCL loader is installed, but no OpenCL platform");
    }
    let mut devices = Vec::new();
    for platform in &platforms {
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            match describe(devices.len(), platform, &device) {
                Ok(info) => devices.push(info),
                Err(e) => log::warn!("an OpenCL device that does not describe itself is left out: {e}"),
            }
        }
    }
    let note = devices.is_empty().then(|| "the OpenCL platforms have no devices".into());
    Listing { devices, note }
}

fn describe(index: usize, platform: &Platform, device: &Device) -> opencl3::Result<Info> {
    let fp64 = device.double_fp_config().is_ok_and(|config| config != 0);
    let kind = if device.dev_type()? & CL_DEVICE_TYPE_CPU != 0 { Kind::Cpu } else { Kind::Gpu };
    let usable = device.available()? && device.compiler_available()? && device.endian_little()?;
    Ok(Info {
        index,
        platform: platform.name()?,
        name: device.name()?.trim().into(),
        vendor: device.vendor()?,
        driver: device.driver_version()?,
        opencl: device.version()?.trim().into(),
        kind,
        compute_units: device.max_compute_units()?,
        clock_mhz: device.max_clock_frequency()?,
        memory_bytes: device.global_mem_size()?,
        max_buffer_bytes: device.max_mem_alloc_size()?,
        local_memory_bytes: device.local_mem_size()?,
        max_work_group: device.max_work_group_size()?,
        has_f64: fp64,
        unusable: (!usable).then_some("it is not available, has no compiler or is big-endian"),
        id: device.id() as usize,
    })
}

/// Finds the devices for `choice`; `f64` says whether they must compute in double precision.
///
/// # Errors
/// [`Error::NoDevice`] if something was asked for by number or kind and isn't there or can't be used.
pub fn select(choice: &Choice, f64: bool) -> Result<Selection> {
    let listing = list();
    let found = || match &listing.note {
        Some(note) => note.clone(),
        None => listing
            .devices
            .iter()
            .map(|d| format!("[{}] {} ({})", d.index, d.name, d.kind))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let no_device = |why: String| Error::NoDevice { wanted: choice.to_string(), found: format!("{}{why}", found()) };
    let unfit = |d: &Info| -> Option<String> {
        if let Some(reason) = d.unusable {
            return Some(reason.into());
        }
        (f64 && !d.has_f64).then(|| "it has no double precision (--precision f32 would use it)".into())
    };

    let mut wanted: Vec<Option<&Info>> = Vec::new();
    let mut note = None;
    match choice {
        Choice::Auto => {
            for kind in [Kind::Gpu, Kind::Cpu] {
                if wanted.is_empty() {
                    wanted.extend(listing.devices.iter().filter(|d| d.kind == kind && unfit(d).is_none()).map(Some));
                }
            }
            if wanted.is_empty() {
                wanted.push(None);
                note = Some(format!(
                    "{}; the host's own threads work instead",
                    listing.note.clone().unwrap_or_else(|| "no OpenCL device can be used".into())
                ));
            }
        }
        Choice::List(picks) => {
            for pick in picks {
                let before = wanted.len();
                let of = |kinds: &'static [Kind]| listing.devices.iter().filter(|d| kinds.contains(&d.kind)).map(Some);
                match pick {
                    Pick::Host => wanted.push(None),
                    Pick::Gpus => wanted.extend(of(&[Kind::Gpu])),
                    Pick::Cpus => wanted.extend(of(&[Kind::Cpu])),
                    Pick::All => wanted.extend(of(&[Kind::Gpu, Kind::Cpu])),
                    Pick::Index(i) => wanted.extend(listing.devices.get(*i).map(Some)),
                }
                if wanted.len() == before {
                    return Err(no_device(String::new()));
                }
            }
        }
    }

    let mut rejected = Vec::new();
    for device in &listing.devices {
        let asked_for = wanted.iter().flatten().any(|d| d.index == device.index);
        if let Some(reason) = unfit(device) {
            rejected.push(Rejected { device: device.clone(), reason });
        } else if !asked_for {
            let reason = match choice {
                Choice::Auto => "a CPU adds little beside GPUs (--devices all would use it)".into(),
                Choice::List(_) => format!("not among --devices {choice}"),
            };
            rejected.push(Rejected { device: device.clone(), reason });
        }
    }
    wanted.retain(|d| d.is_none_or(|d| unfit(d).is_none()));
    if wanted.is_empty() {
        let why = rejected.iter().map(|r| format!("; [{}] {}", r.device.index, r.reason)).collect::<String>();
        return Err(no_device(why));
    }
    Ok(Selection { ranks: wanted.into_iter().map(Option::<&Info>::cloned).collect(), rejected, note })
}
