//! Arrays of Python, used where they are.
//!
//! All `unsafe` of this crate is here: nothing keeps other threads of Python from writing to an array that is read here. As with NumPy's own
//! functions, that is the caller's to see to, and documented.

use std::slice;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An array of one dimension, without gaps, which stays as long as this does.
pub(crate) struct Array<T>(PyBuffer<T>);

impl<T: Element> Array<T> {
    /// That of a Python object.
    ///
    /// # Errors
    /// `ValueError` for one with gaps; what the object says if it has no such elements.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("an array has gaps; make it contiguous"));
        }
        Ok(Self(buffer))
    }

    /// The elements.
    pub(crate) fn get(&self) -> &[T] {
        if self.0.item_count() == 0 {
            return &[];
        }
        // SAFETY: the buffer has so many elements of this type, aligned and without gaps, and stays while `self` does; nobody writes to it, as
        // the caller has promised.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.item_count()) }
    }
}

/// The same, to write to.
pub(crate) struct ArrayMut<T>(PyBuffer<T>);

impl<T: Element> ArrayMut<T> {
    /// That of a Python object which nobody else has: one that the package has just made.
    ///
    /// # Errors
    /// `ValueError` for one with gaps, or that is only to be read; what the object says if it has no such elements.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::get(object)?;
        if buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("an array is not one to write to"));
        }
        Ok(Self(buffer))
    }

    /// The elements.
    pub(crate) fn get(&mut self) -> &mut [T] {
        if self.0.item_count() == 0 {
            return &mut [];
        }
        // SAFETY: as above; and nobody else has the array, so that this is the only look at it.
        unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.item_count()) }
    }
}

/// The indices of NumPy's integers, of the bits of those that the library has: a number below 0 becomes one that is too large, which the library refuses.
pub(crate) trait Index: Element {
    /// The unsigned integer of the same size.
    type Unsigned;
}

impl Index for i32 {
    type Unsigned = u32;
}

impl Index for i64 {
    type Unsigned = usize;
}

impl<I: Index> Array<I> {
    /// The same bits as unsigned integers.
    pub(crate) fn unsigned(&self) -> &[I::Unsigned] {
        const { assert!(size_of::<I>() == size_of::<I::Unsigned>() && align_of::<I>() == align_of::<I::Unsigned>()) };
        let signed = self.get();
        // SAFETY: integers of the same size and alignment, for which all bits are numbers.
        unsafe { slice::from_raw_parts(signed.as_ptr().cast(), signed.len()) }
    }
}
