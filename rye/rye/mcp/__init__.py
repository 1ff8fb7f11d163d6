"""The MCP server: requests become calls, results and typed errors become MCP content."""
