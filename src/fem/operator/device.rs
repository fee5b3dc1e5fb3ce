//! Products by elements on devices.

use std::sync::Arc;

use rayon::prelude::*;

use super::blocks::BlockLists;
use super::nodes::RankNodes;
use super::{ElementOperator, Summation};
use crate::device::{Context, DeviceVec, Kind};
use crate::error::{Error, Result};
use crate::fem::colour::Colouring;
use crate::kernels::elements::{
    BlockRows, Blocks, ColourRows, ColourStep, Colours, Elements, Fixed, HEAD, NODE_BITS, Places, SharedRows, Springs,
};
use crate::kernels::products::ProductRows;
use crate::operator::device_rows::DeviceRows;
use crate::operator::distributed::OwnRows;
use crate::real::Real;

/// Elements of a block: as many as local memory has room for.
pub(super) const BLOCK_SIZES: [usize; 3] = [128, 64, 32];

/// Nodes of a block of as many elements, at the most; with nodes in any order there may be more, and the block gets fewer elements.
fn most_nodes(size: usize, nodes: usize, dimensions: usize) -> usize {
    // blocks of first order have about half as many nodes as elements, or a quarter, and a border
    let inner = if nodes > dimensions + 1 { 3 * size } else { size + size / 2 };
    inner.max(2 * nodes)
}

type RowsOf<T> = Vec<Box<dyn ProductRows<T>>>;

impl ElementOperator<'_> {
    /// A rank's elements in blocks of at most `size`.
    pub(super) fn block_lists(&self, rank: &RankNodes, size: usize) -> BlockLists {
        let cell = self.mesh.cell();
        let mut has_springs = vec![false; rank.own.len()];
        for (row, _) in self.springs_of::<f64>(rank) {
            has_springs[row as usize / self.unknowns] = true;
        }
        let most = most_nodes(size, cell.nodes(), cell.dimensions());
        BlockLists::new(self.mesh, rank, [size, most], |node| has_springs[node as usize])
    }
}

/// The rows of a rank on a device, and the bytes that a product moves.
pub(super) fn rows<T: Real>(
    operator: &ElementOperator<'_>,
    ctx: &Context,
    own: &OwnRows,
    scale: Option<&[T]>,
) -> Result<(DeviceRows<T>, u64)> {
    let (rank, cell) = (operator.rank(&own.rows), operator.mesh.cell());
    let (b, nodes) = (operator.unknowns, cell.nodes());
    let local = |size: usize| {
        (most_nodes(size, nodes, cell.dimensions()) * b + nodes * b * size) * size_of::<T>()
            + 4 * most_nodes(size, nodes, cell.dimensions())
            + 4096 // what sums of a group need
    };
    let fits =
        |size: &&usize| local(**size) as u64 <= ctx.info().local_memory_bytes && **size <= ctx.info().max_work_group;
    let size = match operator.summation {
        Summation::ByNode => *BLOCK_SIZES.iter().find(fits).ok_or_else(|| {
            let info = ctx.info();
            Error::Usage(format!(
                "{}: {} bytes of local memory are too few for elements",
                info.label(),
                info.local_memory_bytes
            ))
        })?,
        Summation::Coloured => BLOCK_SIZES[0].min(ctx.info().max_work_group),
    };
    let coordinates = Coordinates::of::<T>(operator, &rank);
    let elements = Elements {
        dimensions: cell.dimensions(),
        nodes,
        unknowns: b,
        block: size,
        block_nodes: most_nodes(size, nodes, cell.dimensions()),
        slopes: operator.rule.slopes.clone(),
        weights: operator.rule.weights.clone(),
        is_curved: operator.rule.is_curved,
        is_elastic: operator.is_elastic,
        is_stored: operator.stored.is_some(),
        is_scaled: scale.is_some(),
        has_springs: !operator.springs.is_empty(),
        place: coordinates.name(),
        has_low_part: coordinates.low.is_some(),
        is_unrolled: ctx.info().kind == Kind::Gpu,
        is_by_blocks: operator.summation == Summation::ByNode,
    };
    let mut upload = Upload { ctx, bytes: 0 };
    match operator.summation {
        Summation::ByNode => by_blocks(operator, &rank, &elements, &coordinates, scale, &mut upload),
        Summation::Coloured => by_colours(operator, &rank, &elements, &coordinates, scale, &mut upload),
    }
}

