"""Changes to files by their structure: JSON, TOML, safetensors, npz, PNG and gzip stay readable up to the change.

`mutate` changes a file in place, by the random numbers it is given, and says how. Tables are in `_table_mutators.py`.
"""

import gzip
import io
import json
import os
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOSTILE: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        10**30,
        -(2**63),
        0.5,
        1e308,
        -1e308,
        1e-320,
        "",
        "x",
        "NaN",
        "é\u202e",
    ),
    *(
        float("nan"),
        float("inf"),
        "../../../../etc/passwd",
        "/dev/zero",
        "\0",
        "a" * 5000,
        "</script><script>",
        "\x1b[31m",
    ),
    *([], {}, [[]], [1, "a", None], {"a": {"b": 1}}, [0] * 2000, "1", "-1", "1e999", "2026-01-01T00:00:00", "%s%n"),
]
TOKENS = [
    *("nan", "inf", "-inf", "0", "-1", "1e308", "1e-320", "9223372036854775807", "9223372036854775808", '""', '"x"'),
    *(
        "true",
        "[]",
        "{}",
        "[1, 2]",
        "[[]]",
        '"\\u0000"',
        '"' + "a" * 5000 + '"',
        "2026-01-01",
        "0x10",
        "1_000",
        "'",
        "=",
    ),
    *('"/dev/zero"', '"/dev/full"', '"../../x"', "{ low = 1, high = 0 }", "{ low = 0, high = 1, log = true }", "[nan]"),
]


def mutate(path: Path, draw: random.Random) -> str:
    """Change a file; returns what was done."""
    if draw.random() < 0.04:
        return _replace(path, draw)
    data = path.read_bytes()
    structured = _STRUCTURED.get(path.suffix)
    if structured and draw.random() < 0.75:
        try:
            new, how = structured(data, draw)
        except (ValueError, KeyError, IndexError, zipfile.BadZipFile):  # nothing to change there
            new, how = some_bytes(data, draw)
    else:
        new, how = some_bytes(data, draw)
    path.write_bytes(new)
    return how


def _replace(path: Path, draw: random.Random) -> str:
    """Put something else in the place of a file."""
    path.unlink()
    how = draw.choice(["missing", "folder", "loop", "fifo", "device", "dangling"])
    if how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "device":
        path.symlink_to("/dev/zero")
    elif how == "dangling":
        path.symlink_to("nowhere")
    return how


