//! `declive bench fem`: iterations with finite elements, assembled and not.

use std::num::NonZeroU32;

use declive::Error;
use declive::device::{Choice, Info, Pick, select};
use declive::experiments::elements::{Case, Model, Way};
use declive::fem::Cell;
use declive::solve::{Exchange, Precision};

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::interrupt;
use crate::cli::output::print;
use crate::cli::progress::Screen;
use crate::report::elements::{Entry, Report};
use crate::report::{distinct, in_flags};

/// Time iterations with a matrix of finite elements: assembled, and by its elements
///
/// A unit square or cube of triangles or tetrahedra, in a fixed number of iterations of cg with jacobi, on each device alone and on all
/// together. Ways: assembled; by-node, elements in blocks where each node adds up what it gets; coloured, elements of one colour after the
/// other; and these two with matrices of elements that are stored. Devices that are alike are measured once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Shape of elements: triangle3, triangle6, tetrahedron4 or tetrahedron10
    #[arg(long, default_value = Cell::Tetrahedron10.name())]
    element: Cell,

    /// Squares or cubes along a side, of 2 triangles or 6 tetrahedra each [default: 500 or 40]
    #[arg(long, value_name = "N")]
    size: Option<NonZeroU32>,

    /// In place of a square, a capacitor of two plates with N cells across its gap, in triangles
    #[arg(long, value_name = "N", conflicts_with_all = ["size", "model"])]
    capacitor: Option<NonZeroU32>,

    /// What is solved: diffusion or elasticity
    #[arg(long, default_value = Model::Diffusion.name())]
    model: Model,

    /// Ways of products: a list of assembled, by-node, coloured, by-node-stored and coloured-stored
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "assembled,by-node,coloured")]
    ways: Vec<Way>,

    /// Precision: f64, f32 or mixed
    #[arg(long, default_value = Precision::F64.name())]
    precision: Precision,

    /// Devices: auto, or a list of gpu, cpu, host, all and the numbers that 'declive devices' shows
    #[arg(long, value_name = "LIST", default_value_t)]
    devices: Choice,

    /// Models of exchange, for several devices: a list of those that a solve has
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = Exchange::HostStaged.name())]
    models: Vec<Exchange>,

    /// How many iterations
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    iterations: u64,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  declive bench fem
  declive bench fem --element triangle3 --size 1600 --devices gpu
  declive bench fem --element triangle3 --capacitor 4 --models host-staged,host-copied
  declive bench fem --model elasticity --size 60 --ways assembled,by-node,by-node-stored --devices 0,1";

/// Squares and cubes along a side, if nothing is said.
const SIDES: [u32; 2] = [500, 40];

/// Runs the command.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    interrupt::kill_cleanly();
    let screen = Screen::new(false);
    let selection = select(&args.devices, args.precision.needs_f64())?;
    let side = args.size.map_or(SIDES[args.element.dimensions() - 2], NonZeroU32::get) as usize;
    let case = {
        let _shown = screen.working("making the mesh");
        match args.capacitor {
            Some(across) => Case::capacitor(args.element, across.get() as usize, args.precision)?,
            None => Case::new(args.element, side, args.model, args.precision)?,
        }
    };
    let mut report = Report::new(&case, (args.element, args.model, args.precision), args.iterations);
    report.notes.extend(selection.note.map(in_flags));
    if args.ways.iter().any(|way| matches!(way, Way::Coloured | Way::ColouredStored)) {
        let _shown = screen.working("colouring elements");
        report.take_colours(case.colours());
    }
    let alone = |device: &Option<Info>| device.as_ref().map_or(Pick::Host, |device| Pick::Index(device.index));
    let kind = |device: &Option<Info>| device.as_ref().map(|device| (device.name.clone(), device.driver.clone()));
    let ranks = &selection.ranks;
    let is_first = |k: &usize| (0..*k).all(|other| kind(&ranks[other]) != kind(&ranks[*k]));
    let mut teams: Vec<Choice> =
        (0..ranks.len()).filter(is_first).map(|k| Choice::List(vec![alone(&ranks[k])])).collect();
    if ranks.len() > 1 {
        teams.push(Choice::List(ranks.iter().map(alone).collect()));
    }
    let mut exit = Exit::Success;
    let models = distinct(args.models);
    let several = |team: &Choice| matches!(team, Choice::List(picks) if picks.len() > 1);
    for way in distinct(args.ways) {
        let runs = teams.iter().flat_map(|team| {
            let of_team = if several(team) { &models[..] } else { &models[..1] };
            of_team.iter().map(move |model| (team, *model))
        });
        for (team, model) in runs {
            let _shown = screen.working(&format!("{way} on {team}"));
            match case.run(way, team, model, args.iterations) {
                Ok(measured) => report.entries.push(Entry::new(team, measured)),
                Err(error @ Error::Usage(_)) => return Err(error.into()),
                Err(error) => {
                    // what is too large is left out
                    use Error::{OutOfDeviceMemory, OutOfMemory, TooManyElements};
                    if !matches!(error, OutOfDeviceMemory { .. } | OutOfMemory { .. } | TooManyElements { .. }) {
                        exit = error.kind().into();
                    }
                    report.notes.push(in_flags(format!("{way} on {team} is left out: {error}")));
                }
            }
        }
    }
    print(&report, args.json)?;
    Ok(exit)
}
