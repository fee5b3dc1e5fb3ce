//! `declive tune`: launch parameters for each kernel of each device, found by measurement.

use std::collections::VecDeque;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use declive::device::{Kind, select};
use declive::solve::Precision;
use declive::tune::store::Store;
use declive::tune::{self, Search, Watch};
use declive::{Csr, Error};

use super::exit::Exit;
use super::experiments::kinds;
use super::failure::Failure;
use super::interrupt;
use super::measured::{Measured, Page, grid, load};
use super::output::print;
use super::progress::Screen;
use crate::report::tune::{Kept, Report};
use crate::report::tune_html;

/// Find how many work-groups, and how large ones, each kernel is fastest with
///
/// Every kernel is timed alone on each device, by the device's own clock, on a matrix of your own or on a 7-point
/// operator. Devices that are alike are measured once; the host, which launches no kernels, is not. With k devices that
/// is done for the whole matrix, which a solve on one of them has, and for the block of about 1/k of its rows that each
/// has in a solve on all, if k is so large that the whole tells nothing about it (3 or more). Where the time of iterations
/// then goes, 'declive bench' tells.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    measured: Measured,

    #[command(flatten)]
    page: Page,

    /// Which numbers and sizes of work-groups to try
    #[arg(long, default_value = Search::Refine.name(), value_parser = searches())]
    search: Search,

    /// Keep nothing for later solves
    #[arg(long)]
    dry_run: bool,

    /// Print what is kept from former runs, and measure nothing
    #[arg(long, conflicts_with_all = ["system", "search", "report", "clear"])]
    show: bool,

    /// Forget what is kept from former runs, and measure nothing
    #[arg(long, conflicts_with_all = ["system", "search", "report"])]
    clear: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive tune
  declive tune A.mtx --devices 0 --report tuned.html
  declive tune A.mtx --devices 0,1,2,3    for a solve on one, and on four
  declive tune --order 1000000 --search first-minimum --json
  declive tune --show";

fn searches() -> impl TypedValueParser<Value = Search> {
    let values = Search::ALL.iter().map(|s| PossibleValue::new(s.name()).help(s.describe()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Search>())
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let Args { measured, page, search, dry_run, .. } = args;
    let store = Store::open();
    if args.show || args.clear {
        print(&Kept::new(store.list(), args.clear.then(|| store.clear())), measured.json)?;
        return Ok(Exit::Success);
    }
    let given = measured.source();
    let page = page.target(given.as_ref())?;
    interrupt::kill_cleanly();
    if measured.precision == Precision::Mixed {
        let why = "--precision mixed runs the kernels of f32 and of f64: tune for both, one after the other";
        return Err(Error::Usage(why.into()).into());
    }
    let screen = Screen::new(false);
    let ranks = select(&measured.devices, measured.precision.needs_f64())?.ranks;
    let kinds = kinds(&ranks);
    if ranks.iter().all(Option::is_none) {
        let wanted = measured.devices.to_string();
        let found = "only the host, whose threads launch no kernels".into();
        return Err(Error::NoDevice { wanted, found }.into());
    }
    // matrices, and what they are
    let mut systems: Vec<(Csr, String)> = given.map(|source| load(&source, screen)).transpose()?.into_iter().collect();
    let is_given = !systems.is_empty();
    let mut report = Report::default();
    for kind in &kinds {
        let Some(device) = &kind.device else { continue };
        if !is_given {
            let usual = if device.kind == Kind::Gpu { 10_000_000 } else { 1_000_000 };
            let source = grid(measured.order.unwrap_or(usual))?;
            if systems.last().is_none_or(|(_, name)| *name != source.to_string()) {
                systems.push(load(&source, screen)?);
            }
        }
        let Some((a, name)) = systems.last() else { continue };
        let blocks = tune::ranks_to_tune(a, ranks.len(), &kind.ranks).into_iter().map(|k| (k, ranks.len()));
        let mut work: VecDeque<(usize, usize)> = std::iter::once((0, 1)).chain(blocks).collect();
        while let Some((k, of)) = work.pop_front() {
            let what = if of == 1 { String::new() } else { format!(" for one of {of} blocks") };
            let bar = screen.steps(&format!("tuning {}{what}", device.name));
            let progress = |done, all| bar.update(done, all);
            let watch = Watch::default().with_progress(&progress);
            let found = match tune::rank(device, a, (k, of), name, measured.precision, search, watch) {
                // too large for one device: that may be why there are several
                Err(e @ Error::OutOfDeviceMemory { .. }) if of < ranks.len() => {
                    drop(bar);
                    log::warn!("the whole matrix is left out: {e}");
                    if work.is_empty() {
                        work.push_back((kind.ranks[kind.ranks.len() / 2], ranks.len()));
                    }
                    continue;
                }
                found => found?,
            };
            drop(bar);
            if !dry_run {
                tune::keep(&store, device, &found);
            }
            report.add(found, kind.indices.clone());
        }
    }
    for kind in &kinds {
        let Some(device) = &kind.device else { continue };
        let order = if device.kind == Kind::Gpu { 4096 } else { 512 };
        let bar = screen.steps(&format!("tuning products of dense matrices on {}", device.name));
        let progress = |done, all| bar.update(done, all);
        let times = tune::products(device, order, measured.precision, Watch::default().with_progress(&progress));
        drop(bar);
        let times = match times {
            Err(e @ Error::OutOfDeviceMemory { .. }) => {
                log::warn!("products of dense matrices are left out: {e}");
                continue;
            }
            times => times?,
        };
        if let Some(fastest) = times.first().filter(|_| !dry_run) {
            tune::keep_product(&store, device, measured.precision, fastest);
        }
        report.add_products(&device.label(), kind.indices.clone(), times);
    }
    print(&report, measured.json)?;
    if let Some(page) = page {
        page.write(|out| out.write_all(tune_html::page(&report.found(), &[], &[]).as_bytes()))?;
    }
    Ok(Exit::Success)
}
