"""Where items live: an id becomes a path."""
