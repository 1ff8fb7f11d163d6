"""Primitives: processes, HTTP, signatures, integrity hashes and lockfiles."""
