# rye:signed:20261118T024132Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:S1iLcpa5oPXVNR3vD2jhod8JzRcU1T0wSJbAzESgcaNdIdX--A6YtLZutpgNq7h5JsJAR3ff4UGFmYWnwx3xDA==:9f59301a5833574f
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
