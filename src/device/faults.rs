//! Failures on request, to see how a set-up reacts to a device that fails: the environment variable `DECLIVE_FAULT`.
//!
//! ```text
//! DECLIVE_FAULT=DEVICE:CALL:FIRST[-LAST][:CODE][,…]
//! DECLIVE_FAULT=1:launch:130          from its 130th launch of a kernel on, device 1 refuses each
//! DECLIVE_FAULT=0:wait:7-7:-9999      device 0 fails in its 7th wait, with this code of OpenCL, and works before and after
//! DECLIVE_FAULT=0:lost:500,2:build:1  device 0 does nothing any more after 499 calls, device 2 builds no kernel
//! ```
//!
//! Calls count from 1, for each context by itself. What fails is not done: the driver is not called.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use opencl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_DEVICE_NOT_AVAILABLE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, ClError,
};

use super::ClResult;
use crate::error::{Error, Result};

/// The environment variable.
const VARIABLE: &str = "DECLIVE_FAULT";

/// What a device is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A context and its queues.
    Open,
    /// A program, and its kernels.
    Build,
    /// Memory.
    Allocate,
    /// Setting memory to a pattern.
    Fill,
    /// A copy within the device.
    Copy,
    /// A kernel.
    Launch,
    /// A transfer to the device.
    Write,
    /// A transfer to the host.
    Read,
    /// The end of commands.
    Wait,
}

impl Call {
    /// All of them, by the names that the environment variable has.
    const NAMES: [(&str, Self); 9] = [
        ("open", Self::Open),
        ("build", Self::Build),
        ("allocate", Self::Allocate),
        ("fill", Self::Fill),
        ("copy", Self::Copy),
        ("launch", Self::Launch),
        ("write", Self::Write),
        ("read", Self::Read),
        ("wait", Self::Wait),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, call)| call)
    }

    /// What drivers say when it fails.
    fn usual_code(self) -> i32 {
        match self {
            Self::Open => CL_DEVICE_NOT_AVAILABLE,
            Self::Build => CL_BUILD_PROGRAM_FAILURE,
            Self::Allocate => CL_MEM_OBJECT_ALLOCATION_FAILURE,
            _ => CL_OUT_OF_RESOURCES,
        }
    }
}

/// A call, and what it is about: told in errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doing(pub(crate) Call, pub(crate) &'static str);

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call, what) = self;
        match call {
            Call::Open => write!(f, "opening {what}"),
            Call::Build => write!(f, "building {what}"),
            Call::Allocate => write!(f, "allocating {what}"),
            Call::Fill => write!(f, "filling {what}"),
            Call::Copy => write!(f, "copying {what}"),
            Call::Launch => write!(f, "launching {what}"),
            Call::Write => write!(f, "moving {what} to the device"),
            Call::Read => write!(f, "moving {what} to the host"),
            Call::Wait => write!(f, "waiting for {what}"),
        }
    }
}

/// The failures asked for of a context's device, and how many calls there were.
#[derive(Debug)]
pub(super) struct Faults {
    wanted: Vec<Fault>,
    /// Of each [`Call`], and of all together.
    counts: [AtomicU64; Call::NAMES.len() + 1],
}

impl Faults {
    /// Those of device `index`, if the environment asks for any.
    ///
    /// # Errors
    /// [`Error::Usage`] if what the variable says is not understood.
    pub(super) fn of_device(index: usize) -> Result<Option<Self>> {
        let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
        Self::parse(&text.to_string_lossy(), index)
    }

    fn parse(text: &str, index: usize) -> Result<Option<Self>> {
        let mut wanted: Vec<Fault> = text.split(',').map(|item| item.trim().parse()).collect::<Result<_>>()?;
        wanted.retain(|fault| fault.device == index);
        Ok((!wanted.is_empty()).then(|| Self { wanted, counts: Default::default() }))
    }

