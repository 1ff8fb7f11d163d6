"""What a call leaves behind: its record, the spool, and the database that the spool moves to."""
