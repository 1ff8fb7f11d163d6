# rye:signed:20261118T032744Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:Ey7a4QWha-iv75kX6nGW2JXhUmPrTQl0s08Km2hjDFR0iZHiwmxxP4rqfuWzceJl45bYA9zg2C5_MVBjSufCAw==:d0785853f2337252
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
