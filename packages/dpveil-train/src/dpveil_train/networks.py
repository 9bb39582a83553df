"""The training of every network: its order and faces, devices, the loop, checkpoints, export, card and file.

Networks are trained on a CUDA device if there is one, and else on the processor. What is random is
drawn on the processor in any case, so that a checkpoint goes on anywhere.
"""

from __future__ import annotations

import copy
import hashlib
import io
import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import onnx
import torch
from jaxtyping import Float32, UInt8
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import save
from dpveil.core.rationals import Json
from dpveil.errors import DPVeilError, InvalidParameter, ModelError
from dpveil.faces.portrait_placement import centred
from dpveil_train.labelled import Labelled, labelled_photos
from dpveil_train.landmarks import Finder
from dpveil_train.order import Order, Progress, Trained, refuse_none

OFTEN: Final = 120.0  # seconds between checkpoints
READ: Final = 128  # side of the crops in which landmarks are looked for, in pixels
LEAST: Final = 40  # least number of pictures
EVERY: Final = 20  # one picture in this many is held out


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(Order):
    """An order for a network by its plan, with what finds landmarks, if that is allowed.

    Without `landmarks` no pose of a `gan` and no expression of an `upconv` is known, and the decoder learns
    none. With a `generator`, a checkpoint of somebody's, only the encoder of a `stylegan` is trained; sizes
    of the generator then are those of the checkpoint.
    """

    plan: Any
    landmarks: Finder | None = None
    generator: Path | None = None

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the network together with the images and the seed."""
        plan = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.plan).items()}
        file: dict[str, Json] = {}
        if self.landmarks is not None:
            file["landmark_file_sha256"] = self.landmarks.digest
        if self.generator is not None:
            file["generator_sha256"] = hashlib.sha256(self.generator.read_bytes()).hexdigest()
        return {**plan, **file, **super().settings()}


Look = Callable[[Finder | None, UInt8[np.ndarray, "s s 3"]], tuple[float, ...]]
"""What is computed of a crop from its landmarks; NaN where they are unknown."""


def angles(finder: Finder | None, crop: UInt8[np.ndarray, "s s 3"]) -> tuple[float, float]:
    pose = finder.pose(crop) if finder else None
    return (np.nan, np.nan) if pose is None else (pose.yaw, pose.pitch)


def read_faces(
    order: NetworkOrder, progress: Progress, look: Look = angles
) -> tuple[UInt8[np.ndarray, "n s s 3"], Float32[np.ndarray, "n c"], list[DPVeilError]]:
    """Return crops of labelled shards, their gender (1 female, -1 male) and `look`, and what failed.

    Raises `PhotoError` if no labelled image can be read, and `InvalidParameter` for fewer than `LEAST`.
    """
    crops, about, failed = [], [], list[DPVeilError]()
    with progress(len(order.paths), "reading") as step:
        for found in labelled_photos(order.paths, step):
            if not isinstance(found, Labelled):
                failed.append(found)
                continue
            seen = np.ascontiguousarray(centred(found.photo, (READ, READ, 3)))
            about.append((2.0 * found.labels["gender"] - 1, *look(order.landmarks, seen)))
            crops.append(centred(found.photo, (order.plan.side, order.plan.side, 3)))
    refuse_none(
        len(crops), failed, "give .tar shards with a .json of age, gender and race beside every picture"
    )
    if len(crops) < LEAST:
        hint = f"give at least {LEAST}, and thousands to learn from"
        raise InvalidParameter("images", None, f"are only {len(crops)}", hint=hint)
    return np.stack(crops), np.array(about, np.float32), failed


def held_out(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of so many pictures are held out, and which are learned from."""
    held = np.arange(count) % EVERY == 0
    return np.flatnonzero(held), np.flatnonzero(~held)


