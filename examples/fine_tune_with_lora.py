"""Fine-tune a preset on your own text with LoRA: only small matrices beside the weights train.

    python examples/fine_tune_with_lora.py elf_b_owt my_text.txt --output my_elf
    python examples/fine_tune_with_lora.py my_elf my_text.txt --int8 --adapters verses.lora.h5

The preset is a name, a directory or a handle; the text has one example a line. With `--int8`
the frozen weights are held as integers, a quarter of the memory. A preset as small as the
one of `make demo` takes about a minute on 2 cores; ELF-B wants a GPU. Expect `loss` to fall
within the first tens of steps; rank 8 trains half a percent of ELF-B's weights.
"""

import argparse
import math
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras_elf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("preset")
parser.add_argument("text", type=pathlib.Path)
parser.add_argument("--output", default="my_elf_lora", help="directory of the new preset")
parser.add_argument("--adapters", help="also save the adapters alone; ends in .lora.h5")
parser.add_argument("--rank", type=int, default=8)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--learning-rate", type=float, default=2e-3)
parser.add_argument("--int8", action="store_true")
options = parser.parse_args()

elf = keras_elf.ELFGenerator.from_preset(options.preset)
if options.int8:
    elf.quantize("int8")
# Before `compile`: the optimizer is to know the adapters and nothing else.
elf.backbone.enable_lora(options.rank)
schedule = keras_elf.optimizers.WarmupSchedule(options.learning_rate, options.steps // 10)
elf.compile(optimizer=keras_elf.optimizers.AdamW(schedule, ema_momentum=0.9))
trained = sum(math.prod(v.shape) for v in elf.trainable_variables)
print(f"{trained:,} of {elf.backbone.count_params():,} weights train")

lines = [line for line in options.text.read_text(encoding="utf-8").splitlines() if line.strip()]
if not lines:
    parser.error(f"{options.text} has no lines to train on")
rows = elf.preprocessor(lines[: options.steps * options.batch])
batch = min(options.batch, len(rows["token_ids"]))
epochs = max(1, options.steps // (len(rows["token_ids"]) // batch))
elf.fit(rows, batch_size=batch, epochs=epochs, verbose=2)

# The averaged weights, adapters merged into the kernels: a preset like any other.
elf.save_to_preset(options.output)
if options.adapters:
    with keras_elf.models.averaged_weights(elf):
        elf.backbone.save_lora_weights(options.adapters)
for text in elf.generate(num_samples=2, seed=0):
    print("-", text)
