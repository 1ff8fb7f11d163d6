"""Importing what others offer as items of a space."""
