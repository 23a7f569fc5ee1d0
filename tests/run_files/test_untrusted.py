"""Files from anybody: what is no regular file, is too long or claims too much is refused before it costs anything."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dba3c.run_files import untrusted
from dba3c.types import Array
from tests.fakes.memory import peak_of


def npz(**arrays: Array) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def arrays(path: Path) -> dict[str, Array]:
    with untrusted.opened(path, 10**9) as file:
        return untrusted.read_arrays(file)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    kinds = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(7), "c": np.asfortranarray(np.eye(3, dtype=np.float16))}
    found = arrays(written(tmp_path / "x", npz(**kinds)))
    for name, array in kinds.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
        assert found[name].flags.writeable


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(ValueError, match="is not a file"):
        untrusted.read(tmp_path / "x", 100)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    with pytest.raises(ValueError, match=r"has 1,099,511,627,776 bytes; more than 100 are not read"):
        untrusted.read(tmp_path / "x", 100)
    assert untrusted.read(written(tmp_path / "y", b"12"), 2) == b"12"


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        untrusted.parse_json(b"[" * 100_000)


HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"
NEGATIVE = "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2), }"
OBJECTS = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
SWAPPED = "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }"
CRAFTED = {
    "nothing": b"",
    "zeros": bytes(10**6),
    "3.6 TB": archive({"weights.npy": npy(HUGE)}),
    "negative shape": archive({"weights.npy": npy(NEGATIVE, bytes(16))}),
    "objects": archive({"weights.npy": npy(OBJECTS, bytes(8))}),
    "other byte order": archive({"weights.npy": npy(SWAPPED, bytes(4))}),
    "no header": archive({"weights.npy": b"\x93NUMPY\x01\x00\xff\xff"}),
    "deep header": archive({"weights.npy": npy("(" * 5000)}),
    "bomb": archive({"weights.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }")
        + bytes(10**8)}, zipfile.ZIP_DEFLATED),
    "many members": archive({f"{number}.npy": b"" for number in range(1001)}),
}  # fmt: skip


@pytest.mark.parametrize("data", CRAFTED.values(), ids=CRAFTED.keys())
@pytest.mark.fault(36, "archive that claims 3.6 TB, zip bomb, pickled objects", "refused within 20 MB of memory")
def test_archives_that_claim_too_much_are_refused_in_little_memory(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path / "x", data)

    def read() -> None:
        with pytest.raises(Exception):  # noqa: B017, PT011
            arrays(path)

    assert peak_of(read) < 20e6
