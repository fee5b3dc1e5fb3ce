//! The device's clock beside the host's.

use std::time::{Duration, Instant};

use super::{Context, DeviceVec};
use crate::error::Result;

/// Commands that are watched for one comparison of the clocks.
const LOOKS: usize = 16;

/// A moment, as the host's clock and the device's have it: the latter in nanoseconds from some start of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    host: Instant,
    device: u64,
}

impl Moment {
    /// Compares the clocks. Of a command, the host knows a time before its start and one after its end; several such bounds
    /// leave some microseconds of doubt. `None` if the device tells no times.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    pub(crate) fn now(ctx: &Context) -> Result<Option<Self>> {
        let former = ctx.set_timing(Some(0))?;
        let now = Self::compare(ctx, Instant::now());
        ctx.set_timing(former)?;
        now
    }

    fn compare(ctx: &Context, origin: Instant) -> Result<Option<Self>> {
        let target = DeviceVec::<u32>::zeros(ctx, 1, "the clock's command")?;
        // bounds of (host's time since origin − device's time)
        let (mut least, mut most) = (i128::MIN, i128::MAX);
        let mut device = 0;
        for _ in 0..LOOKS {
            let before = origin.elapsed().as_nanos() as i128;
            let event = target.fill(ctx, 0)?;
            ctx.finish()?;
            let after = origin.elapsed().as_nanos() as i128;
            let (Ok(start), Ok(end)) = (event.profiling_command_start(), event.profiling_command_end()) else {
                return Ok(None);
            };
            if end == 0 {
                return Ok(None);
            }
            least = least.max(before - i128::from(start));
            most = most.min(after - i128::from(end));
            device = end;
        }
        let host = i128::from(device) + least.midpoint(most);
        let since = |nanos: i128| Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
        Ok(Some(Self { host: origin + since(host), device }))
    }

    /// The host's time at `device`, between (or near) this moment and a later one: clocks go at slightly different rates.
    pub(crate) fn host_time(&self, later: &Self, device: u64) -> Instant {
        let whole = later.device.saturating_sub(self.device) as f64;
        let rate = if whole > 0.0 { (later.host - self.host).as_nanos() as f64 / whole } else { 1.0 };
        // two moments that are too near to each other say nothing of the rate
        let rate = if (0.9..1.1).contains(&rate) { rate } else { 1.0 };
        let away = |nanos: u64| Duration::from_secs_f64(1e-9 * rate * nanos as f64);
        if device >= self.device {
            self.host + away(device - self.device)
        } else {
            self.host.checked_sub(away(self.device - device)).unwrap_or(self.host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn times_between_two_moments() {
        let host = Instant::now();
        let nanos = Duration::from_nanos;
        let first = Moment { host, device: 5000 };
        let later = Moment { host: host + nanos(1_010_000), device: 1_005_000 };
        assert_eq!(first.host_time(&later, 5000), host);
        assert_eq!(first.host_time(&later, 1_005_000), later.host);
        assert_eq!(first.host_time(&later, 505_000), host + nanos(505_000));
        // no rate to be had
        let near = Moment { host: host + nanos(100), device: 5001 };
        assert_eq!(first.host_time(&near, 6000), host + nanos(1000));
        assert!(first.host_time(&near, 4000) < host);
    }

    #[test]
    fn a_command_is_where_the_host_has_seen_it() {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        let Some(first) = Moment::now(&ctx).unwrap() else { return };
        let target = DeviceVec::<u32>::zeros(&ctx, 1, "a number").unwrap();
        ctx.set_timing(Some(0)).unwrap();
        let before = Instant::now();
        let event = target.fill(&ctx, 0).unwrap();
        ctx.finish().unwrap();
        let after = Instant::now();
        let later = Moment::now(&ctx).unwrap().unwrap();
        let end = first.host_time(&later, event.profiling_command_end().unwrap());
        let doubt = Duration::from_millis(20); // a loaded machine
        assert!(before - doubt <= end && end <= after + doubt);
    }
}
