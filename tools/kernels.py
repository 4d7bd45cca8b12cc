"""Run the numerical tests with other kernels than those that suit this processor.

OpenBLAS and NumPy choose their instructions by the processor, and so the last digits of
every sum. Neither a test nor a result may depend on them. This program runs the tests
once with each kernel of OpenBLAS that the processor can execute, in processes of their
own:

    python -m tools.kernels           the kernel that differs most: no vectors but SSE
    python -m tools.kernels --all     all of them, each with NumPy's vector instructions
                                      on and off, and with more tests

Further arguments go to pytest. The exit code is 1 if any run failed.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"
NUMERICAL = (
    "core",
    "rows/test_device.py",
    "rows/test_fused.py",
    "rows/test_memory.py",
    "estimators/test_expectation_maximization.py",
    "estimators/test_implicitly_constrained.py",
    "estimators/test_moment_constrained.py",
    "estimators/test_self_training.py",
    "estimators/test_supervised.py",
    "faults/test_accuracy.py",
    "faults/test_every_method.py",
    "faults/test_numbers.py",
    "faults/test_optima.py",
    "test_reference.py",
)
# The same numbers once more: from other sources, of other classifiers, of random
# problems.
REPEATED = ("rows/test_backends.py", "faults/test_properties.py")
# Oldest instructions first; OpenBLAS takes the nearest one that it was built with.
KERNELS = {
    "x86_64": (
        "Prescott",
        "Nehalem",
        "Sandybridge",
        "Haswell",
        "Zen",
        "SkylakeX",
        "Cooperlake",
    ),
    "aarch64": ("ARMV8", "CORTEXA53", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1"),
}
# Prints the kernel that OpenBLAS takes.
PROBE = """
import numpy, scipy.linalg, threadpoolctl
scipy.linalg.eigh(numpy.ones((40, 60)) @ numpy.ones((60, 40)))
libraries = threadpoolctl.threadpool_info()
print(*sorted({
    each["architecture"] for each in libraries if each["internal_api"] == "openblas"
}))
"""


class Run(NamedTuple):
    """A kernel, and whether NumPy and PyTorch use vector instructions."""

    kernel: str
    is_vectorized: bool

    @property
    def title(self):
        if self.is_vectorized:
            return self.kernel
        return f"{self.kernel} without other vector instructions"

    @property
    def environment(self):
        """Variables of the process that choose them."""
        chosen = {**os.environ, "OPENBLAS_CORETYPE": self.kernel}
        if not self.is_vectorized:
            found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
            chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(found)
            chosen["ATEN_CPU_CAPABILITY"] = "default"
        return chosen


def find_kernels():
    """Return the kernels that run here, oldest first.

    Those that OpenBLAS replaces by another one are left out.
    """
    found = {}
    for kernel in KERNELS.get(os.uname().machine, ()):
        environment = Run(kernel, is_vectorized=True).environment
        command = [sys.executable, "-c", PROBE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        taken = done.stdout.strip()
        if done.returncode == 0 and taken:
            found.setdefault(taken, kernel)
    return list(found.values())


def main(arguments):
    kernels = find_kernels()
    if not kernels:
        machine = os.uname().machine
        print(f"No kernels of OpenBLAS are known for {machine}, or NumPy uses none.")
        return 0
    if "--all" in arguments:
        runs = [Run(kernel, is_vectorized=False) for kernel in kernels]
        runs += [Run(kernel, is_vectorized=True) for kernel in kernels]
        names = NUMERICAL + REPEATED
    else:
        runs = [Run(kernels[0], is_vectorized=False)]
        names = NUMERICAL
    tests = [str(TESTS / name) for name in names]
    options = [each for each in arguments if each != "--all"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-r", "fE"]
    failed = []
    for run in runs:
        print(f"== {run.title}", flush=True)
        done = subprocess.run([*pytest, *options, *tests], env=run.environment)
        if done.returncode != 0:
            failed.append(run)
    for run in failed:
        print(f"failed with {run.title}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
