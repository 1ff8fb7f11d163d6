"""New projects and new tools, from templates."""
