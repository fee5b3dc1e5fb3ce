//! What `declive convert` is going to do: the arguments after all checks that need no work.

use std::path::{Path, PathBuf};

use declive::matrix_market::Zeros;

use super::words::Entries;
use super::{Args, Order};
use crate::cli::failure::Failure;
use crate::cli::input::Source;
use crate::cli::output::{Form, Target};
use crate::cli::place::{Format, Place};

/// A checked request.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) source: Source,
    pub(super) output: Place,
    pub(super) rhs: Option<Place>,
    pub(super) order: Option<Order>,
    pub(super) permutation: Option<Place>,
    pub(super) entries: Entries,
    pub(super) precision: Option<usize>,
    pub(super) zeros: Zeros,
    /// It goes where the matrix does not.
    pub(super) report: Form,
    pub(super) quiet: bool,
}

impl Plan {
    /// Checks that the arguments agree, and that the results can be written.
    pub(super) fn new(args: Args) -> Result<Self, Failure> {
        let (source, output_path) = match (&args.files[..], args.generate) {
            ([input, output], None) => (Source::Input(input.clone().into()), output),
            ([output], Some(spec)) => (Source::Generated(spec), output),
            ([_], None) => {
                return Err(Failure::usage("one file is not enough: name INPUT and OUTPUT, or OUTPUT and --generate"));
            }
            (_, None) => return Err(Failure::usage("there are more files than INPUT and OUTPUT")),
            (_, Some(_)) => return Err(Failure::usage("with --generate, OUTPUT is the only file to name")),
        };
        let output = Place::probe(output_path, args.format)?;
        let probe = |path: &Option<PathBuf>, option| path.as_deref().map(|path| Place::probe_mtx(path, option));
        let rhs = probe(&args.rhs, "--rhs").transpose()?;
        let permutation = probe(&args.permutation, "--permutation").transpose()?;
        if output.target == Target::Stdout && args.json {
            return Err(Failure::usage("--json and the matrix both want standard output; give the matrix a file"));
        }
        if output.format == Format::Npz {
            let options = [
                ("--symmetric", args.symmetric),
                ("--general", args.general),
                ("--precision", args.precision.is_some()),
            ];
            if let Some((option, _)) = options.iter().find(|(_, given)| *given) {
                let why = "has all entries, and all their bits";
                return Err(Failure::usage(format!("{option} is for Matrix Market files; a .npz file {why}")));
            }
        }
        let files = [
            ("the output", Some((&output, output_path.as_path()))),
            ("--rhs", rhs.as_ref().zip(args.rhs.as_deref())),
            ("--permutation", permutation.as_ref().zip(args.permutation.as_deref())),
        ];
        apart(&files, &source)?;
        let report = Form::of(args.json, args.quiet, output.target == Target::Stdout);
        let entries = match (args.symmetric, args.general) {
            (true, _) => Entries::Lower,
            (_, true) => Entries::All,
            _ => Entries::AsRead,
        };
        Ok(Self {
            source,
            output,
            rhs,
            order: args.reorder,
            permutation,
            entries,
            precision: args.precision.map(usize::from),
            zeros: if args.drop_zeros { Zeros::Drop } else { Zeros::Keep },
            report,
            quiet: args.quiet,
        })
    }
}

/// Files to write must be neither the input nor each other.
fn apart(files: &[(&str, Option<(&Place, &Path)>)], source: &Source) -> Result<(), Failure> {
    let given: Vec<_> = files.iter().filter_map(|&(what, file)| Some((what, file?))).collect();
    for (k, &(what, (place, path))) in given.iter().enumerate() {
        place.target.keeps(what, source.file(), "which is the input; name another file")?;
        if let Some((other, _)) = given[..k].iter().find(|(_, (other, _))| other.target.is_file(path)) {
            return Err(Failure::usage(format!("{other} and {what} both name {}", path.display())));
        }
    }
    Ok(())
}
