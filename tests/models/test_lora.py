"""Low-rank adaptation of a loaded preset: what trains, what is saved, what comes back."""

import numpy as np
import pytest

from keras_elf.models import ELFGenerator, averaged_weights
from keras_elf.models.lora import check_optimizer
from keras_elf.optimizers import AdamW
from tests.models import fresh_process, small

ADAPTERS = {"lora_kernel_a", "lora_kernel_b"}
IDS = np.tile(np.arange(small.LENGTH, dtype="int32") + 5, (small.BATCH, 1))


def names(variables):
    return {v.path.rsplit("/", 1)[1] for v in variables}


def base(model):
    """Weights that no adapter is part of, by path."""
    variables = [v for v in model.backbone.variables if not names([v]) & ADAPTERS]
    return {v.path: small.values([v])[0] for v in variables}


def adapted(preset, quantise=False, epochs=12):
    """`(model, losses, weights before)` after training adapters on one batch."""
    model = ELFGenerator.from_preset(preset)
    if quantise:
        model.quantize("int8")
    model.backbone.enable_lora(4)
    before = base(model)
    model.compile(optimizer=AdamW(3e-2, ema_momentum=0.8))
    history = model.fit(IDS, batch_size=small.BATCH, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["loss"], before


def error(one, other):
    return max(np.abs(one[name] - other[name]).max() for name in ("hidden", "x_pred", "logits"))


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "base"
    small.enliven(small.generator("gaussian", preprocessor=None)).save_to_preset(folder)
    return folder


@pytest.fixture(scope="module")
def trained(preset):
    return adapted(preset)


def test_only_the_adapters_train_and_the_loss_falls(trained):
    model, losses, before = trained
    assert names(model.trainable_variables) == ADAPTERS
    attention = model.backbone.blocks[0].attn
    assert attention.qkv.lora_enabled and attention.proj.lora_enabled
    print(f"LoRA: loss {losses[0]:.2f} -> {losses[-1]:.2f}")
    assert np.mean(losses[-3:]) < 0.9 * np.mean(losses[:3])
    after = base(model)
    assert set(after) == set(before)
    assert all(np.array_equal(after[path], before[path]) for path in after)
    assert all(np.abs(v).max() > 0 for v in small.values(model.trainable_variables))


def test_the_preset_holds_the_averages_merged(trained, preset, tmp_path):
    model = trained[0]
    raw = fresh_process.numbers(model)
    with averaged_weights(model):
        averaged = fresh_process.numbers(model)
    assert error(raw, averaged) > 1e-3
    model.save_to_preset(tmp_path / "merged")
    loaded = ELFGenerator.from_preset(tmp_path / "merged")
    assert not names(loaded.variables) & ADAPTERS
    found = fresh_process.numbers(loaded)
    assert error(found, averaged) < 1e-5
    assert error(found, fresh_process.numbers(ELFGenerator.from_preset(preset))) > 1e-2
    assert fresh_process.token_ids(loaded) == fresh_process.token_ids(model)


def test_adapters_alone_come_back_onto_a_fresh_preset(trained, preset, tmp_path):
    model = trained[0]
    model.backbone.save_lora_weights(tmp_path / "verses.lora.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["verses.lora.h5"]
    fresh = ELFGenerator.from_preset(preset)
    fresh.backbone.load_lora_weights(tmp_path / "verses.lora.h5")
    assert error(fresh_process.numbers(fresh), fresh_process.numbers(model)) == 0
    other = small.backbone(depth=2)
    with pytest.raises(ValueError, match="do not fit"):
        other.load_lora_weights(tmp_path / "verses.lora.h5")
    narrow = small.backbone()
    narrow.enable_lora(2)
    with pytest.raises(ValueError, match="do not fit.*rank"):
        narrow.load_lora_weights(tmp_path / "verses.lora.h5")


@pytest.mark.slow
def test_adapters_of_integer_weights(preset, tmp_path):
    model, losses, before = adapted(preset, quantise=True, epochs=3)
    assert np.isfinite(losses).all()
    assert names(model.trainable_variables) == ADAPTERS
    after = base(model)
    assert all(np.array_equal(after[path], before[path]) for path in before)
    assert all(np.abs(v).max() > 0 for v in small.values(model.trainable_variables))
    assert "int8" in {v.dtype for v in model.backbone.variables}
    with averaged_weights(model):
        outputs = fresh_process.numbers(model)
    model.save_to_preset(tmp_path / "merged")
    found = fresh_process.numbers(ELFGenerator.from_preset(tmp_path / "merged"))
    # Merged kernels are rounded to integers again.
    assert 0 < error(found, outputs) < 0.05 * np.abs(outputs["logits"]).max()


@pytest.mark.slow
def test_quantising_after_lora_keeps_the_adapters():
    backbone = small.backbone()
    backbone.enable_lora(2)
    backbone.quantize("int8")
    assert names(backbone.trainable_variables) == ADAPTERS
    qkv = backbone.blocks[0].attn.qkv
    assert qkv.lora_enabled and qkv.quantization_mode == "int8"


def test_an_optimizer_from_before_is_refused(preset):
    model = ELFGenerator.from_preset(preset)
    check_optimizer(model)
    model.compile(optimizer=AdamW(1e-2))
    check_optimizer(model)
    model.optimizer.build(model.trainable_variables)
    check_optimizer(model)
    model.backbone.enable_lora(2)
    with pytest.raises(ValueError, match="Call `compile` again") as caught:
        check_optimizer(model)
    assert "lora_kernel_a first" in str(caught.value)
    model.compile(optimizer=AdamW(1e-2))
    model.optimizer.build(model.trainable_variables)
    check_optimizer(model)
    frozen = ELFGenerator.from_preset(preset)
    frozen.compile(optimizer=AdamW(1e-2))
    frozen.optimizer.build(frozen.trainable_variables)
    frozen.backbone.blocks[0].trainable = False
    with pytest.raises(ValueError, match="freezing"):
        check_optimizer(frozen)


@pytest.mark.slow
def test_fit_refuses_an_optimizer_from_before():
    model = small.generator("gaussian", preprocessor=None)
    ids = np.random.default_rng(0).integers(1, 20, (small.BATCH, small.LENGTH)).astype("int32")
    model.compile(optimizer=AdamW(1e-2), run_eagerly=True)
    model.fit(ids, batch_size=small.BATCH, verbose=0)
    model.backbone.enable_lora(2)
    with pytest.raises(ValueError, match="Call .compile. again"):
        model.fit(ids, batch_size=small.BATCH, verbose=0)
    model.compile(optimizer=AdamW(1e-2), run_eagerly=True)
    model.fit(ids, batch_size=small.BATCH, verbose=0)


def test_a_tied_encoder_is_not_adapted():
    model = small.generator("transformer", tied=True, preprocessor=None)
    model.backbone.enable_lora(2, ["qkv", "w3"])
    assert not names(model.encoder.variables) & ADAPTERS
    assert names(model.trainable_variables) == ADAPTERS
    assert len(model.trainable_variables) == 4
    assert model.encoder.frozen


def test_errors(tmp_path):
    backbone = small.backbone()
    with pytest.raises(ValueError, match="`rank`"):
        backbone.enable_lora(0)
    with pytest.raises(ValueError, match=r"must be of .*'qkv'.*Received: \['query'\]"):
        backbone.enable_lora(2, ["query"])
    with pytest.raises(ValueError, match="no lora-enabled layers"):
        backbone.save_lora_weights(tmp_path / "none.lora.h5")
    assert not list(tmp_path.iterdir())
    backbone.enable_lora(2)
    with pytest.raises(ValueError, match="enabled already"):
        backbone.enable_lora(2)
    with pytest.raises(ValueError, match=r"must end in '.lora.h5'"):
        backbone.save_lora_weights(tmp_path / "adapters.h5")
    with pytest.raises(ValueError, match="cannot be written"):
        backbone.save_lora_weights(tmp_path / "missing" / "adapters.lora.h5")
    with pytest.raises(ValueError, match="must be a file"):
        backbone.load_lora_weights(tmp_path / "missing.lora.h5")
    (tmp_path / "broken.lora.h5").write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match="damaged"):
        backbone.load_lora_weights(tmp_path / "broken.lora.h5")