/// Arrays on their way to a device, of which at least one element is there.
struct Upload<'c> {
    ctx: &'c Context,
    bytes: usize,
}

impl Upload<'_> {
    fn array<E: crate::memory::Plain + Default + Clone>(
        &mut self,
        values: &[E],
        what: &'static str,
    ) -> Result<DeviceVec<E>> {
        self.bytes += size_of_val(values);
        if values.is_empty() {
            return DeviceVec::from_slice(self.ctx, &[E::default()], what);
        }
        DeviceVec::from_slice(self.ctx, values, what)
    }
}

/// Coordinates of the rank's nodes, four numbers each, in the fewest bytes in which differences are what they are in double precision, or are near that.
struct Coordinates {
    single: Vec<f32>,
    double: Vec<f64>,
    low: Option<Vec<f32>>,
}

impl Coordinates {
    fn of<T: Real>(operator: &ElementOperator<'_>, rank: &RankNodes) -> Self {
        let points = operator.mesh.points();
        let all = || rank.all().flat_map(|node| points[node].into_iter().chain([0.0]));
        let is_single = all().all(|v| f64::from(v as f32) == v);
        let (mut single, mut double, mut low) = (Vec::new(), Vec::new(), None);
        if is_single {
            single = all().map(|v| v as f32).collect();
        } else if size_of::<T>() == 8 {
            double = all().collect();
        } else {
            single = all().map(|v| v as f32).collect();
            low = Some(all().zip(&single).map(|(v, &high)| (v - f64::from(high)) as f32).collect());
        }
        Self { single, double, low }
    }

    fn name(&self) -> &'static str {
        if self.double.is_empty() { "float" } else { "double" }
    }

    fn upload(&self, upload: &mut Upload<'_>) -> Result<[Places; 2]> {
        let what = "coordinates of nodes";
        if !self.double.is_empty() {
            return Ok([Places::Double(upload.array(&self.double, what)?), Places::Double(upload.array(&[], what)?)]);
        }
        let low = self.low.as_deref().unwrap_or(&[]);
        Ok([Places::Single(upload.array(&self.single, what)?), Places::Single(upload.array(low, what)?)])
    }
}

/// A node of the rank as kernels have it.
fn word(operator: &ElementOperator<'_>, rank: &RankNodes, node: u32) -> u32 {
    let own = rank.own.len() as u32;
    let in_mesh = if node < own { rank.own.start as u32 + node } else { rank.halo[(node - own) as usize] };
    node | u32::from(operator.known[in_mesh as usize]) << NODE_BITS
}

fn fixed<T: Real>(
    operator: &ElementOperator<'_>,
    rank: &RankNodes,
    (elements, coordinates): (&Elements, &Coordinates),
    scale: Option<&[T]>,
    (matrices, springs): (&[T], Springs<T>),
    upload: &mut Upload<'_>,
) -> Result<Fixed<T>> {
    let per_region = 1 + usize::from(operator.is_elastic);
    let materials: Vec<T> =
        operator.materials.iter().flat_map(|of| of[..per_region].iter().map(|&v| T::from_f64(v))).collect();
    let [places, places_low] = coordinates.upload(upload)?;
    Ok(Fixed {
        program: elements.program(),
        nodes: [rank.own.len(), rank.halo.len()],
        unknowns: operator.unknowns,
        places,
        places_low,
        materials: upload.array(&materials, "materials")?,
        scale: upload.array(scale.unwrap_or(&[]), "the scaling")?,
        matrices: upload.array(matrices, "matrices of elements")?,
        springs,
    })
}

