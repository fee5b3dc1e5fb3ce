//! What callers' pointers point to. Null pointers, misplaced arrays and impossible lengths are errors; the rest is what callers promise.

use std::ffi::{CStr, c_char};

use crate::failure::{Failure, Result};

fn null(what: &str) -> Failure {
    Failure::input(format!("{what} is a null pointer"))
}

/// A length that is not negative.
pub(crate) fn length(what: &str, n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Failure::input(format!("{what} = {n}; a length is a number from 0 up")))
}

/// A text that ends with a NUL.
///
/// # Safety
/// `text` is null, or such a text, which stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(what: &str, text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: by contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::input(format!("{what} = '{}' is not UTF-8", text.to_string_lossy())))
}

/// What something lies at.
///
/// # Safety
/// `at` is null, or points to a T that stays for `'a`, and that only other threads' calls that are allowed to change meanwhile.
pub(crate) unsafe fn at<'a, T>(what: &str, at: *const T) -> Result<&'a T> {
    // SAFETY: by contract.
    unsafe { at.as_ref() }.ok_or_else(|| null(what))
}

/// An array.
///
/// # Safety
/// `array` is null, or points to so many T that stay as they are for `'a`.
pub(crate) unsafe fn slice<'a, T>(what: &str, array: *const T, len: usize) -> Result<&'a [T]> {
    check(what, array, len)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: by contract, and checked to be aligned and of a size that there can be.
    Ok(unsafe { std::slice::from_raw_parts(array, len) })
}

/// An array to write to.
///
/// # Safety
/// `array` is null, or points to so many T that nobody else touches for `'a`.
pub(crate) unsafe fn slice_mut<'a, T>(what: &str, array: *mut T, len: usize) -> Result<&'a mut [T]> {
    check(what, array, len)?;
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: by contract, and checked to be aligned and of a size that there can be.
    Ok(unsafe { std::slice::from_raw_parts_mut(array, len) })
}

fn check<T>(what: &str, array: *const T, len: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    if array.is_null() {
        return Err(null(what));
    }
    if !array.is_aligned() {
        return Err(Failure::input(format!("{what} does not begin at a multiple of {} bytes", align_of::<T>())));
    }
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Failure::input(format!("{what} would have {len} elements, more than there can be"))),
    }
}
