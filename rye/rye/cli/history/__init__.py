"""`rye history`: its arguments, and the list."""
