//! The program: arguments in, exit code out.

mod args;
mod client;
mod demo;
mod get;
mod logs;
mod print;
mod process;
mod profile;
mod serve;

use std::process::ExitCode;

use args::Command;

/// Gives memory back to the system, where glibc's keeps what many threads have once used.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let outcome = match args::read(std::env::args_os()).command {
        Command::Serve(args) => serve::run(*args),
        Command::Destination(args) => serve::run_as_linkerd(*args),
        Command::Get(args) => process::block_on(get::run(args)),
        Command::Profile(args) => process::block_on(profile::run(args)),
        Command::Demo(args) => demo::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<print::ReaderGone>() => ExitCode::SUCCESS,
        Err(error) => {
            print::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
