"""Orbax directories that must not be believed: name -> (writer, part of the message)."""

import json
import os
import zlib

from tests.checkpoints import orbax_builder as build

A = "params.a"
SOUND = {f"{A}/.zarray": build.zarray(), f"{A}/0": bytes(8)}


def zstd_run(size):
    """A zstd frame of `size` zero bytes: 4 bytes a 128 KiB."""
    blocks, whole = [], 2**17
    for start in range(0, size, whole):
        length = min(whole, size - start)
        last = start + length == size
        blocks.append((last | 1 << 1 | length << 3).to_bytes(3, "little") + b"\0")
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(blocks)


def listed(message, values=SOUND, **changes):
    return lambda path, canary: build.directory(path, values, **changes), message


def array(message, chunk=bytes(8), **changes):
    """A checkpoint whose one array has a strange description or chunk."""
    return listed(message, {f"{A}/.zarray": build.zarray(**changes), f"{A}/0": chunk})


def described(message, metadata):
    """A checkpoint with this `_METADATA`."""

    def write(path, canary):
        build.directory(path, SOUND)
        text = metadata if isinstance(metadata, (str, bytes)) else json.dumps(metadata)
        (path / "_METADATA").write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write, message


def edited(message, edit):
    """A sound checkpoint, then `edit(directory)`."""

    def write(path, canary):
        build.directory(path, SOUND)
        edit(path)
        return path

    return write, message


def replaced(file, data):
    return lambda path: (path / file).write_bytes(data)


def linked(file, target="/etc/passwd"):
    def edit(path):
        (path / file).unlink(missing_ok=True)
        (path / file).symlink_to(target)

    return edit


def outside(path):
    """Data lies beside the checkpoint, reached through a link to a directory."""
    (path.parent / f"{path.name}_beside").mkdir()
    (path / "node").rename(path.parent / f"{path.name}_beside" / "node")
    (path / "node").symlink_to(path.parent / f"{path.name}_beside" / "node")


def pipe(file):
    def edit(path):
        (path / file).unlink()
        os.mkfifo(path / file)

    return edit


def plain(message, edit=None, files=SOUND):
    """The layout of one directory an array."""

    def write(path, canary):
        (path / A).mkdir(parents=True)
        for key, data in files.items():
            (path / key).write_bytes(data)
        if edit:
            edit(path)
        return path

    return write, message


def tree(message, levels=30, width=2):
    """Nodes that are shared: few bytes that spell width ** levels keys."""

    def write(path, canary):
        nodes = build.leaf({"x": b"1"})
        place = (0, len(nodes))
        for height in range(1, levels + 1):
            children = [(chr(97 + i), 1, *place) for i in range(width)]
            node = build.interior(height, children, "node")
            place = (len(nodes), len(node))
            nodes += node
        build.directory(path, {}, node=nodes)
        root = build.manifest("node", *place, height=levels)
        (path / "manifest.ocdbt").write_bytes(root)
        return path

    return write, message


def long_keys(count=30_000, length=60_000):
    """Keys of `length` bytes in order, all but three bytes of each shared with the last.

    A first key that shares nothing makes TensorStore reserve count * length bytes.
    """
    body = b"\0" + build.files([]) + build.varint(count)
    body += build.column([0] + [length - 3] * (count - 2))
    body += build.column([1, length] + [3] * (count - 2)) + b"a" + b"b" * length
    body += b"".join((0x626262 + i).to_bytes(3, "big") for i in range(1, count - 1))
    return build.frame(build.NODE, body + build.column([0] * count * 2))


def deep(text):
    return text * 100_000


