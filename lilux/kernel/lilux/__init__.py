"""Lilux: stateless async primitives for running things."""
