"""Signing and verifying files: which files arguments name, and the user's key."""
