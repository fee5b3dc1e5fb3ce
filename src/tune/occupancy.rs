//! How many work-items a compute unit holds at a time, of those that it could.
//!
//! What a unit holds is known for NVIDIA's GPUs: the limits of a multiprocessor by compute capability are published, and
//! the compiler tells the registers. Of other devices OpenCL tells neither; nothing is claimed about them.

use serde::Serialize;

/// What a kernel takes of a device, as far as the device tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// The largest group that the device runs the kernel with.
    pub max_group_size: usize,
    /// The number of work-items of which multiples suit the device.
    pub preferred_multiple: usize,
    /// Local memory of a group.
    pub local_bytes: u64,
    /// Private memory of a work-item beyond registers: what was spilled, on most devices.
    pub private_bytes: u64,
    /// 32-bit registers of a work-item.
    pub registers: Option<u32>,
    /// How full a compute unit is with the chosen launch.
    pub occupancy: Option<Occupancy>,
}

/// How full a compute unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Work-items that it holds at a time.
    pub resident: usize,
    /// The most that it can hold.
    pub most: usize,
    /// Why it holds no more.
    pub limit: Limit,
}

impl Occupancy {
    /// Resident work-items / the most.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.resident as f64 / self.most as f64
    }
}

/// What keeps further groups from a compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// There are no more: the launch has so few.
    Launch,
    /// It holds as many work-items as it can.
    WorkItems,
    /// It holds as many groups as it can.
    Groups,
    /// Registers are used up.
    Registers,
    /// Local memory is used up.
    LocalMemory,
}

impl Limit {
    /// In a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Launch => "groups launched",
            Self::WorkItems => "work-items",
            Self::Groups => "groups",
            Self::Registers => "registers",
            Self::LocalMemory => "local memory",
        }
    }
}

/// The limits of a compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    work_items: usize,
    groups: usize,
    local_bytes: usize,
    /// What the system takes of local memory for each group.
    reserved_bytes: usize,
    /// The unit in which local memory is given out.
    local_unit: usize,
    /// Parts of the registers, to which warps are dealt out.
    parts: usize,
}

/// 32-bit registers of a multiprocessor.
const REGISTERS: usize = 1 << 16;

/// Work-items of a warp, and the registers that a warp gets at a time.
const WARP: usize = 32;
const REGISTER_UNIT: usize = 256;

impl Unit {
    /// The limits of a multiprocessor of NVIDIA's by compute capability; `None` for those not in the table.
    ///
    /// NVIDIA, *CUDA C++ Programming Guide*, "Technical Specifications per Compute Capability" (from 7.5 on, that of
    /// CUDA 13): resident threads and blocks, and shared memory of a multiprocessor. From 8.0 on, 1 KiB of shared
    /// memory is reserved for each block (ibid., the sections on shared memory of those capabilities).
    pub(super) fn of_nvidia(capability: (u32, u32)) -> Option<Self> {
        let (work_items, groups, local_kib) = match capability {
            (6, 0) => (2048, 32, 64),
            (6, 1) | (7, 0) => (2048, 32, 96),
            (7, 5) => (1024, 16, 64),
            (8, 0) => (2048, 32, 164),
            (8, 6) => (1536, 16, 100),
            (8, 7) => (1536, 16, 164),
            (8, 9) => (1536, 24, 100),
            (9, 0) | (10, 0) => (2048, 32, 228),
            // editions differ in the blocks of 12.0
            _ => return None,
        };
        let (reserved_bytes, local_unit) = if capability.0 >= 8 { (1 << 10, 128) } else { (0, 256) };
        let parts = if capability == (6, 0) { 2 } else { 4 };
        Some(Self { work_items, groups, local_bytes: local_kib << 10, reserved_bytes, local_unit, parts })
    }

