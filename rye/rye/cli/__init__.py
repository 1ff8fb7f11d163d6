"""The command ``rye``: arguments become a call, a result or a typed error becomes text or JSON."""
