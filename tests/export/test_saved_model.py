"""An exported SavedModel: its numbers, its settings, and replacing an earlier one."""

import json
import sys

import numpy as np
import pytest

from keras_elf.export import export_denoiser, sampling_settings
from tests.export.test_exported_network import heads, inputs
from tests.models import small

if small.BACKEND == "torch":
    pytest.skip("Keras has no SavedModel export on PyTorch", allow_module_level=True)
if "tensorflow" in sys.modules and sys.modules["tensorflow"] is None:
    pytest.skip("TensorFlow is hidden", allow_module_level=True)
tensorflow = pytest.importorskip("tensorflow")


def test_numbers_at_any_batch(tmp_path):
    model = small.enliven(small.generator("gaussian"))
    path = tmp_path / "elf"
    path.mkdir()
    (path / "saved_model.pb").write_text("an earlier export")
    export_denoiser(model, path, format="tf_saved_model")
    assert [p.name for p in tmp_path.iterdir()] == ["elf"]
    loaded = tensorflow.saved_model.load(str(path))
    for rows in (1, 3):
        values = inputs(rows)
        found = loaded.serve(values)
        for name, exact in heads(model.backbone, values).items():
            error = np.abs(found[name].numpy() - exact).max()
            print(f"SavedModel from {small.BACKEND}, batch {rows}, {name}: {error:.1e}")
            assert error < 2e-5
    stored = json.loads((path / "keras_elf.json").read_text())
    assert stored == json.loads(json.dumps(sampling_settings(model, small.LENGTH)))
