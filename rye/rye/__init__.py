"""Rye: signed, pinned and supervised tools."""
