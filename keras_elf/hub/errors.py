"""One error for everything that can go wrong with a hub: what happened and what to do."""

# The hub could not be asked: what the cache holds may be used instead.
UNREACHABLE = frozenset({"offline", "unreachable", "timeout", "rate_limit", "server"})


class HubError(OSError):
    """A download or the cache failed; the message says what happened and what to do.

    Args:
        message: str. What happened and what to do about it.
        reason: str. One of `"offline"`, `"unreachable"`, `"timeout"`, `"rate_limit"`,
            `"server"` (the hub could not be asked), `"unauthorized"`, `"forbidden"`,
            `"repository"`, `"revision"`, `"file"` (the hub said no), `"damaged"`,
            `"disk_full"`, `"permission"` and `"protocol"`. Defaults to `"protocol"`.

    Attributes:
        reason: str. As above, for code that reacts to some of them.
    """

    def __init__(self, message, reason="protocol"):
        super().__init__(message)
        self.reason = reason


def ways_out(repo_id):
    """What a user without network can do."""
    return (
        f"Two ways out: download the files of {repo_id!r} on a machine that has network, copy "
        "them here and import them with `keras_elf.checkpoints.import_checkpoint(path, preset_dir, "
        "preset=name, encoder=t5)`, where `t5` is a directory with the files of google-t5/t5-small "
        "(the directory of a Keras preset goes to `from_preset` as it is); or use a preset that "
        'needs no network: `keras_elf.ELFGenerator.from_preset("elf_nano_kjv")`.'
    )


def how_to_log_in():
    """What a user whom the hub does not know can do."""
    return (
        "Make a token at https://huggingface.co/settings/tokens and set the environment variable "
        "HF_TOKEN to it, or run `hf auth login`."
    )
