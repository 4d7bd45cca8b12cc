"""The command line. Each module has the commands of a group, which parse and call.

``options`` and ``messages`` have what commands share. Heavy imports are inside
functions, so that help and the first line of a command appear at once.
"""
