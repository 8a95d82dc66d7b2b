"""Parts that are wrong in one point each, by what must be said of them."""

import keras
import numpy as np
from keras import ops

from keras_elf import encoders, guidance, layers, samplers, testing
from tests.objectives.test_report import ReadingObjective

registered = keras.saving.register_keras_serializable(package="keras_elf_broken")
DENOISERS, SAMPLERS, RULES, ENCODERS, OBJECTIVES, SIGNALS = ({} for _ in range(6))


def says(parts, message):
    """Class decorator: registers a broken part under what must be said of it."""

    def wrap(cls):
        parts[message] = registered(cls)
        return cls

    return wrap


class Network(testing.DummyDenoiser):
    def __init__(self, vocabulary_size=9, latent_dim=4, width=8, **kwargs):
        super().__init__(vocabulary_size, latent_dim, width, **kwargs)


@says(DENOISERS, "`hidden_states` of Shorter must give")
class Shorter(Network):
    def hidden_states(self, z, t, **options):
        return super().hidden_states(z, t, **options)[:, 1:]


@says(DENOISERS, "A ConfigLost made from the config of another has another config.*slope")
class ConfigLost(Network):
    def __init__(self, slope=2.0, **kwargs):
        super().__init__(**kwargs)
        self.slope = slope

    def get_config(self):
        return {**super().get_config(), "slope": 1.0 + self.slope}


@says(DENOISERS, "SettingLost gives other hidden states when it is made from its config")
class SettingLost(Network):
    def __init__(self, slope=None, **kwargs):
        super().__init__(**kwargs)
        self.slope = np.random.default_rng().uniform() if slope is None else slope

    def hidden_states(self, z, t, **options):
        return self.slope * super().hidden_states(z, t, **options)


@says(DENOISERS, "`denoising_head` of HalfPrecise.* must be float32.*float16")
class HalfPrecise(Network):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        head = self.denoising_head = keras.layers.Dense(self.latent_dim, dtype="float16")
        head.build((None, None, self.width))


@says(DENOISERS, "Restless.* is not the same every time with training=False")
class Restless(Network):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seeds = keras.random.SeedGenerator(0)

    def hidden_states(self, z, t, **options):
        hidden = super().hidden_states(z, t, **options)
        return hidden + keras.random.normal(ops.shape(hidden), seed=self.seeds)


@says(DENOISERS, "A row of Neighbourly depends on the other rows")
class Neighbourly(Network):
    def hidden_states(self, z, t, **options):
        hidden = super().hidden_states(z, t, **options)
        return hidden - ops.mean(hidden, axis=0, keepdims=True)


@says(DENOISERS, "FixedLength must take rows of any length")
class FixedLength(Network):
    def hidden_states(self, z, t, **options):
        return super().hidden_states(z, t, **options)[:, :5]


@says(DENOISERS, "Scalars gives another result for numbers than for tensors")
class Scalars(Network):
    def hidden_states(self, z, t, **options):
        hidden = super().hidden_states(z, t, **options)
        return hidden if len(np.shape(t)) else 2.0 * hidden


@says(DENOISERS, "Positions that `attention_mask` hides reach the others in Unmasked")
class Unmasked(Network):
    def hidden_states(self, z, t, **options):
        hidden = super().hidden_states(z, t, **options)
        return hidden + ops.mean(hidden, axis=1, keepdims=True)


@says(DENOISERS, "`decode` does not change the hidden states of OneMode")
class OneMode(Network):
    def hidden_states(self, z, t, decode=0.0, **options):
        return super().hidden_states(z, t, decode=0.0, **options)


@says(DENOISERS, "`t` does not change the hidden states of Timeless")
class Timeless(Network):
    def hidden_states(self, z, t, **options):
        return super().hidden_states(z, 0.5, **options)


@says(DENOISERS, "`guidance_scale` does not change the hidden states of Unguided")
class Unguided(Network):
    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "takes_guidance_scale": True})

    def hidden_states(self, z, t, guidance_scale=None, **options):
        return super().hidden_states(z, t, **options)


@says(DENOISERS, "Without `signals` NeedsLabel must do what it does for those that mean 'none'")
class NeedsLabel(Network):
    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "num_classes": 2})

    def hidden_states(self, z, t, signals=None, **options):
        signals = signals or {"label": ops.zeros((z.shape[0],), "int32")}
        return super().hidden_states(z, t, signals=signals, **options)