class Trainer:
    """The state of a training: `done` steps of its plan in `spent` seconds, networks, optimisers and bits.

    A trainer of a network makes its networks, and has a `learn`: the losses of one step, after `descend`.
    `parts` are the attributes whose state is in a checkpoint; `mean` are moving averages of the networks
    `followed`, which are what is kept in the end. Learning rates rise over `warm` steps, and fall as a cosine
    to `floor`, relative to the highest.
    """

    parts: ClassVar[tuple[str, ...]]
    warm: ClassVar[int] = 200
    floor: ClassVar[float] = 0.05
    device: ClassVar[torch.device] = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    plan: Any
    mean: nn.ModuleList
    rows: np.ndarray
    """The pictures that it learns from."""

    def __init__(self, plan: Any) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.done, self.spent = plan, 0, 0.0
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.optimisers: list[torch.optim.Optimizer] = []

    def to_device(self, network: nn.Module) -> Any:
        return network.to(device=self.device, memory_format=torch.channels_last)

    def follow(self, *networks: nn.Module) -> nn.ModuleList:
        """Return copies of networks, which from now on are moving averages of them."""
        self.followed = networks
        return nn.ModuleList(copy.deepcopy([*networks])).requires_grad_(requires_grad=False)

    def adam(
        self, *groups: tuple[Iterable[nn.Parameter], float], betas: tuple[float, float]
    ) -> torch.optim.Optimizer:
        """Return an optimiser of groups of weights, each with its highest learning rate."""
        own = [{"params": list(weights), "rate": rate, "lr": rate} for weights, rate in groups]
        self.optimisers.append(torch.optim.Adam(own, betas=betas))
        return self.optimisers[-1]

    def halves(self) -> Any:
        """Return the context in which the device computes in bfloat16, unless it would have to emulate it.

        On a processor with AVX2 alone, a step of `upconv` took twelve times as long in it as in 32 bits.
        """
        processor = torch.backends.cpu.get_cpu_capability() if self.device.type == "cpu" else ""
        emulated = processor in ("DEFAULT", "AVX2")
        return torch.autocast(self.device.type, torch.bfloat16, enabled=not emulated)

    def learn(self) -> dict[str, Tensor]:
        raise NotImplementedError

    def descend(
        self,
        optimiser: torch.optim.Optimizer,
        loss: Tensor,
        *clipped: Iterable[nn.Parameter],
        most: float = 10.0,
    ) -> None:
        """Make a step of an optimiser; the gradient of each set of weights in `clipped` is at most `most`."""
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        for weights in clipped:
            nn.utils.clip_grad_norm_(weights, most)
        optimiser.step()

    def step(self) -> dict[str, float]:
        started = time.monotonic()
        self.set_rates()
        losses = self.learn()
        self.average()
        self.done += 1
        self.spent += time.monotonic() - started
        return {name: float(value.detach()) for name, value in losses.items()}

    def set_rates(self) -> None:
        part = min(1.0, self.done / self.plan.steps)
        fallen = self.floor + (1 - self.floor) * (0.5 + 0.5 * math.cos(math.pi * part))
        factor = min(1.0, (self.done + 1) / self.warm) * fallen
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["rate"] * factor

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def average(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for mean, now in zip(self.mean, self.followed, strict=True):
            for own, new in zip(mean.parameters(), now.parameters(), strict=True):
                own.lerp_(new, 1 - weight)
            for own, new in zip(mean.buffers(), now.buffers(), strict=True):
                own.copy_(new)

    def state(self) -> dict[str, Any]:
        parts = {name: getattr(self, name).state_dict() for name in self.parts}
        return {**parts, "done": self.done, "spent": self.spent, "generator": self.generator.get_state()}

    def take_up(self, state: dict[str, Any]) -> None:
        for name in self.parts:
            getattr(self, name).load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        self.done, self.spent = state["done"], state["spent"]

    def about(self) -> dict[str, Json]:
        """Return what a card says of the training besides its settings."""
        return {"images": len(self.rows), "hours": round(self.spent / 3600, 2)}

    def model(self, card: Card) -> Any:
        raise NotImplementedError

    def metrics(self, model: Any) -> dict[str, Json]:
        raise NotImplementedError


def train_network(
    kind: str,
    order: NetworkOrder,
    make: Callable[[np.ndarray, np.ndarray], Trainer],
    progress: Progress,
    look: Look = angles,
) -> Trained[Any]:
    """Train a network on labelled shards, evaluate it, and write the model and its card.

    `make` returns the trainer for crops and conditions. Raises the errors of `read_faces`, of `Order.check`
    and of writing.
    """
    order.check()
    crops, conditions, failed = read_faces(order, progress, look)
    trainer = make(crops, conditions)
    kept = train_to_end(trainer, order, kind, len(crops), progress)
    settings = {**order.settings(), **trainer.about()}
    model = trainer.model(Card(kind, order.data, order.terms, order.seed, settings))
    model = model.with_card(replace(model.card, metrics=trainer.metrics(model)))
    digest = save(model, order.out, replace=order.replace)
    kept.unlink(missing_ok=True)
    return Trained(model, digest, len(crops), failed)


def train_to_end(trainer: Trainer, order: NetworkOrder, kind: str, images: int, progress: Progress) -> Path:
    """Train to the end of the plan, from the checkpoint of the same order, if there is one; return its path.

    Progress is kept every two minutes, and when the training is interrupted.
    """
    kept = order.out.with_name(f".{order.out.name}.checkpoint")
    key = order.key({"codec": kind, "crops": images})
    read_checkpoint(trainer, kept, key)
    saved = time.monotonic()
    with progress(trainer.plan.steps - trainer.done, "learning") as step:
        try:
            while trainer.done < trainer.plan.steps:
                trainer.step()
                step()
                if time.monotonic() - saved > OFTEN:
                    write_checkpoint(trainer, kept, key)
                    saved = time.monotonic()
        finally:
            write_checkpoint(trainer, kept, key)
    return kept


def write_checkpoint(trainer: Trainer, path: Path, key: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with new.open("xb") as file:
        torch.save({"key": key, **trainer.state()}, file)
    new.replace(path)


def read_checkpoint(trainer: Trainer, path: Path, key: str) -> None:
    """Take up a checkpoint of the same order and data; ignore any other, and one that is damaged.

    Raises `ModelError` for one of this order whose state is another one.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001  whatever PyTorch raises for a damaged file
        return
    if not isinstance(state, dict) or not isinstance(state.get("key"), str) or state["key"] != key:
        return
    try:
        trainer.take_up(state)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is a damaged checkpoint", hint="delete it, and train again") from error


# Files


OPSET: Final = 17
SMALL: Final = 64  # tensors with fewer weights are not converted


def export_onnx(network: nn.Module, takes: tuple[int, ...]) -> bytes:
    """Return the ONNX file of a network for input of this shape, without operators that depend on shapes."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (torch.zeros(*takes),),
            file,
            input_names=["given"],
            output_names=["made"],
            opset_version=OPSET,
            dynamo=False,
        )
    return file.getvalue()


def halve_weights(data: bytes) -> bytes:
    """Return the ONNX file with large weights stored as 16-bit floats, and casts to 32 bits."""
    model = onnx.load_model_from_string(data)
    graph, casts = model.graph, []
    for weights in graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype != np.float32 or values.size < SMALL:
            continue
        name = weights.name
        weights.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    packed: bytes = model.SerializeToString()
    return packed