def some_bytes(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    at, to = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    how = draw.choice(["bit", "bit", "bytes", "cut", "insert", "remove", "zeros", "twice", "empty", "other"])
    if how == "bit" and data:
        at = min(at, len(data) - 1)
        data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    elif how == "bytes":
        data = data[:at] + draw.randbytes(draw.choice([1, 4, 64])) + data[at + 4 :]
    elif how == "cut":
        data = data[:at]
    elif how == "insert":
        data = data[:at] + draw.choice([b"\0", b"\xff\xfe", b"\n", b'"', b"{", draw.randbytes(9)]) + data[at:]
    elif how == "remove":
        data = data[:at] + data[at + draw.choice([1, 8, 100]) :]
    elif how == "zeros":
        data = data[:at] + bytes(to - at) + data[to:]
    elif how == "twice":
        data = data[:to] + data[at:]
    elif how == "empty":
        data = b""
    elif how == "other":
        data = draw.choice([b"text", draw.randbytes(300), b"\x80\x04\x95cos\nsystem\n.", b"PK\x03\x04", b"[" * 100_000])
    return data, how


def change_json(value: Any, draw: random.Random) -> Any:  # noqa: ANN401, PLR0911 - JSON; a choice per line
    """Change one value, key or item somewhere in a JSON value."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(sorted(value))
        action = draw.random()
        if action < 0.1:
            return {name: each for name, each in value.items() if name != key}
        if action < 0.2:
            return value | {draw.choice(["extra", "", "format", "__proto__", "a" * 300, "\0"]): draw.choice(HOSTILE)}
        return value | {key: change_json(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.7:
        at = draw.randrange(len(value))
        action = draw.random()
        if action < 0.15:
            return value[:at] + value[at + 1 :]
        if action < 0.3:
            return [*value[:at], draw.choice(HOSTILE), *value[at:]]
        return [*value[:at], change_json(value[at], draw), *value[at + 1 :]]
    if isinstance(value, str) and draw.random() < 0.3:
        try:  # JSON inside JSON, as in the metadata of safetensors and in journals
            return json.dumps(change_json(json.loads(value), draw))
        except ValueError:
            return value[:-1] + draw.choice(["", "é", "\0", "x"])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and draw.random() < 0.4:
        return draw.choice([-value, value + 1, value * 1e6, 0, float(value), str(value)])
    return draw.choice(HOSTILE)


def _json(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    return json.dumps(change_json(json.loads(data), draw)).encode(), "a value"


def _lines(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    lines = data.splitlines()
    at = draw.randrange(len(lines))
    how = draw.choice(
        ["a value", "a value", "a value", "line removed", "line twice", "line cut", "other line", "order"]
    )
    if how == "a value":
        lines[at] = json.dumps(change_json(json.loads(lines[at]), draw)).encode()
    elif how == "line removed":
        del lines[at]
    elif how == "line twice":
        lines.insert(at, lines[at])
    elif how == "line cut":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif how == "other line":
        lines.insert(at, draw.choice([b"", b"null", b"[]", b"1", b"{}", b"\xff", b'{"op_code": 99}', b"[" * 5000]))
    else:
        draw.shuffle(lines)
    return b"\n".join(lines) + b"\n", how


def _toml(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    text = data.decode()
    places = list(re.finditer(r"= *([^=,{}\n]+|\{[^}\n]*\})", text))
    how = draw.choice(["value", "value", "value", "key", "line", "twice", "extra"])
    if how == "value":
        place = draw.choice(places)
        text = text[: place.start(1)] + draw.choice(TOKENS) + " " + text[place.end(1) :]
    elif how == "key":
        text = text.replace(draw.choice(re.findall(r"\w+(?= *=)", text)), draw.choice(["x", "model", "epoch", '""']), 1)
    else:
        lines = text.splitlines()
        at = draw.randrange(len(lines))
        extra = draw.choice(["extends = 'config.toml'", "[model]", "[[model]]", "a.b.c = 1", "seed = [", "data = 3"])
        lines[at : at + 1] = {"line": [], "twice": [lines[at]] * 2, "extra": [lines[at], extra]}[how]
        text = "\n".join(lines) + "\n"
    return text.encode(), how


def _safetensors(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    size = struct.unpack("<Q", data[:8])[0]
    header, tensors = json.loads(data[8 : 8 + size]), data[8 + size :]
    how = draw.choice(["header", "header", "a bit of a number", "a bit of a number", "length", "shape"])
    if how == "header":
        header = change_json(header, draw)
    elif how == "a bit of a number":
        at = draw.randrange(len(tensors))
        tensors = tensors[:at] + bytes([tensors[at] ^ (1 << draw.randrange(8))]) + tensors[at + 1 :]
    elif how == "shape":
        name = draw.choice([name for name in header if name != "__metadata__"])
        header[name]["shape"] = draw.choice([[], [0], [2**40], [-1], header[name]["shape"][::-1], [1.5], ["a"]])
    text = json.dumps(header).encode()
    length = draw.choice([0, 1, 2**63, 2**32, len(text) + 1]) if how == "length" else len(text)
    return struct.pack("<Q", length) + text + tensors, how


def _npz(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = draw.choice(sorted(members))
    how = draw.choice(
        ["header", "header", "member bytes", "removed", "renamed", "declared size", "bomb", "object", "twice"]
    )
    if how == "header":
        members[name] = _npy_header(members[name], draw)
    elif how == "member bytes":
        members[name] = some_bytes(members[name], draw)[0]
    elif how == "removed":
        del members[name]
    elif how == "renamed":
        members[draw.choice(["../x.npy", "/x.npy", "x", "verydeep.npy", "é.npy", "a" * 300])] = members.pop(name)
    elif how == "bomb":
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,), }"
        members[name] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(1_000_000)
    elif how == "object":
        members[name] = _with_header(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04N.")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    new = out.getvalue()
    if how == "declared size":
        at = new.rfind(b"PK\x01\x02")
        field = at + draw.choice([10, 20, 24, 42])
        new = new[:field] + struct.pack("<I", draw.choice([0, 1, 2**31, 2**32 - 1, 77])) + new[field + 4 :]
    return new, how


def _with_header(header: bytes, content: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def _npy_header(data: bytes, draw: random.Random) -> bytes:
    size = struct.unpack("<H", data[8:10])[0]
    header, content = data[10 : 10 + size], data[10 + size :]
    shapes = [b"()", b"(0,)", b"(-1,)", b"(1, 1)", b"(10**12,)", b"(99999999999,)", b"(2, 'a')", b"(3,)", b"None"]
    kinds = [
        b"'|O'",
        b"'<f2'",
        b"'<U9'",
        b"'|V4'",
        b"'<c16'",
        b"'<M8[s]'",
        b"'x'",
        b"[('a', '<f4')]",
        b"'|b1'",
        b"'>f4'",
    ]
    choice = draw.random()
    if choice < 0.4:
        header = re.sub(rb"'shape': \([^)]*\)", b"'shape': " + draw.choice(shapes), header)
    elif choice < 0.8:
        header = re.sub(rb"'descr': '[^']*'", b"'descr': " + draw.choice(kinds), header)
    elif choice < 0.9:
        header = header.replace(b"False", b"True")
    else:
        header = b"__import__('os').system('id')"
    return _with_header(header, content)


def _png(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Change the content of a chunk, with a checksum that is right again."""
    chunks, at = [], 8
    while at + 8 <= len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    number = draw.randrange(len(chunks))
    kind, content = chunks[number]
    how = draw.choice(["size", "header", "content", "removed", "twice", "text", "frames"])
    if how == "size":
        side = draw.choice([0, 1, 5, 4000, 13_000, 2**31 - 1])
        chunks[0] = (b"IHDR", struct.pack(">II", side, draw.choice([side, 1, 8])) + chunks[0][1][8:])
    elif how == "header":
        chunks[0] = (b"IHDR", chunks[0][1][:8] + bytes(draw.choice([0, 1, 2, 3, 4, 6, 8, 16, 255]) for _ in range(5)))
    elif how == "content":
        chunks[number] = (kind, some_bytes(content, draw)[0])
    elif how == "removed":
        del chunks[number]
    elif how == "twice":
        chunks.insert(number, chunks[number])
    elif how == "text":
        chunks.insert(1, (b"zTXt", b"k\0\0" + zlib.compress(bytes(3_000_000))))
    else:
        chunks.insert(1, (b"acTL", struct.pack(">II", 2**30, 0)))
    parts = [struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks]
    return data[:8] + b"".join(parts), how


def _gzip(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    content = gzip.decompress(data)
    how = draw.choice(["content", "bomb", "members", "trailer", "idx header"])
    if how == "content":
        content = some_bytes(content, draw)[0]
    elif how == "bomb":
        content += bytes(draw.choice([10, 200]) * 1_000_000)
    elif how == "idx header":
        content = content[:4] + struct.pack(">I", draw.choice([0, 2**31, 2**32 - 1, 13])) + content[8:]
    new = gzip.compress(content, 1, mtime=0)
    return (new + {"members": gzip.compress(b"more"), "trailer": b"more"}.get(how, b"")), how


_STRUCTURED: dict[str, Callable[[bytes, random.Random], tuple[bytes, str]]] = {
    ".json": _json,
    ".jsonl": _lines,
    ".log": _lines,
    ".toml": _toml,
    ".safetensors": _safetensors,
    ".npz": _npz,
    ".png": _png,
    ".gz": _gzip,
}
