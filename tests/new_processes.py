"""New processes that have Numba and scikit-learn imported, and nothing of the library: forked from one that waits.

To import these takes most of the time of a short program. What a program imports of the library, and the environment
in which Numba looks for its cache, are its own.
"""

import atexit
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from types import SimpleNamespace


def run(code, folder, env):
    """Run Python code in a new process, in a folder; return its `returncode`, `stdout` and `stderr`."""
    if not hasattr(os, "fork"):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=folder)
    with tempfile.TemporaryDirectory() as kept:
        files = [os.path.join(kept, name) for name in ("out", "err")]
        pickle.dump((code, str(folder), env, files), _server().stdin)
        _server().stdin.flush()
        status = pickle.load(_server().stdout)
        out, err = (Path(file).read_text() for file in files)
    return SimpleNamespace(returncode=status, stdout=out, stderr=err)


@cache
def _server():
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.communicate)  # it ends with its input
    return process


def _serve():
    """Fork for each program; tell how it ended."""
    import numba
    import sklearn.base  # noqa: F401

    numba.njit(lambda x: x)(1)  # much of Numba is imported when it first compiles
    while True:
        try:
            work = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        child = os.fork()
        if not child:
            _become(*work)
        pickle.dump(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _become(code, folder, env, files):
    """Be the program, as far as it can tell."""
    import numba

    for number, name in zip((1, 2), files, strict=True):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(env)
    numba.config.reload_config()
    os.chdir(folder)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    status = 1
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()
