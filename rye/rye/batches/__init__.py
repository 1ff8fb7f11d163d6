"""Many calls of one tool: a folder that survives interruptions, and backends that run the calls."""