ENTRY = {"key_metadata": [{"key": "params"}, {"key": "a"}], "value_metadata": {}}
OUT = "outside of its directory"
LINK = "is a link that leaves"
KIND = "not of a kind that orbax writes"
NODE = build.leaf(SOUND)
DIRECTORIES = {
    "link_to_data": edited(LINK, outside),
    "link_to_manifest": edited(LINK, linked("manifest.ocdbt")),
    "link_to_metadata": edited(LINK, linked("_METADATA")),
    "link_to_device": edited(LINK, linked("node", "/dev/zero")),
    "link_to_nothing": edited("No such file", linked("_METADATA", "nothing")),
    "link_to_itself": edited("checkpoint", linked("_METADATA", "_METADATA")),
    "pipe_for_data": edited("not a regular file", pipe("node")),
    "pipe_for_manifest": edited("not a regular file", pipe("manifest.ocdbt")),
    "link_in_plain_layout": plain(LINK, linked(f"{A}/0")),
    "pipe_in_plain_layout": plain("missing", pipe(f"{A}/0")),
    "chunk_missing_in_plain_layout": plain("missing", lambda path: (path / A / "0").unlink()),
    "data_in_parent": listed(OUT, SOUND | {f"{A}/0": (0, 0, 8)}, data_files=["../x"]),
    "data_at_root": listed(OUT, SOUND | {f"{A}/0": (0, 0, 8)}, data_files=["/etc/passwd"]),
    "data_in_the_middle": listed(OUT, SOUND | {f"{A}/0": (0, 0, 8)}, data_files=["d/../../x"]),
    "data_with_nul": listed(OUT, SOUND | {f"{A}/0": (0, 0, 8)}, data_files=["d\0x"]),
    "data_missing": listed("is missing", SOUND | {f"{A}/0": (0, 0, 8)}, data_files=["d/x"]),
    "data_is_the_directory": listed(OUT, SOUND | {f"{A}/0": (0, 0, 8)}, data_files=["."]),
    "data_cut": listed("is cut off", SOUND | {f"{A}/0": (0, 10**9, 8)}, data_files=["node"]),
    "data_file_unlisted": listed("does not list", SOUND | {f"{A}/0": (3, 0, 8)}),
    "data_too_long": listed(
        "bytes, not 8",
        SOUND | {f"{A}/0": (0, 0, 9000)},
        data_files=["data"],
        others={"data": bytes(9000)},
    ),
    "manifest_empty": edited("not where it should be", replaced("manifest.ocdbt", b"")),
    "manifest_is_a_node": edited("not where it should be", replaced("manifest.ocdbt", NODE)),
    "manifest_huge": edited("larger than any", replaced("manifest.ocdbt", bytes(33 * 2**20))),
    "manifest_elsewhere": edited(OUT, replaced("manifest.ocdbt", build.manifest("../n", 0, 9))),
    "manifest_numbered": edited(
        "of a kind", replaced("manifest.ocdbt", build.manifest("node", 0, 9, kind=1))
    ),
    "manifest_wrong_height": edited(
        "wrong height", replaced("manifest.ocdbt", build.manifest("node", 0, len(NODE), height=1))
    ),
    "manifest_breaks_off": edited(
        "breaks off", replaced("manifest.ocdbt", build.frame(build.MANIFEST, b"x"))
    ),
    "checksum": edited("checksum", replaced("node", NODE[:-1] + bytes([NODE[-1] ^ 1]))),
    "node_cut": edited("is cut off", replaced("node", NODE[:-1])),
    "node_of_other_version": listed(
        "unknown version", node=build.frame(build.NODE, b"x", version=1)
    ),
    "node_of_other_method": listed("unknown version", node=build.frame(build.NODE, b"x", 7)),
    "node_zstd_bomb": listed("does not unpack", node=build.frame(build.NODE, zstd_run(2**33), 1)),
    "node_zstd_broken": listed("zstd data is broken", node=build.frame(build.NODE, b"xxxxxxxx", 1)),
    "node_empty": listed("no keys", node=build.frame(build.NODE, b"\0\0\0")),
    "node_of_many": listed(
        "more than it holds", node=build.frame(build.NODE, b"\0\0" + b"\xff" * 9 + b"\1")
    ),
    "endless_number": listed("does not end", node=build.frame(build.NODE, b"\0" + b"\xff" * 50)),
    "prefix_before_key": listed(
        "impossible length",
        node=build.frame(build.NODE, b"\0\0\2" + b"\7" + b"\1\1" + b"ab" + bytes(4)),
    ),
    "long_keys": listed("impossible length", node=long_keys()),
    "many_long_keys": listed("larger than any", node=long_keys(length=4000)),
    "key_is_not_text": listed("not text", node=build.frame(build.NODE, b"\0\0\1\1\xff\0\0")),
    "value_of_other_kind": listed("unknown kind", node=build.frame(build.NODE, b"\0\0\1\1a\0\7")),
    "value_behind_the_node": listed(
        "breaks off", node=build.frame(build.NODE, b"\0\0\1\1a\xff\1\0")
    ),
    "same_key_twice": listed(
        "lists a key twice", node=build.frame(build.NODE, b"\0\0\2\1\1\0a" + bytes(4))
    ),
    "shared_nodes": tree("more nodes than any", levels=16),
    "tall_tree": tree("more nodes than any", levels=200),
}
ARRAYS = {
    "chunk_missing": listed("is missing", {f"{A}/.zarray": build.zarray()}),
    "fill_value_only": listed("is missing", {f"{A}/.zarray": build.zarray(fill_value=0.0)}),
    "one_chunk_missing": listed("is missing", SOUND | {f"{A}/.zarray": build.zarray((4,), (2,))}),
    "description_missing": listed("is missing", {f"{A}/0": bytes(8)}),
    "description_huge": listed(
        "bytes long", SOUND | {f"{A}/.zarray": build.zarray(x="x" * 70_000)}
    ),
    "description_deep": listed("JSON is broken", SOUND | {f"{A}/.zarray": b"[" * 60_000}),
    "description_broken": listed("JSON is broken", SOUND | {f"{A}/.zarray": b"{"}),
    "description_is_a_list": listed("not an object", SOUND | {f"{A}/.zarray": b"[]"}),
    "description_repeats": listed("JSON is broken", SOUND | {f"{A}/.zarray": b'{"a":1,"a":2}'}),
    "huge_shape": array("over 1 GiB", shape=(2**35,), chunks=(2**35,)),
    "many_chunks": array("are missing", shape=(2**27,), chunks=(1,)),
    "overflowing_shape": array("impossible shape", shape=(2**40, 2**40)),
    "negative_shape": array("impossible shape", shape=(-2,)),
    "fraction_as_shape": array("impossible shape", shape=(2.5,)),
    "text_as_shape": array("impossible shape", shape="2"),
    "chunk_larger_than_array": array("do not fit its shape", chunks=(2**28,)),
    "chunk_of_nothing": array("do not fit its shape", chunks=(0,)),
    "chunks_of_other_rank": array("do not fit its shape", chunks=(2, 1)),
    "objects": array(KIND, dtype="|O"),
    "structure": array(KIND, dtype=[["a", "<f4"]]),
    "big_endian": array(KIND, dtype=">f4"),
    "filters": array(KIND, filters=[{"id": "pickle"}]),
    "pickled": array(KIND, compressor={"id": "pickle"}),
    "blosc": array(KIND, compressor={"id": "blosc"}),
    "compressor_list": array(KIND, compressor=["zstd"]),
    "compressor_nested": array(KIND, compressor={"id": ["zstd"]}),
    "fortran": array(KIND, order="F"),
    "format_3": array(KIND, zarr_format=3),
    "short_chunk": array("does not unpack to 8", bytes(7)),
    "long_chunk": array("does not unpack to 8", bytes(9)),
    "zstd_bomb": array("does not unpack to 8", zstd_run(2**30), compressor={"id": "zstd"}),
    "zstd_short": array("does not unpack to 8", zstd_run(7), compressor={"id": "zstd"}),
    "zstd_cut": array("does not unpack to 8", zstd_run(8)[:-1], compressor={"id": "zstd"}),
    "zstd_twice": array("does not unpack to 8", zstd_run(8) * 2, compressor={"id": "zstd"}),
    "zstd_broken": array("zstd data is broken", b"x" * 20, compressor={"id": "zstd"}),
    "zlib_bomb": array(
        "does not unpack to 8", zlib.compress(bytes(2**26)), compressor={"id": "zlib"}
    ),
    "zlib_broken": array("zlib data is broken", b"x" * 20, compressor={"id": "zlib"}),
}
METADATA = {
    "metadata_deep": described("JSON is broken", deep("[")),
    "metadata_deep_objects": described("JSON is broken", deep('{"a":')),
    "metadata_huge": described("bytes long", b" " * (9 * 2**20)),
    "metadata_many_lists": described("lists no arrays", b'{"a":[' + b"[]," * 2**18 + b"[]]}"),
    "metadata_digits": described("JSON is broken", '{"a": ' + "9" * 10**6 + "}"),
    "metadata_repeats": described("JSON is broken", '{"use_zarr3": false, "use_zarr3": true}'),
    "metadata_binary": described("JSON is broken", bytes(range(128, 256))),
    "metadata_empty": described("lists no arrays", {}),
    "metadata_list": described("not an object", []),
    "metadata_tree_list": described("lists no arrays", {"tree_metadata": []}),
    "metadata_entry_list": described("names no array", {"tree_metadata": {"a": []}}),
    "metadata_no_name": described(
        "names no array", {"tree_metadata": {"a": ENTRY | {"key_metadata": []}}}
    ),
    "metadata_name_number": described(
        "is no text", {"tree_metadata": {"a": ENTRY | {"key_metadata": [{"key": 1}]}}}
    ),
    "metadata_twice": described("twice", {"tree_metadata": {"a": ENTRY, "b": ENTRY}}),
    "metadata_inside_array": described(
        "lies inside of",
        {
            "tree_metadata": {
                "a": ENTRY,
                "b": ENTRY | {"key_metadata": [*ENTRY["key_metadata"], {"key": "c"}]},
            }
        },
    ),
    "metadata_path": described(
        "is missing",
        {"tree_metadata": {"a": ENTRY | {"key_metadata": [{"key": "params"}, {"key": ".."}]}}},
    ),
    "metadata_zarr3": described("third format", {"use_zarr3": True}),
}
CASES = {f"orbax_{name}": case for name, case in (DIRECTORIES | ARRAYS | METADATA).items()}
