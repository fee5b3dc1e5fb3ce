//! The times of launches: by the device's clock where that makes sense, else by the host's.

use std::time::Instant;

use crate::device::{Context, Timed};
use crate::error::Result;

/// Times launches on one device.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stopwatch {
    /// Whether the device's own times have been found wrong.
    distrusted: bool,
}

impl Stopwatch {
    /// The time of each of `count` launches, in seconds; `launch` gets the number of each, and may enqueue several
    /// kernels, from the beginning of the first to the end of the last. Where the device's times make no sense, all are made once
    /// more.
    ///
    /// # Errors
    /// Those of `launch`, and of the device.
    pub(crate) fn times(
        &mut self,
        ctx: &Context,
        count: usize,
        mut launch: impl FnMut(usize) -> Result<()>,
    ) -> Result<Vec<f64>> {
        if !self.distrusted {
            let start = Instant::now();
            let launched = (0..count).try_for_each(|k| {
                ctx.set_timing(Some(k as u64))?;
                launch(k)
            });
            let untimed = ctx.set_timing(None).map(|_| ());
            if let Err(e) = launched.and(untimed).and_then(|()| ctx.finish()) {
                ctx.forget_timed();
                return Err(e);
            }
            let elapsed = start.elapsed().as_secs_f64();
            let timed = ctx.take_timed(count as u64)?;
            let times: Vec<f64> = timed.chunk_by(|a, b| a.tag == b.tag).map(span).collect();
            if times.len() == count && times.iter().all(|&t| t > 0.0) && times.iter().sum::<f64>() < 1.1 * elapsed {
                return Ok(times);
            }
            log::warn!("{}: the device's own times are not to be trusted; the host's are used", ctx.info().name);
            self.distrusted = true;
        }
        (0..count)
            .map(|k| {
                let start = Instant::now();
                launch(k)?;
                ctx.finish()?;
                Ok(start.elapsed().as_secs_f64())
            })
            .collect()
    }
}

/// Seconds from the beginning of the first kernel to the end of the last.
fn span(kernels: &[Timed]) -> f64 {
    let (start, end) = (kernels[0].start, kernels[kernels.len() - 1].end);
    end.saturating_sub(start) as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_by_hand() {
        let kernel = |start, end| Timed { tag: 1, kernel: "", start, end };
        // 3 µs and 2 µs, and 5 µs between them
        let kernels = [kernel(1_000, 4_000), kernel(9_000, 11_000)];
        assert!((span(&kernels) - 10e-6).abs() < 1e-15);
    }
}
