"""The flags that say how text is sampled, the same for each command that writes text."""

from keras_elf.cli.parser import real, whole

# The names in `keras_elf.samplers.SAMPLERS`; help must not wait for a backend.
SAMPLERS = ("heun", "multistep", "ode", "sde")
FLAGS = ("num_steps", "sampler", "gamma", "guidance_scale", "self_cond_guidance_scale")
FLAGS = (*FLAGS, "batch_size", "signal")


def add_flags(parser):
    """Give a parser the flags of `FLAGS`."""
    parser.add_argument("--num-steps", type=whole(1), help="sampling steps")
    parser.add_argument("--sampler", help=f"{', '.join(SAMPLERS)}, or one of an --import")
    parser.add_argument("--gamma", type=real(0), help="noise of the SDE sampler")
    parser.add_argument("--guidance-scale", type=real(), help="on the condition; 1 is none")
    parser.add_argument("--self-cond-guidance-scale", type=real(), help="on self-conditioning")
    parser.add_argument("--batch-size", type=whole(1), help="texts at once")
    parser.add_argument(
        "--signal",
        action="append",
        metavar="NAME=NUMBER",
        help="a value that the network reads, such as label=3",
    )


def settings(options):
    """What the flags say, as arguments of `ELFGenerator.generate`.

    Raises:
        ValueError: for flags that do not go together.
    """
    from keras_elf import samplers

    given = {name: getattr(options, name) for name in FLAGS if name not in ("gamma", "signal")}
    if given["sampler"] is not None:
        given["sampler"] = samplers.get(given["sampler"])
    if options.gamma is not None:
        if options.sampler != "sde":
            raise ValueError("--gamma belongs to --sampler sde")
        given["sampler"] = samplers.SDESampler(options.gamma)
    if options.signal:
        given["signals"] = dict(map(_signal, options.signal))
    return {name: value for name, value in given.items() if value is not None}


def _signal(text):
    name, _, number = text.partition("=")
    try:
        return name, int(number) if number.lstrip("-").isdigit() else float(number)
    except ValueError:
        raise ValueError(f"--signal must be NAME=NUMBER. Received: {text!r}") from None
