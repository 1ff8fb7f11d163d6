# rye:signed:20261118T124238Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:L7zhwucfknwlQCa-WbvFBA1tLx-vn80DKN7kjC0CjoTE5H8G6JsVpLkD77LJVUHDoT4MWrAtT9MB_JoWWPcMCA==:adb45f9b2aae2e4b
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
