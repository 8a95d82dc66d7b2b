"""What `keras-elf train` is to do: defaults, a recipe file, overrides on the command line."""

import dataclasses
import os
import pathlib

from keras_elf import checks

_DECAYS = ("constant", "linear", "cosine")


@dataclasses.dataclass(frozen=True)
class Plan:
    """A training, as flat settings that a YAML file or `name=value` may set.

    Attributes:
        data: str. What to train on, see `keras_elf.data.load_dataset`.
        validation: str or `None`. The same, to validate on after each epoch.
        target, condition: str. Fields of the data; `condition=null` trains without.
        output: str. Directory of the preset that is written at the end; beside it, in
            `<output>.training`, lie checkpoints, log and samples.
        preset: str or `None`. Preset whose weights are trained on; `None` makes a model of
            the sizes below, with a tokenizer and a text encoder trained on the data.
        from_scratch: bool. With `preset`: its sizes and settings, with a new network.
        encoder: str or `None`. With `from_scratch`: directory of a T5; `None` downloads the
            preset's.
        vocabulary_size: int or `None`. Pieces of a new tokenizer; `None` is 2048, or as many as
            a small text has.
        latent_dim, depth, hidden_size, num_heads, bottleneck_dim, encoder_depth,
            encoder_steps: int. Of a new model.
        sequence_length, condition_length: int or `None`. Tokens of a row and of a condition;
            `None` for those of the preset, or 64 and half a row.
        label_drop_probability: float. Share of conditional rows that lose their condition.
        dtype: str. `"float32"` or `"mixed_bfloat16"`.
        epochs, batch_size, seed: int.
        learning_rate: float or `None`. The peak; `None` is `base_learning_rate` x batch / 256.
        warmup_steps: int. warmup_epochs: float or `None`, which comes before it.
        decay: `"constant"`, `"linear"` (over the last third) or `"cosine"`.
        ema_momentum, global_clipnorm: float in [0, 1) and above 0. See
            `keras_elf.optimizers.Muon`.
        save_every_steps, sample_every_steps: int; 0 for never.
        num_samples, num_steps: int. Texts to write, and their sampling steps.
    """

    data: str | None = None
    validation: str | None = None
    target: str = "auto"
    condition: str | None = "auto"
    output: str = "my_elf"
    preset: str | None = None
    from_scratch: bool = False
    encoder: str | None = None
    vocabulary_size: int | None = None
    latent_dim: int = 128
    depth: int = 4
    hidden_size: int = 128
    num_heads: int = 4
    bottleneck_dim: int = 64
    encoder_depth: int = 2
    encoder_steps: int = 500
    sequence_length: int | None = None
    condition_length: int | None = None
    label_drop_probability: float = 0.1
    dtype: str = "float32"
    epochs: int = 10
    batch_size: int = 64
    seed: int = 0
    learning_rate: float | None = 1e-2
    base_learning_rate: float = 1e-3
    warmup_steps: int = 50
    warmup_epochs: float | None = None
    decay: str = "linear"
    ema_momentum: float = 0.99
    global_clipnorm: float = 1.0
    save_every_steps: int = 200
    sample_every_steps: int = 500
    num_samples: int = 4
    num_steps: int = 32

    def __post_init__(self):
        if not self.data:
            raise ValueError("`data` must say what to train on: --data FILE, or data: in a recipe")
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))
        checks.choice("decay", self.decay, _DECAYS)
        checks.choice("dtype", self.dtype, ("float32", "mixed_bfloat16"))
        if self.from_scratch and self.preset is None:
            raise ValueError("`from_scratch` needs a `preset`, whose sizes it takes")
        if self.encoder is not None and not self.from_scratch:
            raise ValueError("`encoder` is for `from_scratch`: other models have one of their own")
        if self.ema_momentum == 1:
            raise ValueError("`ema_momentum` must be below 1, or the averages would never move")
        if not self.global_clipnorm:
            raise ValueError("`global_clipnorm` must be above 0, or no weight would ever move")

    @property
    def peak_learning_rate(self):
        """float."""
        if self.learning_rate is not None:
            return self.learning_rate
        return self.base_learning_rate * self.batch_size / 256