    /// How full it is with groups of `group_size`, each work-item with so many registers and each group with so much local
    /// memory, if `launched` groups come to it; `None` if it can't hold a single group.
    pub(super) fn occupancy(
        &self,
        group_size: usize,
        registers: u32,
        local_bytes: u64,
        launched: usize,
    ) -> Option<Occupancy> {
        let warps = group_size.div_ceil(WARP);
        let of_warp = (registers.max(1) as usize * WARP).next_multiple_of(REGISTER_UNIT);
        let by_registers = (REGISTERS / self.parts / of_warp * self.parts) / warps;
        let local = (local_bytes as usize).next_multiple_of(self.local_unit) + self.reserved_bytes;
        let by_local_memory = self.local_bytes.checked_div(local).unwrap_or(usize::MAX);
        // of several that are reached at once, the first is named
        let limits = [
            (self.work_items / (warps * WARP), Limit::WorkItems),
            (self.groups, Limit::Groups),
            (by_registers, Limit::Registers),
            (by_local_memory, Limit::LocalMemory),
            (launched, Limit::Launch),
        ];
        let (groups, limit) = limits.into_iter().min_by_key(|(groups, _)| *groups)?;
        let resident = groups * group_size;
        (groups > 0).then_some(Occupancy { resident, most: self.work_items, limit })
    }
}

/// The registers of a kernel by the log of NVIDIA's compiler with `-cl-nv-verbose`:
///
/// ```text
/// ptxas info    : Compiling entry function 'cg_step' for 'sm_90'
/// ptxas info    : Used 34 registers, 424 bytes cmem[0]
/// ```
pub(super) fn registers_in(log: &str, kernel: &str) -> Option<u32> {
    let begin = format!("Compiling entry function '{kernel}'");
    let lines = log.lines().skip_while(|line| !line.contains(&begin)).skip(1);
    let of_kernel = lines.take_while(|line| !line.contains("Compiling entry function"));
    let mut used = of_kernel.filter_map(|line| line.split_once("Used ")?.1.split_once(" registers")?.0.parse().ok());
    used.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit() {
        let unit = Unit::of_nvidia((9, 0)).unwrap();
        let of = |size, registers, local, launched| {
            let o = unit.occupancy(size, registers, local, launched).unwrap();
            (o.resident, o.limit)
        };
        assert_eq!(of(256, 32, 0, 64), (2048, Limit::WorkItems));
        assert_eq!(of(256, 32, 0, 7), (1792, Limit::Launch));
        assert_eq!(of(32, 32, 0, 64), (1024, Limit::Groups));
        // 40 registers: 1280 a warp, 12 warps in each part, 48 in all
        assert_eq!(of(256, 40, 0, 64), (1536, Limit::Registers));
        // 33 registers are given out as 40
        assert_eq!(of(1024, 33, 0, 64), (1024, Limit::Registers));
        // 32 KiB of products and 1 KiB of the system's: 6 of 228 KiB
        assert_eq!(of(256, 32, 32 << 10, 64), (1536, Limit::LocalMemory));
        assert_eq!(unit.occupancy(1024, 128, 0, 64), None);
        assert_eq!(unit.occupancy(256, 32, 1 << 20, 64), None);
        assert_eq!(unit.occupancy(256, 40, 0, 64).unwrap().part(), 0.75);
        // without a reserve, and without local memory, that sets no limit
        let old = Unit::of_nvidia((7, 0)).unwrap();
        assert_eq!((old.local_unit, old.parts, Unit::of_nvidia((6, 0)).unwrap().parts), (256, 4, 2));
        assert_eq!(Unit::of_nvidia((10, 0)), Some(unit));
        assert_eq!(old.occupancy(256, 32, 0, 64).unwrap().resident, 2048);
        assert_eq!(Unit::of_nvidia((99, 0)), None);
    }

    #[test]
    fn registers_of_a_log() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'cg_step_weighted' for 'sm_90'\n\
                   ptxas info    : Function properties for cg_step_weighted\n\
                   \x20   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 40 registers, 1 barriers, 2048 bytes smem, 424 bytes cmem[0]\n\
                   ptxas info    : Compiling entry function 'cg_step' for 'sm_90'\n\
                   ptxas info    : Used 34 registers, 424 bytes cmem[0]\n\
                   ptxas info    : Compiling entry function 'silent' for 'sm_90'\n\
                   ptxas info    : Compiling entry function 'last' for 'sm_90'\n\
                   ptxas info    : Used 8 registers\n";
        let used = ["cg_step", "cg_step_weighted", "silent", "last", "missing"].map(|name| registers_in(log, name));
        assert_eq!(used, [Some(34), Some(40), None, Some(8), None]);
        assert_eq!(registers_in("", "cg_step"), None);
    }
}
