//! Gives the shared library the name by which programs find it at run time, which `install` gives its file, too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of_version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).unwrap_or_default();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let (major, minor) = (of_version("MAJOR"), of_version("MINOR"));
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdeclive.so.{major}.{minor}");
    }
}
