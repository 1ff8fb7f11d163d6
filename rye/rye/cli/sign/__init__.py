"""Whose signature files bear, and one's own for them."""
