"""Commands: they parse, call the library and print."""