    /// Counts a call, and fails it if that was asked for.
    pub(super) fn check(&self, call: Call) -> ClResult<()> {
        let count = |slot: usize| self.counts[slot].fetch_add(1, Ordering::Relaxed) + 1;
        let (of_call, of_all) = (count(call as usize), count(Call::NAMES.len()));
        let hit = self.wanted.iter().find(|fault| match fault.call {
            Some(wanted) => wanted == call && fault.has(of_call),
            None => fault.has(of_all),
        });
        hit.map_or(Ok(()), |fault| Err(ClError(fault.code.unwrap_or(call.usual_code()))))
    }
}

/// One item of the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fault {
    device: usize,
    /// None for all calls.
    call: Option<Call>,
    first: u64,
    last: u64,
    code: Option<i32>,
}

impl Fault {
    fn has(&self, count: u64) -> bool {
        (self.first..=self.last).contains(&count)
    }
}

impl FromStr for Fault {
    type Err = Error;

    fn from_str(item: &str) -> Result<Self> {
        let parts: Vec<&str> = item.split(':').collect();
        let parsed = || {
            let (&[device, call, range], code) = (parts.first_chunk::<3>()?, parts.get(3));
            let call = if call == "lost" { None } else { Some(Call::named(call)?) };
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
                None => (range.parse().ok()?, u64::MAX),
            };
            let code = code.map(|code| code.parse().ok().filter(|&code: &i32| code < 0));
            let is_whole = parts.len() <= 4 && (1..=last).contains(&first) && code != Some(None);
            is_whole.then_some(Self { device: device.parse().ok()?, call, first, last, code: code.flatten() })
        };
        parsed().ok_or_else(|| {
            let calls = Call::NAMES.map(|(name, _)| name).join(", ");
            Error::Usage(format!(
                "{VARIABLE}: '{item}' is not DEVICE:CALL:FIRST, DEVICE:CALL:FIRST-LAST or one of these with :CODE behind \
                 it, where DEVICE is the number of a device, CALL is one of {calls}, lost, calls count from 1, \
                 and codes are negative"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_understood_or_refused() {
        let fault = |device, call, first, last, code| Fault { device, call, first, last, code };
        for (text, expected) in [
            ("1:launch:130", fault(1, Some(Call::Launch), 130, u64::MAX, None)),
            ("0:wait:7-7:-9999", fault(0, Some(Call::Wait), 7, 7, Some(-9999))),
            ("12:lost:1-3", fault(12, None, 1, 3, None)),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap(), expected);
        }
        for text in ["", "1", "1:launch", "1:lunch:3", "x:launch:3", "1:launch:0", "1:launch:3-2", "1:launch:3:5"]
            .into_iter()
            .chain(["1:launch:3:", "1:launch:3:-5:7", "1:launch:x", "-1:launch:3"])
        {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(error.to_string().contains("DECLIVE_FAULT") && error.to_string().contains("launch"), "{error}");
        }
    }

    #[test]
    fn calls_fail_when_their_turn_comes() {
        let faults = Faults::parse("0:read:2-3,1:lost:1,0:lost:9:-36", 0).unwrap().unwrap();
        let codes =
            |call, count| (0..count).map(|_| faults.check(call).map_or_else(|e| e.0, |()| 0)).collect::<Vec<_>>();
        assert_eq!(codes(Call::Read, 4), [0, CL_OUT_OF_RESOURCES, CL_OUT_OF_RESOURCES, 0]);
        assert_eq!(codes(Call::Launch, 6), [0, 0, 0, 0, -36, -36]);
        assert_eq!(codes(Call::Read, 1), [-36]);
        assert!(Faults::parse("0:read:2,2:lost:1", 1).unwrap().is_none());
        let faults = Faults::parse("3:open:1,3:build:1,3:allocate:1", 3).unwrap().unwrap();
        let code = |call| faults.check(call).unwrap_err().0;
        assert_eq!(code(Call::Open), CL_DEVICE_NOT_AVAILABLE);
        assert_eq!(code(Call::Build), CL_BUILD_PROGRAM_FAILURE);
        assert_eq!(code(Call::Allocate), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
}
