"""Where compiled loops are kept, what is said about it, and that later processes find them."""

import importlib
import io
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import new_processes
from isinglass.runtime.compilation import jit as compilation
from isinglass.runtime.compilation.jit import LINE, PATIENCE, Count
from isinglass.runtime.compilation.turns import turn

LOOPS = """
from isinglass.runtime.compilation.jit import compiled

@compiled
def double(x):
    return 2 * x

@compiled
def four_times(x):
    return double(double(x))
"""

RUN = """
import loops
from isinglass.runtime.compilation.jit import cache_folders
assert loops.four_times(3) == 12
assert loops.four_times(0.5) == 2.0
print(*cache_folders(), sep="\\n")
"""

LOAD = """
import sys
import loops
compiler = "numba.np.arraymath"
print(loops.four_times(3), compiler in sys.modules)
print(loops.four_times(1j), compiler in sys.modules)
"""

WARM = """
import isinglass as ig
from isinglass.runtime.compilation.jit import kernels
done = ig.warmup()
missed = [k.__name__ for k in kernels() if k.stats.cache_misses]
print(done.compiled, done.loaded, len(kernels()), *missed)
"""


def python(code, folder, **variables):
    """Run Python in a folder, with some environment variables set and those set to None removed."""
    env = {k: v for k, v in (os.environ | variables).items() if v is not None}
    env["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [env.get("PYTHONPATH")])])
    done = new_processes.run(code, folder, env)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def loops(tmp_path):
    """Return a folder with a module of two loops."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "loops.py").write_text(LOOPS)
    return folder


@pytest.mark.parametrize("chosen", [False, True])
def test_a_cache_beside_the_source_or_in_a_chosen_folder_needs_no_words(loops, tmp_path, chosen):
    done = python(RUN, loops, NUMBA_CACHE_DIR=str(tmp_path / "chosen") if chosen else None)
    assert done.stderr == ""
    (folder,) = map(Path, done.stdout.split())
    assert folder.is_relative_to(tmp_path / "chosen") if chosen else folder == loops / "__pycache__"
    assert list(folder.glob("*.nbc"))


def test_the_users_cache_folder_stands_in_and_says_so_once(loops, tmp_path):
    (loops / "__pycache__").write_text("a file: no folder can be made here, not even by root")
    user = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": str(tmp_path / "user"), "HOME": str(tmp_path / "user")}
    done = python(RUN, loops, **user)
    folder = done.stdout.strip()
    assert folder.startswith(str(tmp_path / "user"))
    assert done.stderr.count("CacheWarning") == 1
    assert f"compiled once, into {folder}" in done.stderr
    assert "set NUMBA_CACHE_DIR" in done.stderr
    assert python(RUN, loops, **user).stderr == ""  # it compiles nothing


def test_without_any_cache_it_works_and_says_so(loops, tmp_path):
    (loops / "__pycache__").write_text("")
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file" / "x")
    done = python(RUN, loops, NUMBA_CACHE_DIR=None, XDG_CACHE_HOME=nowhere, HOME=nowhere)
    assert done.stdout.strip() == ""
    assert done.stderr.count("CacheWarning") == 1
    assert "compiled anew in every process" in done.stderr


@pytest.mark.long
def test_what_is_loaded_needs_nothing_of_the_compiler(loops):
    """To import that would take half a second in every process; it comes with the first loop that is compiled."""
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": os.pathsep.join(sys.path)}
    python(RUN, loops, NUMBA_CACHE_DIR=None)
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=loops, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("12 False\n4j True\n", "")


def test_the_stamp_covers_the_loops_that_are_called(monkeypatch, tmp_path):
    """Numba alone would keep a caller whose callee has changed in another file."""
    from isinglass.kernels.numba.arithmetic import semiring as ring
    from isinglass.kernels.numba.messages import passes

    name = passes.__name__
    compilation._stamp.cache_clear()
    before, of_ring = compilation._stamp(name), compilation._stamp(ring.__name__)
    changed = tmp_path / "ring.py"
    changed.write_bytes(Path(ring.__file__).read_bytes() + b"# changed\n")
    monkeypatch.setattr(ring, "__file__", str(changed))
    compilation._stamp.cache_clear()
    try:
        assert compilation._stamp(ring.__name__) != of_ring
        assert compilation._stamp(name) != before
    finally:
        compilation._stamp.cache_clear()


def test_an_index_of_another_version_is_not_used(loops, tmp_path):
    """It may name types that have moved; Numba reads it before it looks whether the source is the same."""
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    python(RUN, loops, **where)
    indices = sorted((tmp_path / "chosen").rglob("*.nbi"))
    assert indices
    for index in indices:
        header = pickle.dumps(pickle.loads(index.read_bytes()))  # Numba's version
        index.write_bytes(header + b"cisinglass.errors\nMovedAway\n.")
    python(RUN, loops, **where)
    before = [index.read_bytes() for index in indices]
    python(RUN, loops, **where)
    assert [index.read_bytes() for index in indices] == before


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stderr", "notebook", "shown"),
    [(Terminal(), False, True), (io.StringIO(), False, False), (None, False, False), (io.StringIO(), True, True)],
)
def test_after_seconds_of_compiling_a_terminal_or_notebook_shows_one_line(stderr, notebook, shown, monkeypatch):
    monkeypatch.setattr(Count, "seconds", 0.0)
    monkeypatch.setattr(Count, "announced", False)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", compilation)
    for seconds in (0.6 * PATIENCE, 0.3 * PATIENCE):
        compilation._announce_compiling(seconds)
        assert stderr is None or stderr.getvalue() == ""
    for seconds in (0.2 * PATIENCE, 5 * PATIENCE):
        compilation._announce_compiling(seconds)
    assert stderr is None or stderr.getvalue() == f"{LINE}\n" * shown


HOLD = """
import sys
from isinglass.runtime.compilation.turns import turn
with turn(sys.argv[1], "loop"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_processes_take_turns(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes)
    assert other.stdout.readline() == "held\n"
    start = time.monotonic()
    with turn(tmp_path, "another loop"):
        free = time.monotonic() - start
    with turn(tmp_path, "loop", most=0.5):  # it may have been stopped for good
        waited = time.monotonic() - start - free
    other.communicate("")
    assert free < 0.4 < waited
    start = time.monotonic()
    with turn(tmp_path, "loop"), turn(tmp_path / "none", "loop"):  # nobody waits where there is no folder
        assert time.monotonic() - start < 5


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """Compile everything once, about two minutes; return the folder of the cache and what was printed."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, python(WARM, cache, NUMBA_CACHE_DIR=str(cache)).stdout.split()


@pytest.mark.slow
def test_a_second_process_compiles_nothing(warm):
    cache, first = warm
    files = sorted(cache.rglob("*.nb?"))
    assert int(first[0]) > 100
    second = python(WARM, cache, NUMBA_CACHE_DIR=str(cache)).stdout.split()
    assert (second[0], second[3:]) == ("0", [])  # nothing compiled, no loop with a miss
    assert int(second[1]) > 20
    assert (first[1], second[1], second[2]) == ("0", first[0], first[2])  # both are counted in one way
    assert sorted(cache.rglob("*.nb?")) == files


@pytest.mark.slow
def test_warmup_command(warm):
    code = "from isinglass.cli.main import main; main(['warmup'])"
    done = python(code, warm[0], NUMBA_CACHE_DIR=str(warm[0]))
    assert re.match(r"compiled 0 loops in \S+ s; \d+ were in the cache\n", done.stdout)
    assert f"cache: {warm[0]}" in done.stdout


FITS = """
import numpy as np
import isinglass as ig
from isinglass.runtime.compilation.jit import Count
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(4, 12, 11, 2)), rng.integers(0, 2, (4, 12, 11))
for crf in (ig.GridCRF(max_iter=3), ig.GridCRF(iterations=4, loss="ucl", max_iter=3)):
    crf.fit(X, Y).score(X, Y)
words = [["Ann", "met", "Bo"], ["Bo", "left"]]
labels = [["B-PER", "O", "B-PER"], ["B-PER", "O"]]
for token in (lambda w: {"w": w}, lambda w: [w]):
    X = [[token(w) for w in sentence] for sentence in words]
    crf = ig.ChainCRF(l2=0.1).fit(X, labels)
    crf.predict(X), crf.predict_marginals(X), crf.predict_n_best(X, 3)
X = [(rng.normal(size=(5, 2)), np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])) for _ in range(4)]
ig.GraphCRF(max_iter=3).fit(X, [rng.integers(0, 2, 5) for _ in X]).predict(X)
print(Count.compiled, Count.ready > 20)
"""


@pytest.mark.slow
def test_the_usual_fits_compile_nothing_after_warmup(warm):
    assert python(FITS, warm[0], NUMBA_CACHE_DIR=str(warm[0])).stdout.split() == ["0", "True"]


PARTS = """
from isinglass.runtime.compilation.jit import cold, compiled, inner

