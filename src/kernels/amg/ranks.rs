//! Launchers of `cl/amg_ranks.cl`: of levels whose rows are cut between ranks.

use bytemuck::Pod;

use super::aggregate::DeviceAggregates;
use super::{AmgKernels, DeviceSparse};
use crate::device::{Context, DeviceVec, Stay};
use crate::error::Result;
use crate::kernels::{Argument, count};
use crate::memory::Plain;
use crate::real::Real;

/// Rows in the host's memory: where each begins, columns, and values.
pub(crate) type HostRows = (Vec<u32>, Vec<u32>, Vec<f32>);

/// Elements of vectors that ranks tell each other.
pub(crate) trait Listed: Plain + Pod {
    /// What takes them by their places.
    const KERNEL: &'static str;
}

impl Listed for u32 {
    const KERNEL: &'static str = "numbers_at";
}

impl Listed for f32 {
    const KERNEL: &'static str = "elements_at";
}

/// Columns of other ranks: the place of each among them.
pub(crate) struct Others {
    places: DeviceVec<u32>,
    /// Their numbers, sorted.
    pub(crate) list: Vec<u32>,
}

impl<A: Real> AmgKernels<A> {
    /// Elements of a vector by their places, on the host. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn at<T: Listed>(&self, ctx: &Context, list: &DeviceVec<u32>, from: &DeviceVec<T>) -> Result<Vec<T>>
    where
        DeviceVec<T>: Argument,
    {
        let to = self.short::<T>(ctx, list.len(), "what others are told")?;
        // SAFETY: types as declared in the file; places are of this rank's rows, as who made the list vouches.
        unsafe { self.run(ctx, T::KERNEL, list.len(), &[&[list, from, &to]]) }?;
        let mut there = vec![T::default(); list.len()];
        to.read(ctx, 0, &mut there)?;
        Ok(there)
    }

