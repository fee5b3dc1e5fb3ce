//! Which devices there are, and from a choice to the devices used.

use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED;
use opencl3::platform::{Platform, get_platforms};

use super::same::{Identity, is_same};
use super::{Choice, Info, Kind, Pick};
use crate::error::{Error, Result};

/// How the reason begins for which a device is left out that was not chosen.
pub(crate) const NOT_AMONG: &str = "not among devices";

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
    /// With [`Choice::Auto`], processors among them that could work beside the GPUs.
    pub beside: Vec<Info>,
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
    for (number, platform) in platforms.iter().enumerate() {
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            match describe(devices.len(), (number, platform), &device) {
                Ok(info) => devices.push(info),
                Err(e) => log::warn!("an OpenCL device that does not describe itself is left out: {e}"),
            }
        }
    }
    let note = devices.is_empty().then(|| "the OpenCL platforms have no devices".into());
    Listing { devices, note }
}

/// The largest buffer of a device that allows this one: less, if the environment variable `DECLIVE_MAX_BUFFER` says so.
fn max_buffer_bytes(own: u64) -> u64 {
    let Ok(text) = std::env::var("DECLIVE_MAX_BUFFER") else { return own };
    match text.parse::<u64>() {
        Ok(limit) if limit > 0 => own.min(limit),
        _ => {
            log::warn!("DECLIVE_MAX_BUFFER is '{text}', which is no number of bytes: ignored");
            own
        }
    }
}

fn describe(index: usize, (number, platform): (usize, &Platform), device: &Device) -> opencl3::Result<Info> {
    // `DECLIVE_F64=off` shows what happens on a device without double precision.
    let allowed = std::env::var_os("DECLIVE_F64").is_none_or(|v| v != "off");
    let fp64 = allowed && device.double_fp_config().is_ok_and(|config| config != 0);
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
        max_buffer_bytes: max_buffer_bytes(device.max_mem_alloc_size()?),
        local_memory_bytes: device.local_mem_size()?,
        max_work_group: device.max_work_group_size()?,
        has_f64: fp64,
        unusable: (!usable).then_some("it is not available, has no compiler or is big-endian"),
        identity: Identity::of(number, device),
        id: device.id() as usize,
    })
}

/// Finds the devices for `choice`; `f64` says whether they must compute in double precision.
///
/// # Errors
/// [`Error::NoDevice`] if something was asked for by number or kind and isn't there or can't be used.
pub fn select(choice: &Choice, f64: bool) -> Result<Selection> {
    choose(&list(), choice, f64)
}

/// All devices that can be used, GPUs once.
pub(crate) fn usable(f64: bool) -> Vec<Info> {
    let all: Vec<Info> = list().devices.into_iter().filter(|d| unfit(d, f64).is_none()).collect();
    let is_new = |k: &usize| all[*k].kind == Kind::Cpu || !all[..*k].iter().any(|before| is_same(before, &all[*k]));
    (0..all.len()).filter(is_new).map(|k| all[k].clone()).collect()
}

/// Why a device can't be used, if so.
fn unfit(device: &Info, f64: bool) -> Option<String> {
    if let Some(reason) = device.unusable {
        return Some(reason.into());
    }
    (f64 && !device.has_f64).then(|| "it has no double precision (precision = f32 would use it)".into())
}

/// Of `devices`, each once, in the order of their numbers: of several that are the same, one that can be used, with the
/// most compute units, the first of equals.
fn each_once<'a>(devices: impl Iterator<Item = &'a Info>, f64: bool) -> Vec<Option<&'a Info>> {
    let rank = |device: &Info| (unfit(device, f64).is_none(), device.compute_units);
    let mut all: Vec<&Info> = Vec::new();
    for device in devices {
        match all.iter_mut().find(|known| is_same(known, device)) {
            Some(known) if rank(known) < rank(device) => *known = device,
            Some(_) => {}
            None => all.push(device),
        }
    }
    all.sort_by_key(|device| device.index);
    all.into_iter().map(Some).collect()
}

