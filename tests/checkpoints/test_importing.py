"""Released checkpoints become presets that compute what the public code recorded."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.checkpoints import ArrayReference, import_checkpoint
from keras_elf.checkpoints.names import to_variables
from keras_elf.checkpoints.sizes import backbone_sizes
from keras_elf.encoders import T5Encoder
from keras_elf.models import ELFBackbone, ELFGenerator, architecture
from tests.checkpoints.tiny_t5 import write_tiny_t5
from tests.reference_model import CONFIG

REFERENCE = pathlib.Path(__file__).parents[1] / "reference"
CHECKPOINTS = {
    "torch": REFERENCE / "torch/torch_checkpoint/checkpoint_3",
    "msgpack": REFERENCE / "jax/flax_msgpack_checkpoint/checkpoint_19000",
    "orbax": REFERENCE / "jax/flax_checkpoint",
}
STEPS = {"torch": 3, "msgpack": 19000, "orbax": 19000}
T5 = ("t5_v1_0", "t5_v1_1")


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """Each checkpoint with each kind of weights, and a model around each T5."""
    folder = tmp_path_factory.mktemp("imported")
    for kind, path in CHECKPOINTS.items():
        for weights in ("ema", "raw"):
            import_checkpoint(path, folder / f"{kind}_{weights}", weights=weights)
    keras.utils.set_random_seed(0)
    for version in T5:
        encoder = T5Encoder.from_transformers(REFERENCE / "t5" / f"{version}_hf")
        network = ELFBackbone(
            vocabulary_size=37, latent_dim=32, depth=1, hidden_size=8, num_heads=2, bottleneck_dim=4
        )
        ELFGenerator(network, encoder, sequence_length=12).save_to_preset(folder / version)
    return folder


@pytest.fixture(scope="module")
def fresh(presets):
    """What the presets compute in a fresh process: dict of `preset/output` to array."""
    command = [sys.executable, "-m", "tests.checkpoints.fresh_outputs", str(presets / "out.npz")]
    command += sorted(str(path) for path in presets.iterdir() if path.is_dir())
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(presets / "out.npz") as archive:
        return dict(archive)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize(("weights", "recorded"), [("raw", "params"), ("ema", "ema")])
def test_torch_checkpoint_gives_the_recorded_outputs(fresh, reference, weights, recorded):
    ref = reference("torch/checkpoint_forward")
    close(fresh[f"torch_{weights}/decode_x"], ref[f"{recorded}_x"])
    close(fresh[f"torch_{weights}/decode_logits"], ref[f"{recorded}_logits"])


@pytest.mark.parametrize("kind", ["msgpack", "orbax"])
def test_flax_checkpoints_give_the_recorded_outputs(fresh, reference, kind):
    ref = reference("jax/forward")
    for output in ("denoise_x", "decode_x", "decode_logits"):
        close(fresh[f"{kind}_raw/{output}"], ref[output])
        # The average is 0.9 of the weights plus 0.01: another network, the same in both files.
        close(fresh[f"{kind}_ema/{output}"], fresh[f"msgpack_ema/{output}"])
        assert np.abs(fresh[f"{kind}_ema/{output}"] - ref[output]).max() > 1e-2


@pytest.mark.parametrize("version", T5)
def test_text_encoders_give_the_recorded_outputs(fresh, reference, version):
    ref = reference(f"t5/{version}")
    for mask in ("mask2", "mask3"):
        visible = ref["mask2"] > 0
        close(fresh[f"{version}/out_{mask}"][visible], ref[f"out_{mask}"][visible])


@pytest.mark.parametrize("kind", ["msgpack", "orbax"])
def test_flax_averages_are_those_of_the_file(presets, reference, kind):
    raw = {k.removeprefix("params/"): v for k, v in reference("jax/weights").items()}
    expected = {k: v * np.float32(0.9) + np.float32(0.01) for k, v in to_variables(raw).items()}
    backbone = ELFBackbone.from_preset(presets / f"{kind}_ema")
    for variable in backbone.variables:
        path = variable.path.removeprefix("elf_backbone/")
        np.testing.assert_allclose(ops.convert_to_numpy(variable), expected[path], atol=1e-6)


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_manifest_says_where_weights_came_from(presets, kind):
    manifest = json.loads((presets / f"{kind}_raw/manifest.json").read_text())
    assert (manifest["step"], manifest["format"]) == (STEPS[kind], kind)
    assert (manifest["weights"], manifest["holds"]) == ("raw", "ELFBackbone")
    assert manifest["parameters"] == 72269
    assert manifest["versions"]["keras"] == keras.__version__
    assert all(len(digest) == 64 for digest in manifest["sha256"].values())
    if kind == "torch":
        sha = subprocess.run(["sha256sum", CHECKPOINTS[kind]], capture_output=True, text=True)
        assert sha.stdout.split()[0] == manifest["sha256"]["checkpoint_3"]


def test_whole_model_with_encoder_and_tokenizer(tmp_path):
    """A T5 directory beside the checkpoint gives a model from text to text."""
    t5 = write_tiny_t5(tmp_path / "t5")
    manifest = import_checkpoint(
        CHECKPOINTS["torch"], tmp_path / "preset", encoder=t5, sequence_length=12
    )
    assert manifest["holds"] == "ELFGenerator"
    model = ELFGenerator.from_preset(tmp_path / "preset")
    # 25 pieces and 12 sentinels.
    assert model.preprocessor.vocabulary_size == model.backbone.vocabulary_size == 37
    assert model.encoder.frozen
    assert len(model.generate(num_samples=2, num_steps=1, seed=0, verbose=False)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [4.0, 3.0, 2.7, 1.5])
@pytest.mark.parametrize("hidden_size", [32, 36, 1056])
def test_sizes_are_read_from_shapes(hidden_size, ratio):
    sizes = {
        "vocabulary_size": 37,
        "latent_dim": 16,
        "depth": 3,
        "hidden_size": hidden_size,
        "num_heads": 2,
        "mlp_ratio": ratio,
        "bottleneck_dim": 8,
        "num_time_tokens": 3,
        "num_guidance_tokens": 0 if ratio == 3.0 else 2,
        "num_mode_tokens": 1,
    }
    with keras.StatelessScope():
        shapes = {
            v.path.removeprefix("elf_backbone/"): ArrayReference(tuple(v.shape), v.dtype, None)
            for v in ELFBackbone(**sizes, name="elf_backbone").variables
        }
    found = backbone_sizes(shapes)
    inner = [int(int(hidden_size * r) * 2 / 3) for r in (ratio, found.pop("mlp_ratio"))]
    sizes.pop("mlp_ratio")
    assert found == sizes and inner[0] == inner[1]


def altered(tmp_path, change):
    """A torch file of the toy checkpoint's raw weights after `change(arrays)`."""
    torch = pytest.importorskip("torch")
    state = torch.load(CHECKPOINTS["torch"], weights_only=True)
    arrays = state["params"]
    change(arrays, torch)
    torch.save({"params": arrays}, tmp_path / "checkpoint_7")
    return tmp_path / "checkpoint_7"


