//! Scalars of a method: expressions over sums, constants and what the former iteration has left.
//!
//! A scalar is formed where it is first needed: by the next kernel if a device works alone, by the host among several ranks. Both
//! evaluate the same expression in the same order.

use std::collections::BTreeSet;

/// A scalar, by its number in [`Scalars`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node(pub(crate) usize);

/// How a scalar is formed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// A number.
    Constant(f64),
    /// Sum `k` of the program, over all ranks.
    Sum(usize),
    /// Carried scalar `k`: what the former iteration has left in it.
    Carried(usize),
    /// −a.
    Negative(Node),
    /// √a.
    Root(Node),
    /// a + b.
    Plus(Node, Node),
    /// a − b.
    Minus(Node, Node),
    /// a b.
    Times(Node, Node),
    /// a / b.
    Over(Node, Node),
    /// The larger of a and b; a number, if one of them is.
    Larger(Node, Node),
    /// a if the first is positive, else b.
    Choice(Node, Node, Node),
}

impl Form {
    /// The scalars that it is formed of.
    pub(crate) fn parts(self) -> impl Iterator<Item = Node> {
        let parts = match self {
            Self::Constant(_) | Self::Sum(_) | Self::Carried(_) => [None; 3],
            Self::Negative(a) | Self::Root(a) => [Some(a), None, None],
            Self::Plus(a, b) | Self::Minus(a, b) | Self::Times(a, b) | Self::Over(a, b) | Self::Larger(a, b) => {
                [Some(a), Some(b), None]
            }
            Self::Choice(a, b, c) => [a, b, c].map(Some),
        };
        parts.into_iter().flatten()
    }
}

/// All scalars of a program. A scalar is formed of earlier ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scalars(Vec<Form>);

impl Scalars {
    /// The scalar of this form.
    pub(crate) fn add(&mut self, form: Form) -> Node {
        let known = self.0.iter().position(|other| *other == form);
        Node(known.unwrap_or_else(|| {
            self.0.push(form);
            self.0.len() - 1
        }))
    }

    /// How a scalar is formed.
    pub(crate) fn form(&self, node: Node) -> Form {
        self.0[node.0]
    }

    /// Whether a scalar is formed of one of the sums that `is_pending` names.
    pub(crate) fn awaits(&self, node: Node, is_pending: &dyn Fn(usize) -> bool) -> bool {
        // each scalar once, of however many it is a part
        let (mut seen, mut left) = (vec![false; node.0 + 1], vec![node]);
        while let Some(node) = left.pop() {
            if std::mem::replace(&mut seen[node.0], true) {
                continue;
            }
            match self.form(node) {
                Form::Sum(sum) if is_pending(sum) => return true,
                form => left.extend(form.parts()),
            }
        }
        false
    }

    /// The sums that some scalars are formed of, but for those that are in scalars that were formed before.
    pub(crate) fn sums_of(&self, nodes: Vec<Node>, formed: &BTreeSet<Node>) -> BTreeSet<usize> {
        let (mut seen, mut left, mut sums) = (vec![false; self.0.len()], nodes, BTreeSet::new());
        while let Some(node) = left.pop() {
            if formed.contains(&node) || std::mem::replace(&mut seen[node.0], true) {
                continue;
            }
            match self.form(node) {
                Form::Sum(sum) => {
                    sums.insert(sum);
                }
                form => left.extend(form.parts()),
            }
        }
        sums
    }

    /// The values of all scalars, where sums and carried scalars have these. A sum that is not known yet is NaN, and so is what is
    /// formed of it.
    pub(crate) fn values(&self, sums: &[f64], carried: &[f64]) -> Vec<f64> {
        let mut values: Vec<f64> = Vec::with_capacity(self.0.len());
        for form in &self.0 {
            values.push(match *form {
                Form::Constant(value) => value,
                Form::Sum(k) => sums[k],
                Form::Carried(k) => carried[k],
                Form::Negative(a) => -values[a.0],
                Form::Root(a) => values[a.0].sqrt(),
                Form::Plus(a, b) => values[a.0] + values[b.0],
                Form::Minus(a, b) => values[a.0] - values[b.0],
                Form::Times(a, b) => values[a.0] * values[b.0],
                Form::Over(a, b) => values[a.0] / values[b.0],
                Form::Larger(a, b) => values[a.0].max(values[b.0]),
                Form::Choice(a, b, c) => values[if values[a.0] > 0.0 { b.0 } else { c.0 }],
            });
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_what_they_wait_for() {
        let mut all = Scalars::default();
        let [sum, carried, two] = [Form::Sum(1), Form::Carried(0), Form::Constant(2.0)].map(|form| all.add(form));
        let ratio = all.add(Form::Over(sum, carried));
        let root = all.add(Form::Root(ratio));
        let all_of_it = all.add(Form::Minus(root, two));
        let negative = all.add(Form::Negative(all_of_it));
        let [plus, times] = [Form::Plus(two, carried), Form::Times(two, carried)].map(|form| all.add(form));
        let larger = all.add(Form::Larger(negative, two));
        let [first, second] = [plus, negative].map(|of| all.add(Form::Choice(of, two, times)));
        let values = all.values(&[f64::NAN, 36.0], &[4.0]);
        assert_eq!([negative, plus, times].map(|node| values[node.0]), [-1.0, 6.0, 8.0]);
        assert_eq!([larger, first, second].map(|node| values[node.0]), [2.0, 2.0, 8.0]);
        assert_eq!(all.add(Form::Over(sum, carried)), ratio, "the same form is the same scalar");
        assert!(all.awaits(negative, &|k| k == 1) && !all.awaits(negative, &|k| k == 0));
        assert!(!all.awaits(carried, &|_| true));
    }

    #[test]
    fn scalars_are_visited_once() {
        let mut all = Scalars::default();
        let mut node = all.add(Form::Sum(3));
        for _ in 0..200 {
            node = all.add(Form::Plus(node, node));
        }
        assert!(all.awaits(node, &|k| k == 3) && !all.awaits(node, &|k| k == 2));
        assert_eq!(all.sums_of(vec![node], &BTreeSet::new()), BTreeSet::from([3]));
        assert_eq!(all.sums_of(vec![node], &BTreeSet::from([node])), BTreeSet::new());
    }
}