/// Springs of some nodes, by their unknowns.
fn springs<T: Real>(
    operator: &ElementOperator<'_>,
    rank: &RankNodes,
    nodes: &[u32],
    upload: &mut Upload<'_>,
) -> Result<Springs<T>> {
    let b = operator.unknowns as u32;
    let all = operator.springs_of::<T>(rank);
    let (mut ends, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    if !operator.springs.is_empty() {
        for row in nodes.iter().flat_map(|node| (0..b).map(move |a| b * node + a)) {
            if let Ok(place) = all.binary_search_by_key(&row, |(row, _)| *row) {
                columns.extend(all[place].1.iter().map(|(column, _)| *column));
                values.extend(all[place].1.iter().map(|(_, value)| *value));
            }
            ends.push(columns.len() as u32);
        }
    }
    let what = "entries of sides";
    Ok(Springs {
        ends: upload.array(&ends, what)?,
        columns: upload.array(&columns, what)?,
        values: upload.array(&values, what)?,
    })
}

/// The lower triangles of the matrices of elements, or nothing: `len` elements in places that `of` tells, `apart` of which are side by side.
fn matrices<T: Real>(
    operator: &ElementOperator<'_>,
    (len, apart): (usize, usize),
    of: impl Fn(usize) -> Option<usize> + Sync,
) -> Result<Vec<T>> {
    let Some(physics) = &operator.stored else { return Ok(Vec::new()) };
    let (mesh, width) = (operator.mesh, operator.unknowns * operator.mesh.cell().nodes());
    let entries = width * (width + 1) / 2;
    let points = mesh.cell().points();
    let mut all: Vec<T> = crate::memory::zeros(len * entries).map_err(|e| e.into_error("matrices of elements"))?;
    all.par_chunks_mut((entries * apart).max(1)).enumerate().for_each(|(k, all)| {
        let mut matrix = vec![0.0; width * width];
        for e in 0..apart {
            let Some(element) = of(k * apart + e) else { continue };
            physics.matrix(mesh, element, &points, &mut matrix);
            let lower = (0..width).flat_map(|i| matrix[i * width..=i * width + i].iter());
            lower.enumerate().for_each(|(entry, &v)| all[entry * apart + e] = T::from_f64(v));
        }
    });
    Ok(all)
}

fn by_blocks<T: Real>(
    operator: &ElementOperator<'_>,
    rank: &RankNodes,
    elements: &Elements,
    coordinates: &Coordinates,
    scale: Option<&[T]>,
    upload: &mut Upload<'_>,
) -> Result<(DeviceRows<T>, u64)> {
    let (mesh, b) = (operator.mesh, operator.unknowns);
    let lists = operator.block_lists(rank, elements.block);
    // kernels count in 32 bits the places of all blocks, which may be cut short, and what is summed behind them
    let sums = lists.sum_ends.last().map_or(0, |&end| end as usize) * b;
    let places = lists.elements.len() * mesh.cell().nodes();
    if places.max(sums) > u32::MAX as usize {
        return Err(Error::Usage(format!("blocks with {places} places are more than a device counts; order the mesh")));
    }
    let element =
        |place: usize| Some(lists.elements[place]).filter(|&k| k != u32::MAX).map(|k| rank.element(k as usize));
    let region = |place: usize| element(place).map_or(0, |element| mesh.regions()[element] as u16);
    let regions: Vec<u16> = (0..lists.elements.len()).into_par_iter().map(region).collect();
    let words = |nodes: &[u32]| nodes.iter().map(|&node| word(operator, rank, node)).collect::<Vec<u32>>();
    let matrices = matrices::<T>(operator, (lists.elements.len(), lists.size), element)?;
    let springs = springs(operator, rank, &lists.shared, upload)?;
    let fixed = fixed(operator, rank, (elements, coordinates), scale, (&matrices, springs), upload)?;
    let what = "blocks of elements";
    let blocks = Blocks {
        heads: upload.array(&lists.heads, what)?,
        nodes: upload.array(&words(&lists.nodes), what)?,
        ends: upload.array(&lists.ends, what)?,
        lists: upload.array(&lists.lists, what)?,
        corners: upload.array(&lists.corners, what)?,
        regions: upload.array(&regions, what)?,
        slots: upload.array(&lists.slots, what)?,
        sums: DeviceVec::zeros(upload.ctx, sums.max(1), "sums of nodes")?,
        shared: upload.array(&words(&lists.shared), what)?,
        sum_ends: upload.array(&lists.sum_ends, what)?,
    };
    let count = (lists.heads.len() / HEAD) as u32;
    let (interior, shared) = (lists.interior as u32, lists.shared.len() as u32);
    let (fixed, blocks) = (Arc::new(fixed), Arc::new(blocks));
    let some = |first: u32, last: u32| -> RowsOf<T> {
        let rows = BlockRows { fixed: Arc::clone(&fixed), blocks: Arc::clone(&blocks), first, last };
        if first < last { vec![Box::new(rows)] } else { Vec::new() }
    };
    let of_shared = || -> RowsOf<T> {
        let rows = SharedRows { fixed: Arc::clone(&fixed), blocks: Arc::clone(&blocks), count: shared };
        if shared > 0 { vec![Box::new(rows)] } else { Vec::new() }
    };
    let behind = |mut first: RowsOf<T>, rest: RowsOf<T>| {
        first.extend(rest);
        first
    };
    let memory = upload.bytes + sums * size_of::<T>();
    // sums go and come; vectors of nodes come once for each block that has them
    let vectors = (lists.nodes.len() + rank.own.len()) * b * size_of::<T>();
    let bytes = (upload.bytes + 2 * sums * size_of::<T>() + vectors) as u64;
    let sets = [some(0, interior), behind(some(interior, count), of_shared())];
    Ok((DeviceRows::new(memory, sets, behind(some(0, count), of_shared())), bytes))
}

fn by_colours<T: Real>(
    operator: &ElementOperator<'_>,
    rank: &RankNodes,
    elements: &Elements,
    coordinates: &Coordinates,
    scale: Option<&[T]>,
    upload: &mut Upload<'_>,
) -> Result<(DeviceRows<T>, u64)> {
    let (mesh, b, nodes) = (operator.mesh, operator.unknowns, elements.nodes);
    let colouring = Colouring::of(mesh);
    let colours = colouring.sizes.len();
    let mut by_colour = vec![Vec::new(); colours];
    for element in (0..rank.len(mesh)).map(|k| rank.element(k)) {
        by_colour[colouring.of_element[element] as usize].push(element);
    }
    let order: Vec<usize> = by_colour.iter().flatten().copied().collect();
    let count = order.len();
    let mut corners = vec![0; nodes * count];
    if count > 0 {
        corners.par_chunks_exact_mut(count).enumerate().for_each(|(n, corners)| {
            for (to, &element) in corners.iter_mut().zip(&order) {
                *to = word(operator, rank, rank.number(mesh.element(element)[n]));
            }
        });
    }
    let regions: Vec<u16> = order.iter().map(|&element| mesh.regions()[element] as u16).collect();
    let all_nodes: Vec<u32> = (0..rank.own.len() as u32).map(|node| word(operator, rank, node)).collect();
    let mut of_springs: Vec<u32> = operator.springs_of::<T>(rank).iter().map(|(row, _)| row / b as u32).collect();
    of_springs.dedup();
    let mut spring_places = vec![0; if of_springs.is_empty() { 0 } else { rank.own.len() }];
    of_springs.iter().zip(1..).for_each(|(&node, place)| spring_places[node as usize] = place);
    if spring_places.is_empty() && elements.has_springs {
        spring_places = vec![0; rank.own.len()];
    }
    let matrices = matrices::<T>(operator, (count, count.max(1)), |place| Some(order[place]))?;
    let springs = springs(operator, rank, &of_springs, upload)?;
    let fixed = Arc::new(fixed(operator, rank, (elements, coordinates), scale, (&matrices, springs), upload)?);
    let what = "elements by colours";
    let colours = Arc::new(Colours {
        all: count as u32,
        corners: upload.array(&corners, what)?,
        regions: upload.array(&regions, what)?,
        nodes: upload.array(&all_nodes, what)?,
        spring_places: upload.array(&spring_places, what)?,
    });
    let own = [rank.own.len() as u32, (rank.own.len() * b) as u32];
    let step = |step: ColourStep| -> Box<dyn ProductRows<T>> {
        Box::new(ColourRows { fixed: Arc::clone(&fixed), colours: Arc::clone(&colours), step, own })
    };
    let steps = || -> RowsOf<T> {
        let mut all = vec![step(ColourStep::Zero)];
        let mut first = 0;
        for of_colour in by_colour.iter().filter(|of_colour| !of_colour.is_empty()) {
            let last = first + of_colour.len() as u32;
            all.push(step(ColourStep::Add { first, last }));
            first = last;
        }
        all.push(step(ColourStep::Summed));
        all
    };
    // an element reads x and y of its nodes, and writes y
    let vectors = (3 * count * nodes + 3 * rank.own.len()) * b * size_of::<T>();
    let bytes = (upload.bytes + vectors) as u64;
    // all of them need the halo, as they are launched
    Ok((DeviceRows::new(upload.bytes, [Vec::new(), steps()], steps()), bytes))
}
