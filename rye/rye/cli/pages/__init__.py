"""What is printed of one item: its page, and the chain that it runs on."""
