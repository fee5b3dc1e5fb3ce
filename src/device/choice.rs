//! Which devices a caller wants.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// One item of a [`Choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pick {
    /// Every GPU (or other accelerator) with OpenCL, once.
    Gpus,
    /// Every OpenCL device that is a CPU, even if all of them are the same processor.
    Cpus,
    /// Every GPU and the processor with OpenCL, each once.
    All,
    /// This program's own threads, without OpenCL.
    Host,
    /// The device of this number in `declive devices`. Given twice, it becomes two ranks.
    Index(usize),
}

/// The devices to use: `auto`, or a list such as `gpu`, `0,2`, `gpu,host`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Choice {
    /// As many GPUs, each once, as make an iteration the fastest, and the processor if it helps them; without a GPU, the
    /// processor with OpenCL; without OpenCL, the host.
    #[default]
    Auto,
    /// These.
    List(Vec<Pick>),
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        if s == "auto" {
            return Ok(Self::Auto);
        }
        let pick = |item: &str| match item.trim() {
            "gpu" => Ok(Pick::Gpus),
            "cpu" => Ok(Pick::Cpus),
            "all" => Ok(Pick::All),
            "host" => Ok(Pick::Host),
            other => other.parse().map(Pick::Index).map_err(|_| {
                Error::Usage(format!(
                    "unknown device '{other}'; use auto, or a list of gpu, cpu, host, all and numbers of \
                     devices"
                ))
            }),
        };
        s.split(',').map(pick).collect::<Result<_, _>>().map(Self::List)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::List(picks) = self else { return f.write_str("auto") };
        for (k, pick) in picks.iter().enumerate() {
            if k > 0 {
                f.write_str(",")?;
            }
            match pick {
                Pick::Gpus => f.write_str("gpu")?,
                Pick::Cpus => f.write_str("cpu")?,
                Pick::All => f.write_str("all")?,
                Pick::Host => f.write_str("host")?,
                Pick::Index(i) => write!(f, "{i}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_parse_and_print() {
        for s in ["auto", "gpu", "0,2", "gpu,host", "host,host", "all"] {
            assert_eq!(s.parse::<Choice>().unwrap().to_string(), s);
        }
        for s in ["", "tpu", "0;1", "-1", "0,,1"] {
            assert!(s.parse::<Choice>().unwrap_err().to_string().contains("use auto"), "{s}");
        }
    }
}
