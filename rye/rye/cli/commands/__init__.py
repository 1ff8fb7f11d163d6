"""One module for each command; a command is imported when it is called."""
