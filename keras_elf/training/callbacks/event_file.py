"""Scalars in the files that TensorBoard reads, written without it.

A file is a chain of records, each with masked CRC-32C checksums (the TFRecord format), and
each record a small `Event` message in the wire format of protocol buffers.
"""

import os
import pathlib
import socket
import struct
import time

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class EventFile:
    """Appends scalars to a new event file.

    Args:
        directory: path. TensorBoard's log directory.
        step: int. Events of other files after this step are dropped by TensorBoard: a resumed
            run writes them again.
    """

    def __init__(self, directory, step=0):
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        name = (
            f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}.keras_elf"
        )
        self.path = directory / name
        self._file = open(self.path, "ab")
        self._write(_field(3, BYTES, b"brain.Event:2"))
        # A session's start makes TensorBoard forget what older files say of later steps.
        start = _field(1, VARINT, _varint(1))
        self._write(_field(2, VARINT, _varint(step + 1)) + _field(7, BYTES, start))

    def scalars(self, step, values):
        """Write a dict of numbers by name at a step."""
        summary = b"".join(
            _field(
                1,
                BYTES,
                _field(1, BYTES, name.encode()) + _field(2, FIXED32, struct.pack("<f", value)),
            )
            for name, value in values.items()
        )
        self._write(_field(2, VARINT, _varint(step)) + _field(5, BYTES, summary))

    def close(self):
        self._file.close()

    def _write(self, content):
        event = _field(1, FIXED64, struct.pack("<d", time.time())) + content
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked(length) + event + _masked(event))
        self._file.flush()


def _field(number, kind, value):
    if kind == BYTES:
        value = _varint(len(value)) + value
    return _varint(number << 3 | kind) + value


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _table():
    # The Castagnoli polynomial with its bits reversed.
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _table()


def _masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
