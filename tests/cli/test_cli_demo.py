"""isinglass demo."""

import builtins
import re


def test_demo(command, tmp_path):
    code, out, err = command("demo", "--out", tmp_path / "new" / "folder")
    assert (code, err) == (0, "")
    picture = tmp_path / "new" / "folder" / "panel.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert out.splitlines()[-1] == f"wrote {picture}"
    wrong = [int(re.search(rf"{name}.*?(\d+) +\d+\.\d%", out)[1]) for name in ("noisy input", "MAP", "MPM")]
    assert wrong[0] > wrong[1] >= wrong[2]
    assert re.search(r"log Z = \d+\.\d+", out)


def test_folder_in_the_way(command, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = command("demo", "--out", tmp_path / "file")
    assert (code, out) == (2, "")
    assert "File exists" in err


def test_without_matplotlib(command, tmp_path, monkeypatch):
    genuine = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    code, out, err = command("demo", "--out", tmp_path)
    assert code == 2
    assert "pip install 'isinglass[viz]'" in err
    assert "MPM" in out  # the numbers came first
