# rye:signed:20261117T002346Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:jBNGW0OgtVaCYtlbJdqcd13rRUaNsUwvYMR-JxMJggUGRRnJ3IMDcmXiuYofaaPF_Br2sA5TnBpI4ysBpSXuCw==:75d8c7e4f1ed4fb4
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
