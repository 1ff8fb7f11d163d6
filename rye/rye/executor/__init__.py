"""What will run: chain, validation, lockfile, environment, anchor, execution config."""
