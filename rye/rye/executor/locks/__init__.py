"""Lockfiles: found, verified, written."""
