"""New projects and new tools, created from templates."""
