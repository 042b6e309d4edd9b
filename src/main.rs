//! Command line in, exit code out; nothing else.

fn main() -> std::process::ExitCode {
    trefoil_cli::run(std::env::args_os())
}
