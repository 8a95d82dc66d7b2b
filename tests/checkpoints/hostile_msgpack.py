"""msgpack files that must not be believed: name -> (writer, part of the message)."""

import msgpack
import numpy as np

FOUR = np.zeros(4, np.float32)


def packed(data, message):
    data = data if isinstance(data, bytes) else msgpack.packb(data)
    return lambda path, canary: path.write_bytes(data) and path, message


def fields(shape=(4,), dtype="float32", data=bytes(16), after=b"", code=1):
    return msgpack.ExtType(code, msgpack.packb((shape, dtype, data)) + after)


def array(message, *arguments, **changes):
    return packed({"params": {"a": fields(*arguments, **changes)}}, message)


def split(message, shape=None, chunks=None):
    parts = {
        "__msgpack_chunked_array__": True,
        "shape": {"0": 8} if shape is None else shape,
        "chunks": {"0": fields(), "1": fields()} if chunks is None else chunks,
    }
    return packed({"params": {"a": parts}}, message)


# `{"params": ` and then what follows.
PARAMS = b"\x81\xa6params"
CASES = {
    "map_of_4_billion": packed(b"\xdf\xff\xff\xff\xff" + bytes(50), "not a name"),
    "list_of_4_billion": packed(PARAMS + b"\xdd\xff\xff\xff\xff", "max_array_len"),
    "text_of_4_gb": packed(PARAMS + b"\xdb\xff\xff\xff\xff", "cut off"),
    "bytes_of_4_gb": packed(PARAMS + b"\xc6\xff\xff\xff\xff", "cut off"),
    "extension_of_4_gb": packed(PARAMS + b"\xc9\xff\xff\xff\xff\x01", "max_ext_len"),
    "extension_cut": packed(PARAMS + b"\xc9\xff\xff", "cut off"),
    "number_cut": packed(PARAMS + b"\xcf\1\2", "cut off"),
    "reserved_byte": packed(PARAMS + b"\xc1", "msgpack says"),
    "nested_lists": packed(PARAMS + b"\x91" * 100_000 + b"\xc0", "msgpack says"),
    "nested_maps": packed(PARAMS + b"\x81\xa1a" * 100_000 + b"\xc0", "nested too deep"),
    "many_values": packed({"params": [[0] * 1000] * 400}, "is not an array"),
    "extension_5": packed({"params": {"a": fields(code=5)}}, "extension type 5"),
    "timestamp": packed({"params": {"a": msgpack.Timestamp(1)}}, "is not an array"),
    "same_key_twice": packed(b"\x82\xa1a\xc0\xa1a\xc0", "comes twice"),
    "number_as_key": packed(b"\x81\x01\xc0", "is not a name"),
    "bytes_as_key": packed(b"\x81\xc4\x01a\xc0", "is not a name"),
    "map_as_key": packed(b"\x81\x80\xc0" + bytes(2), "is not a name"),
    "key_is_not_text": packed(b"\x81\xa1\xff\xc0", "msgpack says"),
    "long_key": packed({"a" * 5000: 1}, "too long"),
    "bytes_after": packed(msgpack.packb({"params": {"a": fields()}}) + b"\0", "end before"),
    "empty": packed(b"\x80", "empty"),
    "empty_params": packed({"params": {}}, "empty"),
    "ema_is_a_list": packed({"params": {"a": fields()}, "ema_params1": []}, "not a dict"),
    "slash_in_key": packed({"params": {"a/b": fields()}}, "not a parameter's name"),
    "empty_key": packed({"params": {"": fields()}}, "not a parameter's name"),
    "text_for_an_array": packed({"params": {"a": "os.system"}}, "is not an array"),
    "bytes_for_an_array": packed({"params": {"a": b"\x80\x02}."}}, "is not an array"),
    "complex_for_an_array": packed({"params": {"a": fields(code=2)}}, "is not an array"),
    "more_bytes": array("do not fit its shape", data=bytes(20)),
    "less_bytes": array("do not fit its shape", data=bytes(12)),
    "negative_shape": array("impossible shape", (-4,)),
    "negative_twice": array("impossible shape", (-2, -2)),
    "huge_shape": array("impossible shape", (2**62,)),
    "overflowing_shape": array("impossible shape", (2**32, 2**32, 2**32)),
    "hidden_overflow": array("impossible shape", (0, 2**40, 2**40), data=b""),
    "100_dimensions": array("impossible shape", (1,) * 100),
    "boolean_shape": array("impossible shape", (True,)),
    "shape_is_a_number": array("impossible shape", 4),
    "objects": array("not one of numbers", dtype="object"),
    "objects_short": array("not one of numbers", dtype="O"),
    "void": array("not one of numbers", dtype="V4"),
    "structure": array("not one of numbers", dtype="f4,O"),
    "dates": array("not one of numbers", dtype="datetime64[s]"),
    "byte_order": array("not one of numbers", dtype=">f4"),
    "type_is_a_number": array("not one of numbers", dtype=4),
    "data_is_text": array("do not fit", data="0" * 16),
    "data_is_an_extension": array("do not fit", data=msgpack.ExtType(1, bytes(16))),
    "bytes_after_array": array("not one of flax", after=b"\0"),
    "array_is_empty": packed({"params": {"a": msgpack.ExtType(1, b"")}}, "not one of flax"),
    "array_is_a_map": packed({"params": {"a": msgpack.ExtType(1, b"\x80")}}, "not one of flax"),
    "split_lacks_a_part": split("do not make up", chunks={"0": fields()}),
    "split_skips_a_part": split("not numbered", chunks={"0": fields(), "2": fields()}),
    "split_into_nothing": split("do not make up", chunks={}),
    "split_huge": split("impossible shape", shape={"0": 2**60}),
    "split_not_numbered": split("not numbered", shape=[8]),
    "split_mixed": split("do not make up", chunks={"0": fields(), "1": fields(dtype="int32")}),
    "split_part_is_text": split("is not an array", chunks={"0": "x"}),
    "split_part_is_split": split("is not an array", chunks={"0": {"chunks": {}}}),
    "split_part_is_square": split("do not make up", chunks={"0": fields((2, 2)), "1": fields()}),
}
CASES = {f"msgpack_{name}": case for name, case in CASES.items()}
