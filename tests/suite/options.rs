//! Options that are set one by one: each sets what its name says, and nothing else.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use declive::matrix_market::{Field, Layout, Symmetry, WriteOptions};
use declive::solve::{
    Checkpoint, Checkpoints, Exchange, Format, Method, OnFailure, Precision, Precond, Progress, Reorder, Tune,
};
use declive::tune::Watch;
use declive::{Control, Setup, Stop};

#[test]
fn of_a_setup() {
    let setup = Setup::default()
        .with_method(Method::Minres)
        .with_precond(Precond::None)
        .with_precision(Precision::F32)
        .with_devices("0,host".parse().unwrap())
        .with_assume_symmetric(true)
        .with_tune(Tune::Off)
        .with_format(Format::Sell)
        .with_shares("3:1".parse().unwrap())
        .with_reorder(Reorder::Rcm)
        .with_exchange(Exchange::SharedContext)
        .with_on_failure(OnFailure::Continue);
    assert_eq!(
        (setup.method, setup.precond, setup.precision, setup.devices.to_string(), setup.assume_symmetric),
        (Method::Minres, Precond::None, Precision::F32, "0,host".to_string(), true)
    );
    assert_eq!((setup.tune, setup.format, setup.shares), (Tune::Off, Format::Sell, Some("3:1".parse().unwrap())));
    assert_eq!(
        (setup.reorder, setup.exchange, setup.on_failure),
        (Reorder::Rcm, Exchange::SharedContext, OnFailure::Continue)
    );
    // one leaves the others as they are
    let mut expected = Setup::default();
    expected.precision = Precision::Mixed;
    assert_eq!(Setup::default().with_precision(Precision::Mixed), expected);
}

#[test]
fn of_a_stop() {
    let second = Duration::from_secs(1);
    let stop = Stop::default().with_rtol(1e-3).with_atol(1e-9).with_max_iters(7).with_time_limit(second);
    assert_eq!((stop.rtol, stop.atol, stop.max_iters, stop.time_limit), (1e-3, 1e-9, Some(7), Some(second)));
    let only = Stop::default().with_atol(1.0);
    assert_eq!((only.rtol, only.max_iters, only.time_limit), (1e-8, None, None));
}

#[test]
fn of_a_control() {
    let cancel = AtomicBool::new(false);
    let progress = |_: &Progress| {};
    let take = |_: &Checkpoint<'_>| {};
    let every = Duration::from_secs(3);
    let control = Control::default()
        .with_cancel(&cancel)
        .with_progress(&progress)
        .with_timeline(true)
        .with_checkpoint(Checkpoints::new(every, &take))
        .with_done(5);
    assert!(std::ptr::eq(control.cancel.unwrap(), &cancel) && control.progress.is_some());
    assert_eq!((control.timeline, control.checkpoint.unwrap().every, control.done), (true, every, 5));
    let none = Control::default();
    assert!(none.cancel.is_none() && none.progress.is_none() && none.checkpoint.is_none());
    assert_eq!((none.timeline, none.done), (false, 0));
}

#[test]
fn of_other_work() {
    let options = WriteOptions::default()
        .with_layout(Layout::Array)
        .with_field(Field::Integer)
        .with_symmetry(Symmetry::Symmetric)
        .with_precision(3)
        .with_comments(vec!["by hand".into()])
        .with_trusted(true);
    assert_eq!((options.layout, options.field), (Layout::Array, Some(Field::Integer)));
    assert_eq!((options.symmetry, options.precision), (Symmetry::Symmetric, Some(3)));
    assert_eq!((options.comments, options.trusted), (vec!["by hand".to_string()], true));
    let cancel = AtomicBool::new(false);
    let watch = Watch::default().with_cancel(&cancel).with_progress(&|_, _| {});
    assert!(std::ptr::eq(watch.cancel.unwrap(), &cancel) && watch.progress.is_some());
}
