"""Every setting of Rye, its value, and where it comes from."""
