//! `lilux-proc`: the process helper of Lilux.
//!
//! A call passes these modules in this order: `cli` or `frame` → `request` → `oneshot` or `server` →
//! `job` (or `detach`, `process`) → `launch` → `streams`, `capture`, `tree` → `report` → `outbox`.
//! `helper` describes the processes that all of this runs in.

mod autopsy;
mod capture;
mod cli;
mod clock;
mod confine;
mod connection;
mod detach;
mod error;
mod files;
mod frame;
mod helper;
mod job;
mod launch;
mod observe;
mod oneshot;
mod outbox;
mod platform;
mod prepared;
mod process;
mod report;
mod request;
mod server;
mod streams;
mod sync;
mod text;
mod tree;
mod wake;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, Exit, ServeArgs};
use crate::connection::Connection;
use crate::error::Error;
use crate::platform::Platform;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let platform = Platform::choose(cli.platform);
    let result = match cli.command {
        Command::Exec(args) => oneshot::exec(args, platform),
        Command::Spawn(args) => oneshot::spawn(args, platform),
        Command::Kill(args) => oneshot::kill(&args, platform),
        Command::Status(args) => oneshot::status(&args, platform),
        Command::Probe => oneshot::probe(platform),
        Command::Serve(args) => serve(&args, platform),
        #[cfg(target_os = "linux")]
        Command::HoldNamespaces(args) => confine::holder::hold(&args),
    };
    ExitCode::from(Exit::report(result).code())
}

fn serve(args: &ServeArgs, platform: Platform) -> Result<Exit, Error> {
    let connection = match args.fd {
        Some(number) => Connection::from_inherited(number)?,
        None => Connection::from_stdio()?,
    };
    helper::prepare()?;
    // Detached from the caller's terminal: the caller handles its Ctrl-C and closes the connection.
    let _ = rustix::process::setsid();
    helper::start(platform, move |keeper| helper::serve(connection, keeper, platform))?.run()
}
