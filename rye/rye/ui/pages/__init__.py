"""The pages, a module for each section. :mod:`rye.ui` says how to add one."""
