"""Build the config of the primitive at the end of a chain."""
