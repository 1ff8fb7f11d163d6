"""A call: prepared, run, finished."""
