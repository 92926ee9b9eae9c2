"""The activations of a network, layer by layer, as datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils import data as loading

from ... import _check
from ..._check import RNGLike
from ...data.dataset import Dataset
from ...engine import check_stop, resolve_engine
from ...engine.memory import available_memory
from ...errors import DataWarning, InputError, InputTypeError, counted, listed, warn
from .storage import Rows, Sample, Storage

POOLS = ("flatten", "mean", "positions")
Pool: TypeAlias = str | Callable[[Tensor], Tensor]

# Modules whose outputs have features in the last axis, and those that have them in the second.
_FEATURES_LAST = (nn.Linear, nn.Bilinear, nn.LayerNorm, nn.Embedding, nn.RNNBase)
_FEATURES_SECOND = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
)
# The entry of a dict or of a Hugging Face output that is taken, else the first tensor.
_MAIN_ENTRIES = ("last_hidden_state", "logits", "hidden_states")


def activations(
    model: nn.Module,
    loader: Iterable[Any],
    layers: Any = None,
    *,
    pool: Pool = "flatten",
    n_samples: int | None = 10_000,
    device: Any = None,
    memory_limit: int | None = None,
    rng: RNGLike = None,
    progress: bool | None = None,
) -> dict[str, Dataset]:
    """Return what the layers of a network make of some samples, one dataset per layer.

    One pass over the loader, in eval mode and without gradients; afterwards modes and devices are
    as before, and no hook is left. Half precision and bfloat16 become float32.

    Parameters
    ----------
    model
        Any module. It is called with the first item of a batch, or with a dict by name.
    loader
        Any iterable of batches, such as a `DataLoader`: tensors, tuples or lists whose first item
        is the input, or dicts for `model(**batch)`. A tensor is cut into batches of 256.
    layers
        Names of modules, glob patterns (`"layer*.conv1"`), types (`nn.Conv2d`), or a list of
        those; None takes all modules that have weights and no children.
    pool
        How an output becomes rows. `"flatten"`: one row per sample; `"mean"`: one row per sample,
        the mean over space or tokens; `"positions"`: one row per pixel or token, of which
        `n_samples` are drawn; or a function from the output tensor to rows, (rows, features).
        Features are in the second axis of convolutions, batch norms, pooling and other outputs of
        4 or 5 axes, in the last one of linear layers, layer norms and other outputs of 3 axes.
    n_samples
        The most samples that pass through the model; None for all.
    device
        Where the model runs; None leaves it where it is. Batches are moved there.
    memory_limit
        Bytes of activations in memory; what exceeds it is written to a temporary file, read by
        blocks, and deleted with its dataset. None is a quarter of the available memory.
    rng
        Seed or generator that draws positions, the same ones in layers of the same size.
    progress
        Show a bar on stderr; None does so on a terminal.

    Returns
    -------
    dict
        Name of the layer -> `Dataset`, in the order in which the layers ran. The metadata has the
        position in that order, `layer`, and the type, `module`.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> import unaligned as ua
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> batches = [torch.randn(50, 8), torch.randn(50, 8)]
    >>> found = ua.torch.activations(model, batches)
    >>> found
    {'0': Dataset('0', points, 100 × 16), '2': Dataset('2', points, 100 × 4)}
    """
    model = _unwrapped(model)
    limit = _check.optional_int("n_samples", n_samples)
    if not callable(pool):
        _check.one_of("pool", pool, POOLS)
    chosen = _choose_layers(model, layers)
    allowed = _check.optional_int("memory_limit", memory_limit, minimum=0)
    storage = Storage(available_memory() // 4 if allowed is None else allowed)
    seed = _check.root_seed(rng)
    recorder = _Recorder(chosen, pool, storage, limit if pool == "positions" else None, seed)
    total = _length(loader, limit)
    with (
        resolve_engine(progress=progress) as engine,
        engine.progress.task("recording activations", total or 1, unit="samples") as advance,
        _prepared(model, device) as place,
        recorder.hooked(),
        torch.no_grad(),
    ):
        for batch, size in _batches(loader, limit):
            recorder.begin(size)
            inputs = _moved(batch, place)
            model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
            recorder.finish()
            advance(size)
            check_stop()
    return recorder.datasets(strict=layers is not None)


class _Recorder:
    """Hooks on modules, and the rows that came out of them."""

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        pool: Pool,
        storage: Storage,
        sample_size: int | None,
        seed: int,
    ) -> None:
        self.modules, self.pool, self.storage = modules, pool, storage
        self.sample_size, self.seed = sample_size, seed
        self.rows: dict[str, Rows | Sample] = {}
        self.calls: dict[str, int] = {}
        self.batch_size, self.n_batches = 0, 0

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Record the outputs of the modules inside this block."""
        handles: list[Any] = []
        try:
            for name, module in self.modules.items():
                handles.append(module.register_forward_hook(self._hook(name)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def record(module: nn.Module, inputs: Any, output: Any) -> None:
            self.calls[name] = self.calls.get(name, 0) + 1
            if self.calls[name] == 1:  # the others raise after the pass
                rows = _pooled(name, module, output, self.pool, self.batch_size)
                if name not in self.rows:
                    whole = Rows(name, self.storage)
                    size = self.sample_size
                    self.rows[name] = whole if size is None else Sample(name, size, self.seed)
                self.rows[name].add(_to_numpy(rows, name))

        return record

    def begin(self, batch_size: int) -> None:
        """Start a forward pass."""
        self.calls, self.batch_size = {}, batch_size

    def finish(self) -> None:
        """Check that no module ran twice in this forward pass, nor only in some passes."""
        self.n_batches += 1
        for name, calls in self.calls.items():
            if calls > 1:
                raise InputError(
                    f"The module {name!r} ran {calls} times in one forward pass, so it has no "
                    "single output. Leave it out of layers, or use a module of its own for each "
                    "call."
                )
        for name in self.modules:
            if (name in self.calls) != (name in self.rows) or (
                name in self.calls and self.rows[name].n_batches != self.n_batches
            ):
                raise InputError(
                    f"The module {name!r} ran in some batches and not in others, so its rows do "
                    "not correspond to the samples. Leave it out of layers."
                )

    def datasets(self, *, strict: bool) -> dict[str, Dataset]:
        """Return the rows as datasets; modules that never ran raise, or are left out."""
        if not self.n_batches:
            raise InputError(
                "loader is empty: it yields no batch. Iterators can be read once only; pass a "
                "list or a DataLoader."
            )
        silent = [name for name in self.modules if name not in self.rows]
        if silent:
            message = (
                f"{counted(len(silent), 'module')} of layers never ran in the forward pass: "
                f"{listed([repr(name) for name in silent])}."
            )
            if strict or not self.rows:
                raise InputError(f"{message} Leave such modules out of layers.")
            warn(f"{message} They are left out.", DataWarning)
        found = {}
        for position, (name, rows) in enumerate(self.rows.items()):
            metadata = {"layer": position, "module": type(self.modules[name]).__name__}
            found[name] = rows.dataset(metadata)
        return found


def _unwrapped(model: Any) -> nn.Module:
    """Return the module inside of a compiled or parallel one; raise for what has no hooks."""
    if isinstance(model, torch.jit.ScriptModule) or not isinstance(model, nn.Module):
        raise InputTypeError(
            f"model must be a torch.nn.Module, not {type(model).__name__}"
            f"{', whose modules have no hooks' if isinstance(model, nn.Module) else ''}."
        )
    inner = getattr(model, "_orig_mod", model)  # of torch.compile
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    return inner.module if isinstance(inner, wrappers) else inner


def _choose_layers(model: nn.Module, layers: Any) -> dict[str, nn.Module]:
    """Return the modules that `layers` means, by name."""
    if layers is None:
        leaves = [(name, m) for name, m in model.named_modules() if not list(m.children())]
        found = {n or type(m).__name__: m for n, m in leaves if list(m.parameters())}
        if not found:
            raise InputError("model has no modules with weights. Name some with layers=.")
        return found
    named = {n: m for n, m in model.named_modules(remove_duplicate=False) if n}
    named = named or {type(model).__name__: model}
    found = {}
    one = isinstance(layers, (str, type)) or not isinstance(layers, Iterable)
    wanted: Sequence[Any] = [layers] if one else list(layers)
    if not wanted:
        raise InputError("layers is empty. Give names, patterns or types, or None.")
    for item in wanted:
        if isinstance(item, str):
            chosen = {n: m for n, m in named.items() if n == item or fnmatchcase(n, item)}
        elif isinstance(item, type) and issubclass(item, nn.Module):
            chosen = {n: m for n, m in named.items() if isinstance(m, item)}
        else:
            raise InputTypeError(
                f"layers must be names, glob patterns or types of modules, not {item!r}."
            )
        if not chosen:
            shown = item if isinstance(item, str) else item.__name__
            raise InputError(
                f"layers={shown!r} matches no module.{_check.did_you_mean(shown, named)} Modules: "
                f"{listed([repr(name) for name in named])}."
            )
        found |= chosen
    return found


@contextmanager
def _prepared(model: nn.Module, device: Any) -> Iterator[torch.device]:
    """Put the model into eval mode on a device, and restore both afterwards."""
    tensors = [*model.parameters(), *model.buffers()]
    places = {tensor.device for tensor in tensors}
    if device is not None and len(places) > 1:
        raise InputError(
            f"device={device!r} was given, but the model is spread over {len(places)} devices. "
            "Leave device out."
        )
    before = tensors[0].device if tensors else torch.device("cpu")
    try:
        place = before if device is None else torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device={device!r} is not a device of torch: {error}.") from error
    if place.type == "meta" or before.type == "meta":
        raise InputError("Tensors on the device 'meta' have no values. Load the weights first.")
    modes = {module: module.training for module in model.modules()}
    try:
        if place != before:
            model.to(place)
        model.eval()
        yield place
    finally:
        for module, training in modes.items():
            module.training = training
        if place != before:
            model.to(before)


def _length(loader: Any, limit: int | None) -> int | None:
    """Return the number of samples, where it is known or limited."""
    if isinstance(loader, Tensor):
        sizes = [len(loader) if loader.ndim else 0]
    else:
        dataset = getattr(loader, "dataset", None)
        sizes = [len(dataset)] if isinstance(dataset, Sized) else []
    sizes += [] if limit is None else [limit]
    return min(sizes, default=None)


def _batches(loader: Any, limit: int | None) -> Iterator[tuple[Any, int]]:
    """Yield the inputs of each batch and its size, up to `limit` samples in all."""
    if isinstance(loader, loading.Dataset) and not isinstance(loader, loading.IterableDataset):
        raise InputTypeError(
            f"loader is a torch Dataset ({type(loader).__name__}), which yields single samples. "
            "Pass torch.utils.data.DataLoader(dataset, batch_size=256)."
        )
    if isinstance(loader, Mapping) or not isinstance(loader, Iterable):
        if isinstance(loader, Mapping):
            remedy = "For a single batch pass [batch]."
        else:
            remedy = "Pass a DataLoader, a list of batches or a tensor."
        raise InputTypeError(
            f"loader must be an iterable of batches, not {_check.shape_of(loader)}. {remedy}"
        )
    seen = 0
    for batch in torch.split(loader, 256) if isinstance(loader, Tensor) else loader:
        inputs = batch[0] if isinstance(batch, (tuple, list)) and batch else batch
        size = _batch_size(inputs, batch)
        if size == 0:
            continue
        if limit is not None and seen + size > limit:
            inputs, size = _first_rows(inputs, limit - seen, size), limit - seen
        yield inputs, size
        seen += size
        if limit is not None and seen >= limit:
            return


def _batch_size(inputs: Any, batch: Any) -> int:
    tensors = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.ndim:
            return len(tensor)
    raise InputTypeError(
        "A batch must be a tensor, a tuple or list whose first item is a tensor, or a dict of "
        f"tensors; loader yields {_check.shape_of(batch)}. Convert arrays with torch.from_numpy."
    )


def _first_rows(inputs: Any, n_rows: int, size: int) -> Any:
    """Return the first rows of a tensor, or of the tensors of a dict that have `size` rows."""
    if isinstance(inputs, Tensor):
        return inputs[:n_rows]
    return {
        name: value[:n_rows] if isinstance(value, Tensor) and len(value) == size else value
        for name, value in inputs.items()
    }


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    return {n: v.to(device) if isinstance(v, Tensor) else v for n, v in inputs.items()}


def _main_tensor(output: Any, name: str) -> Tensor:
    """Return the tensor of an output: itself, the main entry of a dict, or the first one."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        first = [output[key] for key in _MAIN_ENTRIES if output.get(key) is not None]
        items: Iterable[Any] = [*first, *output.values()]
    else:
        items = output if isinstance(output, (tuple, list)) else ()
    for item in items:
        if isinstance(item, (Tensor, tuple, list, Mapping)):
            return _main_tensor(item, name)
    raise InputTypeError(
        f"The module {name!r} returns {_check.shape_of(output)}, which contains no tensor. "
        "Leave it out of layers."
    )


def _pooled(name: str, module: nn.Module, output: Any, pool: Pool, batch_size: int) -> Tensor:
    """Return the rows of an output, (rows, features)."""
    tensor = _main_tensor(output, name).detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    shape = tuple(tensor.shape)
    if callable(pool):
        rows = pool(tensor)
        if not isinstance(rows, Tensor) or rows.ndim != 2:
            raise InputTypeError(
                f"pool must return a tensor of rows × features; for the module {name!r} of output "
                f"{shape} it returned {_check.shape_of(rows)}."
            )
        return rows
    if not shape or (pool != "positions" and shape[0] != batch_size):
        raise InputError(
            f"The module {name!r} returns shape {shape} for a batch of {batch_size} samples; its "
            "first axis must be the samples. Give pool a function that returns one row for each."
        )
    if len(shape) == 1:
        return tensor[:, None]
    if len(shape) == 2 or pool == "flatten":
        return tensor.flatten(1)
    last = isinstance(module, _FEATURES_LAST) or (
        len(shape) == 3 and not isinstance(module, _FEATURES_SECOND)
    )
    features = tensor if last else tensor.movedim(1, -1)
    rows = features.flatten(1, -2)  # (samples, positions, features)
    if pool == "mean":
        exact = rows if rows.dtype == torch.float64 else rows.float()
        return exact.mean(dim=1)
    return rows.flatten(0, 1)


def _to_numpy(rows: Tensor, name: str) -> Any:
    """Return a copy in memory: what runs later may write into an output."""
    if rows.is_complex():
        raise InputTypeError(
            f"The module {name!r} returns complex numbers. Give pool a function, such as "
            "lambda z: torch.view_as_real(z).flatten(1)."
        )
    dtype = torch.float64 if rows.dtype == torch.float64 else torch.float32
    return rows.detach().to("cpu", dtype, copy=True).contiguous().numpy()
