"""How text is sampled: the settings that `generate` and all that calls it share."""

import dataclasses
from typing import Any

from keras_elf import checks
from keras_elf.configurable import signature
from keras_elf.guidance import ConditionGuidance, Guidance, SelfConditioningGuidance
from keras_elf.samplers.sampler import SAMPLERS, get

OPTIONS = ("num_steps", "sampler", "guidance", "guidance_scale", "self_cond_guidance_scale")


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """Sampler, number of steps and guidance of a run.

    Example:

    ```python
    config = keras_elf.samplers.SamplingConfig(num_steps=64, sampler="ode", guidance_scale=2.0)
    config.updated(num_steps=16)
    ```

    Args:
        num_steps: int >= 1. Steps from noise to clean latents. Defaults to `64`.
        sampler: `Sampler` or its name. Defaults to `"sde"`.
        guidance: tuple of `keras_elf.guidance.Guidance`, or `None`: those that the two scales
            stand for.
        guidance_scale: scale of `ConditionGuidance`: a number, one a row, or a function of t.
            Defaults to `1.0`, none.
        self_cond_guidance_scale: the same of `SelfConditioningGuidance`. Defaults to `3.0`.

    Raises:
        ValueError: for values out of range, and if a scale is given beside `guidance`.
    """

    num_steps: int = 64
    sampler: Any = "sde"
    guidance: Any = None
    guidance_scale: Any = None
    self_cond_guidance_scale: Any = None

    def __post_init__(self):
        put = object.__setattr__
        put(self, "num_steps", checks.integer("num_steps", self.num_steps, minimum=1))
        put(self, "sampler", get(self.sampler))
        scales = self.guidance_scale, self.self_cond_guidance_scale
        if self.guidance is None:
            condition = 1.0 if scales[0] is None else scales[0]
            own = 3.0 if scales[1] is None else scales[1]
            rules = _named("guidance_scale", ConditionGuidance, condition)
            rules += _named("self_cond_guidance_scale", SelfConditioningGuidance, own)
        else:
            if any(scale is not None for scale in scales):
                raise ValueError(
                    "`guidance` is given, so its rules hold the scales. Received besides: "
                    f"guidance_scale={scales[0]!r}, self_cond_guidance_scale={scales[1]!r}"
                )
            rules = _checked_rules(self.guidance)
        put(self, "guidance", rules)

    def updated(self, **options):
        """These settings with those of `options` that are not `None`.

        A scale takes the place of that of the rule it belongs to, whose interval stays.

        Raises:
            TypeError: for an unknown option.
        """
        options = {name: value for name, value in options.items() if value is not None}
        checks.no_unknown("SamplingConfig", options, OPTIONS)
        if "guidance" not in options:
            scales = {name: options.pop(name) for name in _RULES if name in options}
            options["guidance"] = self._with_scales(scales)
        kept = {"num_steps": self.num_steps, "sampler": self.sampler}
        return SamplingConfig(**{**kept, **options})

    def scale_of(self, cls):
        """The scale of the rule of class `cls`, 1.0 where there is none."""
        return next((rule.scale for rule in self.guidance if type(rule) is cls), 1.0)

    def report(self):
        """The settings as JSON can hold them: `sampler` (its short name, or that of its class),
        `sampler_config`, `num_steps`, both scales, and `guidance` where the rules have more."""
        names = {cls: name for name, cls in SAMPLERS.items()}
        sampler = self.sampler
        report = {
            "sampler": names.get(type(sampler), type(sampler).__name__),
            "sampler_config": _plain(sampler.get_config()),
            "num_steps": self.num_steps,
        }
        for name, cls in _RULES.items():
            report[name] = _plain(self.scale_of(cls))
        if self.short_form() is None:
            report["guidance"] = [
                {"rule": type(rule).__name__, **_plain(rule.get_config())} for rule in self.guidance
            ]
        return report

    def short_form(self):
        """dict of the two scales where they say all about the guidance, else `None`."""
        scales = {name: self.scale_of(cls) for name, cls in _RULES.items()}
        plain = SamplingConfig(**scales).guidance
        if signature(plain) != signature(self.guidance) or any(map(callable, scales.values())):
            return None
        return scales

    def _with_scales(self, scales):
        rules = list(self.guidance)
        for name, scale in scales.items():
            (new,) = _named(name, _RULES[name], scale)
            places = [i for i, rule in enumerate(rules) if type(rule) is _RULES[name]]
            for place in places:
                settings = {**rules[place].get_config(), "scale": new.scale}
                rules[place] = type(new).from_config(settings)
            if not places:
                # Rules are combined from the last to the first, the condition's last of all.
                rules.insert(0 if name == "guidance_scale" else len(rules), new)
        return tuple(rules)


_RULES = {
    "guidance_scale": ConditionGuidance,
    "self_cond_guidance_scale": SelfConditioningGuidance,
}


def _named(name, cls, scale):
    try:
        return (cls(scale),)
    except ValueError as error:
        raise ValueError(str(error).replace("`scale`", f"`{name}`")) from None


def _plain(value):
    """`value` as JSON can hold it; a function as its name."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return getattr(value, "__name__", None) or repr(value)


def _checked_rules(guidance):
    rules = (guidance,) if isinstance(guidance, Guidance) else guidance
    if not isinstance(rules, (list, tuple)):
        rules = (rules,)
    for rule in rules:
        if not isinstance(rule, Guidance):
            raise ValueError(
                f"`guidance` must be keras_elf.guidance.Guidance objects. Received: {rule!r}"
            )
        if type(rule).without is Guidance.without:
            raise ValueError(f"The guidance {type(rule).__name__} must implement `without`.")
    return tuple(rules)
