"""Batches, positions, shards and loops of `TextDataset`."""

import json
import threading

import numpy as np
import pytest

from keras_elf.data import TextDataset, load_dataset
from tests.data.letters import Letters

pytestmark = pytest.mark.backend_free


def dataset(number=23, batch_size=4, **kwargs):
    ids = np.arange(3, 3 + number)[:, None].repeat(2, axis=1)
    kwargs = {"packing": False, "vocabulary_size": 1000, **kwargs}
    return load_dataset(ids, Letters(), 2, batch_size=batch_size, **kwargs)


def first_ids(batches):
    return [batch["token_ids"][:, 0].tolist() for batch in batches]


def test_batches():
    data = dataset()
    assert len(data) == 5
    batches = list(data)
    assert all(b["token_ids"].shape == (4, 2) for b in batches)
    assert {k: v.dtype.name for k, v in batches[0].items()} == {
        "token_ids": "int32", "is_cond": "bool", "is_valid": "bool"}  # fmt: skip
    served = sum(first_ids(data), [])
    assert len(set(served)) == 20
    assert served != sorted(served)
    assert first_ids(dataset(shuffle=False))[0] == [3, 4, 5, 6]
    assert [len(b) for b in first_ids(dataset(drop_remainder=False))] == [4, 4, 4, 4, 4, 3]
    with pytest.raises(IndexError):
        data[5]


def test_epochs_and_seeds_have_orders_of_their_own():
    one, other = dataset(seed=1), dataset(seed=2)
    start = first_ids(one)
    assert start == first_ids(dataset(seed=1)) != first_ids(other)
    # What Keras calls before the first epoch does not skip it.
    one.on_epoch_end()
    assert first_ids(one) == start
    one.on_epoch_begin()
    one.on_epoch_end()
    one.on_epoch_end()
    assert one.position == {"epoch": 1, "batch": 0}
    assert first_ids(one) != start
    one.skip_to(0)
    assert first_ids(one) == start


@pytest.mark.parametrize("epoch, batch", [(0, 0), (0, 3), (2, 1), (1, 5)])
def test_going_on_from_any_place(epoch, batch):
    data, whole = dataset(seed=3), dataset(seed=3)
    everything = [whole.batch_at(step)["token_ids"].tolist() for step in range(20)]
    data.skip_to(epoch, batch)
    step = epoch * 5 + batch
    assert data.position == {"epoch": step // 5, "batch": step % 5}
    rest = [b["token_ids"].tolist() for b in data.stream(num_epochs=4)]
    assert rest == everything[step:]
    assert data.position == {"epoch": 4, "batch": 0}


def test_state_survives_json_and_tells_other_data():
    data = dataset(seed=3)
    stream = data.stream()
    for _ in range(7):
        next(stream)
    assert data.position == {"epoch": 1, "batch": 2}
    expected = next(stream)["token_ids"].tolist()
    stream.close()
    data.skip_to(1, 2)
    state = json.loads(json.dumps(data.state()))
    again = dataset(seed=3)
    again.restore(state)
    assert next(again.stream())["token_ids"].tolist() == expected
    for other, name in (
        (dataset(seed=4), "seed"),
        (dataset(number=24, seed=3), "rows"),
        (dataset(batch_size=2, seed=3), "batch_size"),
        (dataset(seed=3, shard=(0, 2), batch_size=4), "shards"),
        (dataset(seed=3, shuffle=False), "shuffle"),
    ):
        with pytest.raises(ValueError, match=f"another dataset: its {name} is"):
            other.restore(state)
    with pytest.raises(ValueError, match="`state` must have the keys"):
        again.restore({"epoch": 0})
    with pytest.raises(ValueError, match="`batch` must be"):
        again.skip_to(0, 6)


@pytest.mark.parametrize("count", [2, 3])
def test_shards_serve_what_one_process_serves(count):
    shards = [dataset(batch_size=2, shard=(i, count), seed=5) for i in range(count)]
    whole = dataset(batch_size=2 * count, seed=5)
    assert {len(s) for s in shards} == {len(whole)}
    for step in range(2 * len(whole)):
        parts = [s.batch_at(step)["token_ids"][:, 0].tolist() for s in shards]
        assert sorted(sum(parts, [])) == sorted(whole.batch_at(step)["token_ids"][:, 0].tolist())
        assert len(set(sum(parts, []))) == 2 * count


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"batch_size": 24}, r"fewer rows \(23\) than one batch"),
        ({"batch_size": 12, "shard": (0, 2)}, "fewer rows"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"shard": (0, 2), "drop_remainder": False}, "`drop_remainder` must be True"),
    ],
)
def test_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        dataset(**kwargs)


