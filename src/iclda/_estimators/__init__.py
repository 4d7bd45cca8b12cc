"""The five classifiers, and what they share."""
