"""Journals made byte by byte: every kind of record, compared with the command's manifest; and bad journals."""
import random
import struct
import unittest
from unittest import mock

import numpy as np

import glassbox
import journal_writer as jw
import support
from glassbox import hashing
from glassbox.dtypes import BY_CODE, scalar_value
from journal_writer import (CONTIGUOUS, DUPLICATE, HASH, IN_FLIGHT, IN_PIECES, NONE, PAYLOAD, STATS, TRUNCATED)

KERNELS = [{"func_id": 7, "name": "softmax", "core_type": "aiv", "signature": ["in", "scalar:float32", "out", "inout"],
            "arg_names": ["x", "scale", "y", None]},
           {"func_id": 2, "name": "mat\"mul\u00e9", "core_type": "aic",
            "signature": ["in", "scalar", "out", "inout", "scalar"],
            "arg_names": ["a", None, "c", "d"]},
           {"func_id": 9, "name": "nameless", "core_type": "aiv", "signature": ["out"]}]
BITS = {0: 64, 1: 32, 2: 16, 3: 16, 4: 64, 5: 8, 6: 8, 7: 16, 8: 16, 9: 32, 10: 32, 11: 64, 12: 64, 13: 8, 14: 8,
        15: 8, 16: 4, 17: 4, 18: 8}
FLOATS = (1, 2, 3, 4, 14, 15, 17, 18)
SIGNED = (5, 7, 9, 11, 16)


def stats(dtype, chance):
    if dtype in FLOATS:
        kind = BY_CODE[dtype]
        head = struct.pack("<2d", *(scalar_value(chance.getrandbits(64), kind) for _ in range(2)))
    elif dtype in SIGNED:
        head = struct.pack("<2q", -chance.getrandbits(BITS[dtype] - 1), chance.getrandbits(BITS[dtype] - 1))
    else:
        head = struct.pack("<2Q", 0, 1 if dtype == 13 else chance.getrandbits(BITS[dtype]))
    mean = chance.choice([chance.uniform(-1, 1), float("nan"), float("inf"), -float("inf"), 1 / 3, -0.0])
    return head + struct.pack("<d4Q", mean, *(chance.getrandbits(40) for _ in range(4)))


def scalars(chance):
    """Scalars of every dtype with many values, including those that are hard to print."""
    special = [0, 1, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 0x8000000000000000, 0x7FF0000000000000,
               0xFFF8000000000000, 0x3DCCCCCD, 0x7F7FFFFF, 0x00800000, 0x3CF0000000000000, 0x0010000000000000, 5]
    for dtype in BITS:
        for position in range(64):
            bits = special[position] if position < len(special) else chance.getrandbits(64)
            yield jw.scalar(dtype, bits, dtype, arg=position, time=chance.getrandbits(50), thread=position,
                            flags=IN_FLIGHT if position == 63 else 0)


def place(dtype, shape, position, chance, is_sound):
    """Strides, start, and whether they are contiguous; if not `is_sound`, they need not fit a tensor."""
    strides = [chance.randint(-9, 9) for _ in shape]
    if not is_sound:
        return strides, chance.randint(-5, 1 << 40), position in (0, 2)
    start = 2 * chance.randint(1 << 20, 1 << 40)
    if position == 2:
        return [shape[1] + shape[1] % 2 if BITS[dtype] == 4 else shape[1], 1], start, True
    is_row = all(length == 1 or stride == 1 for length, stride in zip(shape, strides)) and sum(n > 1 for n in shape) < 2
    return strides, start, 0 in shape or is_row


