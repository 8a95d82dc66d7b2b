import keras
import numpy as np
import pytest

from keras_elf.optimizers import Muon
from tests.optimizers.stepping import compiled_step, random_gradients, values_of, variables_from

ARRAYS = {
    "kernel": np.ones((3, 4), "float32"),
    "token_embedding": np.ones((5, 2), "float32"),
    "bias": np.ones((4,), "float32"),
    "tokens": np.ones((1, 2, 3), "float32"),
}


def test_routing_and_state():
    optimizer = Muon(use_ema=False)
    variables = variables_from(ARRAYS)
    with pytest.raises(ValueError, match="`variables` must be given"):
        optimizer.routing()
    routes = {
        "kernel": "muon",
        "token_embedding": "muon",
        "bias": "adam",
        "tokens": "adam",
    }
    assert optimizer.routing(variables) == routes
    optimizer.build(variables)
    assert optimizer.routing() == routes
    has_velocity = [velocity is not None for velocity in optimizer.adam_velocities]
    assert has_velocity == [False, False, True, True]
    # iteration, learning rate, four momenta, two velocities, norm and its first failure.
    assert len(optimizer.variables) == 10


def test_routing_prints():
    lines = []
    Muon().routing(variables_from(ARRAYS), print_fn=lines.append)
    assert lines[0] == "muon: 2 variables, 22 parameters"
    assert "  kernel (3, 4)" in lines and "adam: 2 variables, 10 parameters" in lines


def test_excluded_matrices_go_to_adam():
    variables = variables_from(ARRAYS)
    optimizer = Muon(exclude_layers=["embed.*ing"])
    assert optimizer.routing(variables)["token_embedding"] == "adam"
    optimizer.build(variables)
    assert optimizer.adam_velocities[1] is not None


def test_one_variable_at_a_time_is_the_same():
    """`update_step`, the entry TensorFlow's replicas use, against the grouped update."""
    gradients = random_gradients(ARRAYS, 1)[0]
    together, alone = variables_from(ARRAYS), variables_from(ARRAYS)
    Muon(0.1, global_clipnorm=None).apply([keras.ops.array(g) for g in gradients], together)
    optimizer = Muon(0.1, global_clipnorm=None)
    optimizer.build(alone)
    for gradient, variable in zip(gradients, alone, strict=True):
        optimizer.update_step(keras.ops.array(gradient), variable, 0.1)
    for a, b in zip(values_of(together), values_of(alone), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_missing_gradient_leaves_its_variable():
    variables = variables_from(ARRAYS)
    gradients = [keras.ops.array(g) for g in random_gradients(ARRAYS, 1)[0]]
    gradients[0] = None
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        Muon(0.1).apply(gradients, variables)
    changed = [bool((v != 1).any()) for v in values_of(variables)]
    assert changed == [False, True, True, True]


def test_no_gradients_at_all_is_an_error():
    with pytest.raises(ValueError, match="No gradients provided"):
        Muon().apply([None] * 4, variables_from(ARRAYS))


def test_bfloat16_variables_step_in_float32():
    """Their momenta are bfloat16, the orthogonalisation and the average are not."""
    variables = [keras.Variable(np.ones((3, 4)), dtype="bfloat16", name="kernel")]
    optimizer = Muon(0.25, global_clipnorm=None)
    gradient = keras.ops.cast(np.random.default_rng(0).standard_normal((3, 4)), "bfloat16")
    optimizer.apply([gradient], variables)
    ((variable, average),) = optimizer.average_pairs()
    assert keras.backend.standardize_dtype(average.dtype) == "float32"
    assert np.float32(1e-6) < np.abs(average.numpy() - 1).max() < 1e-4
    change = np.float32(keras.ops.convert_to_numpy(keras.ops.cast(variable.value, "float32"))) - 1
    singular = np.linalg.svd(change / (0.25 * (4 / 3) ** 0.5), compute_uv=False)
    assert 0.6 < singular.min() and singular.max() < 1.3


@pytest.mark.parametrize(
    "arguments", [{}, {"global_clipnorm": None}, {"gradient_accumulation_steps": 2}]
)
def test_sparse_gradients_of_a_gathered_table(arguments):
    """TensorFlow hands over slices, here with a repeated row; a product gives the whole."""
    table = np.float32(np.random.default_rng(0).standard_normal((5, 2)))
    ids = np.array([[1, 1, 3]])

    def train(layer, inputs, x):
        model = keras.Model(inputs, layer(inputs))
        layer.set_weights([table])
        model.compile(Muon(0.1, **arguments), loss="mse")
        for _ in range(4):
            model.train_on_batch(x, np.ones((1, 3, 2), "float32"))
        return layer.get_weights()[0]

    gathered = train(keras.layers.Embedding(5, 2), keras.Input((3,), dtype="int32"), ids)
    product = train(
        keras.layers.Dense(2, use_bias=False), keras.Input((3, 5)), np.eye(5, dtype="float32")[ids]
    )
    np.testing.assert_allclose(gathered, product, atol=1e-5)
    assert np.abs(gathered - table).max() > 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": -1.0}, "`learning_rate`"),
        ({"learning_rate": "fast"}, "`learning_rate`"),
        ({"momentum": 1.0}, "`momentum` must be below 1"),
        ({"ns_steps": 0}, "`ns_steps`"),
        ({"adam_beta_2": 1.5}, "`adam_beta_2`"),
        ({"epsilon": 0}, "`epsilon` must be above 0"),
        ({"weight_decay": -0.1}, "`weight_decay`"),
        ({"adam_weight_decay": -0.1}, "`adam_weight_decay`"),
        ({"clipnorm": 1.0}, "pass `global_clipnorm=None`"),
        ({"global_clipnorm": 0}, "`global_clipnorm` must be above 0 or None"),
        ({"ema_momentum": 1.1}, "`ema_momentum`"),
        ({"use_ema": "yes"}, "`use_ema`"),
        ({"gradient_accumulation_steps": 2.5}, "`gradient_accumulation_steps`"),
        ({"exclude_layers": "head"}, "`exclude_layers` must be a list"),
        ({"exclude_layers": ["("]}, "does not compile"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Muon(**arguments)


def test_whole_number_rate_and_single_accumulation_step_are_fine():
    optimizer = Muon(1, gradient_accumulation_steps=1)
    assert float(optimizer.learning_rate) == 1.0
    assert optimizer.gradient_accumulation_steps is None


def test_compiled_step_keeps_variables_and_averages_apart():
    variables = variables_from(ARRAYS)
    optimizer = Muon(0.1)
    step = compiled_step(optimizer, variables)
    for gradients in random_gradients(ARRAYS, 2):
        step(gradients)
    for variable, average in optimizer.average_pairs():
        assert (variable.numpy() != average.numpy()).any()