def test_misfits_are_listed_and_nothing_is_written(tmp_path):
    def change(arrays, torch):
        del arrays["blocks.1.attn.qkv.bias"]
        arrays["blocks.2.extra.weight"] = torch.zeros(2, 2)
        arrays["final_layer.linear.weight"] = torch.zeros(3, 5)

    with pytest.raises(ValueError) as caught:
        import_checkpoint(altered(tmp_path, change), tmp_path / "preset", weights="raw")
    message = str(caught.value)
    assert "1 missing: blocks_1/attn/qkv/bias" in message
    assert "1 unknown: blocks_2/extra/kernel" in message
    assert "denoising_head/linear/kernel is (3, 5), expected (16, 32)" in message
    assert sorted(os.listdir(tmp_path)) == ["checkpoint_7"]


def test_values_that_are_not_finite_are_refused(tmp_path):
    def change(arrays, torch):
        arrays["mode_tokens"][0, 0, 0] = float("nan")

    with pytest.raises(ValueError, match="mode_tokens in .* not finite"):
        import_checkpoint(altered(tmp_path, change), tmp_path / "preset", weights="raw")
    assert not (tmp_path / "preset").exists()


def test_an_encoder_with_values_that_are_not_finite_is_refused(tmp_path):
    encoder = T5Encoder.from_transformers(REFERENCE / "t5" / f"{T5[0]}_hf")
    spoilt = encoder.variables[-1]
    spoilt.assign(ops.full(spoilt.shape, float("nan")))
    with pytest.raises(ValueError, match=f"`encoder` holds .* not finite, in {spoilt.path}"):
        import_checkpoint(CHECKPOINTS["torch"], tmp_path / "preset", encoder=encoder)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("preset_dir", [b"preset", None, 3])
def test_the_directory_must_be_a_path(preset_dir):
    with pytest.raises(ValueError, match="`preset_dir` must be a str or a path"):
        import_checkpoint(CHECKPOINTS["torch"], preset_dir)


def test_sizes_must_be_those_of_the_preset(tmp_path):
    with pytest.raises(ValueError) as caught:
        import_checkpoint(CHECKPOINTS["torch"], tmp_path / "preset", preset="elf_b_owt")
    expected = architecture("elf_b")
    assert f"hidden_size is {CONFIG['hidden_size']}, the preset has 768" in str(caught.value)
    assert f"depth is 4, the preset has {expected['depth']}" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": "average"}, "`weights` must be one of"),
        ({"preset": "elf_b_out"}, "Did you mean 'elf_b_owt'"),
        ({"tokenizer": "spiece.model"}, "`tokenizer` needs an `encoder`"),
        ({"encoder": REFERENCE / "t5/t5_v1_0_hf"}, "latent width"),
        ({"checkpoint": "nowhere"}, "nowhere"),
        ({"checkpoint": b"nowhere"}, "`checkpoint` must be a str or a path. Received: b'nowhere'"),
        ({"checkpoint": None}, "`checkpoint` must be a str or a path. Received: None"),
        ({"encoder": b"t5-small"}, "`encoder` must be a str or a path"),
        ({"encoder": "t5-small", "tokenizer": 3}, "`tokenizer` must be a str or a path"),
        ({"checkpoint": REFERENCE / "jax/weights.npz"}, "weights.npz"),
    ],
)
def test_arguments_that_do_not_fit(tmp_path, arguments, message):
    arguments = {"checkpoint": CHECKPOINTS["torch"], **arguments}
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        import_checkpoint(arguments.pop("checkpoint"), tmp_path / "preset", **arguments)
    assert os.listdir(tmp_path) == []


def test_weights_that_a_file_lacks(tmp_path):
    path = altered(tmp_path, lambda arrays, torch: None)
    with pytest.raises(ValueError, match="no 'ema' weights. Pass weights='raw'"):
        import_checkpoint(path, tmp_path / "preset")
