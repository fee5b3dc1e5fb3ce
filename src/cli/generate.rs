//! `declive generate`: test systems as files.

use std::path::{Path, PathBuf};

use declive::matrix::AnyCsr;
use declive::matrix::gallery::{Class, Problem, Spec};
use declive::matrix_market::{Symmetry, WriteOptions};

use super::exit::Exit;
use super::failure::Failure;
use super::interrupt;
use super::place::Place;

/// Write the matrix of a test problem to a file
///
/// That is a Matrix Market file, or what the name says. Symmetric and Hermitian matrices are written to it as such, which
/// means their lower triangle.
#[derive(Debug, clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// The problem: a name, or a name with parameters such as poisson3d:100 or jumps:64,seed=7
    #[arg(value_name = "PROBLEM")]
    problem: String,

    /// Size of the problem, as after the colon: 100, or 300x200
    #[arg(long, value_name = "N")]
    size: Option<String>,

    /// Seed of a random problem
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// File to write: .mtx, also .mtx.gz, .mtx.bz2, .mtx.xz, .mtx.zst, or .npz; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// File for the coordinates of the nodes, as solve takes them: of elasticity3d, elasticity3d-jumps and tetrahedra
    ///
    /// Matrix Market, .mtx or compressed, or NumPy's where its name ends with .npy.
    #[arg(long, value_name = "FILE")]
    coordinates: Option<PathBuf>,
}

fn help() -> String {
    let problems = Problem::ALL.iter().map(|p| {
        let kind = if p.class == Class::PositiveDefinite { "" } else { p.class.describe() };
        let separator = if kind.is_empty() { "" } else { "; " };
        format!("  {}\n      {}{separator}{kind}\n", p.syntax(), p.about)
    });
    format!(
        "Problems, with what may be left out in brackets; symmetric positive definite unless told otherwise:\n{}\n\
         All take scramble=SEED: rows and columns in a random order.\n\n\
         Examples:\n  \
           declive generate poisson3d --size 100 -o A.mtx\n  \
           declive generate poisson2d:300x200 -o A.mtx\n  \
           declive generate jumps:64,seed=7 | declive solve -",
        problems.collect::<String>()
    )
}

impl Args {
    /// Both ways of writing a problem lead to the second one.
    fn spec(&self) -> Result<Spec, Failure> {
        let (name, settings) = match self.problem.split_once(',') {
            Some((name, settings)) => (name, format!(",{settings}")),
            None => (self.problem.as_str(), String::new()),
        };
        let twice = |what| Failure::usage(format!("'{}' has a {what} already; --{what} gives another", self.problem));
        let size = match &self.size {
            Some(_) if name.contains(':') => return Err(twice("size")),
            Some(size) => format!(":{size}"),
            None => String::new(),
        };
        let seed = match self.seed {
            Some(_) if settings.contains(",seed=") => return Err(twice("seed")),
            Some(seed) => format!(",seed={seed}"),
            None => String::new(),
        };
        Ok(format!("{name}{size}{settings}{seed}").parse()?)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let spec = args.spec()?;
    let place = Place::probe_usual(&args.output)?;
    let nodes = args.coordinates.as_deref().map(|path| nodes(&spec, path)).transpose()?;
    if args.coordinates.as_ref().is_some_and(|path| place.target.is_file(path)) {
        return Err(Failure::usage(format!("-o and --coordinates both name {}", args.output.display())));
    }
    interrupt::kill_cleanly();
    let a = spec.build_any()?;
    log::info!("{spec}: {} rows, {} entries", a.n_rows(), a.nnz());
    let comments = vec![format!("{spec}, by declive {}", crate::report::DECLIVE)];
    let options = WriteOptions::default()
        .with_symmetry(symmetry(spec.problem().class))
        .with_comments(comments)
        .with_trusted(true);
    match a {
        AnyCsr::Real(a) => place.write(&a, &options)?,
        AnyCsr::Complex(a) => place.write(&a, &options)?,
    }
    if let Some((nodes, place)) = nodes {
        let of_axes = [0, 1, 2].map(|axis| nodes.iter().map(|node| node[axis]).collect::<Vec<_>>());
        place.write_columns(&of_axes, &[format!("nodes of {spec}, by declive {}", crate::report::DECLIVE)])?;
    }
    Ok(Exit::Success)
}

/// The nodes of a problem, and where they go.
fn nodes(spec: &Spec, path: &Path) -> Result<(Vec<[f64; 3]>, Place), Failure> {
    Ok((spec.coordinates()?, Place::probe_vectors(path, "--coordinates")?))
}

/// How a file has matrices of a kind.
fn symmetry(class: Class) -> Symmetry {
    match (class.is_symmetric(), class.is_hermitian()) {
        (true, _) => Symmetry::Symmetric,
        (false, true) => Symmetry::Hermitian,
        (false, false) => Symmetry::General,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(problem: &str, size: Option<&str>, seed: Option<u64>) -> Result<String, String> {
        let args =
            Args { problem: problem.into(), size: size.map(Into::into), seed, output: "-".into(), coordinates: None };
        args.spec().map(|s| s.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn both_ways_of_writing_a_problem() {
        assert_eq!(spec("poisson3d:10", None, None).unwrap(), "poisson3d:10");
        assert_eq!(spec("poisson2d", Some("30x20"), None).unwrap(), "poisson2d:30x20");
        assert_eq!(spec("jumps,contrast=10", Some("8"), Some(7)).unwrap(), "jumps:8,contrast=10,seed=7");
    }

    #[test]
    fn nothing_is_given_twice() {
        assert!(spec("poisson3d:10", Some("10"), None).unwrap_err().contains("--size"));
        assert!(spec("jumps:8,seed=1", None, Some(2)).unwrap_err().contains("--seed"));
        assert!(spec("poisson3d", None, None).unwrap_err().contains("size"));
    }
}
