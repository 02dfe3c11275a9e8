"""jail: run a program inside walls that the Linux kernel keeps."""

__version__ = "0.1.0"
