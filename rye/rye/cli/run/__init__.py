"""`rye run`: arguments, parameters, live output, and the end of a call."""
