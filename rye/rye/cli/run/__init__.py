"""``rye run``: from its arguments to a call, and from the result to text and a code."""
