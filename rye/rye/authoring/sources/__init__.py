"""Tools from elsewhere: fetched from a git repository or an archive into the user space."""
