"""Which method to use on a table of one's own: look at it, compare, recommend, report."""
