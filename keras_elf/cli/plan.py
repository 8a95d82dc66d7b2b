"""What `keras-elf train` is to do: defaults, a recipe file, overrides on the command line."""

import dataclasses
import os
import pathlib

from keras_elf import checks

_DECAYS = ("constant", "linear", "cosine")
PACKINGS = ("auto", "lines", "packed")
TOKENIZERS = ("auto", "whole_words", "unigram", "bpe", "char", "word")


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
        packing: `"lines"` for a text a row, `"packed"` for rows filled with several, or
            `"auto"`: by the length of the texts.
        tokenizer: kind of a new tokenizer, a `model_type` of
            `keras_elf.data.train_sentencepiece`; `"auto"` takes whole words where the text has
            few different ones.
        vocabulary_size: int or `None`. Pieces of a new tokenizer; `None` for what suits the
            text.
        latent_dim, depth, hidden_size, bottleneck_dim, encoder_steps: int or `None`, by the
            amount of text. num_heads, encoder_depth: int. Of a new model.
        sequence_length, condition_length: int or `None`. Tokens of a row and of a condition;
            `None` for those of the preset, or what nearly all texts fit into.
        label_drop_probability: float. Share of conditional rows that lose their condition.
        dtype: str. `"float32"` or `"mixed_bfloat16"`.
        epochs, batch_size: int or `None`, by the number of rows. seed: int.
        learning_rate, base_learning_rate: float or `None`. The peak; or the peak at a batch of
            256, with which it grows. The following are `None` for what suits the length of the
            run, see `keras_elf.TrainingRecipe.for_run`.
        warmup_steps: int or `None`. warmup_epochs: float or `None`, which comes before it.
        decay: `"constant"`, `"linear"` (over the last 70 %), `"cosine"` or `None`.
        ema_momentum: float in [0, 1) or `None`. Decay of the averaged weights.
        global_clipnorm: float above 0. See `keras_elf.optimizers.Muon`.
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
    packing: str = "auto"
    tokenizer: str = "auto"
    vocabulary_size: int | None = None
    latent_dim: int | None = None
    depth: int | None = None
    hidden_size: int | None = None
    num_heads: int = 4
    bottleneck_dim: int | None = None
    encoder_depth: int = 3
    encoder_steps: int | None = None
    sequence_length: int | None = None
    condition_length: int | None = None
    label_drop_probability: float = 0.1
    dtype: str = "float32"
    epochs: int | None = None
    batch_size: int | None = None
    seed: int = 0
    learning_rate: float | None = None
    base_learning_rate: float | None = None
    warmup_steps: int | None = None
    warmup_epochs: float | None = None
    decay: str | None = None
    ema_momentum: float | None = None
    global_clipnorm: float = 1.0
    save_every_steps: int = 200
    sample_every_steps: int = 500
    num_samples: int = 4
    num_steps: int = 64

    def __post_init__(self):
        if not self.data:
            raise ValueError("`data` must say what to train on: --data FILE, or data: in a recipe")
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))
        if self.decay is not None:
            checks.choice("decay", self.decay, _DECAYS)
        checks.choice("packing", self.packing, PACKINGS)
        checks.choice("tokenizer", self.tokenizer, TOKENIZERS)
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
        """float, or `None` where the length of the run sets it."""
        if self.learning_rate is not None or self.base_learning_rate is None:
            return self.learning_rate
        return self.base_learning_rate * self.batch_size / 256

    def recipe(self, steps_per_epoch):
        """The `keras_elf.TrainingRecipe` of a settled plan: what is not said, by the run.

        Args:
            steps_per_epoch: int.
        """
        from keras_elf.training import TrainingRecipe
        from keras_elf.training.run_length import DECAY_SHARE

        total, said = self.epochs * steps_per_epoch, {"global_clipnorm": self.global_clipnorm}
        if self.peak_learning_rate is not None:
            # Where the peak is one's own, so is what a decay ends at.
            said |= {"peak_learning_rate": self.peak_learning_rate, "final_learning_rate": 0.0}
        if self.ema_momentum is not None:
            said["ema_momentum"] = self.ema_momentum
        if self.warmup_epochs is not None:
            said["warmup_steps"] = round(self.warmup_epochs * steps_per_epoch)
        elif self.warmup_steps is not None:
            said["warmup_steps"] = self.warmup_steps
        left = total - said.get("warmup_steps", 0)
        if self.decay == "constant" or left < 2:
            said |= {"decay": "constant", "decay_steps": None, "final_learning_rate": 0.0}
        elif self.decay is not None or "warmup_steps" in said:
            said["decay"] = self.decay or "linear"
            whole = said["decay"] == "cosine"
            said["decay_steps"] = None if whole else max(1, min(left, round(DECAY_SHARE * total)))
        return TrainingRecipe.for_run(total, self.batch_size, **said)


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
_NEW_MODEL = (*_NEW_MODEL, "label_drop_probability", "tokenizer")


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
    idle = [name for name in _NEW_MODEL if name in settings and settings[name] != "auto"]
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
