"""How a run ended, read from the journal's END record and written to it, only with docs/format.md and struct."""
import struct

from dump_encoder import block

FIELDS = ("ending", "code", "fault", "signal", "task_id", "func_id", "core_id", "block_idx", "block_num", "address",
          "address_kind", "zero")
LAYOUT = "<4IQ4IQ2I"
HEADER, BLOCK_HEAD, END_FIXED = 64, 32, 104
NO_KERNEL = 2**32 - 1


class End:
    """The last block of a journal, whose last record is END."""

    def __init__(self, dump):
        self.path = dump / "tensor_dump" / "tensor_dump.rec"
        self.data = self.path.read_bytes()
        self.at = HEADER
        while True:
            _, size, self.count, self.sequence, _, _ = struct.unpack_from("<4I2Q", self.data, self.at)
            if self.at + BLOCK_HEAD + size == len(self.data):
                break
            self.at += BLOCK_HEAD + size
        self.records = []
        at = self.at + BLOCK_HEAD
        for _ in range(self.count):
            words, = struct.unpack_from("<I", self.data, at + 8)
            self.records.append(self.data[at : at + 8 * words])
            at += 8 * words
        self.end = self.records[-1]
        assert self.end[0] == 11
        text_bytes, = struct.unpack_from("<Q", self.end, END_FIXED - 8)
        self.text_end = END_FIXED + (text_bytes + 7) // 8 * 8

    def outcome(self):
        """The fields; None if the record ends with its text."""
        if len(self.end) < self.text_end + struct.calcsize(LAYOUT):
            return None
        return dict(zip(FIELDS, struct.unpack_from(LAYOUT, self.end, self.text_end)))

    def write(self, outcome):
        """Replaces the outcome; None removes it."""
        tail = struct.pack(LAYOUT, *(outcome[name] for name in FIELDS)) if outcome else b""
        end = bytearray(self.end[: self.text_end] + tail)
        struct.pack_into("<I", end, 8, len(end) // 8)
        self.path.write_bytes(self.data[: self.at] + block(self.sequence, [*self.records[:-1], bytes(end)]))
