"""Few labels on tables: the tables, draws of labels, what is fitted, and the bars."""
