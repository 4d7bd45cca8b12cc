"""Numbers that were measured on another day, on a like machine with two cores."""

# Seconds of one fit of ICLDA by the R package RSSL 0.9.7, by number of unlabeled rows:
# 10 features, 20 labels. It builds N x N matrices.
RSSL_SECONDS = {100: 0.07, 1_000: 12.0, 4_000: 286.0}
