"""Validation of structured data."""
