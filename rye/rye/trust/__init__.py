"""Who signed a file, and whether that key is trusted."""
