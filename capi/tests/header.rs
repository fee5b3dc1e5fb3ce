//! The header and the Fortran module are as the interface is.

#![allow(clippy::unwrap_used)]

use std::path::Path;

/// The header that cbindgen makes of the interface.
fn made() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let source = folder.join("src/interface.rs");
    let bindings = cbindgen::Builder::new().with_config(config).with_src(source).generate().unwrap();
    let mut header = Vec::new();
    bindings.write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn the_header_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/declive.h");
    let made = made();
    if std::env::var_os("DECLIVE_HEADER").is_some_and(|value| value == "write") {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(there.lines()).find(|(made, there)| made != there);
    assert!(made == there, "include/declive.h is not as src/interface.rs; DECLIVE_HEADER=write writes it: {differs:?}");
    assert!(made.is_ascii(), "compilers disagree on other characters");
}

#[test]
fn the_fortran_module_has_all_functions_and_constants() {
    let module = include_str!("../include/declive.f90").to_lowercase();
    let header = made();
    let names = |starts: &str| -> Vec<String> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let all = header.lines().filter_map(|line| line.strip_prefix(starts));
        all.map(|rest| rest.chars().take_while(|c| is_of_name(*c)).collect()).collect()
    };
    let constants = names("#define DECLIVE_");
    assert!(constants.len() > 20, "{constants:?}");
    for name in constants.iter().filter(|name| *name != "H") {
        let value = header.lines().find_map(|line| line.strip_prefix(&format!("#define DECLIVE_{name} "))).unwrap();
        let line = format!("declive_{} = {value}", name.to_lowercase());
        assert!(module.lines().any(|l| l.contains(&line) && l.trim_end().ends_with(value)), "{line}");
    }
    let functions: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with(' ') && line.contains('('))
        .filter_map(|line| line.split('(').next()?.split(['*', ' ']).next_back())
        .filter(|name| name.starts_with("declive_"))
        .collect();
    assert!(functions.len() > 25, "{functions:?}");
    for name in functions {
        assert!(module.contains(&format!("bind(c, name=\"{name}\")")), "{name}");
    }
}
