"""Prepared processes: which call gets one, how long they live, and how many there are."""
