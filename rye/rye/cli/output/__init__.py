"""Text and JSON on the standard streams: errors, tables, pages, progress."""
