"""The accuracy of reading clean latents counts every token that came back, the end too."""

import numpy as np
import pytest

from tests.models import small


@pytest.fixture(scope="module")
def model():
    return small.generator("gaussian")


def read_always(model, token_id):
    """Have a network read the same token everywhere."""
    bias = np.zeros(small.VOCABULARY_SIZE, "float32")
    bias[token_id] = 1e4
    model.backbone.unembedding.unembed.bias.assign(bias)


def expected_share(rows, token_id):
    counts = rows["is_valid"] & ~rows["is_cond"]
    return (rows["token_ids"] == token_id)[counts].mean()


def test_an_end_token_that_came_back_is_counted(model):
    rows = dict(model.preprocessor(small.texts(6)))
    end = model.preprocessor.end_token_id
    share = expected_share(rows, end)
    assert 0 < share < 1
    read_always(model, end)
    assert model.reconstruct(rows, return_accuracy=True) == pytest.approx(share)
    assert model.reconstruct(small.texts(6)) == [""] * 6


def test_conditions_and_padding_are_not_counted(model):
    rows = dict(model.preprocessor(small.texts(6)))
    token = int(rows["token_ids"][1, 2])
    read_always(model, token)
    rows["is_cond"] = np.array(rows["is_cond"])
    rows["is_cond"][:, :2] = True
    share = expected_share(rows, token)
    assert 0 < share < 1
    assert model.reconstruct(rows, return_accuracy=True) == pytest.approx(share)
