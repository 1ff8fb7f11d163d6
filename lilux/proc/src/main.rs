//! `lilux-proc`: the process helper of Lilux.
//!
//! A call passes these modules in this order: `cli` or `frame` → `request` → `server` or `oneshot`
//! → `job` (or `detach`, `process`) → `launch`, `tree` → `capture` → `report` → `outbox`.
//! `lineage` says which processes all of this runs in.

mod capture;
mod checks;
mod cli;
mod clock;
mod detach;
mod files;
mod frame;
mod job;
mod launch;
mod lineage;
mod oneshot;
mod outbox;
mod platform;
mod process;
mod report;
mod request;
mod server;
mod streams;
mod text;
mod tree;
mod wake;

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, ServeArgs};
use crate::lineage::Connection;
use crate::platform::Platform;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let platform = Platform::choose(cli.platform);
    let done = match cli.command {
        Command::Exec(args) => oneshot::exec(args, platform),
        Command::Spawn(args) => oneshot::spawn(args, platform),
        Command::Kill(args) => oneshot::kill(&args, platform),
        Command::Status(args) => oneshot::status(&args, platform),
        Command::Serve(args) => serve(&args, platform),
    };
    done.map_or_else(
        |error| {
            eprintln!("lilux-proc: {error}");
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}

fn serve(args: &ServeArgs, platform: Platform) -> io::Result<u8> {
    let connection = match args.fd {
        Some(raw) => Connection::socket(adopt_descriptor(raw)?)?,
        None if rustix::termios::isatty(rustix::stdio::stdin()) => {
            return Err(io::Error::other(
                "serve speaks frames over a pipe or a socket, not with a terminal; \
                 see lilux-proc serve --help",
            ));
        }
        None => lineage::take_stdio()?,
    };
    lineage::prepare()?;
    // Ctrl-C at the caller's terminal is for the caller, which closes the connection.
    let _ = rustix::process::setsid();
    let worker = move |line| lineage::serve(connection, line, platform);
    lineage::start(platform, worker)?.keep()
}

fn adopt_descriptor(raw: i32) -> io::Result<OwnedFd> {
    if raw < 0 {
        return Err(io::Error::other(format!("--fd {raw} is no descriptor")));
    }
    // SAFETY: only borrowed to be duplicated, which fails if it is not open.
    let inherited = unsafe { BorrowedFd::borrow_raw(raw) };
    let ours = rustix::io::fcntl_dupfd_cloexec(inherited, 3)
        .map_err(|error| io::Error::other(format!("--fd {raw}: {}", io::Error::from(error))))?;
    // A copy that stayed open in the keeper would hide the worker's end from the peer; and the
    // number, should it be one of the first three, must not go to something else.
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // SAFETY: it is open, and the caller of this program meant it for nobody else.
    let mut place = unsafe { OwnedFd::from_raw_fd(raw) };
    rustix::io::dup2(&nothing, &mut place)?;
    std::mem::forget(place);
    Ok(ours)
}
