"""Commands of the command line: they parse and call. Heavy imports are inside functions."""