# Above what any machine holds: a slip of the finger is found before hours are spent on it.
_LAYERS, _SIZE = 1000, 2**31 - 1
_BOUNDS = {
    "batch_size": (1, _SIZE),
    "bottleneck_dim": (1, _SIZE),
    "depth": (1, _LAYERS),
    "ema_momentum": (0, 1),
    "encoder_depth": (1, _LAYERS),
    "encoder_steps": (1, _SIZE),
    "epochs": (1, _SIZE),
    "hidden_size": (1, _SIZE),
    "label_drop_probability": (0, 1),
    "latent_dim": (1, _SIZE),
    "num_heads": (1, _SIZE),
    "num_samples": (1, _SIZE),
    "num_steps": (1, _SIZE),
    "seed": (0, 2**32 - 1),
    "sequence_length": (2, _SIZE),
    "vocabulary_size": (4, _SIZE),
}
# What a preset has of its own.
_NEW_MODEL = ("vocabulary_size", "latent_dim", "depth", "hidden_size", "num_heads")
_NEW_MODEL = (*_NEW_MODEL, "bottleneck_dim", "encoder_depth", "encoder_steps")
_NEW_MODEL = (*_NEW_MODEL, "label_drop_probability")


def _check(field, value):
    kind = str(field.type)
    if value is None and ("None" in kind or field.name == "data"):
        return
    if "bool" in kind:
        checks.choice(field.name, value, (True, False))
    elif "int" in kind:
        checks.integer(field.name, value, *_BOUNDS.get(field.name, (0, _SIZE)))
    elif "float" in kind:
        checks.number(field.name, value, *_BOUNDS.get(field.name, (0, None)))
    elif not isinstance(value, str):
        raise ValueError(f"`{field.name}` must be text. Received: {value!r}")


def make_plan(recipe=None, overrides=(), **flags):
    """A `Plan` from a recipe and what was said on the command line, which comes first.

    Args:
        recipe: a YAML file, or the name or directory of a published preset, whose sizes and
            published training are taken; or `None`.
        overrides: sequence of str, `name=value` with the value in YAML.
        **flags: further settings; `None` where not given.

    Raises:
        ValueError: for unknown names, with the nearest, values out of range, and settings that
            are given twice or would do nothing.
    """
    settings = {} if recipe is None else _recipe(recipe)
    said = {name: value for name, value in flags.items() if value is not None}
    for text in overrides:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise ValueError(f"a setting must be written name=value. Received: {text!r}")
        if name in said:
            raise ValueError(f"`{name}` is given twice on the command line")
        said |= _known({name: _yaml(value, f"the value of {name}")})
    settings |= said
    idle = [name for name in _NEW_MODEL if name in settings]
    if idle and settings.get("preset") is not None:
        raise ValueError(f"{settings['preset']} has its own {', '.join(idle)}: leave that out")
    return Plan(**settings)


def _recipe(recipe):
    from keras_elf.models import TrainingRecipe

    path = pathlib.Path(recipe)
    if path.is_file():
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{recipe} is not UTF-8: {error}") from None
        content = _yaml(text, recipe)
        if not isinstance(content, dict):
            raise ValueError(f"{recipe} must hold settings, one `name: value` a line")
        return _known(content)
    name = path.name if (path / "recipe.json").is_file() else os.fspath(recipe)
    published = TrainingRecipe.from_preset(name)
    return {
        "preset": name,
        "from_scratch": True,
        "epochs": published.epochs,
        "batch_size": published.batch_size,
        "learning_rate": None,
        "base_learning_rate": published.base_learning_rate,
        "warmup_steps": published.warmup_steps or 0,
        "warmup_epochs": published.warmup_epochs,
        "decay": "constant",
        "ema_momentum": published.ema_momentum,
        "global_clipnorm": published.global_clipnorm,
    }


def _known(settings):
    names = [field.name for field in dataclasses.fields(Plan)]
    for name, value in settings.items():
        checks.choice("setting", name, names)
        # Not shown: a few lines of YAML can stand for more than a memory holds.
        if isinstance(value, (dict, list, set)):
            raise ValueError(f"`{name}` must be one value. Received a {type(value).__name__}")
    return {name: _number(name, value) for name, value in settings.items()}


def _number(name, value):
    """YAML 1.1 takes 2e-3 for a text."""
    kinds = {field.name: str(field.type) for field in dataclasses.fields(Plan)}
    if isinstance(value, str) and "float" in kinds[name]:
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _yaml(text, place):
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if isinstance(node, yaml.MappingNode):
            names = [key.value for key, _ in node.value if isinstance(key.value, str)]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{place} sets {', '.join(twice)} twice")
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{place} is not valid YAML: {problem:.200}") from None
