"""From a chain to a result: chain, locks, config, run."""
