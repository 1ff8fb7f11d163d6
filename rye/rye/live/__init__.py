"""Calls under way: a call that lasts announces itself, and the page looks at it."""
