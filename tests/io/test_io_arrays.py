"""Safe files of named arrays: what goes in comes out, and nothing else gets in."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from io_helpers import one_line

import isinglass as ig
from checks import refuses
from isinglass.errors import FileFormatError
from isinglass.io import ArrayFile, arrays, read_arrays, read_npz, write_arrays

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    hnp.unicode_string_dtypes(endianness="?", min_len=1, max_len=5),
)
ANY_ARRAY = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
NAMES = st.from_regex(r"[A-Za-z0-9_]{1,30}([.-][A-Za-z0-9_]{1,30}){0,2}", fullmatch=True).filter(
    lambda name: name not in ("header", "file", "allow_pickle")
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arrays")


@pytest.fixture
def model(tmp_path):
    """A small whole file."""
    path = tmp_path / "model.isg"
    contents = {"weights": np.arange(6.0).reshape(2, 3), "labels": np.array(["sky", "tree"]), "flag": np.array(True)}
    write_arrays(path, contents, schema="grid-crf", version=2, metadata={"l2": 1.0, "classes": ["a", None]})
    return path


@pytest.mark.long
@given(contents=st.dictionaries(NAMES, ANY_ARRAY, max_size=4), metadata=st.dictionaries(st.text(), JSON, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_round_trip(folder, contents, metadata):
    path = folder / "a.isg"
    write_arrays(path, contents, schema="toy", version=3, metadata=metadata)
    file = read_arrays(path, schema="toy", version=3)
    assert (file.schema, file.version, file.library, file.metadata) == ("toy", 3, ig.__version__, metadata)
    assert list(file.arrays) == list(contents)
    for name, array in contents.items():
        got = file.arrays[name]
        assert got.dtype == array.dtype.newbyteorder("=")
        assert got.shape == array.shape
        assert got.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()  # NaNs and zeros to the bit
        assert got.flags.writeable
        assert got.flags.c_contiguous


def test_what_other_readers_see(model, tmp_path):
    with np.load(model) as file:
        np.testing.assert_array_equal(file["weights"], np.arange(6.0).reshape(2, 3))
        assert json.loads(file["header"].tobytes())["schema"] == "grid-crf"
    write_arrays(tmp_path / "a", {"x": np.zeros(100_000), "z": np.zeros(50_000, complex)}, schema="toy")
    assert 0 < (tmp_path / "a").stat().st_size - 1_600_000 < 2000
    rewrite(model, dict, zipfile.ZIP_DEFLATED)
    assert read_npz(model)["labels"].tolist() == ["sky", "tree"]
    refuses(r"the member .header\.npy., no array or packed otherwise", read_arrays, model, error=FileFormatError)


def test_equal_contents_give_equal_bytes(model, tmp_path):
    file = read_arrays(model)
    write_arrays(tmp_path / "b", file.arrays, schema="grid-crf", version=2, metadata=file.metadata)
    assert (tmp_path / "b").read_bytes() == model.read_bytes()
    assert isinstance(file, ArrayFile)
    assert sorted(os.listdir(tmp_path)) == ["b", "model.isg"]


def test_odd_orders(tmp_path):
    contents = {"fortran": np.asfortranarray(np.arange(12).reshape(3, 4)), "strided": np.arange(20)[::-3]}
    write_arrays(tmp_path / "a", contents, schema="toy")
    for name, array in read_arrays(tmp_path / "a").arrays.items():
        np.testing.assert_array_equal(array, contents[name])
    np.savez(tmp_path / "b.npz", **contents)
    np.testing.assert_array_equal(read_npz(tmp_path / "b.npz")["fortran"], contents["fortran"])


class Unlisted:
    pass


@pytest.mark.parametrize(
    ("contents", "more", "message"),
    [
        ([1, 2], {}, "arrays: expected a mapping"),
        ({"a/b": [1]}, {}, "arrays: expected a name of letters"),
        ({"../a": [1]}, {}, "arrays: expected a name"),
        ({"": [1]}, {}, "arrays: expected a name"),
        ({3: [1]}, {}, "arrays: expected a name"),
        ({"a" * 300: [1]}, {}, "arrays: expected a name"),
        ({"file": [1]}, {}, "arrays: expected a name .*, not header, file, allow_pickle, got 'file'"),
        ({"header": [1]}, {}, "arrays: expected a name"),
        ({"a": [Unlisted()]}, {}, r"arrays\['a'\]: expected Booleans, .* got dtype object; convert it"),
        ({"a": [[1], [1, 2]]}, {}, r"arrays\['a'\]: .* got values that do not form an array"),
        ({"a": np.array(["2020"], "M8[s]")}, {}, "got dtype datetime64"),
        ({"a": np.zeros(2, [("x", "f8")])}, {}, "got dtype"),
        ({"a": np.array([b"x"])}, {}, "got dtype"),
        ({"a": np.ma.masked_array([1, 2], [0, 1])}, {}, "got a masked array"),
        ({"a": np.zeros(1, np.longdouble)}, {}, "got dtype float128"),
        ({}, {"schema": "no spaces please"}, "schema: expected a name"),
        ({}, {"schema": None}, "schema: expected a name"),
        ({}, {"version": 0}, "version: expected a whole number of at least 1"),
        ({}, {"metadata": [1]}, "metadata: expected a mapping"),
        ({}, {"metadata": {"x": float("nan")}}, "metadata: .* refuses"),
        ({}, {"metadata": {"x": np.zeros(2)}}, "metadata: .* refuses"),
        ({}, {"metadata": {"x": (1, 2)}}, "metadata: .* something that changes; use lists"),
        ({}, {"metadata": {1: 2}}, "metadata: .* something that changes"),
    ],
)
def test_what_is_not_written(tmp_path, contents, more, message):
    refuses(message, write_arrays, tmp_path / "a", contents, **{"schema": "toy", **more})
    assert os.listdir(tmp_path) == []


def test_other_schemas_and_newer_versions(model):
    with pytest.raises(FileFormatError, match=r"model.isg: expected the schema 'chain-crf', got 'grid-crf'$"):
        read_arrays(model, schema="chain-crf")
    with pytest.raises(FileFormatError) as info:
        read_arrays(model, schema="grid-crf", version=1)
    message = one_line(info.value)
    assert "expected the schema 'grid-crf' up to version 1, got version 2, written by isinglass" in message
    assert message.endswith("pip install --upgrade isinglass")
    assert pickle.loads(pickle.dumps(info.value)).remedy == info.value.remedy


def rewrite(path, change, kind=zipfile.ZIP_STORED):
    """Change the members of a file: a dict from name to bytes."""
    with zipfile.ZipFile(path) as old:
        members = {entry.filename: old.read(entry) for entry in old.infolist()}
    with zipfile.ZipFile(path, "w", kind) as new:
        for name, data in change(members).items():
            new.writestr(name, data)


def as_header(text):
    """Put text in the place of the header."""
    data = np.frombuffer(text, np.uint8)
    return lambda members: members | {"header.npy": npy_bytes("'|u1'", f"({len(data)},)", text)}


def header(**changes):
    def change(members):
        found = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
        return as_header(json.dumps(found | changes).encode())(members)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {k: v for k, v in m.items() if k != "header.npy"}, "got no header in JSON"),
        (as_header(b"{"), "got no header in JSON"),
        (as_header(b"\xff"), "got no header in JSON"),
        (as_header(b"[" * 100_000), "got no header in JSON"),
        (as_header(b'{"a":' * 100_000), "got no header in JSON"),
        (as_header(b"1" * 5000), "got no header in JSON"),
        (header(metadata={"a": np.nan}), "got no header in JSON"),
        (as_header(b"[]"), "got no header in JSON"),
        (as_header(b"{}"), "expected a file of format 'isinglass arrays 1', got None"),
        (header(format="other"), "expected a file of format 'isinglass arrays 1', got 'other'"),
        (header(schema=3), "a header with a proper 'schema', got 3"),
        (header(schema_version=True), "a proper 'schema_version'"),
        (header(library=["\n"]), "a proper 'library', got a list"),
        (header(metadata=None), "a proper 'metadata'"),
        (lambda m: m | {"readme.txt": b"hello"}, "got the member 'readme.txt', no array or packed otherwise"),
        (lambda m: m | {"a\n": b"hello"}, "got the member 'a.*n', no array"),
    ],
)
def test_changed_files(model, change, message):
    rewrite(model, change)
    with pytest.raises(FileFormatError, match=message) as info:
        read_arrays(model)
    one_line(info.value)


def npy_bytes(descr="'<f8'", shape="(2,)", data=bytes(16), order="False", version=(1, 0)):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode("latin-1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        npy_bytes(version=(9, 0)),
        npy_bytes(descr="'|O'"),
        npy_bytes(descr="'|V8'"),
        npy_bytes(descr="'<f16'"),
        npy_bytes(descr="'|S8'"),
        npy_bytes(descr="'<M8[s]'"),
        npy_bytes(descr="[('a', '<f8')]"),
        npy_bytes(descr="'<U0'", shape="(1000000000000,)", data=b""),
        npy_bytes(descr="('<f8', (2,))", shape="()"),
        npy_bytes(shape="(400000000,)"),
        npy_bytes(descr="__import__('os')"),
        npy_bytes(shape="(3,)"),
        npy_bytes(shape="(-2,)"),
        npy_bytes(shape="(" + "9" * 5000 + ",)"),
        npy_bytes(shape="(999999999999999999, 999999999999999999)"),
        npy_bytes(shape="(0, 999999999999999999, 999999999999999999)", data=b""),
        npy_bytes(shape="(" + "1, " * 70 + ")", data=bytes(8)),
        npy_bytes(descr="'|b1'", data=b"\x01\x02"),
        npy_bytes(descr="'<U1'", data=b"\xff" * 8),
        npy_bytes(descr="'>U1'", data=b"\x00\xff\xff\xff" * 2),
        npy_bytes() + b"more",
        pickle.dumps([1, 2]),
    ],
    ids=lambda data: ascii(data[10:70]),
)
def test_arrays_that_are_none(tmp_path, data):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("x.npy", data)
    with pytest.raises(FileFormatError, match=r"a.npz: expected a whole .npz archive of plain arrays, got ") as info:
        read_npz(tmp_path / "a.npz")
    one_line(info.value)


def test_version_two_and_long_empty_arrays(tmp_path):
    members = {
        "two": npy_bytes(version=(2, 0)),
        "long": npy_bytes(shape="(0, 1000000000)", data=b""),
        "number": npy_bytes(shape="()", data=struct.pack("<d", 1.5)),
    }
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    found = read_npz(tmp_path / "a.npz")
    assert found["two"].tolist() == [0.0, 0.0]
    assert found["long"].shape == (0, 10**9)
    assert found["number"] == 1.5


def test_pickles_do_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (os.fspath(tmp_path / "ran"),)

    np.savez(tmp_path / "evil.npz", x=np.array([Evil()], object))
    refuses("plain arrays", read_npz, tmp_path / "evil.npz", error=FileFormatError)
    assert not (tmp_path / "ran").exists()


def test_bombs_take_no_memory(tmp_path):
    """An honest one is over the limit; one that lies about its size is refused for that."""
    with zipfile.ZipFile(tmp_path / "big.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", npy_bytes(shape="(5000000,)", data=bytes(40_000_000)))
    data = bytearray((tmp_path / "big.npz").read_bytes())
    central = data.rindex(b"PK\x01\x02")
    assert struct.unpack_from("<I", data, central + 24)[0] > 40_000_000
    for claim in (100, 2**32 - 2):
        struct.pack_into("<I", data, central + 24, claim)
        (tmp_path / f"{claim}.npz").write_bytes(data)
    tracemalloc.start()
    try:
        for name in ("big", "100", str(2**32 - 2)):
            with pytest.raises(FileFormatError):
                read_npz(tmp_path / f"{name}.npz", limit=5_000_000)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_twice_the_same_name(tmp_path):
    np.savez(tmp_path / "twice.npz", a=1, b=2)
    (tmp_path / "twice.npz").write_bytes((tmp_path / "twice.npz").read_bytes().replace(b"b.npy", b"a.npy"))
    refuses("two members of one name", read_npz, tmp_path / "twice.npz", error=FileFormatError)


def test_members_that_overlap(tmp_path):
    """Small files whose directory names the same bytes many times."""
    np.savez(tmp_path / "a.npz", **{f"a{i}": np.zeros(10) for i in range(3)})
    data = bytearray((tmp_path / "a.npz").read_bytes())
    place = data.index(b"PK\x01\x02")
    for _ in range(3):
        struct.pack_into("<II", data, place + 20, len(data) // 2, len(data) // 2)
        place = data.find(b"PK\x01\x02", place + 1)
    (tmp_path / "a.npz").write_bytes(data)
    refuses("members larger than the file", read_npz, tmp_path / "a.npz", error=FileFormatError)


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(tmp_path, kind):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", kind) as file:
        file.writestr("x.npy", npy_bytes())
    refuses("no array or packed otherwise", read_npz, tmp_path / "a.npz", error=FileFormatError)


@pytest.mark.parametrize("data", [b"", b"PK", b"hello" * 100, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_archive(tmp_path, data):
    (tmp_path / "two\nlines").write_bytes(data)
    with pytest.raises(FileFormatError, match=r"expected a whole \.npz archive of plain arrays, got ") as info:
        read_arrays(tmp_path / "two\nlines")
    one_line(info.value)


def test_every_truncation_is_refused(model, tmp_path):
    data = model.read_bytes()
    for size in range(0, len(data), 7):
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(FileFormatError):
            read_arrays(tmp_path / "cut")


def test_limits_and_missing_files(model, tmp_path):
    refuses(r"got .* of data, more than 100 B", read_npz, model, error=FileFormatError, limit=100)
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read_npz(tmp_path)
    refuses("path", read_npz, 3)
    refuses("limit", read_npz, model, limit=-1)


@given(data=st.binary(max_size=300), start=st.sampled_from([b"", b"\x93NUMPY\x01\x00", npy_bytes()[:40]]))
@settings(deadline=None)
def test_random_bytes_as_an_array(folder, data, start):
    with zipfile.ZipFile(folder / "random", "w") as file:
        file.writestr("x.npy", start + data)
    try:
        array = read_npz(folder / "random")["x"]
    except FileFormatError as error:
        one_line(error)
    else:
        assert array.nbytes <= len(data) + len(start)


@given(text=st.text(alphabet='{}[]",:0123456789eE.-truefalsnN \n', max_size=60))
@settings(deadline=None)
def test_random_headers(text):
    with pytest.raises(FileFormatError) as info:
        arrays._header(np.frombuffer(text.encode(), np.uint8), "file")
    one_line(info.value)


def test_ctrl_c_inside_a_member_stays_ctrl_c(tmp_path, monkeypatch):
    """Between the opening of a member and its first byte; an archive that is closed then complains."""
    whole, opened = zipfile.ZipFile.open, []

    def interrupted(*arguments, **options):
        opened.append(whole(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_arrays(tmp_path / "a", {"x": [1]}, schema="toy")
    opened.pop().close()
    assert os.listdir(tmp_path) == []
