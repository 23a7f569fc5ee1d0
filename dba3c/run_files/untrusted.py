"""Files that anybody may have written: regular files of a bounded size, whose content is checked before it is made."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
import struct
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from dba3c.types import Array

END_OF_ZIP = struct.Struct("<4s4H2LH")  # signature, disks, entries (twice), size and place of the directory, comment
MOST_ARRAYS = 1000
MOST_DIRECTORY_BYTES = 200 * MOST_ARRAYS
MOST_TABLE_BYTES = 10**8
MOST_LINE_BYTES = 2 * csv.field_size_limit()  # a longer line is read in pieces
MOST_NUMBER = 1e18


@contextmanager
def opened(path: Path, most: int) -> Iterator[io.BufferedReader]:
    """Open a regular file of at most `most` bytes; ValueError for anything else, OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait for somebody to write
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError(f"{path} is not a file")
        if facts.st_size > most:
            raise ValueError(f"{path} has {facts.st_size:,} bytes; more than {most:,} are not read")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read(path: Path, most: int) -> bytes:
    """Read a regular file of at most `most` bytes; ValueError for anything else, OSError if it cannot be read."""
    with opened(path, most) as file:
        return file.read(most)


def parse_json(data: bytes) -> object:
    """Parse JSON; ValueError if it is none, or is nested too deeply."""
    try:
        parsed: object = json.loads(data)
        return parsed
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def read_table(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a CSV file one by one; ValueError if it is damaged, OSError if it cannot be read."""
    with opened(path, MOST_TABLE_BYTES) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield from csv.reader(iter(lambda: text.readline(MOST_LINE_BYTES), ""))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} is damaged: {error}") from None


def parse_number(cell: str) -> float:
    """Return the number in a cell; NaN if there is none that anybody could have counted or measured."""
    try:
        number = float(cell)
    except ValueError:
        return math.nan
    return number if abs(number) <= MOST_NUMBER else math.nan


def read_arrays(file: io.BufferedReader) -> dict[str, Array]:
    """Read the arrays that np.savez wrote; some exception, and no more memory than the file is long, if it did not."""
    size = os.fstat(file.fileno()).st_size
    check_end(file, size)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise ValueError("it holds an array twice")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed, which np.savez never does")
        if sum(member.file_size for member in members) > size:
            raise ValueError("it claims to hold more than it does")
        return {member.filename.removesuffix(".npy"): as_array(archive.read(member)) for member in members}


def check_end(file: io.BufferedReader, size: int) -> None:
    """Refuse an archive whose directory, which zipfile reads as a whole, is longer than any of ours."""
    file.seek(max(0, size - END_OF_ZIP.size))
    signature, *_, entries, length, _, _ = END_OF_ZIP.unpack(file.read(END_OF_ZIP.size))
    if signature != b"PK\5\6" or entries > MOST_ARRAYS or length > MOST_DIRECTORY_BYTES:
        raise ValueError("it is no archive of np.savez")


def as_array(data: bytes) -> Array:
    """Turn the content of an npy file into an array of plain numbers."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("it holds an array that np.savez did not write")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.kind not in "fiub" or dtype.itemsize > 8 or not dtype.isnative:
        raise ValueError(f"it holds an array of type {dtype.kind}{dtype.itemsize}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError("it holds an array of another size than it claims")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    array: Array = flat.reshape(shape, order="F" if fortran else "C").copy()
    return array


def tell(text: str) -> None:
    """Say something on standard error, if that can be written."""
    with suppress(OSError, ValueError):
        print(f"dba3c: {text}", file=sys.stderr, flush=True)