    /// Aggregates by their numbers among all ranks, with room for those of `halo` rows of others; this rank's begin with `first`.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn among_all(
        &self,
        ctx: &Context,
        own: &DeviceAggregates,
        halo: usize,
        (first, all): (usize, usize),
    ) -> Result<DeviceAggregates> {
        let n = own.of.len();
        let of = self.short(ctx, n + halo, "aggregates among all")?;
        // SAFETY: types as declared in the file; n elements here and there.
        unsafe { self.run(ctx, "aggregates_among_all", n, &[&[&count(first), &own.of, &of]]) }?;
        Ok(DeviceAggregates { of, count: all })
    }

    /// Some rows, on the host. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn listed(&self, ctx: &Context, list: &DeviceVec<u32>, a: &DeviceSparse) -> Result<HostRows> {
        let n = list.len();
        let lengths = self.short(ctx, n, "lengths of rows")?;
        // SAFETY: types as declared in the file; rows of the matrix, as who made the list vouches, and a number for each.
        unsafe { self.run(ctx, "listed_lengths", n, &[&[list, &a.starts, &lengths]]) }?;
        let listed = self.with_lengths(ctx, a.n_cols, &lengths, Stay::Short)?;
        // SAFETY: as above, and room for as many entries as were counted.
        unsafe { self.run(ctx, "listed_rows", n, &[&[list as &dyn Argument], &a.rows(), &listed.rows()]) }?;
        self.on_host(ctx, &listed)
    }

    /// A matrix on the host. Waits.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn on_host(&self, ctx: &Context, a: &DeviceSparse) -> Result<HostRows> {
        let (mut starts, mut columns) = (vec![0; a.n_rows + 1], vec![0; a.nnz()]);
        let mut values = vec![0.0; a.nnz()];
        a.starts.read(ctx, 0, &mut starts)?;
        a.columns.read(ctx, 0, &mut columns)?;
        a.values.read(ctx, 0, &mut values)?;
        Ok((starts, columns, values))
    }

    /// The matrix with others' rows behind its own, of these lengths, columns and values.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn with_rows(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        (lengths, columns, values): (&[u32], &[u32], &[f32]),
    ) -> Result<DeviceSparse> {
        let (n, nnz, rows) = (a.n_rows, a.nnz(), lengths.len());
        let starts = self.pool.array(ctx, n + rows + 1, Stay::Short, "where rows begin")?;
        let mut all = self.with_starts(ctx, (n + rows, a.n_cols), starts, nnz + columns.len(), Stay::Short)?;
        a.starts.copy_to(ctx, &mut all.starts, n + 1)?;
        a.columns.copy_to(ctx, &mut all.columns, nnz)?;
        a.values.copy_to(ctx, &mut all.values, nnz)?;
        let ends = lengths.iter().scan(count(nnz), |end, length| {
            *end += length;
            Some(*end)
        });
        all.starts.write(ctx, n + 1, &ends.collect::<Vec<u32>>())?;
        all.columns.write(ctx, nnz, columns)?;
        all.values.write(ctx, nnz, values)?;
        Ok(all)
    }

    /// All rows, one part behind the other, of these lengths, columns and values, of which the device has that of `rank`.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn joined(
        &self,
        ctx: &Context,
        (own, rank): (&DeviceSparse, usize),
        parts: &[(&[u32], &[u32], &[f32])],
    ) -> Result<DeviceSparse> {
        let (mut starts, mut firsts) = (vec![0], vec![0]);
        for (lengths, columns, _) in parts {
            let mut end = count(firsts.last().map_or(0, |last| *last));
            firsts.push(end as usize + columns.len());
            starts.extend(lengths.iter().map(|length| {
                end += length;
                end
            }));
        }
        let (n, nnz) = (starts.len() - 1, *starts.last().unwrap_or(&0) as usize);
        let starts = DeviceVec::from_slice(ctx, &starts, "where rows begin")?;
        let mut all = self.with_starts(ctx, (n, own.n_cols), starts, nnz, Stay::Short)?;
        for (k, ((_, columns, values), at)) in parts.iter().zip(firsts).enumerate() {
            if k == rank {
                own.columns.copy_part(ctx, 0..own.nnz(), &mut all.columns, at)?;
                own.values.copy_part(ctx, 0..own.nnz(), &mut all.values, at)?;
            } else {
                all.columns.write(ctx, at, columns)?;
                all.values.write(ctx, at, values)?;
            }
        }
        Ok(all)
    }

    /// The rows of the transpose that are this rank's, the columns from `first` on: `owned` of them.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn transposed_own(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        (first, owned): (usize, usize),
    ) -> Result<DeviceSparse> {
        let keys = self.short(ctx, a.nnz(), "columns of entries")?;
        // SAFETY: types as declared in the file; as many entries here and there.
        unsafe { self.run(ctx, "owned_columns", a.nnz(), &[&[&count(first), &count(owned), &a.columns, &keys]]) }?;
        self.transposed_by(ctx, a, &keys, owned, owned + 1).map(|(transpose, _)| transpose)
    }

    /// The columns of a matrix that are others', as this rank has those from `first` on: `owned` of them. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn others(&self, ctx: &Context, a: &DeviceSparse, (first, owned): (usize, usize)) -> Result<Others> {
        let marks = self.short(ctx, a.n_cols, "marks of columns")?;
        marks.fill(ctx, 0)?;
        // SAFETY: types as declared in the file; columns below n_cols, and a mark for each.
        unsafe { self.run(ctx, "others_mark", a.nnz(), &[&[&count(first), &count(owned), &a.columns, &marks]]) }?;
        let (places, total) = self.starts(ctx, &marks, Stay::Short)?;
        let on_device = self.short(ctx, total, "columns of others")?;
        // SAFETY: types as declared in the file; as many places as were counted.
        unsafe { self.run(ctx, "others_list", a.n_cols, &[&[&marks, &places, &on_device]]) }?;
        let mut list = vec![0; total];
        on_device.read(ctx, 0, &mut list)?;
        Ok(Others { places, list })
    }

    /// Gives the columns of a matrix the numbers that this rank has for them; all that are others' must be known.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn number_columns(
        &self,
        ctx: &Context,
        a: &mut DeviceSparse,
        (first, owned): (usize, usize),
        others: &Others,
    ) -> Result<()> {
        // SAFETY: types as declared in the file; columns below n_cols, and a place for each.
        unsafe {
            self.run(ctx, "columns_of_rank", a.nnz(), &[&[&count(first), &count(owned), &others.places, &a.columns]])
        }?;
        a.n_cols = owned + others.list.len();
        Ok(())
    }

    /// Gives them their numbers among all `n` columns again.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn number_among_all(
        &self,
        ctx: &Context,
        a: &mut DeviceSparse,
        (first, owned): (usize, usize),
        (others, n): (&[u32], usize),
    ) -> Result<()> {
        assert!(a.n_cols == owned + others.len());
        let others = self.numbers(ctx, others, "columns of others")?;
        // SAFETY: types as declared in the file; columns below as many as are owned and others'.
        unsafe {
            self.run(ctx, "columns_among_all", a.nnz(), &[&[&count(first), &count(owned), &others, &a.columns]])
        }?;
        a.n_cols = n;
        Ok(())
    }

    /// A vector with room for `halo` elements more.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn with_halo(&self, ctx: &Context, v: &DeviceVec<f32>, n: usize, halo: usize) -> Result<DeviceVec<f32>> {
        let mut with_room = self.pool.array(ctx, n + halo, Stay::Short, "a vector of a level")?;
        v.copy_to(ctx, &mut with_room, n)?;
        Ok(with_room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    /// Rows 0: (1, 5), 1: none, 2: (0, 3, 7), 3: (7), of eight columns.
    fn matrix(ctx: &Context) -> DeviceSparse {
        let numbers = |numbers: &[u32]| DeviceVec::from_slice(ctx, numbers, "numbers").unwrap();
        DeviceSparse {
            n_rows: 4,
            n_cols: 8,
            starts: numbers(&[0, 2, 2, 5, 6]),
            columns: numbers(&[1, 5, 0, 3, 7, 7]),
            values: DeviceVec::from_slice(ctx, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "values").unwrap(),
        }
    }

    #[test]
    fn rows_of_ranks() {
        let device = list().devices.remove(0);
        let ctx = &Context::open(&device).unwrap();
        let kernels = AmgKernels::<f64>::build(ctx).unwrap().unwrap();
        let a = matrix(ctx);
        let list = DeviceVec::from_slice(ctx, &[2u32, 0, 2, 1], "a list").unwrap();
        assert_eq!(kernels.at(ctx, &list, &a.starts).unwrap(), [2, 0, 2, 2]);
        assert_eq!(kernels.at(ctx, &list, &a.values).unwrap(), [3.0, 1.0, 3.0, 2.0]);
        let listed = kernels.listed(ctx, &list, &a).unwrap();
        let columns = vec![0, 3, 7, 1, 5, 0, 3, 7];
        assert_eq!(listed, (vec![0, 3, 5, 8, 8], columns, vec![3.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
        let none = DeviceVec::from_slice(ctx, &[], "no list").unwrap();
        assert_eq!(kernels.listed(ctx, &none, &a).unwrap(), (vec![0], vec![], vec![]));

        // behind its own, the second and third of these, none, and the last one
        let more: (&[u32], &[u32], &[f32]) = (&[2, 3, 0], &[1, 5, 0, 3, 7], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let all = kernels.with_rows(ctx, &a, more).unwrap();
        let (starts, columns, values) = kernels.on_host(ctx, &all).unwrap();
        assert_eq!(starts, [0, 2, 2, 5, 6, 8, 11, 11]);
        assert_eq!(columns, [1, 5, 0, 3, 7, 7, 1, 5, 0, 3, 7]);
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let own = kernels.on_host(ctx, &a).unwrap();
        let lengths: [&[u32]; 2] = [&[3, 2, 3, 0], &[2, 0, 3, 1]];
        let parts = [(lengths[0], &listed), (lengths[1], &own), (lengths[1], &own)];
        let parts = parts.map(|(lengths, (_, columns, values))| (lengths, &columns[..], &values[..]));
        let joined = kernels.joined(ctx, (&a, 1), &parts).unwrap();
        let (starts, columns, values) = kernels.on_host(ctx, &joined).unwrap();
        assert_eq!(starts, [0, 3, 5, 8, 8, 10, 10, 13, 14, 16, 16, 19, 20]);
        assert_eq!(columns, [listed.1.clone(), own.1.clone(), own.1.clone()].concat());
        assert_eq!(values, [listed.2, own.2.clone(), own.2].concat());
    }

    #[test]
    fn columns_of_ranks() {
        let device = list().devices.remove(0);
        let ctx = &Context::open(&device).unwrap();
        let kernels = AmgKernels::<f64>::build(ctx).unwrap().unwrap();
        for (first, owned, others, numbers) in [
            (3, 3, vec![0, 1, 7], [4, 2, 3, 0, 5, 5]),
            (0, 8, vec![], [1, 5, 0, 3, 7, 7]),
            (2, 0, vec![0, 1, 3, 5, 7], [1, 3, 0, 2, 4, 4]),
        ] {
            let (mut a, own) = (matrix(ctx), (first, owned));
            let found = kernels.others(ctx, &a, own).unwrap();
            assert_eq!(found.list, others);
            let transpose = kernels.transposed_own(ctx, &a, own).unwrap();
            kernels.number_columns(ctx, &mut a, own, &found).unwrap();
            assert_eq!((a.n_cols, kernels.on_host(ctx, &a).unwrap().1), (owned + others.len(), numbers.to_vec()));
            kernels.number_among_all(ctx, &mut a, own, (&others, 8)).unwrap();
            assert_eq!((a.n_cols, kernels.on_host(ctx, &a).unwrap().1), (8, vec![1, 5, 0, 3, 7, 7]));
            // its rows are those columns
            let (starts, columns, values) = kernels.on_host(ctx, &transpose).unwrap();
            let rows: [&[(u32, f32)]; 8] =
                [&[(2, 3.0)], &[(0, 1.0)], &[], &[(2, 4.0)], &[], &[(0, 2.0)], &[], &[(2, 5.0), (3, 6.0)]];
            assert_eq!((transpose.n_rows, transpose.n_cols), (owned, 4));
            for k in 0..owned {
                let entries = starts[k] as usize..starts[k + 1] as usize;
                let row: Vec<(u32, f32)> = entries.map(|e| (columns[e], values[e])).collect();
                assert_eq!(row, rows[first + k]);
            }
        }
        let of = DeviceVec::from_slice(ctx, &[0u32, u32::MAX, 2, u32::MAX - 1], "aggregates").unwrap();
        let among = kernels.among_all(ctx, &DeviceAggregates { of, count: 3 }, 2, (10, 20)).unwrap();
        let mut all = [0; 4];
        among.of.read(ctx, 0, &mut all).unwrap();
        assert_eq!((all, among.of.len(), among.count), ([10, u32::MAX, 12, u32::MAX - 1], 6, 20));
    }
}
