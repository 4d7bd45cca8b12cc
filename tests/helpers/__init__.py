"""What several test modules share: problems, answers, assertions, sources of rows."""
