//! Where results of `declive fem` go.

use std::path::{Path, PathBuf};

use declive::fem::{Mesh, Plan, Problem, Source, System};
use declive::matrix_market::WriteOptions;

use super::args::Args;
use crate::cli::failure::Failure;
use crate::cli::output::Target;
use crate::cli::place::Place;
use crate::report::DECLIVE;
use crate::report::fem::{Files, Report};
use crate::report::fem_html::{self, Drawn};

/// Files that can be written.
pub(super) struct Outputs {
    vtu: Option<Target>,
    png: Option<Target>,
    report: Option<Target>,
    solution: Option<Place>,
    /// The matrix, and the right-hand side.
    system: Option<[Place; 2]>,
}

impl Outputs {
    /// Makes sure, before long work, that they can be.
    pub(super) fn probe(args: &Args, plan: &Plan, mesh: &Mesh) -> Result<Self, Failure> {
        if args.png.is_some() && mesh.cell().dimensions() != 2 {
            return Err(Failure::usage("--png is for meshes in the plane; --vtu writes those in space, for ParaView"));
        }
        if mesh.cell().dimensions() == 2 && (args.png.is_some() || args.report.is_some()) {
            plan.check_window(mesh).map_err(|error| Failure::about(args.problem.display(), error))?;
        }
        let target = |path: &Option<PathBuf>| path.as_deref().map(Target::probe).transpose();
        let system = |prefix: &String| -> Result<[Place; 2], Failure> {
            let place = |name: &str| Place::probe_mtx(Path::new(&format!("{prefix}-{name}.mtx")), "--write-system");
            Ok([place("A")?, place("b")?])
        };
        let outputs = Self {
            vtu: target(&args.vtu)?,
            png: target(&args.png)?,
            report: target(&args.report)?,
            solution: args.output.as_deref().map(|path| Place::probe_vectors(path, "-o")).transpose()?,
            system: args.write_system.as_ref().map(system).transpose()?,
        };
        let of_system = outputs.system.iter().flatten().map(|place| ("--write-system", &place.target));
        let named = [
            ("--vtu", outputs.vtu.as_ref()),
            ("--png", outputs.png.as_ref()),
            ("--report", outputs.report.as_ref()),
            ("-o", outputs.solution.as_ref().map(|place| &place.target)),
        ];
        let all: Vec<_> =
            named.into_iter().filter_map(|(option, target)| Some((option, target?))).chain(of_system).collect();
        for (k, (option, target)) in all.iter().enumerate() {
            if **target == Target::Stdout {
                return Err(Failure::usage(format!("{option} needs a file; standard output is for the report")));
            }
            if let Some((other, _)) = all[..k].iter().find(|(_, other)| other.name() == target.name()) {
                return Err(Failure::usage(format!("{other} and {option} both name {}", target.name())));
            }
            target.keeps(option, Some(&args.problem), "which is an input")?;
            if let Source::File(mesh) = plan.source() {
                target.keeps(option, Some(mesh), "which is an input")?;
            }
        }
        Ok(outputs)
    }

    /// Writes the matrix and the right-hand side, if they are wanted.
    pub(super) fn write_system(&self, system: &System, problem: &str) -> Result<(), Failure> {
        let Some([matrix, rhs]) = &self.system else { return Ok(()) };
        let comment = |what: &str| vec![format!("{what} of {problem}, by declive {DECLIVE}")];
        let mut options = WriteOptions::default();
        options.comments = comment("A");
        matrix.write(&system.matrix, &options)?;
        rhs.write_columns(std::slice::from_ref(&system.rhs), &comment("b"))
    }

    /// Writes what is wanted of a solution; the names of the files are those that were written.
    pub(super) fn write(
        &self,
        problem: &Problem<'_>,
        plan: &Plan,
        x: &[f64],
        name: &str,
    ) -> (Result<(), Failure>, Files) {
        let vtu = self.vtu.as_ref().map(|target| (target.write(|out| problem.write_vtu(out, x)), target.name()));
        let png = self.png.as_ref().map(|target| (picture(target, problem, plan, x), target.name()));
        let solution = self.solution.as_ref().map(|place| {
            let comment = format!("u of {name}, by declive {DECLIVE}");
            (place.write_columns(&[x.to_vec()], &[comment]), place.target.name())
        });
        let written = |of: &Option<(Result<(), Failure>, String)>| {
            of.as_ref().filter(|(result, _)| result.is_ok()).map(|(_, name)| name.clone())
        };
        let files = Files {
            vtu: written(&vtu),
            png: written(&png),
            output: written(&solution),
            system: self.system.as_ref().map(|all| all.each_ref().map(|place| place.target.name())),
            report: self.report.as_ref().map(Target::name),
        };
        let result = [vtu, png, solution].into_iter().flatten().try_for_each(|(result, _)| result);
        (result, files)
    }

    /// Writes the page, if it is wanted.
    pub(super) fn write_report(
        &self,
        report: &Report,
        problem: &Problem<'_>,
        plan: &Plan,
        x: &[f64],
    ) -> Result<(), Failure> {
        let Some(target) = &self.report else { return Ok(()) };
        let drawn = if problem.mesh().cell().dimensions() == 2 {
            let picture = problem.picture(x, plan.window)?;
            let mut png = Vec::new();
            let written = picture.write_png(&mut png);
            written.map_err(|source| Failure::Write { name: "a picture".into(), source })?;
            Some(Drawn { png, range: picture.range() })
        } else {
            None
        };
        let page = fem_html::page(report, drawn.as_ref());
        target.write(|out| out.write_all(page.as_bytes()))
    }
}

fn picture(target: &Target, problem: &Problem<'_>, plan: &Plan, x: &[f64]) -> Result<(), Failure> {
    let picture = problem.picture(x, plan.window)?;
    target.write(|out| picture.write_png(out))
}
