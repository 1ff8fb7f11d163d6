"""Closures: what a call runs, as one digest, and a private copy of its bytes."""