@says(DENOISERS, r"No gradient of the objective reaches these weights of Idle: \['idle/spare'\]")
class Idle(Network):
    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "name": "idle"})
        self.spare = self.add_weight((3,), name="spare")


class Step(samplers.ODESampler):
    """Euler's step, with holes for what goes wrong."""

    def step(self, denoise, state, t, t_next, noise=None):
        predicted = denoise(state["z"], state["x_pred"], t)
        z = state["z"] + (t_next - t) * predicted.velocity
        return self.after(state, {"z": z, "x_pred": predicted.clean}, predicted, noise)

    def after(self, before, state, predicted, noise):
        return state


@says(SAMPLERS, "A run of Damped over 5 steps must end at the data")
class Damped(Step):
    def after(self, before, state, predicted, noise):
        return {**state, "z": 0.5 * (before["z"] + state["z"])}


@says(SAMPLERS, r"`time_grid\(5\)` of Backwards must be 6 rising times")
class Backwards(Step):
    def time_grid(self, num_steps, normal=None):
        return super().time_grid(num_steps, normal)[::-1]


@says(SAMPLERS, "The state of Growing must have one form.*after step 1")
class Growing(Step):
    def after(self, before, state, predicted, noise):
        return {**state, "velocity": predicted.velocity}


@says(SAMPLERS, "`init` of Blank must return a dict with 'z' and 'x_pred'")
class Blank(Step):
    def init(self, z):
        return {"z": z}

    def step(self, denoise, state, t, t_next, noise=None):
        predicted = denoise(state["z"], ops.zeros_like(state["z"]), t)
        return {"z": state["z"] + (t_next - t) * predicted.velocity}


@says(SAMPLERS, r"`times` of Untold must tell when `step` asks.*Told: \[0.0, .*asked: \[0.0, 0.0")
class Untold(Step):
    def step(self, denoise, state, t, t_next, noise=None):
        denoise(state["z"], state["x_pred"], t)
        return super().step(denoise, state, t, t_next)


@says(SAMPLERS, r"`evaluations\(5\)` of Uncounted is 6, and the network was asked 5 times")
class Uncounted(Step):
    def evaluations(self, num_steps):
        return num_steps + 1


@says(SAMPLERS, "Noisy adds noise in the last interval")
class Noisy(Step):
    needs_noise = True

    def after(self, before, state, predicted, noise):
        return {**state, "z": state["z"] + 0.1 * noise}


@says(SAMPLERS, "The self-condition of Forgetful must be the prediction before.*evaluation 2")
class Forgetful(Step):
    def after(self, before, state, predicted, noise):
        return {**state, "x_pred": ops.zeros_like(state["z"])}


@says(SAMPLERS, "The condition does not stay in `x_pred` of Unpinned")
class Unpinned(Step):
    def after(self, before, state, predicted, noise):
        return {**state, "x_pred": predicted.unguided}


@says(SAMPLERS, "A Renamed made from the config of another has another config")
class Renamed(Step):
    def __init__(self, order=1, **kwargs):
        super().__init__(**kwargs)
        self.order = order + 1


@says(SAMPLERS, "Drifting made from the config of another has other attributes")
class Drifting(Step):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.made = np.random.default_rng().uniform()


@says(SAMPLERS, "Remembering changes while it runs")
class Remembering(Step):
    asked = 0

    def times(self, t, t_next):
        self.asked += 1
        return super().times(t, t_next)


class Rule(guidance.ConditionGuidance):
    pass


@says(RULES, "`without` of Bare must return DenoiserInputs.*tuple")
class Bare(Rule):
    def without(self, inputs):
        return inputs.z, inputs.self_condition


@says(RULES, "`without` of Same asks for the very same prediction")
class Same(Rule):
    def without(self, inputs):
        return inputs


@says(RULES, "`without` of Cutting must keep shape and dtype of 'z'")
class Cutting(Rule):
    def without(self, inputs):
        return inputs._replace(z=inputs.z[:, 1:])


@says(RULES, "`without` of Dropping must keep the names of the signals")
class Dropping(Rule):
    def without(self, inputs):
        return inputs._replace(signals={})


@says(RULES, "`without` of Emptying must keep the names of the signals, in a dict of its own")
class Emptying(Rule):
    def without(self, inputs):
        inputs.signals["label"] = inputs.signals["label"] * 0 + inputs.empty_signals["label"]
        return inputs._replace(condition=None)


