# rye:signed:20261118T023411Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:4evHshyDnY1y2C1erMfyVYmk7uijrU5V51CdN1AEDXTz2uGABP9SvnWxLhPwT6Yd0qFlkk2h0rZG7Daser5EBw==:861ee684c8df8e21
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
