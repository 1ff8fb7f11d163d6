"""Other people's MCP servers: kept processes and connections, and the tools that a user pinned."""
