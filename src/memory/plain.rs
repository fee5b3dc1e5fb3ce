//! Numbers whose bytes anything may read and write.

/// Plain numbers, whose bytes a device may read and write.
///
/// # Safety
/// Every bit pattern must be a value, and there must be no padding.
pub unsafe trait Plain: Copy + Default + Send + Sync + 'static {}
// SAFETY: numbers and arrays of numbers.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for [u32; 2] {}
// SAFETY: as above.
unsafe impl Plain for [f32; 4] {}
