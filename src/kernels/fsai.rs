//! Launchers of `cl/fsai.cl`: rows of a factorised sparse approximate inverse, made on a device in double precision.

use super::{PRELUDE, USUAL_STD, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;

/// Work-items that make a row, and its most entries beside the diagonal.
pub(crate) const LANES: usize = 32;

/// Slots of the tables of columns that a row's pattern reaches: most rows do with the first.
pub(crate) const TABLES: [usize; 2] = [512, 2048];

/// Bytes of local memory that a row takes, beside 15 for each slot of its table.
const BESIDE_TABLE: usize = 8 << 10;

/// Groups for each compute unit, at most.
const GROUPS_OF_A_UNIT: usize = 64;

/// The length of a row that reaches more columns than a table takes.
pub(crate) const TOO_MANY: u32 = u32::MAX;

/// How rows grow: the most entries beside the diagonal, how many of them come in at a time, and the part of ψ that each has to save.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    pub(crate) entries: u32,
    pub(crate) at_once: u32,
    pub(crate) gain: f64,
}

/// A matrix with a diagonal of ones, and what it was scaled by.
pub(crate) struct Scaled {
    starts: DeviceVec<u32>,
    columns: DeviceVec<u32>,
    values: DeviceVec<f64>,
    scale: DeviceVec<f64>,
}

/// Rows in places of equal size.
pub(crate) struct Rows {
    /// Entries that a place has.
    room: usize,
    pub(crate) lengths: DeviceVec<u32>,
    columns: DeviceVec<u32>,
    values: DeviceVec<f64>,
}

impl Rows {
    /// Room for `n` rows that grow by so many entries.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(ctx: &Context, n: usize, growth: Growth) -> Result<Self> {
        let room = growth.entries as usize + 1;
        let lengths = DeviceVec::uninit(ctx, n, "lengths of rows of fsai")?;
        let columns = DeviceVec::uninit(ctx, n * room, "columns of fsai")?;
        let values = DeviceVec::uninit(ctx, n * room, "values of fsai")?;
        Ok(Self { room, lengths, columns, values })
    }
}

/// The kernels, with tables of one size.
pub(crate) struct FsaiKernels {
    scale: Kernel,
    rows: Kernel,
    gather: Kernel,
    most_groups: usize,
}

