"""What tools there are: for lists, searches, descriptions and definitions, not for running."""
