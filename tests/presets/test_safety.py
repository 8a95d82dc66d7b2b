"""Presets made to do harm are refused, quickly, and before anything large is allocated."""

import json
import os
import pathlib
import resource
import shutil
import time

import h5py
import keras
import numpy as np
import pytest

from keras_elf.models import ELFBackbone, ELFGenerator, ELFPreprocessor
from keras_elf.presets.safety import check_room
from tests.models import small

pytestmark = pytest.mark.backend_free

DAMAGE = "refused|damaged|incomplete|not valid|not a Keras|expected|whole number|not UTF-8"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sound") / "preset"
    small.generator().save_to_preset(directory)
    return directory


@pytest.fixture
def preset(sound, tmp_path):
    return pathlib.Path(shutil.copytree(sound, tmp_path / "preset"))


def refused(preset, load=ELFGenerator, match=DAMAGE, **kwargs):
    """A `ValueError` within seconds and 300 MB."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(ValueError, match=match) as caught:
        load.from_preset(preset, **kwargs)
    assert time.monotonic() - start < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
    return str(caught.value)


def edit(preset, file, change):
    content = json.loads((preset / file).read_text())
    change(content)
    (preset / file).write_text(json.dumps(content))


SIZES = [
    {"hidden_size": 2**40},
    {"hidden_size": 65_536, "num_heads": 2},
    {"vocabulary_size": 10**9},
    {"latent_dim": 10**7},
    {"depth": 10**6},
    {"depth": 900, "hidden_size": 2048, "num_heads": 2},
    {"bottleneck_dim": 10**10},
    {"num_mode_tokens": 10**12},
    {"mlp_ratio": 1e15},
    {"mlp_ratio": float("inf")},
    {"mlp_ratio": "4"},
    {"num_heads": 0},
    {"hidden_size": None},
    {"hidden_size": -16},
    {"depth": "many"},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("load", [ELFGenerator, ELFBackbone])
def test_sizes_that_the_files_cannot_hold(preset, sizes, load):
    edit(preset, "config.json", lambda c: c["config"].update(sizes))
    edit(preset, "task.json", lambda c: c["config"]["backbone"]["config"].update(sizes))
    refused(preset, load)


@pytest.mark.parametrize(
    "sizes", [{"vocabulary_size": 10**9}, {"latent_dim": 2**30}, {"depth": 10**7}], ids=str
)
def test_encoders_that_the_files_cannot_hold(preset, sizes):
    edit(preset, "task.json", lambda c: c["config"]["encoder"]["config"].update(sizes))
    refused(preset)


def test_sizes_without_weights_have_a_limit(preset):
    sizes = {"hidden_size": 2**20, "depth": 500}
    edit(preset, "config.json", lambda c: c["config"].update(sizes))
    edit(preset, "task.json", lambda c: c["config"]["backbone"]["config"].update(sizes))
    assert "the limit is" in refused(preset, load_weights=False)


CANARY = "keras_elf_canary"
BOMBS = [
    {"module": "os", "class_name": "system", "config": {"command": "touch x"}},
    {"module": "builtins", "class_name": "eval", "config": "1", "registered_name": "eval"},
    {"module": "subprocess", "class_name": "Popen", "config": {"args": "true"}},
    {"module": "keras_elf.cli.main", "class_name": "main", "config": {}},
    {"module": "keras.utils", "class_name": "get_file", "config": {"fname": "a", "origin": "b"}},
    {
        "module": "builtins",
        "class_name": "function",
        "config": "system",
        "registered_name": "function",
    },
    {"class_name": "__lambda__", "config": {"value": ["4wEA", None, None]}},
    {"class_name": 7, "config": {}},
    {"module": None, "class_name": "Nothing", "config": {}},
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda b: str(b["class_name"]))
@pytest.mark.parametrize("place", ["sampler", "objective", "encoder"])
def test_classes_that_are_none_of_a_model(preset, bomb, place):
    edit(preset, "task.json", lambda c: c["config"].update({place: bomb}))
    refused(preset, match=DAMAGE + "|must be|deserialize|lambda|Could not")


@pytest.mark.parametrize("file", ["tokenizer.json", "preprocessor.json", "task.json"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../../secret.spm", "~/secret"])
def test_paths_in_configurations(preset, file, path):
    def change(content):
        config = content["config"]
        if file == "task.json":
            config = config["preprocessor"]["config"]
        if file != "tokenizer.json":
            config = config["tokenizer"]["config"]
        config["proto"] = path

    edit(preset, file, change)
    assert "outside its directory" in refused(preset)


def test_preprocessor_alone_is_looked_at_too(preset):
    edit(preset, "preprocessor.json", lambda c: c["config"].update(name="../x"))
    refused(preset, ELFPreprocessor)


@pytest.mark.parametrize(
    "file", ["config.json", "model.weights.h5", "assets/tokenizer/vocabulary.spm"]
)
def test_links_out_of_the_preset(preset, tmp_path, file):
    target = tmp_path / "elsewhere"
    shutil.move(preset / file, target)
    (preset / file).symlink_to(target)
    assert "outside the preset" in refused(preset)
    # A link within the preset is the user's own way of keeping files.
    inside = preset / "kept"
    shutil.move(target, inside)
    (preset / file).unlink()
    (preset / file).symlink_to(inside)
    ELFGenerator.from_preset(preset, load_weights=False)


def test_a_linked_directory_and_a_loop(preset, tmp_path):
    (preset / "loop").symlink_to(preset)
    ELFGenerator.from_preset(preset, load_weights=False)
    (preset / "away").symlink_to(tmp_path)
    refused(preset)


def test_snapshot_of_a_hub_cache_is_accepted(sound, tmp_path):
    """Its files are links into the cache's `blobs`."""
    blobs, snapshot = tmp_path / "models--a--b/blobs", tmp_path / "models--a--b/snapshots/abc"
    blobs.mkdir(parents=True)
    for number, file in enumerate(sorted(p for p in sound.rglob("*") if p.is_file())):
        shutil.copy(file, blobs / str(number))
        link = snapshot / file.relative_to(sound)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blobs / str(number), link.parent))
    assert ELFGenerator.from_preset(snapshot).backbone.depth == 1
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("/etc/hostname")
    refused(snapshot)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "{" + '"k": "' + "x" * 9_000_000 + '"}',
        "\x00",
        "null",
        '{"config": 3}',
        '{"registered_name": "keras_elf>ELFGenerator", "config": {}}',
    ],
    ids=["open", "deep", "large", "zero", "null", "number", "empty"],
)
@pytest.mark.parametrize("file", ["config.json", "task.json"])
def test_json_bombs(preset, file, text):
    (preset / file).write_text(text)
    refused(preset)


