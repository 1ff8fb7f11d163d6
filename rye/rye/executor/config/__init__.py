"""The configuration of the primitive that a chain ends in."""
