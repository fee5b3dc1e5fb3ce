//! The `declive` command.

fn main() {}
