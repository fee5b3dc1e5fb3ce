//! The rank of a function in place of a matrix: the host, which has all rows.

use std::sync::Arc;

use super::{Alone, Engine, Exchange, Format, FormatChoice, HostBackend, Plain, Plan};
use super::{Rank, Result, Rows, Scaling, Setup, Stored, Tune};
use crate::operator::HostOperator;
use crate::precond::given::Given;

/// Opens the rank, for a method and a preconditioner that go with `a`. Tells also whether the preconditioner changes anything.
pub(crate) fn open<'a>(
    a: &HostOperator<'a>,
    setup: &Setup,
    given: Option<&Arc<Given>>,
) -> Result<(Box<dyn Rank + 'a>, bool)> {
    let (n, method) = (a.order(), setup.method);
    let diagonal = a.diagonal().filter(|_| setup.precond.is_diagonal());
    let scaling = diagonal.filter(|_| method.facts().scales).and_then(|diagonal| match method.needs_definite() {
        true => Scaling::of(diagonal, 1.0),
        false => Scaling::of(&diagonal.iter().map(|d| d.abs()).collect::<Vec<_>>(), 1.0),
    });
    let plan = Plan {
        precond: diagonal
            .filter(|_| method.applies(setup.precond))
            .map(|diagonal| (setup.precond, Rows::Function(diagonal.to_vec(), 1.0))),
        given: given.filter(|_| setup.applies_given()).map(|given| (Arc::clone(given), 0..n)),
        scaling: scaling.as_ref().map(|scaling| (scaling, 0..n)),
        factor: 1.0,
        is_complex: false,
        method,
        restart: setup.restart,
        known: None,
        format: Format::Auto,
        tune: Tune::Off,
        room: 0,
        exchange: Exchange::HostStaged,
        board: None,
    };
    let backend = HostBackend::new(n, Box::new(Alone::default()));
    let iterate = Plain::new(&backend)?;
    let block = a.block(scaling.as_ref().map(Scaling::roots));
    let stored = Stored { format: Format::Auto, choice: FormatChoice::unknown(), bytes: 0 };
    let rank = Box::new(Engine::new(backend, (vec![block], stored), iterate, &plan)?);
    let varies = |diagonal: &[f64]| diagonal.iter().any(|d| *d != diagonal[0]);
    Ok((rank, scaling.is_some() || method.applies(setup.precond) && diagonal.is_some_and(varies)))
}
