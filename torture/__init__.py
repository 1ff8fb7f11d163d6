"""Faults and load, repeated until something would be lost: ``uv run python -m torture``."""
