"""What a tool may touch: declared by its signed file, widened by the user, enforced by the kernel.

``items/permissions`` reads the declaration; here it becomes the confinement that Lilux enforces.
"""
