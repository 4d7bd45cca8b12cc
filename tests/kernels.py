"""Run the numerical tests with other kernels than those that suit this processor.

OpenBLAS and NumPy choose their instructions by the processor, and so the last digits of every sum.
Neither a test nor a result may depend on them. This script runs the tests once with each kernel of
OpenBLAS that the processor can execute, in processes of their own:

    python tests/kernels.py           the kernel that differs most: no vectors beyond SSE
    python tests/kernels.py --all     all of them, each with NumPy's vector instructions on and off,
                                      and with tests of the same sums in other places
    python tests/kernels.py --list    what --all would run

Further arguments go to pytest. The exit code is 1 if any run failed.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
NUMERICAL = [
    "core",
    "rows/test_device.py",
    "rows/test_memory_chain.py",
    "rows/test_loops.py",
    "rows/test_fused.py",
    "rows/test_memory.py",
    "estimators/test_expectation_maximization.py",
    "estimators/test_implicitly_constrained.py",
    "estimators/test_moment_constrained.py",
    "faults/test_accuracy.py",
    "faults/test_numbers.py",
    "faults/test_optima.py",
    "test_reference.py",
    "estimators/test_self_learning.py",
    "estimators/test_supervised.py",
]
# The same numbers once more: from other sources, of other classifiers, of random problems.
REPEATED = ["rows/test_backends.py", "faults/test_further.py", "faults/test_properties.py"]
# Oldest instructions first; OpenBLAS takes the nearest one that it was built with.
KERNELS = {
    "x86_64": ["Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake"],
    "aarch64": ["ARMV8", "CORTEXA53", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1"],
}
PROBE = """
import numpy, scipy.linalg, threadpoolctl
scipy.linalg.eigh(numpy.ones((40, 60)) @ numpy.ones((60, 40)))
libraries = threadpoolctl.threadpool_info()
print(*sorted({each["architecture"] for each in libraries if each["internal_api"] == "openblas"}))
"""


@dataclass(frozen=True)
class Setting:
    """Environment variables that choose kernels, and what they are called."""

    kernel: str
    is_vectorized: bool  # in NumPy and PyTorch

    def __str__(self):
        return self.kernel + ("" if self.is_vectorized else " without other vector instructions")

    @property
    def environment(self):
        chosen = {**os.environ, "OPENBLAS_CORETYPE": self.kernel}
        if not self.is_vectorized:
            found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
            chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(found)
            chosen["ATEN_CPU_CAPABILITY"] = "default"
            chosen["NUMBA_CPU_NAME"] = "generic"
        return chosen

    def architecture(self):
        """What OpenBLAS calls its kernels under this setting; empty if they do not run here."""
        command = [sys.executable, "-c", PROBE]
        run = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return run.stdout.strip() if run.returncode == 0 else ""


def settings():
    """One setting for each kernel that runs here, oldest first."""
    found = {}
    for kernel in KERNELS.get(os.uname().machine, []):
        setting = Setting(kernel, is_vectorized=True)
        architecture = setting.architecture()
        if architecture and architecture not in found:
            found[architecture] = setting
    return list(found.values())


def run(setting, names, options):
    print(f"== {setting}", flush=True)
    tests = [str(TESTS / name) for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-r", "fE", *options, *tests]
    return subprocess.run(command, env=setting.environment).returncode


def main(arguments):
    found = settings()
    if not found:
        print(
            f"No other kernels of OpenBLAS are known for {os.uname().machine}, or NumPy uses none."
        )
        return 0
    first = Setting(found[0].kernel, is_vectorized=False)
    chosen = [first]
    if {"--all", "--list"} & set(arguments):
        others = [Setting(each.kernel, is_vectorized=False) for each in found[1:]]
        chosen = [first, *found, *others]
    if "--list" in arguments:
        print(*chosen, sep="\n")
        return 0
    options = [each for each in arguments if each != "--all"]
    names = NUMERICAL + (REPEATED if "--all" in arguments else [])
    failed = [setting for setting in chosen if run(setting, names, options) != 0]
    for setting in failed:
        print(f"failed with {setting}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
