"""Environments and access tokens for jobs."""
