"""Measurements of Rye beside its peers. ``python -m bench`` runs them and draws the pictures."""