def tensors(chance, payload, is_sound):
    """Tensors of every dtype with up to eight dimensions, each with its own kind of payload; the last two share one."""
    for dtype in range(1, 19):
        last = [chance.choice([2, 3]) for _ in range(7)]
        shared = None
        for position in range(9):
            shape = {7: last, 8: [1, *last]}.get(position) or [chance.choice([1, 2, 3]) for _ in range(position)]
            if position == 3:
                shape[1] = 0
            count = int(np.prod(shape, dtype=int))
            size = count * BITS[dtype] // 8 if BITS[dtype] != 4 else (count // shape[-1] * ((shape[-1] + 1) // 2)
                                                                 if shape and shape[-1] else len(shape) == 0)
            in_flight = PAYLOAD | IN_FLIGHT | (TRUNCATED if dtype % 2 else IN_PIECES)
            flags = [PAYLOAD, PAYLOAD | HASH, PAYLOAD | HASH | STATS, HASH | STATS, 0, PAYLOAD | TRUNCATED | HASH,
                     in_flight, PAYLOAD | HASH | DUPLICATE, PAYLOAD | STATS][position]
            strides, start, is_contiguous = place(dtype, shape, position, chance, is_sound)
            flags |= CONTIGUOUS if is_contiguous else 0
            if flags & TRUNCATED:
                size = max(size // 2, 1)
            data = chance.randbytes(size)
            offset = len(payload)
            if position == 8:
                offset, data = shared
            elif flags & PAYLOAD:
                payload += data + bytes(-size % 64)
            shared = offset, data
            yield jw.tensor(20 + dtype, shape, dtype, strides=strides, offset=offset,
                            size=size if flags & PAYLOAD else 0, hash_=jw.hash128(data) if flags & HASH else (0, 0),
                            start=start, stats=stats(dtype, chance) if flags & STATS else b"",
                            flags=flags, arg=position, role=position % 3, stage=position % 2, time=position, thread=3,
                            address=chance.getrandbits(64))


def dispatch(number, block, subtask, chance):
    slots = b""
    for arg in range(5):
        ndims = arg if arg != 3 else 0
        slots += struct.pack("<8BQ", arg, arg != 3, arg % 3, (0, 3, 16, 1, 9)[arg] or 1, ndims, 0, 0, 0,
                             chance.getrandbits(64))
        if arg != 3:
            slots += struct.pack(f"<Qq{2 * ndims}q", chance.getrandbits(64), -4, *range(ndims), *range(-ndims, 0))
    slots += struct.pack("<8BQ", 5, 0, 0, 0, 0, 1, 0, 0, chance.getrandbits(64))  # a word
    slots += struct.pack("<8BQ", 6, 0, 0, 0, 0, 0, 0, 0, chance.getrandbits(64))  # a scalar of unknown dtype
    return jw.record(jw.DISPATCH, struct.pack("<Q6I2Q", number + 256, (2, 7, 99)[subtask], 40 + block, block, 3,
                                              subtask, 7,
                                              chance.getrandbits(64), 1) + slots, task=number, time=block, arg=255)


def everything(seed=1, is_sound=False):
    """A journal with every kind of record, and its payload."""
    chance, payload = random.Random(seed), bytearray()
    run = jw.run(kernels=KERNELS, has_args=True, run_args=[{"name": "x", "role": "input"}, {"name": None,
        "role": "scalar"}])
    tasks = [jw.task(i, kernels=[(NONE, 7, NONE), (2, 7, 9), (NONE, NONE, 9), (5, NONE, NONE), (NONE,) * 3][i % 5],
                     blocks=i, predecessors=3 if i == 9 else 0, time=i * 10) for i in range(30)]
    records = [*scalars(chance), *tensors(chance, payload, is_sound)]
    chance.shuffle(records)
    lost = [jw.record(jw.LOSS, struct.pack("<2IQ", cause, 0, 5 + cause), task=task, stage=stage, arg=arg)
            for cause, task, stage, arg in ((0, 3, 0, 1), (1, 5, 255, 255), (2, 99, 1, 2), (3, 1, 1, 255))]
    skipped = [jw.record(jw.SKIPPED, struct.pack("<2I", reason, function), task=task, arg=arg)
               for reason, function, task, arg in ((0, 7, 3, 255), (1, 2, 99, 1), (1, 77, 4, 0), (0, 7, 5, 2))]
    arguments = [jw.record(jw.RUN_ARG, struct.pack("<2Q", 0, 0xFFFFFFFFFFFFFFFE), arg=1, dtype=11),
                 jw.record(jw.RUN_ARG, struct.pack("<2Q", 0, 0xBDCCCCCD), arg=2, dtype=0),
                 jw.record(jw.RUN_ARG, struct.pack("<2Q2q", 1, 0x1000, 4, 0), arg=0, dtype=14, ndims=2)]
    rest = [jw.edges(9, [1, 2]), jw.edges(9, [5]), jw.edges(8, []), jw.done(9, time=123),
            jw.execution(9, 2**64 - 1, time=3, block=1), jw.execution(9, 40, core=5, function=99, time=17),
            jw.execution(2, 40, subtask=0, time=40), jw.sample(55, 4096, 4096),
            jw.record(jw.DONE, bytes(16), task=8, time=9), *lost, *skipped, *arguments,
            *(dispatch(number, block, subtask, chance) for number in (9, 3) for block in (2, 0) for subtask in (2, 0,
                1))]
    announced = [jw.record(128 + 17), jw.record(128 + 18, bytes(16))]
    blocks = [[run], tasks[:20], announced, *(records[i:i + 200] for i in range(0, len(records), 200)), tasks[20:], rest]
    ending = jw.end(len(records), 30, 12, dropped=26, stall=77, status="kernel \u00e9 crashed\n", flags=0)
    return jw.journal(*blocks, [ending]), bytes(payload)


def small():
    """A journal of four blocks and two records."""
    return jw.journal([jw.run()], [jw.task(0), jw.tensor(0, [4], size=16, flags=PAYLOAD | CONTIGUOUS)],
                      [jw.scalar(0, 5, 9, arg=1), jw.edges(0, [0])], [jw.done(0), jw.end(2, 1)])


def use(dump):
    """Reads everything; only errors of this package may occur."""
    dump.to_dict(), dump.arguments, dump.dispatches, dump.totals, repr(dump)
    for task in dump.tasks:
        repr((task, task.predecessors, task.dispatched_ns, task.completed_ns, list(task.inputs), list(task.outputs)))
    for record in dump:
        try:
            repr((record, record.stats, record.value if record.is_scalar else record.array(allow_truncated=True)))
            record.float32(allow_truncated=True)
        except glassbox.Error:
            pass


class Everything(unittest.TestCase):
    def test_matches_the_manifest_that_the_command_writes(self):
        for seed, is_sound in ((1, False), (2, True)):
            dump = jw.write(support.scratch(f"everything-{seed}"), *everything(seed, is_sound))
            done = support.command("recover", dump)
            self.assertEqual(done.returncode, 0, done.stderr)
            files = dump / "tensor_dump"
            read, manifest = glassbox.open(dump), support.load(files / "tensor_dump.json")
            self.assertEqual(len(read), 19 * 64 + 18 * 9)
            self.assertEqual(support.ordered(read.to_dict()), support.ordered(manifest))
            self.assertEqual(support.ordered(read.arguments),
                             support.ordered(support.load(files / "args_dump.json")["args"]))
            self.assertEqual(support.ordered(read.dispatches),
                             support.ordered(support.load(files / "kernel_args_dump.json")["dispatches"]))
            self.assertEqual((read.complete, read.status), (False, "kernel \u00e9 crashed\n"))
            self.assertEqual((read.task(9).predecessors, read.task(9).completed_ns, read.task(9).dispatched_ns),
                             ((1, 2, 5), 123, 90))
            self.assertEqual(read.verify(), [])
            self.assertEqual(read.newer_records, 0)
            self.assertEqual(
                [(one["task_seq"], one["kernel"], one["subtask_id"], one["core_id"], one["block_idx"], one["start_ns"],
                  one["end_ns"]) for one in read.executions],
                [(2, "softmax", 0, 1, 0, 40, 40), (9, None, 1, 5, 0, 17, 40), (9, "softmax", 1, 1, 1, 3, None)])
            use(read)
            (files / "tensor_dump.rec").unlink()
            if not is_sound:
                with self.assertRaisesRegex(glassbox.DumpError, r"tensors\[\d+\]\.(strides|start_offset|is_contiguous)"):
                    glassbox.open(dump)
                continue
            alone = glassbox.open(dump)
            self.assertEqual(alone.wrong_totals, [])
            self.assertFalse(alone.is_from_journal)
            self.assertEqual(support.ordered(alone.to_dict()), support.ordered(manifest))
            for one, other in zip(read, alone):
                self.assertEqual(repr((one.stats, one.is_scalar and one.value)),
                                 repr((other.stats, other.is_scalar and other.value)))

    def test_flipped_payload_is_found(self):
        data, payload = everything()
        dump = jw.write(support.scratch("payload"), data, payload)
        record = next(record for record in glassbox.open(dump) if record.hash and record.bin_size > 4 and not record.truncated)
        changed = bytearray(payload)
        changed[record.bin_offset + 3] ^= 1
        jw.write(dump, data, bytes(changed))
        self.assertEqual([bad.index for bad in glassbox.open(dump).verify()], [record.index])


class Newer(unittest.TestCase):
    def test_unknown_records_are_skipped_and_counted(self):
        directory = support.scratch("newer")
        for data, payload in (everything(), (small(), bytes(64))):
            old = glassbox.open(jw.write(directory, data, payload))
            use(old)
            expected = old.to_dict(), old.arguments, old.dispatches, [task.predecessors for task in old.tasks]
            arrays = [record.array().tobytes() for record in old if not record.truncated and record.bin_size]
            made, count = jw.newer(data, 100, 127)
            dump = glassbox.open(jw.write(directory, made, None))
            self.assertEqual((dump.newer_records, old.newer_records), (count, 0))
            self.assertGreater(count, 1)
            self.assertEqual((dump.to_dict(), dump.arguments, dump.dispatches, [task.predecessors for task in dump.tasks]),
                             expected)
            self.assertEqual([record.array().tobytes() for record in dump if not record.truncated and record.bin_size], arrays)

    def test_range_of_a_block_is_known_and_passed_over(self):
        directory = support.scratch("range")
        for data, payload in (everything(), (small(), bytes(64))):
            expected = glassbox.open(jw.write(directory, data, payload)).to_dict()
            dump = glassbox.open(jw.write(directory, jw.ranged(data), None))
            self.assertEqual(dump.newer_records, 0)
            self.assertEqual(dump.to_dict(), expected)

    def test_unknown_records_that_must_be_understood_are_refused(self):
        directory = support.scratch("must")
        for kind in (128, 128 + jw.TENSOR, 255):
            made, _ = jw.newer(small(), 100, kind)
            with self.assertRaisesRegex(glassbox.DumpError, f"type {kind}, .*needs a newer reader"):
                glassbox.open(jw.write(directory, made))


class Damage(unittest.TestCase):
    def opened(self, data, payload=bytes(64)):
        is_there = payload == self.payload
        self.payload = payload
        return glassbox.open(jw.write(self.directory, data, None if is_there else payload))

    def setUp(self):
        self.directory = support.scratch(self.id())
        self.payload = None

    def test_cut_anywhere(self):
        data = small()
        whole = self.opened(data)
        self.assertTrue(whole.complete)
        boundaries, at = {}, 64
        for position in range(4):
            at += 32 + struct.unpack_from("<I", data, at + 4)[0]
            boundaries[at] = (0, 1, 2, 2)[position]
        near = {at + distance for at in boundaries for distance in (-1, 0, 1)}
        for length in sorted({*range(0, len(data), 5), *near} & set(range(len(data)))):
            if length in boundaries:
                dump = self.opened(data[:length])
                self.assertEqual((len(dump), dump.complete, dump.status), (boundaries[length], False, "killed"))
                continue
            with self.assertRaises(glassbox.DumpError) as caught:
                self.opened(data[:length])
            readable = max((count for at, count in boundaries.items() if at < length), default=None)
            if readable is not None:
                self.assertIn(f"; {readable} records of tensors and scalars before it are readable; "
                              f"glassbox recover {self.directory} keeps them", str(caught.exception))

    def test_every_flipped_byte_is_found(self):
        data = small()
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 1 << at % 8
            if 16 <= at < 64:
                self.assertEqual(len(self.opened(bytes(changed))), 2)
                continue
            with self.assertRaises(glassbox.DumpError, msg=f"byte {at}"):
                self.opened(bytes(changed))

    def test_structure_is_checked_without_hashing(self):
        data, payload = everything()
        chance = random.Random(5)
        with mock.patch.object(hashing, "_functions", None):
            dump = self.opened(data, payload)
            self.assertFalse(dump.checksums_verified)
            self.assertEqual(len(dump), 19 * 64 + 18 * 9)
            with self.assertRaisesRegex(glassbox.NoHashing, "glassbox verify"):
                dump.verify()
            with self.assertRaisesRegex(glassbox.NoHashing, "python3-xxhash"):
                next(record for record in dump if record.hash and record.bin_size).verify()
            few = small()
            for at in range(64, len(few), 2):
                self.survives(few[:at] + bytes([few[at] ^ chance.randrange(1, 256)]) + few[at + 1:])
            for _ in range(8):
                changed = bytearray(data)
                for _ in range(3):
                    changed[chance.randrange(64, len(data))] = chance.randrange(256)
                self.survives(bytes(changed), payload)

    def survives(self, data, payload=bytes(64)):
        try:
            use(self.opened(data, payload))
        except glassbox.Error as error:
            self.assertNotIn("\n", str(error))

    def test_invalid_records(self):
        payload = PAYLOAD | CONTIGUOUS
        for record, sentence in (
                (jw.record(0), "its type is 0"), (jw.record(jw.EDGES, reserved=1), "tail is longer"),
                (jw.record(jw.TASK), "shorter than a record of its type"),
                (jw.record(jw.DONE, words=3), "shorter than its head"),
                (jw.record(jw.DONE, words=900), "longer than the rest of its block"),
                (jw.tensor(0, [1], dtype=0), "its dtype is unknown"), (jw.tensor(0, [1], dtype=63), "its dtype is unknown"),
                (jw.tensor(0, [1], stage=2), "neither before nor after"),
                (jw.tensor(0, [1], stage=255), "neither before nor"),
                (jw.tensor(0, [1], role=3), "its role is unknown"), (jw.tensor(0, [1], arg=64), "arg_index"),
                (jw.tensor(0, [1] * 9), "more than 8 dimensions"), (jw.tensor(0, [-1]), "negative"),
                (jw.tensor(0, [4], flags=STATS), "too short for its shape, strides and statistics"),
                (jw.tensor(1 << 44, [4], flags=payload), "task number is too large"),
                (jw.scalar(0, 1, 63), "its dtype is unknown"), (jw.run(), "there is a second RUN record"),
                (jw.end(), "follows END"), (jw.record(jw.LOSS, struct.pack("<2IQ", 4, 0, 1)), "its cause is unknown"),
                (jw.record(jw.LOSS, struct.pack("<2IQ", 1, 0, 1), stage=7), "its stage is unknown"),
                (jw.record(jw.SKIPPED, struct.pack("<2I", 2, 1)), "its reason is unknown"),
                (jw.execution(0, 5, time=6), "its block_idx, subtask, core_id or end is invalid"),
                (jw.execution(0, 5, subtask=3), "its block_idx, subtask"),
                (jw.execution(0, 5, block=65536), "its block_idx, subtask"), (jw.sample(1, 65, 64), "more than its arena"),
                (jw.record(jw.RUN_ARG, struct.pack("<2Q", 2, 1)), "neither tensor nor scalar"),
                (jw.record(jw.RUN_ARG, struct.pack("<2Q", 1, 1), ndims=1, dtype=1), "too short for its shape"),
                (jw.record(jw.RUN_ARG, struct.pack("<2Qq", 1, 1, 4), ndims=1, dtype=0), "its dtype is unknown"),
                (jw.record(jw.RUN_ARG, struct.pack("<2Q9q", 1, 1, *[1] * 9), ndims=9, dtype=1), "more than 8"),
                (jw.record(jw.DISPATCH, struct.pack("<Q6I2Q", 1, 1, 1, 65536, 1, 1, 0, 1, 1)), "block"),
                (jw.record(jw.DISPATCH, struct.pack("<Q6I2Q", 1, 1, 1, 1, 1, 3, 0, 1, 1)), "subtask"),
                (jw.record(jw.DISPATCH, struct.pack("<Q6I2Q", 1, 1, 1, 1, 1, 1, 1, 1, 1)), "slots"),
                (jw.record(jw.DISPATCH, struct.pack("<Q6I2Q", 1, 1, 1, 1, 1, 1, 65, 1, 1) + bytes(2000)), "slots")):
            with self.assertRaisesRegex(glassbox.DumpError,
                                        f"{sentence}.*; 1 records .* are readable; the block has its checksum, so this is not damage"):
                self.opened(jw.journal([jw.run()], [jw.scalar(0, 1, 9)], [jw.scalar(0, 1, 9), record, jw.end()]))

    def test_how_the_run_ended(self):
        tail = struct.Struct("<4IQ4IQ2I")
        crash = {"ending": "failed", "code": 9, "fault": 1, "signal": 11, "task_id": 2**63 + 5, "func_id": 0, "core_id": 4,
                 "block_idx": 1, "block_num": 8, "address": 16}
        nothing = dict.fromkeys(crash, None)
        for status in ("", "seven..", "eight...", "nine....."):
            for data, expected in ((tail.pack(3, 9, 1, 11, 2**63 + 5, 0, 4, 1, 8, 16, 1, 0), crash),
                                   (tail.pack(3, 9, 1, 11, 2**63 + 5, 0, 4, 1, 8, 0, 2, 0) + bytes(24), {**crash, "address": None}),
                                   (tail.pack(1, 0, 0, 0, 0, 2**32 - 1, 0, 0, 0, 0, 0, 0), {**nothing, "ending": "well", "code": 0, "fault": 0}),
                                   (tail.pack(2, 0, 0, 0, 0, 2**32 - 1, 0, 0, 0, 0, 0, 0),
                                    {**nothing, "ending": "records_lost", "code": 0, "fault": 0}),
                                   (tail.pack(9, 99, 98, 0, 0, 2**32 - 1, 0, 0, 0, 0, 0, 0), {**nothing, "code": 99, "fault": 98}),
                                   (tail.pack(*[0] * 12), None), (bytes(16), None), (b"", None)):
                dump = self.opened(jw.journal([jw.run()], [jw.end(status=status, tail=data)]))
                self.assertEqual((dump.status, dump.outcome), (status, expected))
        self.assertIsNone(self.opened(jw.journal([jw.run()])).outcome)

    def test_invalid_blocks_and_headers(self):
        good = [jw.run()], [jw.scalar(0, 1, 9)]
        for data, sentence in (
                (jw.journal(*good) + bytes(32), "zeros follow instead of a block; 1 records"),
                (jw.journal(*good) + bytes(31), "the head of block 2 is cut off"),
                (jw.journal(*good) + b"x" * 32, "no block begins here"),
                (jw.journal(*good) + jw.block(3, [jw.end()]), "block 3 is where block 2 should be"),
                (jw.journal(*good) + jw.block(2, []), "block 2 claims to have 0 bytes"),
                (jw.journal(*good) + jw.block(2, [bytes(1 << 20), bytes(8)]), "claims to have 1048584 bytes"),
                (jw.journal(*good) + jw.block(2, [jw.end()], count=2), "a block of 1 records claims to have 2"),
                (jw.journal(*good, [jw.end()], [jw.done(0)]), "follows END"),
                (jw.header(), "has no block"), (b"", "is not the journal"), (b"GBXJRNL1", "is not the journal"),
                (jw.header(magic=b"GBXJRNL2"), "is not the journal"), (jw.header(version=3), "version 3; this reader reads versions 1 to 2: use a newer one"),
                (jw.header(version=0), "version 0, which does not exist"), (jw.header(length=72) + bytes(8), "72 bytes; version 1 has 64"),
                (jw.header(version=2, length=4104, rest=bytes(4088)), "4104 bytes; version 1 has 64"),
                (jw.header(version=2, length=68, rest=bytes(52)), "68 bytes; version 1 has 64"),
                (jw.journal(*good, [jw.scalar(0, 2, 9), jw.record(128)]), "type 128, which this version does not know and must not skip"),
                (jw.journal(*good, [jw.scalar(0, 2, 9), jw.record(135)]), "needs a newer reader"),
                (jw.journal([jw.done(0)]), "no readable block.*the first record is not RUN"),
                (jw.journal([jw.run(text=b'{"a":')]), "not valid JSON"), (jw.journal([jw.run(text=b"[" * 90000)]), "not valid JSON"),
                (jw.journal([jw.run(text=b"[]")]), "the RUN record: expected an object"),
                (jw.journal([jw.run(text=b"{}")]), "generator"),
                (jw.journal([jw.run(kernels=[3])]), "kernels"), (jw.journal([jw.run(kernels=5)]), "kernels"),
                (jw.journal([jw.run(kernels=[{**KERNELS[0], "core_type": "x"}])]),
                 r"kernels\[0\].core_type is not aic or aiv"),
                (jw.journal([jw.run(kernels=[{**KERNELS[0], "name": None}])]), r"kernels\[0\].name"),
                (jw.journal([jw.run(kernels=[{**KERNELS[0], "signature": "in"}])]), r"kernels\[0\].signature"),
                (jw.journal([jw.run(kernels=[{**KERNELS[0], "arg_names": [1]}])]), r"kernels\[0\].arg_names"),
                (jw.journal([jw.run(dump_level=5)]), "dump_level"),
                (jw.journal([jw.run(run_args=[1])]), "run_args"), (jw.journal([jw.run(text=b'{"a": "\xff"}')]),
                    "not valid JSON")):
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                self.opened(data)

    def test_missing_payload(self):
        def array(record, payload=bytes(64)):
            return self.opened(jw.journal([jw.run()], [record]), payload)[0].array()

        for record, sentence in ((jw.tensor(0, [4], offset=64, size=16, flags=PAYLOAD), "has 16 bytes at offset 64, but .* ends at 64"),
                                 (jw.tensor(0, [4], offset=2**64 - 64, size=2**63, flags=PAYLOAD), "ends at 64"),
                                 (jw.tensor(0, [4], size=12, flags=PAYLOAD),
                                  r"has 12 bytes, but float32 of shape \[4\] has 16"),
                                 (jw.tensor(0, [1 << 40, 1 << 40], size=16, flags=PAYLOAD), "has 16 bytes, but")):
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                array(record)
        with self.assertRaisesRegex(glassbox.DumpError, "cannot read .*: No such file or directory; it holds the payload of tensors"):
            (self.directory / "tensor_dump" / "tensor_dump.bin").unlink()
            self.payload = None
            array(jw.tensor(0, [4], size=16, flags=PAYLOAD), None)
        self.assertEqual(array(jw.tensor(0, [4, 0], flags=0), b"").shape, (4, 0))


if __name__ == "__main__":
    unittest.main()
