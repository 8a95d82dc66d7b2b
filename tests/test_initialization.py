"""Weights that are about to be loaded are not drawn first."""

import threading

import keras
import numpy as np
import pytest
from keras import ops

from keras_elf.initialization import weights_to_come


def drawn():
    layer = keras.layers.Dense(3)
    layer.build((None, 4))
    return ops.convert_to_numpy(layer.kernel)


def test_only_within_the_block_and_this_thread():
    assert np.abs(drawn()).max() > 0
    elsewhere = []
    with weights_to_come():
        with weights_to_come():
            assert not drawn().any()
        assert not drawn().any()
        thread = threading.Thread(target=lambda: elsewhere.append(drawn()))
        thread.start()
        thread.join()
    assert np.abs(elsewhere[0]).max() > 0 and np.abs(drawn()).max() > 0


def test_restored_after_an_error():
    with pytest.raises(RuntimeError), weights_to_come():
        raise RuntimeError
    assert np.abs(drawn()).max() > 0