def test_workers_may_read_at_once():
    data = dataset(number=400, seed=1)
    expected = first_ids(data.batch_at(step) for step in range(300))
    seen = [None] * 300

    def read(start):
        for step in range(start, 300, 4):
            seen[step] = data.batch_at(step)["token_ids"][:, 0].tolist()

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert seen == expected


def test_a_stream_ends_its_thread_and_passes_errors_on_in_their_place():
    def threads():
        return [t for t in threading.enumerate() if t.name.startswith("keras_elf_stream")]

    class Numbers:
        def __len__(self):
            return 4

        def batch(self, rows):
            if 2 in rows:
                raise KeyError("broken")
            return {"token_ids": rows}

    stream = TextDataset(Numbers(), 1, shuffle=False).stream()
    assert next(stream)["token_ids"] == [0] and threads()
    assert next(stream)["token_ids"] == [1]
    with pytest.raises(KeyError, match="broken"):
        next(stream)
    assert not threads()
    stream = dataset().stream()
    next(stream)
    stream.close()
    assert not threads()


@pytest.mark.parametrize("library", ["grain", "torch"])
def test_loaders_of_other_libraries(library):
    data = dataset()
    data.skip_to(1)
    module = pytest.importorskip(library)
    if library == "grain":
        batches = module.MapDataset.source(data)
    else:
        loader = pytest.importorskip("torch.utils.data").DataLoader
        batches = loader(data, batch_size=None)
    assert len(batches) == len(data)
    found = [np.asarray(batch["token_ids"])[:, 0].tolist() for batch in batches]
    assert found == first_ids(data)


def test_own_rows():
    class Numbers:
        def __len__(self):
            return 10

        def batch(self, rows):
            return {"token_ids": rows[:, None]}

    data = TextDataset(Numbers(), 5, shuffle=False)
    assert data[1]["token_ids"].ravel().tolist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("cached", [False, True])
def test_values_of_rows(tmp_path, cached):
    records = [{"text": [3 + i, 4], "label": i % 7, "speaker": -i} for i in range(23)]
    records[5] = {"text": [], "label": 9, "speaker": 9}  # A blank one takes its numbers along.
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, records)))
    options = {"values": ["label", "speaker"], "batch_size": 4, "vocabulary_size": 1000}
    options["cache_dir"] = tmp_path / "cache" if cached else None
    for _ in range(1 + cached):
        with pytest.warns(match="1 blank"):
            data = load_dataset(tmp_path / "rows.jsonl", Letters(), 2, **options)
        seen = set()
        for batch in data:
            assert batch["label"].dtype == batch["speaker"].dtype == "int32"
            seen |= set(
                zip(
                    (batch["token_ids"][:, 0] - 3).tolist(),
                    batch["label"].tolist(),
                    batch["speaker"].tolist(),
                    strict=True,
                )
            )
        assert len(seen) == 20 and seen <= {(n, n % 7, -n) for n in range(23) if n != 5}


@pytest.mark.parametrize(
    "record, options, message",
    [
        ({"text": [3]}, {}, "no field 'label'"),
        ({"text": [3], "label": "one"}, {}, "'label' must be a whole number. Received: 'one'"),
        ({"text": [3], "label": 1.5}, {}, "'label' must be a whole number. Received: 1.5"),
        ({"text": [3], "label": True}, {}, "'label' must be a whole number. Received: True"),
        ({"text": [3], "label": 2**31}, {}, "'label' must fit 32 bits"),
        ([3], {}, r"must be a dict with the fields \['label'\]"),
        ({"text": [3], "label": 1}, {"packing": True}, "no place for `values` \\['label'\\]"),
        ({"text": [3], "label": 1}, {"values": "label"}, "`values` must be a list of names"),
        ({"text": [3], "label": 1}, {"values": ["is_cond"]}, "other names than the tokens' own"),
    ],
)
def test_refused_values(record, options, message):
    options = {"values": ["label"], "batch_size": 1, "vocabulary_size": 1000, **options}
    with pytest.raises(ValueError, match=message):
        load_dataset([record], Letters(), 2, **options)
