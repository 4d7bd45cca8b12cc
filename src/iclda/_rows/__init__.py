"""Where rows live. Every backend supplies the sums of ``_core.rows.Rows`` and nothing else."""
