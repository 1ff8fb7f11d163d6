"""Where items are: turns an item id into a path."""
