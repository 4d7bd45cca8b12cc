"""A page on which a person labels rows: its rows, the state of the work, and its server."""
