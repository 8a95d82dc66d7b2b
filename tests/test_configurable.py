"""Parts record their own settings and are told apart by them."""

import json

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elf.configurable import Configurable, signature

pytestmark = pytest.mark.backend_free


@keras.saving.register_keras_serializable(package="tests")
class Inner(Configurable):
    def __init__(self, width=1.0):
        self.width = float(width)


@keras.saving.register_keras_serializable(package="tests")
class Base(Configurable):
    def __init__(self, first=1, second="a"):
        self.first, self.second = first, second


@keras.saving.register_keras_serializable(package="tests")
class Derived(Base):
    def __init__(self, part, damping=0.5, **kwargs):
        super().__init__(**kwargs)
        self.part, self._hidden = part, damping


def test_config_holds_arguments_of_all_constructors():
    made = Derived(Inner(2), 0.25, second="b")
    assert made.get_config() == {
        "part": made.part,
        "damping": 0.25,
        "first": 1,
        "second": "b",
    }


def test_nested_parts_survive_json():
    made = Derived(Inner(2), second="b")
    text = json.dumps(keras.saving.serialize_keras_object(made))
    loaded = keras.saving.deserialize_keras_object(json.loads(text))
    assert type(loaded) is Derived and type(loaded.part) is Inner
    assert signature(loaded) == signature(made)


def test_attributes_set_later_are_told_apart():
    made, other = Base(), Base()
    assert signature(made) == signature(other)
    other.first = 2
    assert other.get_config()["first"] == 2 and signature(made) != signature(other)
    made.extra = np.arange(3)
    before = signature(made)
    made.extra = np.arange(3) + 1
    assert signature(made) != before


def test_wrong_arguments_are_the_constructors_error():
    with pytest.raises(TypeError, match="unknown"):
        Base(unknown=1)


settings = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_subnormal=False),
    st.text(),
)


@given(settings, settings)
def test_equal_settings_and_no_others_share_a_signature(one, other):
    same = type(one) is type(other) and one == other
    assert (signature(Base(one)) == signature(Base(other))) == same
    hash(signature(Base(one)))
