"""Where rows live. Every backend supplies the three sums of ``_core.rows.Rows`` and nothing else."""