impl FsaiKernels {
    /// Compiles them for tables of that size, or takes what was compiled in a former run; `None` where the device has no double precision, or too
    /// little local memory.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, table: usize) -> Result<Option<Self>> {
        let info = ctx.info();
        let has_room = (BESIDE_TABLE + 15 * table) as u64 <= info.local_memory_bytes;
        if !info.has_f64 || info.max_work_group < LANES || !has_room {
            return Ok(None);
        }
        let files = [("prelude", PRELUDE), ("fsai", include_str!("../../cl/fsai.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let options = options_of::<f64, f64>(USUAL_STD, info, LANES, LANES);
        let program = ctx.build(&source, &format!("{options} -D TABLE={table}"))?;
        let [scale, rows, gather] =
            ["fsai_scale", "fsai_rows", "fsai_gather"].map(|name| ctx.kernel(&program, name, ["double"; 2]));
        let most_groups = GROUPS_OF_A_UNIT * info.compute_units.max(1) as usize;
        Ok(Some(Self { scale: scale?, rows: rows?, gather: gather?, most_groups }))
    }

    fn grid(&self, rows: usize) -> Grid {
        Grid { groups: rows.clamp(1, self.most_groups), group_size: LANES }
    }

    /// Moves a square matrix, and scales `factor` times it by these numbers on both sides.
    ///
    /// # Errors
    /// Not enough memory, or a failing device.
    ///
    /// # Panics
    /// If the arrays are not those of a square matrix in compressed rows.
    pub(crate) fn scaled(
        &self,
        ctx: &Context,
        (starts, columns, values): (&[u32], &[u32], &[f64]),
        scale: &[f64],
        factor: f64,
    ) -> Result<Scaled> {
        let (n, nnz) = (scale.len(), values.len());
        assert!(starts.len() == n + 1 && columns.len() == nnz && starts[n] as usize == nnz);
        assert!(starts.is_sorted() && columns.iter().all(|column| (*column as usize) < n));
        let starts = DeviceVec::from_slice(ctx, starts, "where rows begin")?;
        let columns = DeviceVec::from_slice(ctx, columns, "columns of the matrix")?;
        let values = DeviceVec::from_slice(ctx, values, "values of the matrix")?;
        let scale = DeviceVec::from_slice(ctx, scale, "the scale of the matrix")?;
        // SAFETY: types as declared in the file; rows, columns and lengths as checked.
        unsafe {
            launch(ctx, &self.scale, self.grid(n), &[&super::count(n), &starts, &columns, &scale, &factor, &values])
        }?;
        Ok(Scaled { starts, columns, values, scale })
    }

    /// Makes `n` rows of G from `first` on, or of these the ones in the list. [`TOO_MANY`] is the length of a row that reaches
    /// more columns than a table takes.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If there are no such rows, no room for them, or more entries than work-items.
    pub(crate) fn rows(
        &self,
        ctx: &Context,
        a: &Scaled,
        (first, n, list): (usize, usize, Option<&[u32]>),
        growth: Growth,
        to: &mut Rows,
    ) -> Result<()> {
        let Growth { entries, at_once, gain } = growth;
        assert!(first + n <= a.scale.len() && n <= to.lengths.len());
        assert!((entries as usize) < to.room && entries as usize <= LANES);
        assert!(list.is_none_or(|list| list.iter().all(|row| (*row as usize) < n)));
        let (is_listed, count) = (u32::from(list.is_some()), list.map_or(n, <[u32]>::len));
        let list = DeviceVec::from_slice(ctx, list.unwrap_or(&[0]), "rows that reach many columns")?;
        let [count, first, room] = [count, first, to.room].map(super::count);
        // SAFETY: types as declared in the file; rows 0..n of those from `first` on are there, and have room, as checked.
        unsafe {
            launch(
                ctx,
                &self.rows,
                self.grid(count as usize),
                &[
                    &count,
                    &first,
                    &is_listed,
                    &list,
                    &a.starts,
                    &a.columns,
                    &a.values,
                    &a.scale,
                    &entries,
                    &at_once,
                    &gain,
                    &room,
                    &to.lengths,
                    &to.columns,
                    &to.values,
                ],
            )
        }
    }

    /// The columns and values of the first rows, one behind the other, which begin and end at `starts`; rounded.
    ///
    /// # Errors
    /// Not enough memory, or a failing device.
    ///
    /// # Panics
    /// If there are not so many rows, or one is longer than its place.
    pub(crate) fn gather(&self, ctx: &Context, rows: &Rows, starts: &[u32]) -> Result<(Vec<u32>, Vec<f32>)> {
        let n = starts.len() - 1;
        assert!(
            n <= rows.lengths.len() && starts.windows(2).all(|s| s[0] <= s[1] && (s[1] - s[0]) as usize <= rows.room)
        );
        let nnz = starts[n] as usize;
        let starts = DeviceVec::from_slice(ctx, starts, "where rows of fsai begin")?;
        let columns = DeviceVec::<u32>::uninit(ctx, nnz, "columns of fsai")?;
        let values = DeviceVec::<f32>::uninit(ctx, nnz, "values of fsai")?;
        let [count, room] = [n, rows.room].map(super::count);
        // SAFETY: types as declared in the file; rows and their lengths as checked, and room for all of them.
        unsafe {
            launch(
                ctx,
                &self.gather,
                self.grid(n),
                &[&count, &room, &starts, &rows.columns, &rows.values, &columns, &values],
            )
        }?;
        let (mut on_host, mut of_values) = (vec![0; nnz], vec![0.0; nnz]);
        columns.read(ctx, 0, &mut on_host)?;
        values.read(ctx, 0, &mut of_values)?;
        Ok((on_host, of_values))
    }
}
