"""What touches the operating system or the network, and the pure functions beside it."""
