"""Where networks are trained: on a CUDA device, compiled, if there is one, and else on the processor.

What is random is drawn on the processor in any case, so that a checkpoint goes on anywhere.
"""

from __future__ import annotations

import torch
from torch import nn


def best() -> torch.device:
    """Return the device to train on."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def halves(device: torch.device) -> torch.autocast:
    """Return the context in which a device computes in bfloat16."""
    return torch.autocast(device.type, torch.bfloat16)


def compiled(device: torch.device, *networks: nn.Module) -> None:
    """Compile calls of networks for a CUDA device; on the processor that takes longer than it saves.

    `forward` is not compiled, as penalties differentiate gradients, which compiled networks do not allow.
    """
    if device.type == "cuda":
        for network in networks:
            network.compile()
