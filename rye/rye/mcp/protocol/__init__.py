"""The Model Context Protocol without I/O: what a line means, and what may be answered to it."""
