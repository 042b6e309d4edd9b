//! The `trefoil` program.

fn main() -> std::process::ExitCode {
    trefoil_cli::run(std::env::args_os())
}
