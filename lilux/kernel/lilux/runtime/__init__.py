"""What a runtime needs before a primitive runs: an environment, a token."""
