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
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from io_helpers import one_line

import isinglass as ig
from isinglass.errors import FileFormatError, InputError
from isinglass.io import ArrayFile, archive, arrays, npy, read_arrays, read_npz, write_arrays

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    hnp.unicode_string_dtypes(endianness="?", min_len=1, max_len=5),
)
ANY_ARRAY = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
NAMES = st.from_regex(archive.NAME, fullmatch=True).filter(lambda name: len(name) < 100)
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
        assert got.flags.owndata or got.base is None


def test_numpy_reads_it_too(model):
    with np.load(model) as file:
        np.testing.assert_array_equal(file["weights"], np.arange(6.0).reshape(2, 3))
        assert json.loads(file["header.json"])["schema"] == "grid-crf"


def test_equal_contents_give_equal_bytes(model, tmp_path):
    file = read_arrays(model)
    write_arrays(tmp_path / "b", file.arrays, schema="grid-crf", version=2, metadata=file.metadata)
    assert (tmp_path / "b").read_bytes() == model.read_bytes()
    assert isinstance(file, ArrayFile)
    assert sorted(os.listdir(tmp_path)) == ["b", "model.isg"]


def test_without_compression(tmp_path):
    zeros = np.zeros(1000)
    for compress in (True, False):
        write_arrays(tmp_path / f"{compress}", {"x": zeros}, schema="toy", compress=compress)
        np.testing.assert_array_equal(read_arrays(tmp_path / f"{compress}").arrays["x"], zeros)
    assert (tmp_path / "True").stat().st_size < 1000 < 8000 < (tmp_path / "False").stat().st_size


def test_odd_orders(tmp_path):
    contents = {"fortran": np.asfortranarray(np.arange(12).reshape(3, 4)), "strided": np.arange(20)[::-3]}
    write_arrays(tmp_path / "a", contents, schema="toy")
    for name, array in read_arrays(tmp_path / "a").arrays.items():
        np.testing.assert_array_equal(array, contents[name])
    np.savez(tmp_path / "b.npz", **contents)
    np.testing.assert_array_equal(read_npz(tmp_path / "b.npz")["fortran"], contents["fortran"])


def test_failed_write_keeps_the_old_file(model, monkeypatch):
    before = model.read_bytes()

    def broken(*_):
        raise OSError("no space")

    monkeypatch.setattr("isinglass.io.files.os.fsync", broken)
    with pytest.raises(OSError, match="no space"):
        write_arrays(model, {"x": [1]}, schema="toy")
    assert model.read_bytes() == before


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
        ({"a": [Unlisted()]}, {}, r"arrays\['a'\]: expected Booleans, .* got dtype object; convert it"),
        ({"a": [[1], [1, 2]]}, {}, r"arrays\['a'\]: .* got values that do not form an array"),
        ({"a": np.array(["2020"], "M8[s]")}, {}, "got dtype datetime64"),
        ({"a": np.zeros(2, [("x", "f8")])}, {}, "got dtype"),
        ({"a": np.array([b"x"])}, {}, "got dtype"),
        ({"a": np.ma.masked_array([1, 2], [0, 1])}, {}, "got a masked array"),
        ({"a": np.zeros((1,) * 33)}, {}, "at most 32 axes"),
        ({}, {"schema": "no spaces please"}, "schema: expected a name"),
        ({}, {"schema": None}, "schema: expected a name"),
        ({}, {"version": 0}, "version: expected a whole number of at least 1"),
        ({}, {"metadata": [1]}, "metadata: expected a mapping"),
        ({}, {"metadata": {"x": float("nan")}}, "metadata: .* refuses"),
        ({}, {"metadata": {"x": np.zeros(2)}}, "metadata: .* refuses"),
        ({}, {"metadata": {"x": (1, 2)}}, "metadata: .* something that changes; use lists"),
        ({}, {"metadata": {1: 2}}, "metadata: .* something that changes"),
        ({"a": np.zeros(1000)}, {"limit": 7000}, "arrays: expected at most 7 KB of data .* give a higher limit"),
    ],
)
def test_what_is_not_written(tmp_path, contents, more, message):
    with pytest.raises(InputError, match=message):
        write_arrays(tmp_path / "a", contents, **{"schema": "toy", **more})
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


