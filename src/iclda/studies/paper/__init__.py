"""The paper's experiments: plan -> run -> rows -> draw."""
