"""How text reaches a person or a program: streams, colours, tables, progress."""