@says(RULES, "A scale of 1 is not guidance, and Shifted changes the prediction")
class Shifted(Rule):
    def combine(self, guided, unguided, scale):
        return unguided + (1.0 + scale) * (guided - unguided)


@says(RULES, "With a scale a row, row 0 of Mixed is not what it is alone")
class Mixed(Rule):
    def combine(self, guided, unguided, scale):
        return unguided + ops.mean(scale) * (guided - unguided)


@says(RULES, "Constant does not use a scale that is a function of t")
class Constant(Rule):
    def scale_at(self, t, given):
        return super().scale_at(t, ops.ones(()) if given is None else given)


@says(RULES, "`acts` of Everywhere must be true in its interval and false outside")
class Everywhere(Rule):
    def acts(self, low, high):
        return True


@says(RULES, "Outside acts outside of its interval")
class Outside(Rule):
    def scale_at(self, t, given):
        return ops.cast(self.scale(t) if given is None else given, "float32")


@says(RULES, "A run with Fickle costs 9 passes, and is said to cost 5")
class Fickle(Rule):
    def needs_prediction(self, network, inputs):
        return inputs.signals != {}


class Table(encoders.LearnedTable):
    def __init__(self, vocabulary_size=9, latent_dim=4, **kwargs):
        super().__init__(vocabulary_size, latent_dim, **kwargs)


@says(ENCODERS, "Late must make its variables in the constructor")
class Late(encoders.TextEncoder):
    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "vocabulary_size": 9, "latent_dim": 4})


@says(ENCODERS, "A Thawed made from the config of another has another config.*trainable")
class Thawed(Table):
    def __init__(self, trainable=None, **kwargs):
        super().__init__(**kwargs)
        if trainable is None:
            self.freeze()


@says(ENCODERS, "Latents of Narrow must have the shape .*, 4.*Received shape: .*, 3")
class Narrow(Table):
    def encode(self, token_ids, attention_mask):
        return super().encode(token_ids, attention_mask)[..., :3]


@says(ENCODERS, "Latents of Coarse must be float32.*float16")
class Coarse(Table):
    def call(self, token_ids, attention_mask=None, training=None):
        return ops.cast(super().call(token_ids, attention_mask), "float16")


@says(ENCODERS, "Dropping.* is not the same with training=True")
class DroppingOut(Table):
    def call(self, token_ids, attention_mask=None, training=None):
        return (2.0 if training else 1.0) * super().call(token_ids, attention_mask)


@says(ENCODERS, "A row of Crowded depends on the other rows")
class Crowded(Table):
    def encode(self, token_ids, attention_mask):
        latents = super().encode(token_ids, attention_mask)
        return latents - ops.mean(latents, axis=0, keepdims=True)


@says(ENCODERS, "Deaf gives the same latents whatever the tokens")
class Deaf(Table):
    def encode(self, token_ids, attention_mask):
        return super().encode(0 * token_ids, attention_mask)


@says(ENCODERS, "Tokens that may not see each other influence each other in Seeing")
class Seeing(Table):
    def encode(self, token_ids, attention_mask):
        latents = super().encode(token_ids, attention_mask)
        return latents + ops.mean(latents, axis=1, keepdims=True)


@says(ENCODERS, "A text packed beside another is not encoded by Counting as it is alone")
class Counting(Table):
    def encode(self, token_ids, attention_mask):
        return super().encode(token_ids, attention_mask) * token_ids.shape[1]


@says(ENCODERS, "Latents of Blind for tokens that may see nothing must be finite")
class Blind(Table):
    mask_optional = False

    def encode(self, token_ids, attention_mask):
        seen = ops.cast(attention_mask, "float32")
        weights = seen / ops.sum(seen, axis=-1, keepdims=True)
        return ops.matmul(weights, super().encode(token_ids, attention_mask))


@says(ENCODERS, "A gradient gets into the frozen Leaking")
class Leaking(Table):
    def call(self, token_ids, attention_mask=None, training=None):
        return self.encode(token_ids, attention_mask)


@says(OBJECTIVES, "`prediction` of Guessing must be one of")
class Guessing(ReadingObjective):
    prediction = "noise"


@says(OBJECTIVES, "`min_time_gap` of Gapless must be a number from")
class Gapless(ReadingObjective):
    min_time_gap = 0.0


@says(OBJECTIVES, "`draw` of Unseeded must follow from `seed` alone")
class Unseeded(ReadingObjective):
    def draw(self, shape, seed):
        return {"noise": keras.random.normal(shape)}