def test_bytes_that_are_no_text(preset):
    (preset / "config.json").write_bytes(b"\xff\xfe\x00{")
    refused(preset)


@pytest.mark.parametrize(
    "names", [["../../x.weights.h5"], ["/etc/passwd"], [["a", "../b"]], [7], {}, ["missing.h5"]]
)
def test_shards_outside_the_preset(preset, names):
    (preset / "model.weights.h5").unlink()
    shards = dict(enumerate(names)) if isinstance(names, list) else names
    (preset / "model.weights.json").write_text(json.dumps({"weight_map": shards}))
    refused(preset)


def first_dataset(file):
    def visit(name, item):
        return name if isinstance(item, h5py.Dataset) else None

    return file.visititems(visit)


def huge(file, name):
    """Terabytes of one value in a few compressed bytes."""
    del file[name]
    file.create_dataset(name, shape=(2**20, 2**20), dtype="f4", chunks=(64, 64), compression="gzip")


def external(file, name):
    del file[name]
    file.create_dataset(name, shape=(4,), dtype="f4", external=[("/etc/hostname", 0, 16)])


def linked(file, name):
    del file[name]
    file[name] = h5py.ExternalLink("/etc/other.h5", "/x")


def soft(file, name):
    del file[name]
    file[name] = h5py.SoftLink("/nowhere")


def virtual(file, name):
    layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
    layout[:] = h5py.VirtualSource("/etc/other.h5", "x", shape=(4,))
    del file[name]
    file.create_virtual_dataset(name, layout)


def objects(file, name):
    del file[name]
    file.create_dataset(name, data=np.array([b"os.system", b"x"], dtype=object))


class EncoderNeeded:
    """An encoder's weights are read when it is needed, and not before."""

    @staticmethod
    def from_preset(preset):
        ELFGenerator.from_preset(preset).encode(["And"])


@pytest.mark.parametrize("bomb", [huge, external, linked, soft, virtual, objects])
@pytest.mark.parametrize("weights", ["model.weights.h5", "task.weights.h5"])
def test_bombs_in_weight_files(preset, bomb, weights):
    with h5py.File(preset / weights, "a") as file:
        bomb(file, first_dataset(file))
    load = EncoderNeeded if weights.startswith("task") else ELFGenerator
    refused(preset, load, match=DAMAGE + "|Not allowed|shape|dtype|Unable|convert|H5")


@pytest.mark.parametrize("weights", ["model.weights.h5", "task.weights.h5"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_truncated_weight_files(preset, weights, share):
    content = (preset / weights).read_bytes()
    (preset / weights).write_bytes(content[: int(share * len(content))])
    refused(preset)


def test_pickles_in_place_of_files(preset, tmp_path):
    import pickle

    class Bomb:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / CANARY}",)

    for file in sorted(p for p in preset.rglob("*") if p.is_file()):
        kept = file.read_bytes()
        file.write_bytes(pickle.dumps(Bomb()))
        if file.name != "metadata.json":
            refused(preset)
        file.write_bytes(kept)
    assert not (tmp_path / CANARY).exists()
    ELFGenerator.from_preset(preset)


def test_a_full_disk_is_found_before_anything_is_written(tmp_path):
    variables = [keras.Variable(np.zeros((100, 100), "float32"))]
    check_room(tmp_path, variables)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            check_room(tmp_path, variables)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not os.listdir(tmp_path)


def test_room_for_all_dtypes(tmp_path):
    dtypes = ("float32", "bfloat16", "int8", "bool")
    make = keras.Variable
    check_room(tmp_path, [make(np.ones((2, 3)), dtype=d, trainable=False) for d in dtypes])
    assert not os.listdir(tmp_path)
