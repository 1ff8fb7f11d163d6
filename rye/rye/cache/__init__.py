"""What one process stores on disk for the next."""
