//! A device, as what is kept of it knows it.

use serde::{Deserialize, Serialize};

use crate::cache::Digest;
use crate::device::Info;

/// A device as its file knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Name of its platform.
    pub platform: String,
    /// Compute units.
    pub compute_units: u32,
}

impl From<&Info> for Device {
    fn from(info: &Info) -> Self {
        Self {
            name: info.name.clone(),
            vendor: info.vendor.clone(),
            platform: info.platform.clone(),
            compute_units: info.compute_units,
        }
    }
}

impl Device {
    /// The host itself, by its threads.
    pub(crate) fn host() -> Self {
        let compute_units = u32::try_from(rayon::current_num_threads()).unwrap_or(u32::MAX);
        Self { name: "host".into(), vendor: String::new(), platform: "threads".into(), compute_units }
    }

    /// The name of its file: a readable part, and a hash of the whole.
    pub(super) fn file_name(&self) -> String {
        let mut slug = String::new();
        for c in self.name.chars().take(64) {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let units = self.compute_units.to_le_bytes();
        let hash = Digest::of([self.name.as_bytes(), self.vendor.as_bytes(), self.platform.as_bytes(), &units]);
        format!("{}-{hash:.8}.json", slug.trim_end_matches('-'))
    }
}
