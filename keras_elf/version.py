"""The version of the package, read by the build and shown to users."""

__version__ = "0.1.0"
