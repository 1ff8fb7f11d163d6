"""The MCP server: it offers the tools of a project to agents."""
