//! The scalars of a pass as they are formed on the device: its own, and what the iteration before has left to be formed.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Columns, Total, goes_on};
use crate::backend::program::{Pass, Program};
use crate::backend::scalar::{Form, Node};

/// What a pass forms of the iteration before, ahead of its own.
#[derive(Default)]
pub(super) struct Former {
    /// What is read of the log.
    pub(super) reads: String,
    /// Sums that it needs.
    pub(super) totals: Vec<Total>,
    /// What is formed, once sums are there.
    pub(super) text: String,
    /// When the run goes on.
    pub(super) conditions: Vec<String>,
    /// Columns of the log, and what they get.
    pub(super) results: Vec<(usize, String)>,
}

impl Former {
    pub(super) fn of(last: Option<&Pass>, program: &Program, columns: &Columns) -> Self {
        let Some(last) = last else { return Self::default() };
        let mut head = Head::of_former(last, program, columns);
        let checks = last.before.iter().chain(&last.after);
        let conditions = checks.map(|check| goes_on(check, &head.name(check.node))).collect();
        let mut results: Vec<(usize, String)> =
            last.forms.iter().filter_map(|node| Some((columns.column(*node)?, head.name(*node)))).collect();
        let mut carried = String::new();
        for (k, next) in program.carried.iter().map(|carried| carried.next).enumerate() {
            if last.forms.contains(&next) {
                let (column, value) = (columns.carried(k), head.name(next));
                let _ = writeln!(carried, "    const acc c{k} = has_former ? {value} : log[before + {column}];");
                results.push((column, value));
            }
        }
        let parts = |sum: &usize| Total {
            name: head.total(*sum),
            at: format!("former + {sum} * stride"),
            count: "has_former ? tiles : 0".into(),
            apart: 1,
        };
        let totals = last.awaits.iter().map(parts).collect();
        Self { reads: head.reads, totals, text: head.text + &carried, conditions, results }
    }
}

/// The scalars of a pass as they are formed on the device.
pub(super) struct Head<'a> {
    program: &'a Program,
    columns: &'a Columns,
    pass: &'a Pass,
    /// What the pass forms first, of the iteration before.
    pub(super) finished: Option<&'a Pass>,
    /// Where the rows of its iteration and of the one before are.
    rows: [&'static str; 2],
    /// What names of scalars and of sums begin with.
    prefixes: [&'static str; 2],
    names: BTreeMap<Node, String>,
    /// What is read of the log.
    pub(super) reads: String,
    /// What is formed, once sums are there.
    pub(super) text: String,
}

impl<'a> Head<'a> {
    /// Those of a pass of the present iteration.
    pub(super) fn of(pass: &'a Pass, program: &'a Program, columns: &'a Columns) -> Self {
        let finished = program.finished_by(pass);
        let (rows, prefixes) = (["now", "before"], ["n", "t"]);
        let (names, reads, text) = (BTreeMap::new(), String::new(), String::new());
        Self { program, columns, pass, finished, rows, prefixes, names, reads, text }
    }

    /// Those of what the iteration before has left to be formed.
    fn of_former(last: &'a Pass, program: &'a Program, columns: &'a Columns) -> Self {
        let (rows, prefixes) = (["before", "older"], ["m", "u"]);
        Self { rows, prefixes, finished: None, ..Self::of(last, program, columns) }
    }

    /// The name of the total of a sum.
    pub(super) fn total(&self, sum: usize) -> String {
        format!("{}{sum}", self.prefixes[1])
    }

    /// The name of a scalar, which is formed unless it is there.
    pub(super) fn name(&mut self, node: Node) -> String {
        if let Some(name) = self.names.get(&node) {
            return name.clone();
        }
        let is_formed_before = !self.pass.forms.contains(&node)
            && self
                .program
                .passes()
                .take_while(|pass| pass.name != self.pass.name)
                .any(|pass| pass.forms.contains(&node));
        let [now, before] = self.rows;
        let form = self.program.scalars.form(node);
        let of_log = match (self.columns.column(node), form) {
            (Some(column), _) if is_formed_before => Some(format!("log[{now} + {column}]")),
            (_, Form::Carried(k)) => Some(format!("log[{before} + {}]", self.columns.carried(k))),
            _ => None,
        };
        let name = format!("{}{}", self.prefixes[0], node.0);
        self.names.insert(node, name.clone());
        match (of_log, form) {
            (_, Form::Carried(k)) if self.is_finished_here(k) => {
                self.names.insert(node, format!("c{k}"));
                return format!("c{k}");
            }
            (Some(place), _) => {
                let _ = writeln!(self.reads, "    const acc {name} = {place};");
            }
            (None, form) => {
                let value = self.value(form);
                let _ = writeln!(self.text, "    const acc {name} = {value};");
            }
        }
        name
    }

    /// Whether the pass itself forms what the iteration before has left in carried scalar `k`.
    fn is_finished_here(&self, k: usize) -> bool {
        self.finished.is_some_and(|last| last.forms.contains(&self.program.carried[k].next))
    }

    fn value(&mut self, form: Form) -> String {
        match form {
            Form::Constant(value) => format!("(acc)({value:?})"),
            Form::Sum(sum) => self.total(sum),
            Form::Carried(k) => unreachable!("carried scalar {k} is in the log"),
            Form::Negative(a) => format!("-{}", self.name(a)),
            Form::Root(a) => format!("sqrt({})", self.name(a)),
            Form::Plus(a, b) => format!("{} + {}", self.name(a), self.name(b)),
            Form::Minus(a, b) => format!("{} - {}", self.name(a), self.name(b)),
            Form::Times(a, b) => format!("{} * {}", self.name(a), self.name(b)),
            Form::Over(a, b) => format!("{} / {}", self.name(a), self.name(b)),
            Form::Larger(a, b) => format!("fmax({}, {})", self.name(a), self.name(b)),
            Form::Choice(a, b, c) => format!("{} > 0 ? {} : {}", self.name(a), self.name(b), self.name(c)),
        }
    }
}
