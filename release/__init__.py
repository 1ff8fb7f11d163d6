"""``python -m release``: wheels for this platform, checked in environments without a compiler."""
