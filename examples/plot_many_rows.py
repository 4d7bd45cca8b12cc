"""
How long do ten million rows in a file take?
============================================

The rows are in a .npy file, and are read in blocks: the file may be larger than memory.
A fit needs sums over the rows, so that time grows no faster than the file does. What
one fit costs more than another is the number of passes over the file, beside the lines.
A pass is mostly reading.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from iclda import ImplicitlyConstrainedLDA, MomentConstrainedLDA
from iclda.methods import find_method

N_ROWS = 10_000_000
N_FEATURES = 3
BLOCK = 500_000
rng = np.random.default_rng(0)
y = np.arange(20) % 2
X = rng.normal(size=(20, N_FEATURES)) + 1.5 * y[:, None]
methods = {
    "MomentConstrainedLDA": MomentConstrainedLDA(),
    "ImplicitlyConstrainedLDA": ImplicitlyConstrainedLDA(n_starts=4),
}

figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
seconds = {name: {} for name in methods}
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (N_ROWS, N_FEATURES))
    for start in range(0, N_ROWS, BLOCK):
        block = rng.standard_normal((BLOCK, N_FEATURES), dtype=np.float32)
        # Every second row is of class 1, but no file says so.
        block[::2] += 1.5
        rows[start : start + BLOCK] = block
    rows.flush()
    for n_rows in (100_000, 1_000_000, N_ROWS):
        part = path if n_rows == N_ROWS else Path(folder) / f"{n_rows}.npy"
        if part != path:
            np.save(part, rows[:n_rows])
        for name, clf in methods.items():
            began = perf_counter()
            clf.fit(X, y, X_unlabeled=part)
            seconds[name][n_rows] = perf_counter() - began
    del rows

for name in methods:
    color = find_method(name).color
    ax.loglog(list(seconds[name]), list(seconds[name].values()), "o-", color=color)
    end = f"  {name}, passes: {methods[name].n_passes_}"
    ax.text(N_ROWS, seconds[name][N_ROWS], end, color=color, va="center")
ax.set(
    xlabel="rows in the file", ylabel="seconds for one fit, one thread", xlim=(8e4, 8e7)
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
