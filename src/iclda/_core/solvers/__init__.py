"""Methods that solve a problem: each takes a ``Problem`` and ``Limits``, and returns a solution."""
