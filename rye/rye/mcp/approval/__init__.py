"""What agents may run without asking the user, and how the user is asked."""
