"""Lockfiles: found, verified and written."""
