"""A training step must not wait for the device: PyTorch, where any line could."""

import keras
import numpy as np
import pytest

from tests.models import small

pytestmark = pytest.mark.skipif(
    small.BACKEND != "torch", reason="the others compile the whole step"
)
# Keras seeds a generator of PyTorch's on the host for each draw of `ELFObjective.draw`.
DRAWS = 7


def test_only_the_draws_read_on_the_host():
    from torch.utils._python_dispatch import TorchDispatchMode

    class HostReads(TorchDispatchMode):
        """Counts what would make a GPU finish its work before Python goes on."""

        count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function._schema.name in ("aten::_local_scalar_dense", "aten::nonzero"):
                self.count += 1
            return function(*args, **(kwargs or {}))

    model = small.generator("gaussian", preprocessor=None)
    batch = {"token_ids": np.random.default_rng(0).integers(1, 20, (6, 12)).astype("int32")}
    model.train_on_batch(batch)  # The optimizer's state is made in the first step.
    batch = keras.tree.map_structure(keras.ops.convert_to_tensor, batch)
    with HostReads() as reads:
        model.train_step(batch)
    assert reads.count == DRAWS
