"""Read items and their metadata, without running them."""
