//! How much of the network the parts of a confinement let through.

/// What the sockets of a job can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing: the job has no sockets of a network.
    Nothing,
    /// A proxy at this port, by TCP over IPv4.
    Proxy(u16),
    /// Everything.
    Everything,
}
