"""The chain of a call: built, verified and validated, with its anchor and dependencies."""
