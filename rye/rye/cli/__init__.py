"""The command ``rye``: arguments become a call, and a result or an error becomes text or JSON."""
