"""The networks of the layer experiment: LeNet, Tiny10, ResNet and All-CNN-C.

Trained weights are kept in the cache folder as `.npz` files, so that each network is trained once
and training that was stopped continues after its last epoch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..cache import default_folder
from ..errors import FileError
from ..io.archive import made_folder, read_archive, write_archive
from ..rows.files import first_line
from .pictures import Pictures, data_file, load_pictures

State: TypeAlias = dict[str, Tensor]

_FORMAT = "unaligned-network"
_ADAM = ("step", "exp_avg", "exp_avg_sq")  # its state of a parameter


class Pixels(NamedTuple):
    """The mean and standard deviation of pixels in [0, 1], by channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


CIFAR100 = Pixels((0.507, 0.487, 0.441), (0.267, 0.256, 0.276))
IMAGENET = Pixels((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # with which ResNet was trained


def prepared(images: Any, pixels: Pixels) -> Tensor:
    """Return uint8 pictures as a normalised float32 tensor, (n, channels, height, width)."""
    values = torch.tensor(np.asarray(images)).float() / 255.0
    values = values[:, None] if values.ndim == 3 else values.movedim(-1, 1)
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in pixels)
    return (values - mean) / std


def mnist_inputs(images: Any) -> Tensor:
    """Return MNIST pictures as inputs of LeNet."""
    return prepared(images, Pixels((0.1307,), (0.3081,)))


def cifar_inputs(images: Any) -> Tensor:
    """Return CIFAR-10 pictures as inputs of Tiny10 and All-CNN-C."""
    return prepared(images, Pixels((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)))


def resnet_inputs(images: Any) -> Tensor:
    """Return CIFAR-10 pictures as inputs of the ResNets."""
    return prepared(images, IMAGENET)


def lenet() -> nn.Sequential:
    """Return LeNet: two convolutions with pooling and three linear layers.

    The layers of the paper are the outputs of `conv1`, `conv2`, `fc1` and `fc2`.
    """

    def convolution(n_in: int, n_out: int, padding: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(n_in, n_out, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)
        )

    return nn.Sequential(
        OrderedDict(
            conv1=convolution(1, 6, 2),
            conv2=convolution(6, 16, 0),
            flatten=nn.Flatten(),
            fc1=nn.Sequential(nn.Linear(400, 120), nn.ReLU()),
            fc2=nn.Sequential(nn.Linear(120, 84), nn.ReLU()),
            logits=nn.Linear(84, 10),
        )
    )


def tiny10(seed: int) -> nn.Sequential:
    """Return one of the 15 trained networks: 8 convolutions, the mean over space, and `fc`."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    n_in = 3
    widths, strides = (16, 16, 32, 32, 32, 64, 64, 64), (1, 1, 2, 1, 1, 2, 1, 1)
    for i, (width, stride) in enumerate(zip(widths, strides, strict=True), start=1):
        convolution = nn.Conv2d(n_in, width, 1 if i == 8 else 3, stride)
        parts = OrderedDict(conv=convolution, bn=nn.BatchNorm2d(width), act=nn.ReLU())
        layers[f"conv{i}"], n_in = nn.Sequential(parts), width
    layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "fc": nn.Linear(64, 10)}
    model = nn.Sequential(layers)
    with np.load(data_file("tiny10_cifar10/tiny10_15seeds.npz"), allow_pickle=False) as stored:
        for i in range(1, 9):
            for part in ("weight", "bias"):
                _fill(model.get_parameter(f"conv{i}.conv.{part}"), stored, seed, f"conv{i}.{part}")
                _fill(model.get_parameter(f"conv{i}.bn.{part}"), stored, seed, f"bn{i}.{part}")
            for part in ("running_mean", "running_var"):
                _fill(model.get_buffer(f"conv{i}.bn.{part}"), stored, seed, f"bn{i}.{part}")
        for part in ("weight", "bias"):
            _fill(model.get_parameter(f"fc.{part}"), stored, seed, f"fc.{part}")
    return model.eval()


def _fill(target: Tensor, stored: Any, seed: int, name: str) -> None:
    with torch.no_grad():
        target.copy_(torch.from_numpy(stored[f"seed{seed:02d}/{name}"]))


class _Block(nn.Module):
    """A residual block whose shortcut drops pixels and pads channels with zeros."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.stride, self.padding = stride, (n_out - n_in) // 2

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block."""
        out = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.padding, self.padding))
        return functional.relu(out + x)


def resnet(depth: int) -> nn.Sequential:
    """Return the trained ResNet-20 or ResNet-32 for CIFAR-10 (He et al., 2016).

    The files are those of akamaster/pytorch_resnet_cifar10.
    """
    n_blocks, files = (depth - 2) // 6, {20: "resnet20-12fca82f.th", 32: "resnet32-d509ac18.th"}
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers |= {"conv1": nn.Conv2d(3, 16, 3, 1, 1, bias=False), "bn1": nn.BatchNorm2d(16)}
    layers["act"], width = nn.ReLU(), 16
    for stage, n_out in enumerate((16, 32, 64), start=1):
        blocks = [_Block(n_out, n_out, 1) for _ in range(n_blocks)]
        if n_out != width:
            blocks[0], width = _Block(width, n_out, 2), n_out
        layers[f"layer{stage}"] = nn.Sequential(*blocks)
    layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
    model = nn.Sequential(OrderedDict(layers, linear=nn.Linear(64, 10)))
    path = data_file(f"resnet_cifar10/{files[depth]}")
    try:  # not unpickled: only tensors are read
        stored = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        model.load_state_dict({name.removeprefix("module."): v for name, v in stored.items()})
    except Exception as error:  # torch raises many kinds on foreign bytes
        text = f"{str(path)!r} has no weights of ResNet-{depth}: {first_line(error)}."
        raise FileError(text) from error
    return model.eval()


def all_cnn(width: int = 96, dropout: float = 0.5) -> nn.Sequential:
    """Return All-CNN-C (Springenberg et al., 2015): nine convolutions and the mean over space.

    `width` channels in the first three layers and twice as many after them; 96 is the paper's, as
    is the dropout after both layers of stride 2.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    n_in, wide = 3, 2 * width
    #        channels, kernel, stride, padding
    plan = [(width, 3, 1, 1), (width, 3, 1, 1), (width, 3, 2, 1)]
    plan += [(wide, 3, 1, 1), (wide, 3, 1, 1), (wide, 3, 2, 1)]
    plan += [(wide, 3, 1, 0), (wide, 1, 1, 0), (10, 1, 1, 0)]
    for i, (n_out, kernel, stride, padding) in enumerate(plan, start=1):
        convolution = nn.Conv2d(n_in, n_out, kernel, stride, padding)
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
        layers[f"conv{i}"], n_in = nn.Sequential(convolution, nn.ReLU()), n_out
        if stride == 2:
            layers[f"drop{i}"] = nn.Dropout(dropout)
    pooling = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(OrderedDict(layers, logits=pooling))


def networks_folder() -> Path:
    """Return the folder of trained networks, created where it is missing."""
    return made_folder("cache folder", default_folder() / "networks", "Set XDG_CACHE_HOME.")


def _save(path: Path, states: dict[str, State], **header: Any) -> None:
    arrays = {
        f"{mark}/{name}": value.detach().cpu().numpy()
        for mark, state in states.items()
        for name, value in state.items()
    }
    write_archive(path, _FORMAT, header, arrays)


def _load(path: Path) -> tuple[dict[str, Any], dict[str, State]]:
    header, arrays = read_archive(path, _FORMAT)
    states: dict[str, State] = {}
    for name, values in arrays.items():
        mark, _, parameter = name.partition("/")
        states.setdefault(mark, {})[parameter] = torch.from_numpy(values)
    return header, states


def _on_device(model: nn.Module) -> torch.device:
    """Move a model to a GPU where there is one."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    return device


def _batches(n_images: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the positions of each batch of one epoch, in random order."""
    return iter(torch.split(torch.randperm(n_images, generator=generator), size))


def trained_lenet(
    seed: int, *, n_epochs: int, n_images: int, steps: tuple[int, ...] = ()
) -> dict[int, State]:
    """Return the weights of LeNet after these steps of training on MNIST, and at the end.

    Adam at 1e-3, batches of 64. About 15 s per epoch of 60,000 pictures on one core.
    """
    marks = "-".join(map(str, steps)) or "none"
    path = networks_folder() / f"lenet-{seed}-{n_epochs}x{n_images}-{marks}.npz"
    if path.exists():
        return {int(mark): state for mark, state in _load(path)[1].items()}
    pictures = load_pictures("mnist", "train")
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = lenet()
    device = _on_device(model)
    images = mnist_inputs(pictures.images[:n_images])
    labels = torch.tensor(pictures.labels[:n_images])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept: dict[int, State] = {0: _copy(model)} if 0 in steps else {}
    step = 0
    for _ in range(n_epochs):
        for rows in _batches(len(images), 64, generator):
            _descend(model, optimizer, images[rows].to(device), labels[rows].to(device))
            step += 1
            if step in steps:
                kept[step] = _copy(model)
    kept[step] = _copy(model)
    _save(path, {str(mark): state for mark, state in kept.items()}, seed=seed)
    return kept


def _copy(model: nn.Module) -> State:
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def _descend(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    labels: Tensor,
    *,
    half: bool = False,
) -> None:
    """Make one step of training, the network in bfloat16 if `half`, the loss in float32."""
    optimizer.zero_grad()
    with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
        scores = model(images)
    functional.cross_entropy(scores.float(), labels).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def trained_all_cnn(
    seed: int,
    *,
    width: int,
    dropout: float,
    n_epochs: int,
    pictures: Pictures | None = None,
    report: Callable[[str], object] | None = None,
) -> nn.Sequential:
    """Return All-CNN-C trained on CIFAR-10, after the epochs that are done already.

    Adam, whose rate rises to 1e-3 and falls as a cosine, batches of 64, pictures shifted by up to
    4 pixels and mirrored, in bfloat16 (2.3 times as fast here) with channels last (1.3 times). The
    state of weights and optimiser is written after every epoch.
    """
    path = networks_folder() / f"allcnn-{seed}-width{width}-dropout{dropout:g}-{n_epochs}.npz"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = all_cnn(width, dropout)
    done, states = 0, dict[str, State]()
    if path.exists():
        header, states = _load(path)
        done = int(header["n_epochs"])
        model.load_state_dict(states["weights"])
    if done >= n_epochs:
        return model.eval()
    given = load_pictures("cifar10", "train") if pictures is None else pictures
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    device = _on_device(model)
    images, labels = cifar_inputs(given.images), torch.tensor(given.labels)
    n_steps = -(-len(images) // 64)
    optimizer, named = torch.optim.Adam(model.parameters()), dict(model.named_parameters())
    for name, parameter in named.items() if done else ():
        kept = {key: states[key][name] for key in _ADAM}
        moments = {key: value.to(device) for key, value in kept.items() if key != "step"}
        optimizer.state[parameter] = {**kept, **moments}
    for epoch in range(done, n_epochs):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        with torch.random.fork_rng(devices=[]):  # of dropout
            torch.manual_seed(1000 * seed + epoch)
            for i, rows in enumerate(_batches(len(images), 64, generator)):
                progress = (epoch + i / n_steps) / n_epochs
                optimizer.param_groups[0]["lr"] = _rate(progress)
                batch = _shifted(images[rows], generator).to(device)
                _descend(model.train(), optimizer, batch, labels[rows].to(device), half=True)
        of_adam = {key: {n: optimizer.state[p][key] for n, p in named.items()} for key in _ADAM}
        _save(path, {"weights": _copy(model), **of_adam}, n_epochs=epoch + 1, seed=seed)
        if report is not None:
            report(f"All-CNN-C, seed {seed}: epoch {epoch + 1} of {n_epochs}")
    return model.cpu().eval()


def _rate(progress: float) -> float:
    """Return the learning rate: a tenth of the training up to 1e-3, then a cosine to 0."""
    rise = min(progress / 0.1, 1.0)
    fall = 0.5 * (1.0 + np.cos(np.pi * max(progress - 0.1, 0.0) / 0.9))
    return float(1e-3 * rise * fall)


def _shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return a batch shifted by up to 4 pixels, one half of the batches mirrored."""
    dx, dy, mirror = torch.randint(9, (3,), generator=generator).tolist()
    padded = functional.pad(images, (4, 4, 4, 4))
    height, width = images.shape[-2:]
    moved = padded[..., dy : dy + height, dx : dx + width]
    return moved.flip(-1) if mirror % 2 else moved


def accuracy(model: nn.Module, inputs: Tensor, labels: Any) -> float:
    """Return the share of inputs that a network classifies correctly."""
    with torch.no_grad():
        found = torch.cat([model(batch).argmax(dim=1) for batch in torch.split(inputs, 500)])
    return float((found == torch.as_tensor(labels)).float().mean())
