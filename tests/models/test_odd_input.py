"""What people pass by mistake, and forms of data that leave something out."""

import keras
import numpy as np
import pytest

from tests.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*were too long and were cut.*")


@pytest.fixture(scope="module")
def model():
    made = small.generator()
    made.compile(optimizer=small.muon(), run_eagerly=True)
    return made


class OnlyIds(keras.utils.PyDataset):
    def __init__(self, ids):
        super().__init__()
        self.ids = ids

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return ({"token_ids": self.ids},)


@pytest.mark.slow
def test_masks_may_be_left_out_of_a_dataset(model):
    whole = small.rows(3)
    full = model.evaluate(whole, return_dict=True, verbose=0, batch_size=3)
    part = model.evaluate(OnlyIds(whole["token_ids"]), return_dict=True, verbose=0)
    assert full == part


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"inputs": 3}, "`inputs` must be text or a list"),
        ({"inputs": iter(())}, "`inputs` must hold at least one"),
        ({"inputs": b"\xff"}, "UTF-8"),
        ({"inputs": "\ud800"}, "valid Unicode"),
        ({"callback": 3}, "`callback` must be callable"),
        ({"sampler": {}}, "`sampler` must be"),
        ({"guidance_scale": 1e300}, "`guidance_scale` must be"),
        ({"self_cond_guidance_scale": -1e300}, "`self_cond_guidance_scale` must be"),
    ],
)
def test_generate_refuses(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.generate(**arguments, verbose=False)


@pytest.mark.parametrize(
    "x, message",
    [
        (None, "`x` must be text"),
        ({"token_ids": np.ones((4, 6), "float32")}, "whole numbers"),
        (np.zeros((4, 6), "int32"), "nothing to learn"),
        (
            {"token_ids": np.ones((4, 6), "int32"), "is_cond": np.ones((4, 6), "bool")},
            "nothing to learn",
        ),
    ],
)
def test_fit_refuses(model, x, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x, verbose=0)
    with pytest.raises(ValueError, match=message):
        model.evaluate(x, verbose=0)


def test_validation_split_takes_the_last_rows(model):
    x = small.rows(8)
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras.Model, "fit", lambda *args, **kwargs: seen.append((args, kwargs)))
        model.fit(x, validation_split=0.25, batch_size=2)
    training, validation = seen[0][0][1], seen[0][1]["validation_data"]
    assert training.dataset.num_rows == 6
    np.testing.assert_array_equal(validation.arrays["token_ids"], x["token_ids"][6:])
    with pytest.raises(ValueError, match="`validation_split` must leave rows"):
        model.fit(x, validation_split=0.99)
