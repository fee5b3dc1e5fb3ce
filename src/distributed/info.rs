//! What processes tell of themselves.

use serde::{Deserialize, Serialize};

use super::share::Share;
use crate::comm::processes::exchange;
use crate::error::Result;

/// One process of several that have solved a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Its number.
    pub process: usize,
    /// The name of its host.
    pub host: String,
    /// The devices of its ranks.
    pub devices: Vec<String>,
    /// Its rows.
    pub rows: usize,
    /// Their entries.
    pub nnz: usize,
    /// Elements of others that it needs for a product.
    pub halo: usize,
    /// The most memory of the host that it has had, if the system tells.
    pub peak_bytes: Option<u64>,
}

impl ProcessInfo {
    /// What all tell, of which this one's ranks have these devices. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn of_all(share: &Share, devices: Vec<String>, nnz: usize) -> Result<Vec<Self>> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        let (process, rows) = (share.processes.process(), share.own.len());
        let halo = share.order() - rows;
        let own = Self { process, host, devices, rows, nnz, halo, peak_bytes: crate::peak_bytes() };
        let all = texts(share, serde_json::to_string(&own).unwrap_or_default())?;
        Ok(all.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}

/// What each process has to say, for all. Collective.
///
/// # Errors
/// A failed process.
fn texts(share: &Share, own: String) -> Result<Vec<String>> {
    let own = own.into_bytes();
    let told = exchange(&*share.processes, vec![own; share.processes.count()])?;
    Ok(told.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect())
}
