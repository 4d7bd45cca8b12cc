"""Where rows live. Every backend supplies the sums of ``_core.problem.Rows`` and nothing else."""
