"""Torch files that must not be believed: name -> (writer, part of the message)."""

import builtins
import os
import pickle
import struct
import subprocess

from tests.checkpoints import torch_builder as build

NUMBERS = {"0": bytes(16)}
ONE = build.storage("0")


class Calls:
    """Pickles as a call that makes the canary."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def pickled(body, message, whole=False):
    """A file whose pickle is `body`, or a program around it."""

    def write(path, canary):
        data = body(canary) if callable(body) else body
        return build.torch_file(path, data if whole else build.program(data), NUMBERS)

    return write, message


def tensor(message, stored=ONE, **view):
    return pickled(build.mapping({"a": build.tensor(stored, **view)}), message)


def zipped(message, entries=None, **changes):
    """A sound state dict in an archive with `changes`."""
    sound = build.program(build.mapping({"a": build.tensor(ONE)}))

    def write(path, canary):
        return build.torch_file(path, sound, entries or NUMBERS, **changes)

    return write, message


def code(canary):
    return f"open({str(canary)!r}, 'w')"


def shell(canary):
    return f"touch {canary}"


def doubled(leaf, depth=60):
    """Tuples of 2 ** depth leaves out of a few bytes: each holds the last one twice."""
    steps = (b"q%c" % i + b"h%c" % i + b"\x86" for i in range(depth))
    return leaf + b"".join(steps)


NOT_RUN = "nothing of it was executed"
NAME = "which state dicts do not need"
UNKNOWN = "where state dicts have none"
CODE = {
    "os_system": pickled(lambda c: pickle.dumps(Calls(os.system, shell(c)), 2), NOT_RUN, True),
    "eval": pickled(lambda c: pickle.dumps(Calls(builtins.eval, code(c)), 2), NAME, True),
    "exec": pickled(lambda c: pickle.dumps(Calls(builtins.exec, code(c)), 2), NAME, True),
    "popen": pickled(
        lambda c: pickle.dumps(Calls(subprocess.Popen, ["touch", str(c)]), 2), NAME, True
    ),
    "inside_params": pickled(
        lambda c: build.mapping({"params": pickle.dumps(Calls(os.system, shell(c)), 2)[2:-1]}), NAME
    ),
    "getattr_chain": pickled(
        build.name("builtins", "getattr")
        + build.sequence(build.name("torch._utils", "_rebuild_tensor_v2"), build.text("a"))
        + build.REDUCE,
        NAME,
    ),
    "protocol_0": pickled(lambda c: pickle.dumps(Calls(os.system, shell(c)), 0), UNKNOWN, True),
    "stack_global": pickled(
        lambda c: pickle.dumps(Calls(os.system, shell(c)), 4), "holds protocol 4", True
    ),
    "stack_global_in_2": pickled(build.text("os") + build.text("system") + b"\x93", UNKNOWN),
    "inst": pickled(lambda c: f"(S'touch {c}'\nios\nsystem\n".encode(), UNKNOWN),
    "obj": pickled(lambda c: b"(" + build.name("os", "system") + build.text(shell(c)) + b"o", NAME),
    "obj_of_dict": pickled(b"(" + build.name("collections", "OrderedDict") + b"o", UNKNOWN),
    "newobj": pickled(build.name("collections", "OrderedDict") + b")\x81", UNKNOWN),
    "newobj_ex": pickled(build.name("collections", "OrderedDict") + b")}\x92", UNKNOWN),
    "setstate": pickled(build.name("torch", "FloatStorage") + b"}b", "where something else"),
    "extension_registry": pickled(b"\x82\x01", UNKNOWN),
    "attribute_of_allowed": pickled(
        build.name("torch._utils", "_rebuild_tensor_v2.__globals__"), NAME
    ),
    "path_to_allowed": pickled(build.name("torch", "_utils._rebuild_tensor_v2"), NAME),
    "torch_load": pickled(build.name("torch.serialization", "load"), NAME),
    "line_in_name": pickled(b"ctorch\n\n", NAME),
    "persistent_text": pickled(b"Pos.system\n", UNKNOWN),
    "bare_pickle": (
        lambda path, c: path.write_bytes(pickle.dumps(Calls(os.system, shell(c)), 2)) and path,
        "bare pickle",
    ),
}
EMPTY = b"}"
PROGRAMS = {
    "hash_bomb": pickled(EMPTY + doubled(b")") + b"Ns", "a tuple as a key"),
    "list_bomb": pickled(build.mapping({"a": doubled(b"]")}), "not a named tensor"),
    "colliding_keys": pickled(EMPTY + b"\x8a\x08" + b"\x7f" * 8 + b"Ns", "a int as a key"),
    "dict_in_itself": pickled(b"}q\0X\6\0\0\0paramsh\0s", "not a named tensor"),
    "deep_tuples": pickled(build.mapping({"a": b")" + b"\x85" * 200_000}), "not a named tensor"),
    "deep_marks": pickled(b"(" * 10_000, "nested too deep"),
    "too_many_steps": pickled(b"N" * 300_000, "steps"),
    "too_long": pickled(b"N0" * (9 * 2**20), "no state dict needs that"),
    "memo_far_away": pickled(b"}r\xff\xff\xff\xff", "empty or not a dict"),
    "memo_of_nothing": pickled(b"q\0", "without its operand"),
    "recall_of_nothing": pickled(b"h\7", "a reference to nothing"),
    "no_stop": pickled(b"\x80\2}", "breaks off", True),
    "after_stop": pickled(b"\x80\2}.}", "goes on after its end", True),
    "nothing": pickled(b"", "more or less than one object"),
    "two_objects": pickled(b"}}", "more or less than one object"),
    "open_mark": pickled(b"(}", "more or less than one object"),
    "tuple_without_mark": pickled(b"t", "without its operands"),
    "reduce_underflow": pickled(b"R", "without its operand"),
    "reduce_below_mark": pickled(build.name("collections", "OrderedDict") + b"()R", "operand"),
    "reduce_dict": pickled(b"})R", "where something else"),
    "append_to_dict": pickled(b"}Na", "where something else"),
    "set_on_tuple": pickled(b")}Ns", "where something else"),
    "odd_items": pickled(b"}(Nu", "a key without a value"),
    "same_key_twice": pickled(b"}(X\1\0\0\0aNX\1\0\0\0aNu", "twice"),
    "dict_with_arguments": pickled(
        build.name("collections", "OrderedDict") + build.sequence(b"]") + b"R", "a call with"
    ),
    "digits": pickled(b"L" + b"9" * 100_000 + b"L\n", "breaks off"),
    "text_of_4_gb": pickled(b"X\xff\xff\xff\xff", "breaks off"),
    "bytes_of_2_to_63": pickled(b"\x8e" + b"\xff" * 7 + b"\x7f", "breaks off"),
    "not_utf8": pickled(b"X\1\0\0\0\xff", "breaks off"),
    "list_at_the_top": pickled(b"]", "not a state dict"),
    "empty_dict": pickled(b"}", "empty"),
    "numbers_as_names": pickled(b"}K\1Ns", "not a named tensor"),
    "ema_is_a_list": pickled(
        build.mapping({"params": build.mapping({"a": build.tensor(ONE)}), "ema_params1": b"]"}),
        "empty or not a dict",
    ),
}
TENSORS = {
    "missing_storage": tensor("missing or not of its size", build.storage("9")),
    "storage_too_short": tensor("not of its size", build.storage("0", size=5)),
    "storage_too_wide": tensor("not of its size", build.storage("0", "Double")),
    "storage_elsewhere": tensor("missing", build.storage("../data.pkl")),
    "storage_negative": tensor("a storage without", build.storage("0", size=-4)),
    "storage_of_objects": tensor(NAME, build.storage("0", "Object")),
    "storage_untyped": tensor(NAME, build.storage("0", "Untyped")),
    "no_storage": tensor("a tensor without a storage", b"N"),
    "other_reference": tensor("something else", build.sequence(build.text("module")) + b"Q"),
    "reference_without_type": tensor(
        "a storage without", build.sequence(build.text("storage"), *[b"N"] * 4) + b"Q"
    ),
    "negative_offset": tensor("a tensor without", offset=-1),
    "offset_behind": tensor("leaves its storage", offset=1),
    "negative_size": tensor("impossible shape", shape=(-2, -2)),
    "negative_stride": tensor("impossible shape", strides=(-2, 1)),
    "stride_behind": tensor("leaves its storage", strides=(3, 1)),
    "shape_behind": tensor("leaves its storage", shape=(3, 2)),
    "repeated_number": tensor("leaves its storage", shape=(2**30,), strides=(0,)),
    "overflowing_shape": tensor("impossible shape", shape=(2**30, 2**30, 2**30), strides=(0,) * 3),
    "hidden_overflow": tensor("impossible shape", shape=(0, 2**30, 2**30), strides=(0,) * 3),
    "100_dimensions": tensor("impossible shape", shape=(1,) * 100, strides=(1,) * 100),
    "uneven_strides": tensor("do not fit its shape", strides=(1,)),
    "other_rebuild": tensor(NAME, rebuild="_rebuild_qtensor"),
    "few_arguments": pickled(
        build.name("torch._utils", "_rebuild_tensor_v2") + b")R", "a call with arguments"
    ),
    "parameter_of_code": pickled(
        build.name("torch._utils", "_rebuild_parameter") + build.sequence(b"N", b"N", b"N") + b"R",
        "a call with arguments",
    ),
}
DATA = "archive/data/0"
WIDE = {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}
LONG = struct.pack("<2H2Q", 1, 16, 2**62, 2**62)
CLOSED, OUTSIDE = "compressed or encrypted", "outside of the archive"
ARCHIVES = {
    "deflated": zipped(CLOSED, local={DATA: {"method": 8}}, central={DATA: {"method": 8}}),
    "bomb_by_sizes": zipped(CLOSED, central={DATA: {"size": 2**31}}),
    "encrypted": zipped(CLOSED, central={DATA: {"flags": 1}}),
    "absolute": zipped("not written by torch.save", central={DATA: {"name": "/etc/passwd"}}),
    "longer_than_the_file": zipped(OUTSIDE, central={DATA: {"size": 2**31, "packed": 2**31}}),
    "outside_of_the_file": zipped(OUTSIDE, central={DATA: {"offset": 2**31}}),
    "zip64_lie": zipped(OUTSIDE, central={DATA: WIDE | {"extra": LONG}}),
    "zip64_cut": zipped("is broken", central={DATA: WIDE | {"extra": LONG[:8]}}),
    "directory_too_long": zipped("is broken", end={"size": 2**31}),
    "two_roots": zipped(
        "not written by torch.save",
        central={DATA: {"name": "other_v/data/0"}},
        local={DATA: {"name": "other_v/data/0"}},
    ),
    "no_pickle": (
        lambda path, c: path.write_bytes(build.archive([("a/x", b"x")])) and path,
        "no data.pkl",
    ),
    "no_entries": (lambda path, c: path.write_bytes(build.archive([])) and path, "no data.pkl"),
    "only_a_head": (lambda path, c: path.write_bytes(b"PK\3\4") and path, "is broken"),
    "big_endian": (
        lambda path, c: (
            path.write_bytes(build.archive([("s/data.pkl", b"\x80\2}."), ("s/byteorder", b"big")]))
            and path
        ),
        "big-endian",
    ),
}
CASES = {f"torch_{name}": case for name, case in (CODE | PROGRAMS | TENSORS | ARCHIVES).items()}
