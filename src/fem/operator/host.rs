//! Products by elements on the host.

use rayon::prelude::*;

use super::ElementOperator;
use super::element::Rule;
use super::nodes::RankNodes;
use crate::fem::adjacency::Adjacency;
use crate::operator::distributed::{HostRows, OwnRows};
use crate::real::Real;

/// Elements, or nodes, that are worth a thread's while.
const CHUNK: usize = 1 << 10;

/// The elements of a rank on the host: all give to the nodes, and then each node adds up what it gets, in the order of elements.
struct HostElements<'a, T, const D: usize, const N: usize, const B: usize> {
    operator: ElementOperator<'a>,
    rule: Rule<T>,
    rank: RankNodes,
    /// What elements give.
    products: Vec<[[T; B]; N]>,
    /// Of each of its nodes, where that is.
    places: Adjacency,
    /// Springs of its rows, with the rank's numbers.
    springs: Vec<(u32, Vec<(u32, T)>)>,
}

impl<'a> ElementOperator<'a> {
    pub(super) fn host_rows<T: Real, const D: usize, const N: usize, const B: usize>(
        &self,
        own: &OwnRows,
    ) -> Box<dyn HostRows<T> + 'a> {
        let rank = self.rank(&own.rows);
        let (count, owned) = (rank.len(self.mesh), rank.own.len());
        let number = |k: usize, place: usize| rank.number(self.mesh.element(rank.element(k))[place]) as usize;
        let places = Adjacency::new(owned, count, N, number);
        Box::new(HostElements::<T, D, N, B> {
            operator: self.clone(),
            rule: self.rule.rounded(),
            products: vec![[[T::default(); B]; N]; count],
            springs: self.springs_of(&rank),
            rank,
            places,
        })
    }

    /// The springs of a rank's rows, with its own numbers of unknowns.
    pub(super) fn springs_of<T: Real>(&self, rank: &RankNodes) -> Vec<(u32, Vec<(u32, T)>)> {
        let b = self.unknowns as u32;
        let number = |unknown: u32| b * rank.number(unknown / b) + unknown % b;
        let own = |row: u32| rank.own.contains(&((row / b) as usize));
        let springs = self.springs.iter().filter(|(row, _)| own(*row));
        let entries = |entries: &Vec<(u32, f64)>| entries.iter().map(|&(c, v)| (number(c), T::from_f64(v))).collect();
        springs.map(|(row, of_row)| (number(*row), entries(of_row))).collect()
    }
}

impl<T: Real, const D: usize, const N: usize, const B: usize> HostRows<T> for HostElements<'_, T, D, N, B> {
    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let Self { operator, rule, rank, products, places, springs } = self;
        let (mesh, zero) = (operator.mesh, T::default());
        let is_free = |node: u32, a: usize| operator.known[node as usize] >> a & 1 == 0;
        let of_unknown = |node: u32| -> [T; B] {
            let k = rank.number(node) as usize * B;
            std::array::from_fn(|a| if is_free(node, a) { x[k + a] } else { zero })
        };
        products.par_iter_mut().enumerate().with_min_len(CHUNK).for_each(|(k, q)| {
            let element = rank.element(k);
            let nodes = mesh.element(element);
            let u: [[T; B]; N] = std::array::from_fn(|n| of_unknown(nodes[n]));
            rule.product::<D, N, B>(&operator.shape(element), operator.material(element), &u, q);
        });
        let products: &[[T; B]] = products.as_flattened();
        y.par_chunks_exact_mut(B).enumerate().with_min_len(CHUNK).for_each(|(node, y)| {
            let given = places.of(node).iter().map(|&place| products[place as usize]);
            let sum = given.fold([zero; B], |sum, given| std::array::from_fn(|a| sum[a] + given[a]));
            let in_mesh = (rank.own.start + node) as u32;
            for a in 0..B {
                y[a] = if is_free(in_mesh, a) { sum[a] } else { x[node * B + a] };
            }
        });
        for (row, entries) in springs {
            y[*row as usize] += entries.iter().fold(zero, |sum, &(column, v)| sum + v * x[column as usize]);
        }
    }

    fn bytes(&self) -> u64 {
        let elements = self.products.len() * (2 * size_of::<[[T; B]; N]>() + 4 * N + 4) + 4 * self.places.len();
        let nodes = self.rank.own.len() + self.rank.halo.len();
        (elements + nodes * (24 + B * size_of::<T>()) + self.rank.own.len() * (8 + B * size_of::<T>())) as u64
    }
}
