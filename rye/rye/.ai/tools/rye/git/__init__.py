# rye:signed:20261118T023833Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:06s5ez9tECtl8cXtsn2hS8UnhE2WN57GYQhV72Tkl-PdGPqbMz5824VZTwE7cc5WlNvpIwFxsEXiu0zo6tc9Aw==:e89fbbc1f73416af
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
