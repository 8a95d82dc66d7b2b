"""The pickle inside a torch file, taken as a description of data and never executed.

`pickle` is a small program that calls whatever it names. Even with `find_class`
fenced in, the standard unpickler grows its memo to any index it reads and hashes tuples that
take a lifetime, so it is not used at all: this module walks the opcodes that state dicts
consist of and builds dicts, lists, tuples, strings, numbers and `Tensor` records from them.
Any other opcode and any other global name ends the walk.
"""

import dataclasses
import math
import pickletools

import numpy as np

from keras_elf.checkpoints.pickle_stack import PickleStack
from keras_elf.checkpoints.reading import DTYPES, MAX_VALUES, checked_shape, damaged, shown

# ELF-L with optimizer state writes about 0.3 MB.
MAX_PICKLE_BYTES = 16 * 2**20
_STORAGES = {
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "Int": "int32",
    "Long": "int64",
    "Short": "int16",
}
_DICT, _TENSOR, _PARAMETER = "dict", "tensor", "parameter"


@dataclasses.dataclass(frozen=True)
class Storage:
    """A one-dimensional run of numbers: entry `data/<key>` of the archive."""

    key: str
    dtype: np.dtype
    size: int


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A view of a storage. Offset and strides count elements."""

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple


@dataclasses.dataclass(frozen=True)
class _Callable:
    kind: str


_GLOBALS = {
    "collections OrderedDict": _Callable(_DICT),
    "torch._utils _rebuild_tensor_v2": _Callable(_TENSOR),
    "torch._utils _rebuild_parameter": _Callable(_PARAMETER),
} | {f"torch {name}Storage": DTYPES[dtype] for name, dtype in _STORAGES.items()}


def load(path, data):
    """Return the object that the pickle `data` describes.

    Args:
        path: the file it is from, for messages.
        data: bytes of a protocol 2 pickle.

    Returns:
        Nested dict, list, tuple, str, int, float, bool, `None` and `Tensor`.

    Raises:
        ValueError: for every pickle that is not such a description.
    """
    if len(data) > MAX_PICKLE_BYTES:
        raise damaged(path, f"its pickle is {len(data):,} bytes long, no state dict needs that")
    machine = _Machine(path)
    opcodes = pickletools.genops(data)
    for count in range(MAX_VALUES):
        try:
            opcode, argument, position = next(opcodes)
        except Exception as error:
            # pickletools raises what its readers happen to run into.
            raise damaged(path, f"its pickle breaks off ({type(error).__name__})") from None
        if opcode.name == "STOP":
            if position + 1 != len(data):
                raise damaged(path, "its pickle goes on after its end")
            return machine.result()
        step = getattr(machine, f"op_{opcode.name.lower()}", None)
        if step is None or (count == 0) != (opcode.name == "PROTO"):
            raise machine.refusal(f"the opcode {opcode.name} where state dicts have none")
        step(argument)
    raise damaged(path, f"its pickle has more than {MAX_VALUES:,} steps")


class _Machine(PickleStack):
    """The opcodes with which a pickle names, refers and calls, for the names of a state dict."""

    def op_global(self, name):
        if name not in _GLOBALS:
            raise self.refusal(f"the name {shown(name)}, which state dicts do not need")
        self.stack.append(_GLOBALS[name])

    def op_build(self, _):
        # State dicts carry module versions as an attribute of their OrderedDict.
        self.pop(dict)
        self.top(dict)

    def op_binpersid(self, _):
        identifier = self.pop(tuple)
        if len(identifier) != 5 or identifier[0] != "storage":
            raise self.refusal("a reference to something else than a storage")
        _, dtype, key, location, size = identifier
        if (
            not isinstance(dtype, np.dtype)
            or not isinstance(key, str)
            or not isinstance(location, str)
            or type(size) is not int
            or size < 0
        ):
            raise self.refusal("a storage without type, key or size")
        self.stack.append(Storage(key, dtype, size))

    def op_reduce(self, _):
        arguments, function = self.pop(tuple), self.pop(_Callable)
        if function.kind == _DICT and not arguments:
            self.stack.append({})
        elif function.kind == _TENSOR and len(arguments) in (6, 7):
            self.stack.append(self._tensor(*arguments[:4]))
        elif (
            function.kind == _PARAMETER and len(arguments) == 3 and isinstance(arguments[0], Tensor)
        ):
            self.stack.append(arguments[0])
        else:
            raise self.refusal("a call with arguments that state dicts do not have")

    def _tensor(self, storage, offset, shape, strides):
        if not isinstance(storage, Storage) or type(offset) is not int or offset < 0:
            raise self.refusal("a tensor without a storage")
        shape = checked_shape(self.path, storage.key, shape)
        strides = checked_shape(self.path, storage.key, strides)
        if len(shape) != len(strides):
            raise self.refusal("a tensor whose strides do not fit its shape")
        elements = math.prod(shape)
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        # The second test is for a view that repeats a few numbers into very many.
        if elements and (offset + last >= storage.size or elements > storage.size):
            raise self.refusal(f"a tensor that leaves its storage {shown(storage.key)}")
        return Tensor(storage, offset, shape, strides)
