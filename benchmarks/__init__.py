"""Speed of keras_elf, measured as ratios within one run: `python -m benchmarks --help`."""
