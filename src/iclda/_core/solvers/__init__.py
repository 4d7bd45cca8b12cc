"""How a problem is solved: one module a method, and what they share."""
