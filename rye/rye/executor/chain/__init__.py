"""The chain of a call: built, verified, validated, with its anchor and dependencies."""
