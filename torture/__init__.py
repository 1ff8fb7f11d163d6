"""Load and faults, repeated many times and reported in one table: ``uv run python -m torture``."""
