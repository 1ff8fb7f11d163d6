"""Help for authors of tools: recognise scripts, check tools, keep them signed and pinned."""
