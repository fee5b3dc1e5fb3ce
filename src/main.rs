//! The `declive` command.

mod cli;
mod report;

#[global_allocator]
static MEMORY: declive::HugePages = declive::HugePages;

fn main() -> std::process::ExitCode {
    cli::main()
}