def rewrite(path, change):
    """Change the members of a file: a dict from name to bytes."""
    with zipfile.ZipFile(path) as old:
        members = {entry.filename: old.read(entry) for entry in old.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in change(members).items():
            new.writestr(name, data)


def header(**changes):
    def change(members):
        return members | {"header.json": json.dumps(json.loads(members["header.json"]) | changes).encode()}

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {k: v for k, v in m.items() if k != "header.json"}, "an archive without a fitting header"),
        (lambda m: m | {"header.json": b"{"}, "expected JSON in header.json"),
        (lambda m: m | {"header.json": b"\xff"}, "expected JSON in header.json"),
        (lambda m: m | {"header.json": b"[" * 100_000}, "expected JSON in header.json"),
        (lambda m: m | {"header.json": b'{"a":' * 100_000}, "expected JSON in header.json"),
        (lambda m: m | {"header.json": b"1" * 5000}, "expected JSON in header.json"),
        (lambda m: m | {"header.json": b"[NaN]"}, "expected JSON in header.json"),
        (lambda m: m | {"header.json": b"[]"}, "expected a JSON object"),
        (lambda m: m | {"header.json": b"{}"}, "expected a file of format 'isinglass arrays', got None"),
        (header(format="other"), "expected a file of format"),
        (header(format_version=2), "expected version 1 of the format, got 2; a newer isinglass reads it"),
        (header(schema="a b\n"), "a header with a proper 'schema'"),
        (header(schema_version=True), "a proper 'schema_version'"),
        (header(schema_version=-1), "a proper 'schema_version'"),
        (header(library="\n" * 5), "a proper 'library'"),
        (header(metadata=None), "a proper 'metadata'"),
        (header(arrays=[1]), "a proper 'arrays'"),
        (header(arrays={}), "the arrays that its header lists, got others"),
        (lambda m: {k: v for k, v in m.items() if k != "flag.npy"}, "the arrays that its header lists"),
        (lambda m: m | {"more.npy": m["flag.npy"]}, "the arrays that its header lists"),
        (lambda m: m | {"weights.npy": m["flag.npy"]}, "the arrays that its header lists"),
        (lambda m: m | {"readme.txt": b"hello"}, "expected arrays only, got the member readme.txt"),
        (lambda m: m | {"../evil.npy": m["flag.npy"]}, r"expected members with plain names, got '../evil.npy'"),
        (lambda m: m | {"/etc/evil.npy": m["flag.npy"]}, "expected members with plain names"),
        (lambda m: m | {"a/b.npy": m["flag.npy"]}, "expected members with plain names"),
        (lambda m: m | {"folder/": b""}, "expected members with plain names"),
        (lambda m: m | {"a\\b.npy": m["flag.npy"]}, "expected members with plain names"),
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
        npy_bytes(descr="'<U0'", data=b""),
        npy_bytes(descr="__import__('os')"),
        npy_bytes(order="0"),
        npy_bytes(shape="(3,)"),
        npy_bytes(shape="(1,)"),
        npy_bytes(shape="(-2,)"),
        npy_bytes(shape="(2.0,)"),
        npy_bytes(shape="(" + "9" * 5000 + ",)"),
        npy_bytes(shape="(999999999999999999, 999999999999999999)"),
        npy_bytes(shape="(0, 999999999999999999, 999999999999999999)", data=b""),
        npy_bytes(shape="(" + "1, " * 40 + ")", data=bytes(8)),
        npy_bytes(descr="'|b1'", data=b"\x01\x02"),
        npy_bytes(descr="'<U1'", data=b"\xff" * 8),
        npy_bytes(descr="'>U1'", data=b"\x00\xff\xff\xff" * 2),
        npy_bytes() + b"more",
        pickle.dumps([1, 2]),
    ],
    ids=lambda data: ascii(data[10:70]),
)
def test_arrays_that_are_none(tmp_path, data):
    with pytest.raises(npy.NpyError):
        npy.decode(data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("x.npy", data)
    with pytest.raises(FileFormatError, match=r"a.npz: expected a plain array in x.npy, got ") as info:
        read_npz(tmp_path / "a.npz")
    one_line(info.value)


def test_version_two_and_long_empty_arrays():
    assert npy.decode(npy_bytes(version=(2, 0))).tolist() == [0.0, 0.0]
    assert npy.decode(npy_bytes(shape="(0, 1000000000)", data=b"")).shape == (0, 10**9)
    assert npy.decode(npy_bytes(shape="()", data=struct.pack("<d", 1.5))) == 1.5


def test_pickles_do_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (os.fspath(tmp_path / "ran"),)

    np.savez(tmp_path / "evil.npz", x=np.array([Evil()], object))
    with pytest.raises(FileFormatError, match=r"a plain array in x\.npy"):
        read_npz(tmp_path / "evil.npz")
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


def test_many_members_and_twice_the_same(tmp_path):
    with zipfile.ZipFile(tmp_path / "many", "w") as file:
        for i in range(archive.MEMBER_LIMIT + 1):
            file.writestr(f"a{i}.npy", b"")
    with pytest.raises(FileFormatError, match="expected at most 10000 members, got 10001"):
        read_npz(tmp_path / "many")
    with zipfile.ZipFile(tmp_path / "twice", "w") as file:
        file.writestr("a.npy", b"")
        file.writestr("b.npy", b"")
    (tmp_path / "twice").write_bytes((tmp_path / "twice").read_bytes().replace(b"b.npy", b"a.npy"))
    with pytest.raises(FileFormatError, match="expected members with different names, got a name twice"):
        read_npz(tmp_path / "twice")


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(tmp_path, kind):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", kind) as file:
        file.writestr("x.npy", npy_bytes())
    with pytest.raises(FileFormatError, match="expected members that are stored or deflated"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("data", [b"", b"PK", b"hello" * 100, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_archive(tmp_path, data):
    (tmp_path / "two\nlines").write_bytes(data)
    with pytest.raises(FileFormatError, match="expected a whole zip archive, got damaged data") as info:
        read_arrays(tmp_path / "two\nlines")
    one_line(info.value)


def test_every_truncation_is_refused(model, tmp_path):
    data = model.read_bytes()
    for size in range(0, len(data), 7):
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(FileFormatError):
            read_arrays(tmp_path / "cut")


def test_limits_and_missing_files(model, tmp_path):
    with pytest.raises(FileFormatError, match="expected at most 100 B of data, got more"):
        read_arrays(model, limit=100)
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read_npz(tmp_path)
    with pytest.raises(InputError, match="path"):
        read_npz(3)
    with pytest.raises(InputError, match="limit"):
        read_npz(model, limit=-1)


def whole_file():
    file = io.BytesIO()
    np.savez(file, x=np.arange(3.0), names=np.array(["a", "bc"]), flag=np.array([True, False]))
    return file.getvalue()


WHOLE = whole_file()
FLIPS = st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=6)


@pytest.mark.long
@given(flips=FLIPS, cut=st.integers(0, 30))
@example(flips=[(len(WHOLE) - 22 + 16, 255)], cut=0)
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_damaged_bytes(folder, flips, cut):
    """Whatever is changed in a file, it is read, or refused with one line."""
    data = bytearray(WHOLE)
    for place, byte in flips:
        data[place] = byte
    (folder / "damaged").write_bytes(data[: len(data) - cut])
    try:
        found = read_npz(folder / "damaged", limit=2**20)
    except FileFormatError as error:
        one_line(error)
    else:
        assert all(array.dtype.kind in "biufcU" for array in found.values())


@given(data=st.binary(max_size=300), start=st.sampled_from([b"", b"\x93NUMPY\x01\x00", npy_bytes()[:40]]))
@settings(deadline=None)
def test_random_bytes_as_an_array(data, start):
    try:
        array = npy.decode(start + data)
    except npy.NpyError:
        return
    assert array.nbytes <= len(data) + len(start)


@given(text=st.text(alphabet='{}[]",:0123456789eE.-truefalsnN \n', max_size=60))
@settings(deadline=None)
def test_random_headers(text):
    with pytest.raises(FileFormatError) as info:
        arrays._read_header(text.encode(), "file")
    one_line(info.value)


def test_an_interrupted_member_is_given_up(monkeypatch):
    """Ctrl-C between the opening of a member and its first byte: an archive that is closed would complain."""
    whole, opened = zipfile.ZipFile.open, []

    def interrupted(*arguments, **options):
        opened.append(whole(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        archive.pack({"a": b"hello"})
