//! The `declive` command.

mod cli;
mod report;

fn main() -> std::process::ExitCode {
    cli::main()
}