fn choose(listing: &Listing, choice: &Choice, f64: bool) -> Result<Selection> {
    let found = || match &listing.note {
        Some(note) => note.clone(),
        None => listing.devices.iter().map(|d| format!("{} ({})", d.label(), d.kind)).collect::<Vec<_>>().join(", "),
    };
    let no_device = |why: String| Error::NoDevice { wanted: choice.to_string(), found: format!("{}{why}", found()) };
    let unfit = |d: &Info| unfit(d, f64);

    let mut wanted: Vec<Option<&Info>> = Vec::new();
    let mut beside = Vec::new();
    let mut note = None;
    match choice {
        Choice::Auto => {
            let of =
                |kind: Kind| each_once(listing.devices.iter().filter(|d| d.kind == kind && unfit(d).is_none()), f64);
            (wanted, beside) = (of(Kind::Gpu), of(Kind::Cpu));
            if wanted.is_empty() {
                wanted = std::mem::take(&mut beside);
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
                let of = |kind: Kind| listing.devices.iter().filter(move |d| d.kind == kind);
                match pick {
                    Pick::Host => wanted.push(None),
                    Pick::Gpus => wanted.extend(each_once(of(Kind::Gpu), f64)),
                    Pick::Cpus => wanted.extend(of(Kind::Cpu).map(Some)),
                    Pick::All => wanted.extend(each_once(listing.devices.iter(), f64)),
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
            let same =
                wanted.iter().chain(&beside).flatten().find(|used| is_same(used, device) && used.index != device.index);
            let reason = match (choice, same) {
                (Choice::Auto, None) => "a CPU adds little beside GPUs (devices = all would use it)".into(),
                (Choice::List(picks), _) if picks.iter().all(|pick| matches!(pick, Pick::Index(_) | Pick::Host)) => {
                    format!("{NOT_AMONG} = {choice}")
                }
                (_, Some(same)) if device.kind == Kind::Cpu => format!("the same processor as [{}]", same.index),
                (_, Some(same)) => format!("the same device as [{}], through another driver", same.index),
                (Choice::List(_), None) => format!("{NOT_AMONG} = {choice}"),
            };
            rejected.push(Rejected { device: device.clone(), reason });
        }
    }
    let left_out = wanted.iter().flatten().find_map(|d| Some((d, unfit(d)?)));
    if let Some((device, reason)) = left_out {
        note = Some(format!("{} is left out: {reason}", device.label()));
    }
    wanted.retain(|d| d.is_none_or(|d| unfit(d).is_none()));
    if wanted.is_empty() {
        let why = rejected.iter().map(|r| format!("; [{}] {}", r.device.index, r.reason)).collect::<String>();
        return Err(no_device(why));
    }
    let beside = beside.into_iter().flatten().cloned().collect();
    Ok(Selection { ranks: wanted.into_iter().map(Option::<&Info>::cloned).collect(), rejected, beside, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: usize, kind: Kind, has_f64: bool) -> Info {
        Info {
            index,
            platform: "platform".into(),
            name: format!("device {index}"),
            vendor: "vendor".into(),
            driver: "1".into(),
            opencl: "OpenCL 1.2".into(),
            kind,
            compute_units: 1,
            clock_mhz: 1,
            memory_bytes: 1,
            max_buffer_bytes: 1,
            local_memory_bytes: 1,
            max_work_group: 1,
            has_f64,
            unusable: None,
            identity: Identity::default(),
            id: 0,
        }
    }

    /// A CPU, a GPU, a GPU without double precision, a GPU that is not available.
    fn machine() -> Listing {
        let mut devices = vec![
            device(0, Kind::Cpu, true),
            device(1, Kind::Gpu, true),
            device(2, Kind::Gpu, false),
            device(3, Kind::Gpu, true),
        ];
        devices[3].unusable = Some("it is not available");
        Listing { devices, note: None }
    }

    fn ranks(listing: &Listing, choice: &str, f64: bool) -> Vec<Option<usize>> {
        let selection = choose(listing, &choice.parse().unwrap(), f64).unwrap();
        selection.ranks.iter().map(|d| d.as_ref().map(|d| d.index)).collect()
    }

    #[test]
    fn choices_lead_to_devices() {
        let m = machine();
        assert_eq!(ranks(&m, "auto", true), [Some(1)]);
        assert_eq!(ranks(&m, "auto", false), [Some(1), Some(2)]);
        assert_eq!(ranks(&m, "gpu", true), [Some(1)]);
        assert_eq!(ranks(&m, "all", false), [Some(0), Some(1), Some(2)]);
        assert_eq!(ranks(&m, "0,host,0", true), [Some(0), None, Some(0)]);
        assert_eq!(ranks(&m, "2,1", true), [Some(1)]);
        let note = choose(&m, &"2,1".parse().unwrap(), true).unwrap().note.unwrap();
        assert!(note.contains("device 2") && note.contains("precision = f32"), "{note}");
    }

    #[test]
    fn one_physical_device_is_used_once() {
        use crate::device::same::tests::identity;
        // a CPU of four and one of eight units, a GPU through two drivers, and another GPU
        let mut devices = machine().devices;
        devices.push(device(4, Kind::Cpu, true));
        devices.iter_mut().for_each(|d| d.unusable = None);
        devices[4].compute_units = 8;
        devices[1].identity = identity(0, Some((true, 5)), None);
        devices[2].identity = identity(1, Some((false, 5)), None);
        devices[3].identity = identity(0, Some((true, 6)), None);
        devices[2].has_f64 = true;
        let m = Listing { devices, note: None };
        assert_eq!(ranks(&m, "auto", true), [Some(1), Some(3)]);
        assert_eq!(ranks(&m, "gpu", true), [Some(1), Some(3)]);
        assert_eq!(ranks(&m, "all", true), [Some(1), Some(3), Some(4)]);
        assert_eq!(ranks(&m, "cpu", true), [Some(0), Some(4)]);
        assert_eq!(ranks(&m, "0,1,2,4", true), [Some(0), Some(1), Some(2), Some(4)]);
        let reasons = |choice: &str| -> Vec<(usize, String)> {
            let rejected = choose(&m, &choice.parse().unwrap(), true).unwrap().rejected;
            rejected.into_iter().map(|r| (r.device.index, r.reason)).collect()
        };
        let processor = (0, "the same processor as [4]".to_owned());
        let gpu = (2, "the same device as [1], through another driver".to_owned());
        assert_eq!(reasons("all"), [processor, gpu.clone()]);
        assert_eq!(reasons("gpu")[1], gpu);
        assert_eq!(reasons("4")[0].1, "not among devices = 4");
        // one that can't be used gives way to one that can
        let mut broken = m.clone();
        broken.devices[1].unusable = Some("it is not available");
        assert_eq!(ranks(&broken, "auto", true), [Some(2), Some(3)]);
        assert_eq!(ranks(&broken, "all", true), [Some(2), Some(3), Some(4)]);
        // without GPUs, the processor
        let only = Listing { devices: vec![m.devices[0].clone(), m.devices[4].clone()], note: None };
        assert_eq!(ranks(&only, "auto", true), [Some(4)]);
    }

    #[test]
    fn what_is_left_out_has_a_reason() {
        let selection = choose(&machine(), &Choice::Auto, true).unwrap();
        let reasons: Vec<_> = selection.rejected.iter().map(|r| (r.device.index, r.reason.as_str())).collect();
        assert_eq!(reasons.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 2, 3]);
        assert!(reasons[0].1.contains("CPU"));
        assert!(reasons[1].1.contains("precision = f32"));
        assert!(reasons[2].1.contains("not available"));
    }

    #[test]
    fn without_gpus_the_cpu_and_without_opencl_the_host() {
        let mut m = machine();
        m.devices.truncate(1);
        assert_eq!(ranks(&m, "auto", true), [Some(0)]);
        let none = Listing { devices: Vec::new(), note: Some("no OpenCL runtime is installed".into()) };
        let selection = choose(&none, &Choice::Auto, true).unwrap();
        assert_eq!(selection.ranks, [None]);
        assert!(selection.note.unwrap().contains("no OpenCL runtime"));
    }

    #[test]
    fn what_is_not_there_is_an_error_that_lists_what_is() {
        let m = machine();
        for (choice, f64, words) in
            [("7", true, "device 0"), ("2", true, "no double precision"), ("3", false, "not available")]
        {
            let error = choose(&m, &choice.parse().unwrap(), f64).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(&format!("devices = {choice}")), "{error}");
        }
        let cpu_only = Listing { devices: vec![device(0, Kind::Cpu, true)], note: None };
        assert!(choose(&cpu_only, &"gpu".parse().unwrap(), true).unwrap_err().to_string().contains("device 0 (CPU)"));
    }
}
