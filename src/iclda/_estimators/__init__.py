"""The classifiers, and what they share."""
