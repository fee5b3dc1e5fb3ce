//! Where the time of a solve goes.

use serde::{Deserialize, Serialize};

/// The time of some iterations of a method, kernel by kernel (Bueno 2013, tables 4.5 and 4.6).
///
/// ```
/// use declive::tune::{Experiment, KernelTime};
///
/// let time = |kernel: &str, calls, seconds| KernelTime { kernel: kernel.into(), calls, seconds };
/// let experiment = Experiment {
///     name: "one GPU".into(),
///     devices: vec!["a GPU".into()],
///     method: "cg".into(),
///     order: 1000,
///     iterations: 100,
///     total_seconds: 1.0,
///     kernels: vec![time("spmv_csr", 100, 0.5), time("dot_partial", 200, 0.25)],
/// };
/// assert_eq!(experiment.kernel_seconds(), 0.75);
/// assert_eq!(experiment.overhead_seconds(), 0.25);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// What tells it from others: `H200`, `4 × H200`.
    pub name: String,
    /// The devices that shared the work.
    pub devices: Vec<String>,
    /// The method.
    pub method: String,
    /// Rows of the matrix.
    pub order: usize,
    /// How many iterations.
    pub iterations: usize,
    /// From the first iteration's start to the last one's end.
    pub total_seconds: f64,
    /// The kernels, in the order of the method. Of several devices, which work at the same time, those of the one whose
    /// kernels take longest in sum.
    pub kernels: Vec<KernelTime>,
}

/// The time of a kernel in an [`Experiment`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// Its name.
    pub kernel: String,
    /// How many times it was launched.
    pub calls: u64,
    /// All launches together.
    pub seconds: f64,
}

impl Experiment {
    /// The time of all kernels.
    #[must_use]
    pub fn kernel_seconds(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }

    /// The time in which no kernel ran: total − kernels.
    #[must_use]
    pub fn overhead_seconds(&self) -> f64 {
        self.total_seconds - self.kernel_seconds()
    }
}
