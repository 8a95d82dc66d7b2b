"""Subclasses and networks of a user's own save and load like the library's."""

import json
import os
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.guidance import ConditionGuidance
from keras_elf.models import ELFBackbone, ELFGenerator
from tests.models import small
from tests.presets import own_parts

SIZES = {"vocabulary_size": small.VOCABULARY_SIZE, "latent_dim": small.LATENT_DIM, "width": 8}


def outputs(network):
    """Both heads on fixed inputs."""
    z = np.random.default_rng(0).standard_normal((2, 5, network.latent_dim)).astype("float32")
    states = network.hidden_states(
        ops.convert_to_tensor(z),
        ops.convert_to_tensor(np.array([0.2, 0.9], "float32")),
        self_condition=ops.convert_to_tensor(0.5 * z),
        decode=ops.ones((2,)),
    )
    return [
        ops.convert_to_numpy(head(states)) for head in (network.denoising_head, network.unembedding)
    ]


def with_network(kind):
    keras.utils.set_random_seed(4)
    network = own_parts.NETWORKS[kind](**SIZES)
    return ELFGenerator(network, small.encoder(), small.preprocessor(), seed=1)


def fresh(code):
    """Runs code in a process of its own; returns the process."""
    return subprocess.run(
        [sys.executable, "-c", f"import tests.conftest, json\n{code}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])},
    )


@pytest.mark.parametrize("kind", own_parts.NETWORKS)
def test_a_network_of_ones_own(kind, tmp_path):
    model = with_network(kind)
    model.save_to_preset(tmp_path / "preset")
    # Saving again finds its own files and replaces them.
    model.save_to_preset(tmp_path / "preset")
    loaded = ELFGenerator.from_preset(tmp_path / "preset")
    assert type(loaded.backbone) is own_parts.NETWORKS[kind]
    for ours, theirs in zip(outputs(model.backbone), outputs(loaded.backbone), strict=True):
        assert np.abs(ours).max() > 0.1
        np.testing.assert_allclose(theirs, ours, atol=1e-6)
    random = ELFGenerator.from_preset(tmp_path / "preset", load_weights=False)
    assert np.abs(outputs(random.backbone)[0] - outputs(model.backbone)[0]).max() > 1e-2


def test_fresh_processes_with_and_without_the_module(tmp_path):
    model = with_network("layer")
    model.save_to_preset(tmp_path / "preset")
    expected = [float(x.sum()) for x in outputs(model.backbone)]
    load = f"import keras_elf\nm = keras_elf.ELFGenerator.from_preset({str(tmp_path / 'preset')!r})"
    done = fresh(load)
    assert done.returncode != 0
    assert "LayerNetwork" in done.stderr
    assert "`import tests.presets.own_parts`" in done.stderr.splitlines()[-1]
    code = (
        f"import tests.presets.own_parts\n{load}\n"
        "from tests.presets.test_own_classes import outputs\n"
        "print(json.dumps([float(x.sum()) for x in outputs(m.backbone)]))"
    )
    done = fresh(code)
    assert done.returncode == 0, done.stderr[-3000:]
    np.testing.assert_allclose(json.loads(done.stdout.splitlines()[-1]), expected, rtol=1e-4)


def test_classes_of_a_script_are_told_apart(tmp_path):
    model = with_network("layer")
    model.save_to_preset(tmp_path / "preset")
    for file in ("config.json", "task.json"):
        text = (tmp_path / "preset" / file).read_text()
        text = text.replace("tests.presets.own_parts", "__main__").replace("LayerNet", "GoneNet")
        (tmp_path / "preset" / file).write_text(text)
    with pytest.raises(ValueError, match="GoneNetwork was defined in a script or notebook"):
        ELFGenerator.from_preset(tmp_path / "preset")


def modules(content):
    """Modules that a file of a preset names, by class."""
    found = {}
    if isinstance(content, dict):
        if "class_name" in content:
            found[content["class_name"]] = content.get("module")
        content = list(content.values())
    for value in content if isinstance(content, list) else []:
        found |= modules(value)
    return found


@pytest.mark.parametrize(
    ("file", "expected"),
    [("runs/my_script.py", "my_script"), ("my-script.py", "__main__"), (None, "__main__")],
)
def test_classes_of_a_script_are_saved_under_its_name(file, expected, tmp_path, monkeypatch):
    """A preset that a script saves tells others what to import; a notebook has no name."""
    main = types.ModuleType("__main__")
    if file is not None:
        main.__file__ = file
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(own_parts.LayerNetwork, "__module__", "__main__")
    monkeypatch.setattr(own_parts.ScaledBackbone, "__module__", "__main__")
    backbone = own_parts.ScaledBackbone(small.VOCABULARY_SIZE, small.LATENT_DIM, 1, 16, num_heads=2)
    for network in (own_parts.LayerNetwork(**SIZES), backbone):
        preset = tmp_path / type(network).__name__
        ELFGenerator(network, small.encoder(), small.preprocessor()).save_to_preset(preset)
        for name in ("config.json", "task.json"):
            content = json.loads((preset / name).read_text())
            assert modules(content)[type(network).__name__] == expected
        assert type(ELFGenerator.from_preset(preset).backbone) is type(network)


def test_rules_of_guidance_take_the_place_of_the_saved_scales(tmp_path):
    model = with_network("layer")
    model.save_to_preset(tmp_path / "preset")
    rules = [ConditionGuidance(2.0, interval=(0.2, 0.8))]
    loaded = ELFGenerator.from_preset(tmp_path / "preset", guidance=rules)
    assert loaded.sampling.guidance == tuple(rules)
    loaded.save_to_preset(tmp_path / "again")
    again = ELFGenerator.from_preset(tmp_path / "again")
    assert again.sampling.guidance[0].get_config() == rules[0].get_config()


def test_subclass_of_the_backbone(tmp_path):
    network = small.enliven_backbone(
        own_parts.ScaledBackbone(
            small.VOCABULARY_SIZE, small.LATENT_DIM, 1, 16, num_heads=2, factor=0.5
        )
    )
    model = ELFGenerator(network, small.encoder(), small.preprocessor())
    model.save_to_preset(tmp_path / "whole")
    network.save_to_preset(tmp_path / "network")
    for loaded in (
        ELFGenerator.from_preset(tmp_path / "whole").backbone,
        ELFBackbone.from_preset(tmp_path / "network"),
        own_parts.ScaledBackbone.from_preset(tmp_path / "whole"),
    ):
        assert type(loaded) is own_parts.ScaledBackbone and loaded.factor == 0.5
        for ours, theirs in zip(outputs(network), outputs(loaded), strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-6)
    with pytest.raises(ValueError, match="expected LayerBackbone or a relative"):
        _LayerBackbone.from_preset(tmp_path / "network")


class _LayerBackbone(ELFBackbone):
    """A sister of the saved class."""


_LayerBackbone.__name__ = "LayerBackbone"


def test_subclass_of_the_generator(tmp_path):
    model = own_parts.WarmGenerator(
        small.backbone(), small.encoder(), small.preprocessor(), temperature=0.7, num_steps=5
    )
    model.save_to_preset(tmp_path / "preset")
    for cls in (ELFGenerator, own_parts.WarmGenerator):
        loaded = cls.from_preset(tmp_path / "preset")
        assert type(loaded) is own_parts.WarmGenerator
        assert (loaded.temperature, loaded.sampling.num_steps) == (0.7, 5)
    loaded = ELFGenerator.from_preset(tmp_path / "preset", temperature=2.0, num_steps=4)
    assert (loaded.temperature, loaded.sampling.num_steps) == (2.0, 4)
    with pytest.raises(TypeError, match="unknown arguments \\['warmth'\\]"):
        own_parts.WarmGenerator.from_preset(tmp_path / "preset", warmth=1)


def test_a_subclass_loads_a_preset_of_its_base():
    loaded = own_parts.WarmGenerator.from_preset("elf_nano_kjv", temperature=0.3)
    assert type(loaded) is own_parts.WarmGenerator and loaded.temperature == 0.3
    base = ELFGenerator.from_preset("elf_nano_kjv")
    options = {"num_samples": 2, "num_steps": 2, "seed": 0, "verbose": False}
    assert loaded.generate(**options) == base.generate(**options)


def network_without(*parts):
    """A class that misses one of the things that a preset needs."""

    class Lacking(own_parts.LayerNetwork):
        def __init__(self, vocabulary_size, latent_dim, width, table=None, **kwargs):
            super().__init__(vocabulary_size, latent_dim, width, **kwargs)
            self.table = table

        if "config" in parts:
            get_config = keras.layers.Layer.get_config
        if "kwargs" in parts:

            def __init__(self, vocabulary_size, latent_dim, width):
                super().__init__(vocabulary_size, latent_dim, width)

    if "registration" not in parts:
        Lacking = keras.saving.register_keras_serializable("keras_elf_tests")(Lacking)
    return Lacking


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("registration", r"@keras.saving.register_keras_serializable\(package="),
        ("config", "has no `get_config`"),
        ("kwargs", r"gives \['dtype', 'name', 'trainable'\], which its constructor does not take"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(lacking, message, tmp_path):
    table = {"table": np.ones(3)} if lacking == "config" else {}
    network = network_without(lacking)(**SIZES, **table)
    model = ELFGenerator(network, small.encoder(), small.preprocessor())
    with pytest.raises(ValueError, match=message):
        model.save_to_preset(tmp_path / "preset")
    assert not os.listdir(tmp_path)


def test_a_foreign_network_is_bounded_by_its_files(tmp_path):
    """Its class tells nothing of its size: weights are counted before they are made."""
    with_network("layer").save_to_preset(tmp_path / "preset")
    for file in ("config.json", "task.json"):
        content = json.loads((tmp_path / "preset" / file).read_text())
        part = content if file == "config.json" else content["config"]["backbone"]
        part["config"]["width"] = 2**20
        (tmp_path / "preset" / file).write_text(json.dumps(content))
    with pytest.raises(ValueError, match="refused: its configuration asks for more than"):
        ELFGenerator.from_preset(tmp_path / "preset")
    layer = keras.layers.Dense(3)
    layer.build((None, 2))
    assert layer.count_params() == 9


def test_a_registered_class_that_is_no_network(tmp_path):
    with_network("layer").save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "config.json"
    path.write_text(path.read_text().replace("keras_elf_own_parts>LayerNetwork", "keras_elf>Muon"))
    with pytest.raises(ValueError, match="expected a network"):
        ELFGenerator.from_preset(tmp_path / "preset")


def test_threads_do_not_wait_for_each_other(tmp_path):
    """One that loads an encoder may be waited for by one that builds a model."""
    import concurrent.futures

    from keras_elf.initialization import weights_to_come
    from keras_elf.presets.weight_budget import weight_budget

    add_weight, draw = keras.layers.Layer.add_weight, keras.initializers.RandomNormal.__call__

    def build(limit):
        with weights_to_come(), weight_budget("inner", limit, "none"):
            layer = keras.layers.Dense(3, kernel_initializer="random_normal")
            layer.build((None, 2))
        return ops.convert_to_numpy(layer.kernel)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with weights_to_come(), weight_budget("outer", 5, "none"):
            assert not pool.submit(build, 100).result(timeout=60).any()
            with pytest.raises(ValueError, match="'inner' is refused"):
                pool.submit(build, 8).result(timeout=60)
            with pytest.raises(ValueError, match="'outer' is refused"):
                build(100)
    assert keras.layers.Layer.add_weight is add_weight
    assert keras.initializers.RandomNormal.__call__ is draw


@keras.saving.register_keras_serializable(package="own_scales")
def falling(t):
    return 3.0 - t


def test_a_registered_function_as_a_scale(tmp_path):
    model = small.generator(guidance_scale=falling)
    model.save_to_preset(tmp_path / "preset")
    loaded = ELFGenerator.from_preset(tmp_path / "preset")
    assert loaded.sampling.guidance[0].scale is falling


def test_a_scale_takes_the_place_of_a_presets_rule(tmp_path):
    rules = [ConditionGuidance(2.0, interval=(0.25, 0.5))]
    small.generator(guidance=rules).save_to_preset(tmp_path / "preset")
    (rule, *_) = ELFGenerator.from_preset(tmp_path / "preset", guidance_scale=4.0).sampling.guidance
    assert (rule.scale, rule.interval) == (4.0, (0.25, 0.5))
