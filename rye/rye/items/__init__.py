"""What a file says of itself, read without running it."""
