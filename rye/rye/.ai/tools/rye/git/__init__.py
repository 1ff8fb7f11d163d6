# rye:signed:20261118T021947Z:a22f50f81b35c6aa3c6305a3efd29e98165902a3a4f36647ca613bae1467db98:X7SsbGOp89xUNOZFQvbjgd5gPbkSZla9xoh37PDq2DPhy-4WT_6zN562v5er6wdXW-sHqK6Bn9u3M1ew58SMAg==:91ad247718670428
"""Makes this folder one tool with several files; see ``python_runtime``."""

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "git"
__tool_description__ = "Marks the files of rye/git/git; not a tool itself"
