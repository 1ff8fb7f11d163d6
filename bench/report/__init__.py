"""What becomes of measurements: a JSON file, pictures, and a page."""
