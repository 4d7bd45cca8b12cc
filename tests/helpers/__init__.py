"""What several test modules share: problems, independent answers, assertions, sources."""
