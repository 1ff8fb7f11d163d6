# rye:signed:20261118T031009Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:4Rn-dHq2UtK8Fx-TRBvlWifTKN1f71e-pU2a5FCHqs7SXNhm85WXpmZJ0h6p_uyk77JHK5hsxy05RHt8zzSRDQ==:510aa8305c445fae
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
