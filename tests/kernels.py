"""Run the numerical tests with other kernels than those that suit this processor.

OpenBLAS and NumPy choose their instructions by the processor, and so the last digits of every sum.
Neither a test nor a result may depend on them. This script runs the tests once with each kernel of
OpenBLAS that the processor can execute, in processes of their own:

    python tests/kernels.py           the kernel that differs most: no vectors beyond SSE
    python tests/kernels.py --all     all of them, each with NumPy's vector instructions on and off,
                                      and with tests of the same sums in other places

Further arguments go to pytest. The exit code is 1 if any run failed.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
NUMERICAL = [
    "core",
    "rows/test_device.py",
    "rows/test_fused.py",
    "rows/test_memory.py",
    "estimators/test_expectation_maximization.py",
    "estimators/test_implicitly_constrained.py",
    "estimators/test_moment_constrained.py",
    "estimators/test_self_training.py",
    "faults/test_accuracy.py",
    "faults/test_every_method.py",
    "faults/test_numbers.py",
    "faults/test_optima.py",
    "test_reference.py",
    "estimators/test_supervised.py",
]
# The same numbers once more: from other sources, of other classifiers, of random problems.
REPEATED = ["rows/test_backends.py", "faults/test_properties.py"]
# Oldest instructions first; OpenBLAS takes the nearest one that it was built with.
KERNELS = {
    "x86_64": [
        "Prescott",
        "Nehalem",
        "Sandybridge",
        "Haswell",
        "Zen",
        "SkylakeX",
        "Cooperlake",
    ],
    "aarch64": ["ARMV8", "CORTEXA53", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1"],
}
PROBE = """
import numpy, scipy.linalg, threadpoolctl
scipy.linalg.eigh(numpy.ones((40, 60)) @ numpy.ones((60, 40)))
libraries = threadpoolctl.threadpool_info()
print(*sorted({each["architecture"] for each in libraries if each["internal_api"] == "openblas"}))
"""


def environment(kernel, *, is_vectorized):
    """Variables that choose a kernel, and the instructions of NumPy and PyTorch."""
    chosen = {**os.environ, "OPENBLAS_CORETYPE": kernel}
    if not is_vectorized:
        found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
        chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(found)
        chosen["ATEN_CPU_CAPABILITY"] = "default"
    return chosen


def kernels():
    """Kernels that run here, oldest first, without those that OpenBLAS takes for another one."""
    found = {}
    for kernel in KERNELS.get(os.uname().machine, []):
        settings = environment(kernel, is_vectorized=True)
        command = [sys.executable, "-c", PROBE]
        done = subprocess.run(command, env=settings, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip():
            found.setdefault(done.stdout.strip(), kernel)
    return list(found.values())


def main(arguments):
    found = kernels()
    if not found:
        print(
            f"No kernels of OpenBLAS are known for {os.uname().machine}, or NumPy uses none."
        )
        return 0
    runs, names = [(found[0], False)], NUMERICAL
    if "--all" in arguments:
        runs = [
            (kernel, is_vectorized)
            for is_vectorized in (False, True)
            for kernel in found
        ]
        names = NUMERICAL + REPEATED
    options = [each for each in arguments if each != "--all"]
    failed = []
    for kernel, is_vectorized in runs:
        title = kernel + ("" if is_vectorized else " without other vector instructions")
        print(f"== {title}", flush=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "auto",
            "-r",
            "fE",
            *options,
        ]
        tests = [str(TESTS / name) for name in names]
        settings = environment(kernel, is_vectorized=is_vectorized)
        if subprocess.run([*command, *tests], env=settings).returncode:
            failed.append(title)
    for title in failed:
        print(f"failed with {title}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
