# rye:signed:20261118T021924Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:Mz1aATY0Hfza9IA3tJU40jZbEl6lhwSNNsMnDEhJssN9tlPqjOi2V_KSM5I6zW79QawZ0o_t175xV-eVnm1oDw==:98839cbb162a4d25
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
