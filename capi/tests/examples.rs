//! The library is installed, and the examples in C, C++ and Fortran are built against it, and run.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder in which the library is installed, and programs are built.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        // the libraries lie beside the programs of tests
        let tests = std::env::current_exe().unwrap();
        said(Command::new(own("install")).arg(place.prefix()).arg(tests.parent().unwrap()));
        place
    }

    fn prefix(&self) -> PathBuf {
        self.0.path().join("installed")
    }

    /// What pkg-config says of the installed library.
    fn pkg_config(&self, what: &str) -> Vec<String> {
        let folder = self.prefix().join("lib/pkgconfig");
        let flags = said(Command::new("pkg-config").arg(what).arg("declive").env("PKG_CONFIG_PATH", folder));
        flags.split_whitespace().map(str::to_owned).collect()
    }

    /// Builds a program of some sources by a compiler and pkg-config, and tells what it says.
    fn run(&self, compiler: &str, flags: &[&str], sources: &[PathBuf]) -> String {
        let program = self.0.path().join(compiler);
        let mut command = Command::new(compiler);
        command.args(flags).args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(self.pkg_config("--cflags"));
        command.args(sources).args(self.pkg_config("--libs")).arg("-lm").arg("-o").arg(&program);
        said(command.current_dir(self.0.path()));
        self.said_by(&program)
    }

    /// What a program says that uses the installed library.
    fn said_by(&self, program: &Path) -> String {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.prefix().join("lib")).env("DECLIVE_CACHE_DIR", self.0.path().join("cache"));
        said(&mut command)
    }
}

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What a command that has to succeed says.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}; scripts/test installs what is needed"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out
}

#[test]
fn programs_in_all_languages() {
    let place = Place::new();
    c(&place);
    cpp(&place);
    fortran(&place);
    cmake(&place);
    // programs find the library by this name
    let dynamic = said(Command::new("readelf").arg("-d").arg(place.prefix().join("lib/libdeclive.so")));
    let version = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")].join(".");
    assert!(dynamic.contains(&format!("soname: [libdeclive.so.{version}]")), "{dynamic}");
}

fn c(place: &Place) {
    let said = place.run("cc", &["-std=c99", "-pedantic"], &[own("examples/poisson.c")]);
    let start = format!("declive {}, cg: Converged", env!("CARGO_PKG_VERSION"));
    assert!(said.starts_with(&start) && said.contains("3 right-hand sides"), "{said}");
}

fn cpp(place: &Place) {
    let said = place.run("c++", &["-std=c++11", "-pedantic"], &[own("examples/complex.cpp")]);
    assert!(said.contains("Converged") && said.contains("precision = f16: unknown precision"), "{said}");
}

fn fortran(place: &Place) {
    let sources = [place.prefix().join("include/declive.f90"), own("examples/chain.f90")];
    let said = place.run("gfortran", &["-std=f2008"], &sources);
    assert!(said.contains("Converged") && said.contains("with other values"), "{said}");
}

fn cmake(place: &Place) {
    let build = place.0.path().join("build");
    let configured = |source: &Path, build: &Path| {
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", place.prefix().display());
        said(Command::new("cmake").arg("-S").arg(source).arg("-B").arg(build).arg(prefix));
    };
    configured(&own("examples"), &build);
    said(Command::new("cmake").arg("--build").arg(&build));
    for program in ["poisson", "complex"] {
        assert!(place.said_by(&build.join(program)).contains("Converged"), "{program}");
    }
    // versions with other first numbers are other interfaces
    let other = place.0.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let text = "cmake_minimum_required(VERSION 3.16)\nproject(other LANGUAGES C)\nfind_package(declive 0.999 QUIET)\n\
                if(declive_FOUND)\nmessage(FATAL_ERROR \"found\")\nendif()\nfind_package(declive REQUIRED)\n";
    std::fs::write(other.join("CMakeLists.txt"), text).unwrap();
    configured(&other, &other.join("build"));
}
