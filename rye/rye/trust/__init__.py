"""Who signed a file, and whether that counts here."""
