"""What Rye keeps on disk between processes."""
