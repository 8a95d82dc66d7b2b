"""Put a model of yours on a hub, from where anybody loads it by its handle.

    HF_TOKEN=... python examples/publish_to_a_hub.py my_elf hf://user/my-elf
    python examples/publish_to_a_hub.py my_elf kaggle://user/elf/keras/my_elf

`my_elf` is a directory that `elf.save_to_preset("my_elf")` wrote. Needs an account on the hub (a
token with write access in HF_TOKEN, or Kaggle's credentials) and uploads the size of the
directory: 0.6 GB for an ELF-B with its T5. Afterwards

    keras_elf.ELFGenerator.from_preset("hf://user/my-elf")

downloads it on another machine, on any backend.
"""

import argparse
import pathlib

CARD = """\
---
library_name: keras-hub
pipeline_tag: text-generation
tags: [keras_elf, text-diffusion]
---
A continuous diffusion language model: ELF, Embedded Language Flows (arXiv 2605.10938), with
{parameters:,} parameters, trained with `keras_elf`.

    import keras_elf
    elf = keras_elf.ELFGenerator.from_preset("{handle}")
    elf.generate(num_samples=4)

Trained on: (say what the text was, and under which licence).
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", type=pathlib.Path, help="directory of the model")
    parser.add_argument("handle", help="hf://user/name or kaggle://user/model/keras/variation")
    options = parser.parse_args(arguments)

    import keras_hub

    import keras_elf

    # What does not load here would not load there.
    elf = keras_elf.ELFGenerator.from_preset(options.preset)
    card = options.preset / "README.md"
    if not card.exists():
        parameters = elf.backbone.count_params()
        card.write_text(CARD.format(parameters=parameters, handle=options.handle))
        print(f"Wrote {card}, the model's page: complete it before or after the upload.")
    keras_hub.upload_preset(options.handle, str(options.preset))
    print(f'keras_elf.ELFGenerator.from_preset("{options.handle}")')
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