@says(OBJECTIVES, "`draw` of Still gives the same for two seeds")
class Still(ReadingObjective):
    def draw(self, shape, seed):
        return {"noise": keras.random.normal(shape, seed=1)}


@says(OBJECTIVES, r"All that `draw` of Scalar returns must have the rows as its first axis.*\(\)")
class Scalar(ReadingObjective):
    def draw(self, shape, seed):
        return {**super().draw(shape, seed), "t": keras.random.uniform((), seed=seed)}


@says(OBJECTIVES, "The loss of Inside is not the same for the same draws")
class Inside(ReadingObjective):
    def __call__(self, network, batch, draws, training=True):
        draws = {"noise": draws["noise"] + keras.random.normal(batch["clean"].shape)}
        return super().__call__(network, batch, draws, training)


@says(OBJECTIVES, "must report 'loss' and its `report_names`.*not declared: .'more'")
class Talkative(ReadingObjective):
    def __call__(self, *args, **kwargs):
        report = super().__call__(*args, **kwargs)
        return {**report, "more": report["reading"]}


@says(OBJECTIVES, "'reading' in the report of Meagre must be a pair")
class Meagre(ReadingObjective):
    def __call__(self, *args, **kwargs):
        report = super().__call__(*args, **kwargs)
        return {**report, "reading": report["loss"]}


@says(OBJECTIVES, "`loss` of Infinite, for a batch in which nothing counts, must be finite")
class Infinite(ReadingObjective):
    def __call__(self, network, batch, draws, training=True):
        report = super().__call__(network, batch, draws, training)
        return {**report, "loss": report["loss"] / ops.mean(batch["counts"])}


@says(OBJECTIVES, "No gradient of Stopped reaches the network")
class Stopped(ReadingObjective):
    def __call__(self, *args, **kwargs):
        return keras.tree.map_structure(ops.stop_gradient, super().__call__(*args, **kwargs))


@says(OBJECTIVES, "The order of the rows changes the loss of Ordered")
class Ordered(ReadingObjective):
    def __call__(self, network, batch, draws, training=True):
        rows = batch["counts"].shape[0]
        place = ops.arange(rows, dtype="float32")[:, None]
        return super().__call__(
            network, {**batch, "counts": batch["counts"] * place}, draws, training
        )


@says(OBJECTIVES, "'reading' of Batchwise depends on how the rows of an evaluation are cut")
class Batchwise(ReadingObjective):
    def __call__(self, *args, **kwargs):
        report = super().__call__(*args, **kwargs)
        return {**report, "reading": (report["loss"], ops.ones(()))}


@says(OBJECTIVES, "A Halved made from the config of another has another config")
class Halved(ReadingObjective):
    def __init__(self, noise=0.5):
        super().__init__(noise / 2)


class Signal(layers.NumberSignal):
    def __init__(self, num_tokens=2, hidden_size=None, key="pace", empty=None, **kwargs):
        super().__init__(num_tokens, hidden_size, key, empty, **kwargs)


@says(SIGNALS, "Tokens of Flat must have the shape")
class Flat(Signal):
    def call(self, value):
        return super().call(value)[:, :1]


@says(SIGNALS, "Constantly makes the same tokens of 0.2.* and 0.8")
class Constantly(Signal):
    def call(self, value):
        return super().call(0.0 * value)


@says(SIGNALS, "The tokens of a row of Averaged depend on the other rows")
class Averaged(Signal):
    def call(self, value):
        return super().call(value) + ops.mean(value)


@says(
    SIGNALS, "NoNone makes the same tokens of `empty`, 0.2.*, and of 0.8|`empty`, 1.0, and of 0.2"
)
class NoNone(Signal):
    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "empty": 1.0})

    def call(self, value):
        return super().call(ops.where(value == 1.0, 0.2, value))


@says(SIGNALS, r"No gradient of its tokens reaches these weights of Spare")
class Spare(Signal):
    def build(self, value_shape=None):
        super().build(value_shape)
        self.spare = self.add_weight((2,), name="spare")


@says(SIGNALS, "`parameter_count` of Greedy asks for 1000000 weights")
class Greedy(Signal):
    @classmethod
    def parameter_count(cls, width, num_tokens=4, **_):
        return 1000000


@says(SIGNALS, "Moody makes other tokens when it is made from its config")
class Moody(Signal):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.mood = np.random.default_rng().uniform()

    def call(self, value):
        return super().call(value) + self.mood
