//! Prepared processes: a program that has loaded everything, and is copied for each call.
//!
//! A job with `start: prepare` gets one end of a socket, whose number is in the variable
//! [`CONTROL_VARIABLE`]. For each request with `start: {prepared: id}`, it receives a packet with the program of
//! the request and the descriptors of its streams, and clones itself with `CLONE_PARENT`. So the copy
//! is a child of this process, which supervises and reaps it like any other job.
//!
//! The copy prepares itself, announces itself with one byte on the socket of its call, and waits for
//! one byte. Until then it does nothing that its caller could notice. So a call that fails before may
//! be made again in another way, and no call is made twice.

#[cfg(target_os = "linux")]
mod linux;
mod packet;
#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
pub use linux::{PreparedCall, PreparedProcesses, Waiting, control_socket};
#[cfg(not(target_os = "linux"))]
pub use portable::{PreparedCall, PreparedProcesses, Waiting, control_socket};

/// The variable with the number of the socket.
pub const CONTROL_VARIABLE: &str = "LILUX_PREPARED";