@inner
def part(x, k):
    return x * k

@cold
def sign(x):
    return -x

@compiled
def one(x):
    return part(x, x) + x

@compiled
def two(x):
    return sign(part(x, x))
"""


def test_parts_have_no_machine_code_and_come_from_the_cache(tmp_path):
    (tmp_path / "loops.py").write_text(PARTS)
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    tell = """import gc, time, loops
from isinglass.runtime.compilation.jit import Count
start = time.monotonic()
assert loops.{0}(3) == {1} and gc.isenabled()
(part,) = loops.part.overloads.values()
print(type(part.library).__name__, part.library.get_pointer_to_function("any"), Count.compiled)
assert (Count.seconds > 0) == bool(Count.compiled) and Count.seconds <= time.monotonic() - start
print(sum(loops.part.stats.cache_misses.values()))
gc.disable(); loops.{0}(0.5); assert not gc.isenabled()
"""
    assert python(tell.format("one", 12), tmp_path, **where).stdout == "PartLibrary 0 1\n1\n"
    # what another process has compiled becomes a part here, too; what is loaded takes no seconds
    assert python(tell.format("two", -9), tmp_path, **where).stdout == "PartLibrary 0 1\n0\n"
    loaded = "import loops; from isinglass.runtime.compilation.jit import Count; loops.one(3), loops.two(3)\n"
    assert python(loaded + "print(Count.compiled, Count.seconds)", tmp_path, **where).stdout == "0 0.0\n"


NUMBERS = """
from isinglass.runtime.compilation.jit import apart, compiled, inner

