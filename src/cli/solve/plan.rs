//! What `declive solve` is going to do: the arguments after all checks that need no work.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use declive::device::Ahead;
use declive::solve::{Exchange, OnFailure};
use declive::{Setup, Stop};

use super::args::Args;
use super::near_null::Near;
use crate::cli::failure::Failure;
use crate::cli::input::{Input, Source};
use crate::cli::output::{Form, Target};
use crate::cli::rhs::Recipe;

/// The one option whose file may be an input, too.
const CHECKPOINT: &str = "--checkpoint";

/// A checked request.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) source: Source,
    pub(super) rhs: Rhs,
    pub(super) x0: Option<Input>,
    pub(super) near: Near,
    pub(super) setup: Setup,
    pub(super) stop: Stop,
    pub(super) output: Option<Target>,
    pub(super) history: Option<Target>,
    pub(super) page: Option<Target>,
    pub(super) trace: Option<Target>,
    pub(super) checkpoint: Option<Target>,
    pub(super) checkpoint_every: Option<Duration>,
    pub(super) resume: Option<PathBuf>,
    pub(super) report: Form,
    pub(super) condition: bool,
    pub(super) quiet: bool,
}

/// Where the right-hand sides come from.
#[derive(Debug)]
pub(super) enum Rhs {
    Input(Input),
    Made(Recipe),
    /// As nothing was said.
    Default,
}

impl Plan {
    /// Whether someone wants to see when who did what.
    pub(super) fn records(&self) -> bool {
        self.page.is_some() || self.trace.is_some()
    }

    /// Checks that the arguments agree, and that the results can be written.
    pub(super) fn new(args: Args) -> Result<Self, Failure> {
        let source = Source::named(args.matrix, args.generate).ok_or_else(Failure::no_matrix)?;
        let rhs = match (args.b, args.rhs) {
            (Some(path), _) => Rhs::Input(path.into()),
            (None, Some(recipe)) => Rhs::Made(recipe),
            (None, None) => Rhs::Default,
        };
        let x0 = args.x0.map(Input::from);
        let near = Near {
            coordinates: args.coordinates.map(Input::from),
            vectors: args.near_null.map(Input::from),
            unknowns: args.block_size.map(|size| size as usize),
        };
        one_stdin(&source, &rhs, x0.iter().chain(near.inputs()))?;

        let named = [
            ("-o", &args.output),
            ("--history", &args.history),
            ("--report", &args.report),
            ("--trace", &args.trace),
            (CHECKPOINT, &args.checkpoint),
        ];
        let mut targets = [const { None }; 5];
        for (target, (_, path)) in targets.iter_mut().zip(named) {
            *target = path.as_deref().map(Target::probe).transpose()?;
        }
        let to_stdout = targets[0] == Some(Target::Stdout);
        if to_stdout && args.json {
            return Err(Failure::usage("--json and '-o -' both want standard output; give -o a file"));
        }
        for (k, ((option, _), target)) in named.iter().zip(&targets).enumerate() {
            let Some(target) = target else { continue };
            if k > 0 && *target == Target::Stdout {
                return Err(Failure::usage(format!(
                    "{option} needs a file; standard output is for the report in words, or for -o"
                )));
            }
            for (other, path) in &named[k + 1..] {
                if let Some(path) = path.as_ref().filter(|path| target.is_file(path)) {
                    return Err(Failure::usage(format!("{option} and {other} both name {}", path.display())));
                }
            }
            // overwriting the system is never what was meant; overwriting x0 may well be
            for input in [source.file(), if let Rhs::Input(Input::File(path)) = &rhs { Some(&**path) } else { None }] {
                target.keeps(option, input, "which is an input")?;
            }
            // the next checkpoint may well take the place of that which it comes from
            target.keeps(option, args.resume.as_deref().filter(|_| *option != CHECKPOINT), "which --resume reads")?;
        }
        let [output, history, page, trace, checkpoint] = targets;
        if args.checkpoint_every.is_some() && checkpoint.is_none() && args.on_failure == OnFailure::Stop {
            return Err(Failure::usage(
                "--checkpoint-every says how often, but not where to: give --checkpoint a file",
            ));
        }

        let report = Form::of(args.json, args.quiet, to_stdout);
        let mut setup = Setup::default()
            .with_method(args.method)
            .with_restart(args.restart)
            .with_precision(args.precision)
            .with_devices(args.devices)
            .with_assume_symmetric(args.assume_symmetric)
            .with_tune(args.tune)
            .with_format(args.format)
            .with_reorder(args.reorder)
            .with_exchange(args.exchange)
            .with_on_failure(args.on_failure)
            .with_columns(args.columns);
        setup.shares = args.shares;
        if let Some(precond) = args.precond {
            setup = setup.with_precond(precond);
        }
        let usual = if args.backward_error.is_some() { 0.0 } else { Stop::default().rtol };
        let mut stop = Stop::default().with_rtol(args.rtol.unwrap_or(usual)).with_atol(args.atol);
        stop.backward_error = args.backward_error.unwrap_or_default();
        (stop.max_iters, stop.time_limit) = (args.max_iters, args.time_limit);
        let (checkpoint_every, resume, quiet) = (args.checkpoint_every, args.resume, args.quiet);
        Ok(Self {
            source,
            rhs,
            x0,
            near,
            setup,
            stop,
            output,
            history,
            page,
            trace,
            checkpoint,
            checkpoint_every,
            resume,
            report,
            condition: args.condition,
            quiet,
        })
    }
}

impl Plan {
    /// How far the driver is started before it is known which devices work: small systems may be solved sooner than one is opened.
    pub(super) fn ahead(&self) -> Ahead {
        let is_shared = self.setup.exchange == Exchange::SharedContext;
        if self.source.is_large() && !self.setup.method.factorises() && !is_shared {
            Ahead::Opened
        } else {
            Ahead::Listed
        }
    }
}

/// Standard input can be read once.
fn one_stdin<'a>(source: &Source, rhs: &Rhs, others: impl Iterator<Item = &'a Input>) -> Result<(), Failure> {
    let from_stdin = [matches!(source, Source::Input(Input::Stdin)), matches!(rhs, Rhs::Input(Input::Stdin))];
    let of_others = others.map(|input| *input == Input::Stdin);
    if from_stdin.into_iter().chain(of_others).filter(|&is| is).count() > 1 {
        return Err(Failure::usage("only one of A, b and other vectors can come from standard input"));
    }
    Ok(())
}

impl fmt::Display for Rhs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            Self::Made(recipe) => recipe.fmt(f),
            Self::Default => Recipe::default().fmt(f),
        }
    }
}
