"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
