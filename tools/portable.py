"""Run the tests as other processors would: other kernels of OpenBLAS, other numbers of threads, plain machine code.

    python tools/portable.py kernels [pytest's arguments]    # each kernel, and both numbers of threads
    python tools/portable.py all [pytest's arguments]        # each by itself, and loops compiled for any processor

A kernel that needs instructions that this processor does not have is left out, and named.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
KERNELS = {"Prescott": None, "Haswell": "avx2", "SkylakeX": "avx512f"}  # and the instructions that they need
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(ROOT / ".numba-generic")}


def kernel(name, threads=None):
    return {"OPENBLAS_CORETYPE": name} | ({} if threads is None else blas_threads(threads))


def blas_threads(count):
    return {"OPENBLAS_NUM_THREADS": str(count)}


FEWER = {"ISINGLASS_EXAMPLES": "20"}  # `make test` has tried all of them with the processor's own kernel
SETTINGS = {
    "kernels": [kernel("Prescott", 1) | FEWER, kernel("Haswell", 4) | FEWER],
    "all": [*map(kernel, KERNELS), GENERIC, blas_threads(1), blas_threads(4)],
}


def instructions():
    """Return the words of this processor's description; where there is none, nothing is known to be missing."""
    description = Path("/proc/cpuinfo")
    return set(description.read_text().split()) if description.is_file() else None


def lacking(setting):
    """Return the instructions that a setting needs and this processor lacks."""
    known, needed = instructions(), KERNELS.get(setting.get("OPENBLAS_CORETYPE", ""))
    return needed if needed is not None and known is not None and needed not in known else None


def run(setting, arguments):
    """Run the tests under a setting; return its name and whether they failed."""
    name, missing = " ".join(f"{key}={value}" for key, value in setting.items()), lacking(setting)
    if missing is not None:
        print(f"== {name}: left out, this processor has no {missing}", flush=True)
        return name, False
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | setting, check=False, capture_output=True, text=True)
    print(f"== {name}\n{done.stdout}{done.stderr}", flush=True)
    return name, done.returncode != 0


def main(which, arguments):
    """Run the settings, those of kernels side by side: each collects the tests once, in one process."""
    with ThreadPoolExecutor(2 if which == "kernels" else 1) as pool:
        found = list(pool.map(lambda setting: run(setting, arguments), SETTINGS[which]))
    failed = [name for name, bad in found if bad]
    if failed:
        sys.exit("failed under " + "; ".join(failed))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in SETTINGS:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