@apart
def times(x, k, twice):
    return 2 * x * k if twice else x * k

@inner
def plus(x, k):
    return x + k

@compiled
def numbers(x, k):
    return plus(times(x, 2, True), 3) + plus(times(x, k, True), k) + plus(times(x, 0, False), 1)
"""


def test_what_is_called_is_compiled_once_for_all_numbers_that_are_written_out(tmp_path, monkeypatch):
    (tmp_path / "loops_of_numbers.py").write_text(NUMBERS)
    monkeypatch.syspath_prepend(tmp_path)
    loops = importlib.import_module("loops_of_numbers")
    assert loops.numbers(5, 4) == 20 + 3 + 40 + 4 + 0 + 1
    assert len(loops.plus.overloads) == 1
    assert len(loops.times.overloads) == 1  # for both truth values, too


class CacheFile:
    """What `compilation._save` needs of Numba's cache files; keeps what was done, in order."""

    def __init__(self, folder, stamp):
        self._cache_path, self._index_name, self._source_stamp = folder, "loops.sum-1.py311.nbi", stamp
        self.index, self.done = {}, []

    def _save_data(self, name, data):
        (self._cache_path / name).write_text(data)
        self.done.append("data")

    def _load_index(self):
        return dict(self.index)

    def _save_index(self, overloads):
        self.index = overloads
        self.done.append("index")


def test_processes_that_compile_at_once_do_not_find_each_others_loops(tmp_path):
    one, two = CacheFile(tmp_path, "source"), CacheFile(tmp_path, "source")  # neither has seen the index of the other
    compilation._save(one, "float", "for floats")
    two.index = dict(one.index)
    compilation._save(one, "complex", "for complex numbers")
    compilation._save(two, "int", "for integers")
    assert (tmp_path / one.index["float"]).read_text() == "for floats"
    assert (tmp_path / one.index["complex"]).read_text() == "for complex numbers"
    assert (tmp_path / two.index["int"]).read_text() == "for integers"
    assert one.done == ["data", "index", "data", "index"]  # no index points to what is not there yet


def test_loops_of_an_older_source_are_removed(tmp_path):
    compilation._save(CacheFile(tmp_path, "old"), "float", "old")
    new = CacheFile(tmp_path, "new")
    compilation._save(new, "float", "new")
    assert [path.name for path in tmp_path.iterdir()] == [new.index["float"]]


APART = """
from isinglass.runtime.compilation.jit import apart, compiled, inner, prepared

@prepared
def fill(x, value):
    for i in range(len(x)):
        x[i] = value

@apart
def fill_twice(x, value):
    fill(x, value)
    fill(x, 2 * value)

@inner
def part(x, value):
    fill_twice(x, value)

@compiled
def one(x):
    part(x, 1.0)

@compiled
def two(x):
    fill(x, 5.0)
    part(x, x[0])
"""
TRY = """
import numpy as np, loops
x = np.zeros(3)
getattr(loops, {name!r})(x)
print(*x, *(k.__name__ for k in (loops.fill, loops.fill_twice, loops.one, loops.two) if k.stats.cache_misses))
"""


def test_code_apart_comes_from_the_cache_with_each_of_its_callers(tmp_path):
    (tmp_path / "loops.py").write_text(APART)
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    one, two = TRY.format(name="one"), TRY.format(name="two")
    assert python(one, tmp_path, **where).stdout == "2.0 2.0 2.0 fill fill_twice one\n"
    assert python(one, tmp_path, **where).stdout == "2.0 2.0 2.0\n"
    assert python(two, tmp_path, **where).stdout == "10.0 10.0 10.0 two\n"  # what it calls was found
    of_one = "c.library.get_defined_functions()} for c in loops.one.overloads.values())"
    tell = f"{one}\nprint(*({{f.name.split('loops')[1][1:4] for f in {of_one})"
    assert python(tell, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "other")).stdout.endswith("{'one'}\n")  # no copies
    for kept in (tmp_path / "chosen").rglob("*fill*"):  # no file depends on another one
        kept.unlink()
    assert python(one, tmp_path, **where).stdout == "2.0 2.0 2.0\n"
    assert python(two + one, tmp_path, **where).stdout == "10.0 10.0 10.0\n2.0 2.0 2.0\n"
