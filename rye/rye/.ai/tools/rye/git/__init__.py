# rye:signed:20261118T125305Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:ea6a2Gjk0Buio0vYh2n0ErL1OtqlZsYvU9kb_QcK3g0lRkjTIVJvh-PWVOcxMQKVnJGTfi1zMGdSkQEPsBlWCg==:0cdadc7a57fefd2c
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
