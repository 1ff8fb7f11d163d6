"""Turn what people have, scripts, programs and targets of build files, into tools.

Everything is read statically: nothing is imported or executed to find out what it is.
"""
