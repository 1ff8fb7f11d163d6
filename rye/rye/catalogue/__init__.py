"""The catalogue of items: for listing, searching and describing tools, not for running them."""
