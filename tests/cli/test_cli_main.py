"""The entry point: help, versions, mistakes, pipes and interruptions."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from cli_helpers import one_clean_line

import isinglass as ig
from isinglass.cli.main import main
from isinglass.cli.options import add_command
from isinglass.cli.report import check_writable, error_text, one_line, plain_warnings

SCRIPT = Path(sys.executable).with_name("isinglass")
COMMANDS = ["infer", "info", "convert", "fit", "predict", "evaluate", "demo", "algorithms", "warmup"]


def test_version(command):
    assert command("--version") == (0, f"isinglass {ig.__version__}\n", "")


def test_help(command):
    code, out, err = command("--help")
    assert (code, err) == (0, "")
    assert all(name in out for name in COMMANDS)
    assert "examples:" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_commands(command, name):
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert "examples:" in out
    options = [line for line in out.splitlines() if line.startswith("  --")]
    assert " ".join(out.split()).count("(default: ") >= len(options)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "COMMAND (see: isinglass --help)"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["infer"], "MODEL (see: isinglass infer --help)"),
        (["infer", "a.uai", "--tusk", "PR"], "--tusk"),
        (["infer", "a.uai", "--task"], "--task: expected one argument"),
        (["infer", "a.uai", "--task", "SUM"], "'SUM'"),
        (["infer", "a.uai", "--mem", "1GB"], "--mem"),
        (["convert", "a.uai"], "OUT (see: isinglass convert --help)"),
        (["a\nb\x1b[31m"], r"\x1b[31m"),
    ],
)
def test_usage_mistakes(command, argv, words):
    code, out, err = command(*argv)
    assert (code, out) == (2, "")
    assert words in err
    assert "--help)" in err


def test_reproduce_says_which_package_has_it(capsys, monkeypatch):
    monkeypatch.setattr("isinglass.cli.main.entry_points", lambda group: ())
    assert main(["reproduce", "digits"]) == 2
    err = capsys.readouterr().err
    one_clean_line(err)
    assert "pip install isinglass-experiments" in err
    assert main(["--help"]) == 0


def test_commands_of_other_packages(capsys, monkeypatch):
    class Entry:
        def load(self):
            return lambda commands: add_command(commands, "more", lambda _: print("done"), "does more", "Do more.", "")

    monkeypatch.setattr("isinglass.cli.main.entry_points", lambda group: [Entry()] * (group == "isinglass.commands"))
    assert main(["more"]) == 0
    assert main(["--help"]) == 0
    assert "does more" in capsys.readouterr().out
    monkeypatch.setattr(Entry, "load", None)
    assert main(["algorithms"]) == 0  # does not look for others


def test_algorithms(command):
    code, out, err = command("algorithms")
    assert (code, err) == (0, "")
    for name, summary in ig.algorithms().items():
        assert f" {name} " in out
        assert summary in out  # lines of a file are not broken


def test_interruption(command, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("isinglass.cli.algorithms.run", interrupted)
    assert command("algorithms") == (130, "", "isinglass: interrupted\n")


def test_out_of_memory(command, monkeypatch):
    def greedy(arguments):
        raise MemoryError

    monkeypatch.setattr("isinglass.cli.algorithms.run", greedy)
    code, _, err = command("algorithms")
    assert code == 2
    assert "not enough memory" in err


def test_bugs_are_not_hidden(monkeypatch):
    def broken(arguments):
        raise ZeroDivisionError

    monkeypatch.setattr("isinglass.cli.algorithms.run", broken)
    with pytest.raises(ZeroDivisionError):
        main(["algorithms"])


def test_one_line():
    assert one_line("a\r\nb\x00\x9b c\u2028") == r"a  b\x00\x9b c\u2028"


def test_error_texts():
    assert error_text(PermissionError(13, "Permission denied", b"x")) == "x: Permission denied"
    assert error_text(OSError("odd")) == "odd"
    assert error_text(OSError()) == "OSError"


def test_check_writable(tmp_path):
    check_writable(None)
    check_writable(str(tmp_path / "new"))
    with pytest.raises(IsADirectoryError):
        check_writable(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        check_writable(str(tmp_path / "none" / "new"))


@pytest.mark.parametrize("locked", ["folder", "file"])
def test_what_cannot_be_replaced_is_refused_before_the_work(tmp_path, monkeypatch, locked):
    """A file is replaced by a new one: its folder must be writable; and what was protected stays."""
    (tmp_path / "old").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    refused = str(tmp_path if locked == "folder" else tmp_path / "old")
    monkeypatch.setattr(os, "access", lambda path, mode: os.fspath(path) != refused)
    with pytest.raises(PermissionError):
        check_writable(str(tmp_path / "old"))
    check_writable(str(tmp_path / "pipe"))
    check_writable("/dev/stdout")
    if locked == "folder":
        with pytest.raises(PermissionError):
            check_writable(str(tmp_path / "new"))


def test_convergence_warning_is_one_line(capsys):
    with plain_warnings():
        warnings.simplefilter("always")
        warnings.warn("bp stopped", ig.ConvergenceWarning, stacklevel=1)
    assert capsys.readouterr().err == "isinglass: warning: bp stopped\n"
    with pytest.warns(UserWarning, match="other"), plain_warnings():
        warnings.warn("other", UserWarning, stacklevel=1)


def run_script(*argv, **options):
    return subprocess.run([SCRIPT, *argv], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.long
def test_console_script(model):
    done = run_script("infer", model, "--task", "PR")
    assert done.returncode == 0
    assert done.stdout.startswith("PR\n")
    one_clean_line(done.stderr)
    done = run_script("infer", "missing.uai")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "isinglass: missing.uai: No such file or directory\n"


def test_help_loads_nothing_heavy():
    assert run_script("--help").returncode == 0
    code = "import sys; from isinglass.cli.main import main; main(['infer', '--help']); "
    code += "print([m for m in ('numpy', 'numba', 'scipy', 'rich', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.long
@pytest.mark.parametrize("argv", ["--help", "infer m.uai --task MAR --quiet", "info m.uai", "infer big.uai --quiet"])
def test_broken_pipe(model, argv):
    n = 20_000
    ones = "MARKOV\n" + f"{n}\n" + "2 " * n + "\n0\n"
    (model.parent / "big.uai").write_text(ones)
    line = f"'{SCRIPT}' {argv} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=model.parent, timeout=120)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("0", "141")


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_disk(model):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SCRIPT, "infer", model, "--quiet"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 2
    assert done.stderr == "isinglass: standard output: No space left on device\n"
    with open("/dev/full", "w") as full:
        done = subprocess.run([SCRIPT, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "isinglass: standard output: No space left on device\n")


def shell(line, folder):
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder, timeout=120)


CLOSED = "isinglass: standard output: closed, there is no place for the result\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("argv", "code", "err"),
    [
        ("infer m.uai --algorithm brute --task PR >&-", 2, CLOSED),
        ("infer m.uai --algorithm brute --task PR <&- >&-", 2, CLOSED),
        ("demo >&-", 2, CLOSED),
        ("info m.uai --json >&-", 2, "isinglass: standard output: Bad file descriptor\n"),
        ("--help >&-", 2, "isinglass: standard output: Bad file descriptor\n"),
        ("infer m.uai --algorithm brute --out /dev/stdout >&-", 2, "isinglass: /dev/stdout: Bad file descriptor\n"),
        ("infer m.uai --algorithm brute --out r.MAR --quiet >&-", 0, ""),
        ("infer m.uai --algorithm brute --out r.MAR --quiet <&- >&- 2>&-", 0, ""),
        ("infer missing.uai 2>&-", 2, ""),
        ("infer m.uai --algorithm brute >&- 2>&-", 2, ""),
    ],
)
def test_closed_standard_streams(model, argv, code, err):
    """What was to go to a closed stdout is not lost without a word."""
    done = shell(f"'{SCRIPT}' {argv}; echo $?", model.parent)
    assert done.stdout == f"{code}\n"
    assert done.stderr == err
    assert (model.parent / "r.MAR").exists() == (code == 0)


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no /dev/stdout")
def test_results_to_open_files(model):
    """A name that stands for an open file, a pipe or a device is written to, not replaced."""
    infer, folder = f"'{SCRIPT}' infer m.uai --algorithm brute --task PR --quiet --out", model.parent
    text = shell(f"{infer} /dev/stdout", folder).stdout
    assert text.startswith("PR\n")
    shell(
        f"{{ echo before; {infer} /dev/stdout; echo after; }} > log; echo more > log2; {infer} /dev/stdout >> log2",
        folder,
    )
    assert (folder / "log").read_text() == f"before\n{text}after\n"
    assert (folder / "log2").read_text() == f"more\n{text}"
    assert shell(f"{infer} >(sed s/PR/pr/; echo end) | cat", folder).stdout == text.replace("PR", "pr") + "end\n"
    assert not [name for name in os.listdir(folder) if name.endswith("tmp")]


@pytest.mark.long
def test_other_encodings(model):
    """A terminal without the characters of a name or of a help text gets escapes."""
    name = model.with_name("ünï.uai")
    name.write_text(model.read_text())
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = run_script("info", name, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\xfcn\xef.uai" in done.stdout
    assert run_script("fit", "--help", env=environment).returncode == 0


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c(tmp_path):
    """A fifo that nobody writes to: the program waits for its model until it is interrupted."""
    fifo = tmp_path / "m.uai"
    os.mkfifo(fifo)
    default = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a runner may have it ignored, and a child inherits
    try:
        process = subprocess.Popen([SCRIPT, "infer", fifo], stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, default)
    try:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert err == "isinglass: interrupted\n"


def test_an_error_on_the_way_out_of_ctrl_c(monkeypatch, capsys):
    """Pools of processes that are interrupted while they start may raise another error when they are ended."""

    def interrupted(argv):
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("cannot join thread before it is started")

    monkeypatch.setattr("isinglass.cli.main._run", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "isinglass: interrupted\n"


def test_a_library_that_takes_ctrl_c_for_an_error_of_its_own(monkeypatch, capsys):
    def interrupted(argv):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as signal:
            raise TypeError("cannot compare") from signal

    monkeypatch.setattr("isinglass.cli.main._run", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "isinglass: interrupted\n"


def test_other_errors_show_their_traceback(monkeypatch):
    monkeypatch.setattr("isinglass.cli.main._run", lambda argv: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["info"])
