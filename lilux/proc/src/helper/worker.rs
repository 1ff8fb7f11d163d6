//! The worker: reads the connection and runs the jobs.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use super::{on_signal, relay};
use crate::cli::Exit;
use crate::connection::Connection;
use crate::error::Error;
use crate::frame::MAX_ANSWER;
use crate::launch::Launcher;
use crate::outbox::Outbox;
use crate::platform::Platform;
use crate::server::{Event, Server, ServerParts};
use crate::tree::Supervision;
#[cfg(target_os = "linux")]
use crate::tree::linux::Adopter;

/// What a worker needs to run jobs.
pub struct WorkerParts {
    /// Starts the jobs.
    pub launcher: Launcher,
    /// Tracks their process trees.
    pub supervision: Supervision,
    /// Answers of the keeper.
    pub from_keeper: OwnedFd,
    /// Requests to the keeper.
    pub to_keeper: Arc<Outbox>,
}

impl WorkerParts {
    /// Makes the calling process a worker. Must be called by the main thread while it is the only
    /// one. `keeper` is the connection to the keeper.
    pub fn new(keeper: UnixStream, platform: Platform, events: &Sender<Event>) -> io::Result<Self> {
        let launcher = Launcher::new(platform);
        // Before the outbox, which starts a thread.
        #[cfg(target_os = "linux")]
        let adopter = match platform {
            Platform::Linux => {
                let events = events.clone();
                Some(Adopter::new(move |request| drop(events.send(Event::Sweep(request))))?)
            }
            Platform::Portable => None,
        };
        let connection = Connection::from_socket(keeper.into())?;
        let to_keeper = Outbox::new(connection.writing)?;
        let group = Supervision::Group { keeper: Some(Arc::clone(&to_keeper)) };
        #[cfg(target_os = "linux")]
        let supervision = adopter.map_or(group, Supervision::Adopting);
        #[cfg(not(target_os = "linux"))]
        let supervision = {
            let _ = events;
            group
        };
        Ok(Self { launcher, supervision, from_keeper: connection.reading, to_keeper })
    }
}

/// Serves a connection until it is closed.
pub fn serve(
    connection: Connection,
    keeper: UnixStream,
    platform: Platform,
) -> Result<Exit, Error> {
    let (sender, events) = channel();
    let parts = WorkerParts::new(keeper, platform, &sender)?;
    let outbox = Outbox::new(connection.writing)?;
    let server = Server::new(ServerParts {
        reading: connection.reading,
        outbox: Arc::clone(&outbox),
        launcher: parts.launcher,
        supervision: parts.supervision,
        keeper: Some(parts.to_keeper),
        events: sender,
    });
    let keeper_died = Arc::clone(&server);
    relay(parts.from_keeper, MAX_ANSWER, Some(outbox), move || keeper_died.close())?;
    let signalled = Arc::clone(&server);
    on_signal(move || signalled.close())?;
    server.run(&events)?;
    Ok(Exit::Success)
}
