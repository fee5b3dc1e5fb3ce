//! `declive man` and `declive completions`: what `man` and shells know of the command, from the definitions of its arguments.

use std::path::PathBuf;

use clap_complete::Shell;
use declive::Error;

use super::exit::Exit;
use super::failure::Failure;
use super::output::Target;

/// Write the manual pages of all commands to a directory
///
/// They are files such as declive-solve.1. In a directory man1 of $MANPATH, or of ~/.local/share/man, man finds them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  mkdir -p ~/.local/share/man/man1 && declive man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory, which has to be there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Print what a shell needs to complete options and their values
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  declive completions bash > ~/.local/share/bash-completion/completions/declive
  declive completions zsh > ~/.zfunc/_declive
  declive completions fish > ~/.config/fish/completions/declive.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn man(command: clap::Command, args: &ManArgs) -> Result<Exit, Failure> {
    clap_mangen::generate_to(command, &args.directory).map_err(|e| Error::io(&args.directory, e))?;
    Ok(Exit::Success)
}

pub(crate) fn completions(mut command: clap::Command, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "declive", &mut script);
    Target::Stdout.write(|out| out.write_all(&script))?;
    Ok(Exit::Success)
}
