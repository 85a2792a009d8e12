"""What must be set before anything else is imported: nothing is downloaded, and other libraries are quiet."""

import logging
import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # also those of transformers
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["MPLBACKEND"] = "Agg"
os.environ["LRP4RAG_TRACEBACK"] = "1"  # what is unexpected must not pass for an error of ours
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Of what tests start: they run in a process for each core, and threads that wait for each other spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What torchao says as it is imported: of kernels for GPUs, and that a class of its own is registered twice.
for name in ("torchao", "torch.utils._pytree"):
    logging.getLogger(name).setLevel(logging.ERROR)
