# rye:signed:20261118T024225Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:gcqcylLQjUjlJ8sxbt1F5GpLDn_rpq3Mw7IFVdnKnNOXbwEU2smBF8U9nfEofNBDmBsLuLGSzSeg3ze-wo0WAQ==:31419bdc9dd85eeb
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
