//! Which numbers of work-groups to try, and where to stop: the search alone, whatever is measured.

use super::found::{Point, Search};

/// Looks for the best number of groups for each compute unit, between 1 and `most`. `measure` takes the time with so many.
///
/// Gives the points that were tried, by rising numbers.
///
/// # Errors
/// Those of `measure`.
pub(super) fn search<E>(
    search: Search,
    most: usize,
    mut measure: impl FnMut(usize) -> Result<Point, E>,
) -> Result<Vec<Point>, E> {
    match search {
        Search::FirstMinimum => {
            let mut points: Vec<Point> = Vec::new();
            for groups in 1..=most {
                let point = measure(groups)?;
                let rises = points.last().is_some_and(|last| point.timing.median > last.timing.median);
                points.push(point);
                if rises {
                    break;
                }
            }
            Ok(points)
        }
        Search::Refine => {
            let doubling =
                std::iter::successors(Some(1), |groups| Some(2 * groups)).take_while(|&groups| groups < most);
            let mut points: Vec<Point> = doubling.chain([most]).map(&mut measure).collect::<Result<_, E>>()?;
            loop {
                let Some(best) = fastest(&points) else { return Ok(points) };
                let here = points[best].groups_per_unit;
                // halfway to the neighbours, unless they are near already
                let below = best.checked_sub(1).map(|k| points[k].groups_per_unit.midpoint(here));
                let above = points.get(best + 1).map(|point| here.midpoint(point.groups_per_unit));
                let is_new = |groups: &usize| points.iter().all(|p| p.groups_per_unit.abs_diff(*groups) > here / 8);
                let new: Vec<usize> = below.into_iter().chain(above).filter(is_new).collect();
                if new.is_empty() {
                    return Ok(points);
                }
                for groups in new {
                    points.push(measure(groups)?);
                }
                points.sort_by_key(|point| point.groups_per_unit);
            }
        }
    }
}

/// The index of the fastest point.
pub(super) fn fastest(points: &[Point]) -> Option<usize> {
    (0..points.len()).min_by(|&a, &b| points[a].timing.median.total_cmp(&points[b].timing.median))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::*;
    use crate::timing::timing;

    /// The numbers that are tried where `time` is the time, and the best of them.
    fn tried(kind: Search, most: usize, time: impl Fn(usize) -> f64) -> (Vec<usize>, usize) {
        let order = RefCell::new(Vec::new());
        let measure = |groups| {
            order.borrow_mut().push(groups);
            Ok::<_, Infallible>(Point {
                groups_per_unit: groups,
                groups: 10 * groups,
                timing: timing(vec![time(groups)]),
            })
        };
        let Ok(points) = search(kind, most, measure);
        assert!(points.windows(2).all(|pair| pair[0].groups_per_unit < pair[1].groups_per_unit));
        assert_eq!(points.len(), order.borrow().len(), "nothing is measured twice");
        let best = points[fastest(&points).unwrap()].groups_per_unit;
        (points.iter().map(|point| point.groups_per_unit).collect(), best)
    }

    /// Falls to a first minimum at 3, then to the least time at 20.
    fn two_minima(groups: usize) -> f64 {
        match groups {
            0..=3 => 10.0 - groups as f64,
            4 => 8.0,
            _ => 5.0 + (groups as f64 - 20.0).abs() / 20.0,
        }
    }

    #[test]
    fn the_first_minimum_ends_the_search() {
        assert_eq!(tried(Search::FirstMinimum, 64, two_minima), (vec![1, 2, 3, 4], 3));
        assert_eq!(tried(Search::FirstMinimum, 3, two_minima), (vec![1, 2, 3], 3));
        assert_eq!(tried(Search::FirstMinimum, 64, |_| 1.0).0.len(), 64);
        assert_eq!(tried(Search::FirstMinimum, 1, two_minima), (vec![1], 1));
    }

    #[test]
    fn refining_comes_near_with_few() {
        let (points, best) = tried(Search::Refine, 64, two_minima);
        assert!(points.len() <= 13 && best.abs_diff(20) <= 2, "{best} of {points:?}");
        assert_eq!(tried(Search::Refine, 1, two_minima), (vec![1], 1));
        assert_eq!(tried(Search::Refine, 2, two_minima), (vec![1, 2], 2));
        let (points, best) = tried(Search::Refine, 48, |groups| 1.0 / groups as f64);
        assert!(best == 48 && points.contains(&32));
        assert_eq!(tried(Search::Refine, 64, |groups| groups as f64).1, 1);
    }
}
