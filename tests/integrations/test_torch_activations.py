"""`ua.torch.activations`: layers of a network as datasets."""

import gc
from collections import OrderedDict, UserDict
from pathlib import Path

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import DataWarning, InputError, InputTypeError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_torch_thread")
nn = torch.nn
activations = ua.torch.activations


def tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def small_net():
    torch.manual_seed(0)
    layers = {"conv": nn.Conv2d(3, 4, 3), "act": nn.ReLU(inplace=True), "flat": nn.Flatten()}
    return nn.Sequential(OrderedDict(layers, drop=nn.Dropout(0.5), fc=nn.Linear(4 * 36, 5)))


def n_hooks(model):
    return sum(len(module._forward_hooks) for module in model.modules())


def test_rows_are_the_outputs_of_the_layers_before_later_layers_change_them():
    model, images = small_net(), tensor(30, 3, 8, 8)
    found = activations(model, [images[:20], images[20:]])
    assert list(found) == ["conv", "fc"]
    with torch.no_grad():
        convolved = model.conv(images)
        output = model.eval()(images)
    assert np.allclose(found["conv"].values, convolved.flatten(1), atol=1e-6)
    assert (found["conv"].values < 0).any()  # not those of the ReLU that works in place
    assert np.allclose(found["fc"].values, output, atol=1e-5)
    assert found["fc"].metadata == {"layer": 1, "module": "Linear"}


def test_two_networks_are_compared_layer_by_layer():
    images = tensor(60, 3, 8, 8)
    found = ua.compare(
        activations(small_net(), images), activations(small_net(), images), n_eigenvalues=10
    )
    assert found.match().accuracy == 1.0


@pytest.mark.parametrize("options", [{}, {"n_samples": 40}, {"memory_limit": 1}])
def test_channels_share_a_unit_so_that_rare_ones_do_not_warn(options):
    torch.manual_seed(0)
    with torch.no_grad():
        layer = nn.Linear(3, 4)
        layer.weight[0] *= 1000.0
    found = activations(nn.Sequential(layer, nn.ReLU()), tensor(60, 3), ["1"], **options)
    ua.compare(found, found, n_eigenvalues=10)  # warnings are errors here
    bare = ua.Dataset(np.concatenate(list(found["1"].blocks())))
    with pytest.warns(DataWarning, match="shared_unit=True"):
        ua.compare([bare, bare], n_eigenvalues=10)


@pytest.mark.parametrize(
    "batches",
    [
        lambda x, y: [x],
        lambda x, y: [(x, y)],
        lambda x, y: [[x, y]],
        lambda x, y: [{"input": x}],
        lambda x, y: [UserDict(input=x)],
        lambda x, y: x,
        lambda x, y: iter([x]),
        lambda x, y: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 7),
    ],
)
def test_any_iterable_of_batches(batches):
    inputs, labels = tensor(20, 6), torch.zeros(20)
    found = activations(nn.Linear(6, 2), batches(inputs, labels))
    assert found["Linear"].values.shape == (20, 2)


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("conv", ["conv"]),
        ("*", ["conv", "act", "flat", "drop", "fc"]),
        (["fc", "conv"], ["conv", "fc"]),  # in the order in which they run
        (["c*", nn.Linear], ["conv", "fc"]),
        (nn.ReLU, ["act"]),
    ],
)
def test_layers_by_name_pattern_and_type(layers, names):
    assert list(activations(small_net(), tensor(4, 3, 8, 8), layers)) == names


class TestPooling:
    def test_mean_and_positions_of_a_convolution(self):
        model, images = nn.Conv2d(3, 4, 3), tensor(10, 3, 8, 8)
        output = model(images).detach().numpy()
        mean = activations(model, images, pool="mean")["Conv2d"].values
        assert np.allclose(mean, output.mean(axis=(2, 3)), atol=1e-6)
        rows = activations(model, images, pool="positions")["Conv2d"].values
        assert np.array_equal(rows, output.transpose(0, 2, 3, 1).reshape(-1, 4))

    def test_tokens_are_in_the_second_axis_of_other_layers(self):
        model, tokens = nn.Sequential(nn.Linear(6, 5), nn.GELU()), tensor(10, 7, 6)
        output = model(tokens).detach().numpy()
        found = activations(model, tokens, "*", pool="mean")
        assert np.allclose(found["1"].values, output.mean(axis=1), atol=1e-6)
        assert activations(model, tokens)["0"].values.shape == (10, 35)
        assert activations(model, tokens, pool="positions")["0"].values.shape == (70, 5)
        flat = activations(nn.Conv1d(7, 2, 1), tokens, pool="mean")["Conv1d"]
        assert flat.values.shape == (10, 2)

    def test_function(self):
        first = activations(nn.Linear(6, 5), tensor(10, 7, 6), pool=lambda x: x[:, 0])
        assert first["Linear"].values.shape == (10, 5)
        with pytest.raises(InputTypeError, match=r"pool must return .* returned Tensor of shape"):
            activations(nn.Linear(6, 5), tensor(10, 7, 6), pool=lambda x: x)
        with pytest.raises(InputError, match=r"pool='max' is not known.*flatten, mean"):
            activations(nn.Linear(6, 5), tensor(10, 6), pool="max")

    @pytest.mark.parametrize("seed", range(3))
    def test_positions_are_a_uniform_sample_the_same_in_all_layers(self, seed):
        model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Conv2d(2, 3, 1))
        with torch.no_grad():
            for layer in model:
                layer.weight[:] = 1.0 / layer.weight.shape[1]
                layer.bias[:] = 0.0
        place = torch.arange(40.0 * 25).reshape(40, 1, 5, 5)
        options = {"pool": "positions", "n_samples": 40, "rng": seed}
        first, second = activations(model, place.split(8), **options).values()
        assert first.values.shape == (40, 2)
        assert np.allclose(first.values[:, 0], second.values[:, 0])
        assert np.all(np.diff(first.values[:, 0]) > 0)
        assert 250 < first.values[:, 0].mean() < 750  # of 0 … 999
        assert first.values[:, 0].max() > 500

    def test_variable_lengths_need_pooling(self):
        batches = [tensor(4, 7, 6), tensor(4, 9, 6)]
        with pytest.raises(InputError, match=r"'Linear' returned rows of 45 .* after rows of 35"):
            activations(nn.Linear(6, 5), batches)
        assert activations(nn.Linear(6, 5), batches, pool="mean")["Linear"].n_samples == 8


class Returning(nn.Module):
    """A module that wraps its output."""

    def __init__(self, wrap):
        super().__init__()
        self.inner, self.wrap = nn.Linear(6, 5), wrap

    def forward(self, x):
        return self.wrap(self.inner(x))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: (x, None),
        lambda x: [None, (x,)],
        lambda x: {"attentions": None, "other": x},
        lambda x: {"aux": x[:, :1], "last_hidden_state": x},
        lambda x: OrderedDict(loss=None, logits=x),
    ],
)
def test_tuples_dicts_and_outputs_of_hugging_face(wrap):
    model = nn.Sequential(OrderedDict(block=Returning(wrap)))
    assert activations(model, tensor(10, 6), "block")["block"].values.shape == (10, 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_precisions(dtype):
    model = nn.Linear(6, 5).to(dtype)
    found = activations(model, tensor(10, 6).to(dtype).requires_grad_())["Linear"]
    assert found.values.dtype == (np.float64 if dtype is torch.float64 else np.float32)


class TestRestoring:
    def test_modes_gradients_and_hooks(self):
        model = small_net().train()
        model.drop.eval()
        activations(model, tensor(4, 3, 8, 8))
        assert model.training
        assert model.conv.training
        assert not model.drop.training
        assert n_hooks(model) == 0
        assert torch.is_grad_enabled()

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_after_an_exception(self, error):
        model = small_net().train()

        def batches():
            yield tensor(4, 3, 8, 8)
            raise error("broken")

        with pytest.raises(error, match=r"broken|Stopped by Ctrl-C"):
            activations(model, batches())
        assert n_hooks(model) == 0
        assert model.training
        with pytest.raises(RuntimeError, match="expected input"):
            activations(model, tensor(4, 2, 8, 8))
        assert n_hooks(model) == 0


def test_one_pass_and_no_more_batches_than_needed():
    seen = []

    def batches():
        for i in range(100):
            seen.append(i)
            yield tensor(8, 3, 8, 8, seed=i)

    found = activations(small_net(), batches(), "*", n_samples=20)
    assert {dataset.n_samples for dataset in found.values()} == {20}
    assert seen == [0, 1, 2]


class TestFiles:
    def test_rows_beyond_the_memory_limit_are_streamed_and_deleted(self):
        images = tensor(50, 3, 8, 8)
        inside = activations(small_net(), images.split(8))
        found = activations(small_net(), images.split(8), memory_limit=20_000)
        assert [dataset.is_lazy for dataset in found.values()] == [True, False]
        path = Path(found["conv"].values.path)
        assert np.array_equal(found["conv"].values.read(), inside["conv"].values)
        same = ua.compare([found["conv"]], [inside["conv"]], n_eigenvalues=10)
        assert same.distances.max() < 1e-6
        assert path.exists()
        del found, same
        gc.collect()
        assert not path.parent.exists()

    def test_files_of_a_failed_run_are_deleted(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

        def batches():
            yield tensor(8, 3, 8, 8)
            assert list(tmp_path.iterdir())
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            activations(small_net(), batches(), memory_limit=0)
        gc.collect()
        assert not list(tmp_path.iterdir())


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.unused, self.calls = nn.Linear(6, 6), nn.Linear(6, 6), 2

    def forward(self, x):
        for _ in range(self.calls):
            x = self.fc(x)
        return x


class TestErrors:
    def test_module_that_runs_twice(self):
        with pytest.raises(InputError, match="'fc' ran 2 times in one forward pass"):
            activations(Shared(), tensor(4, 6))

    def test_layer_that_never_runs(self):
        model = Shared()
        model.calls = 1
        with pytest.raises(InputError, match=r"1 module of layers never ran.*'unused'"):
            activations(model, tensor(4, 6), ["fc", "unused"])
        with pytest.warns(DataWarning, match=r"never ran.*'unused'\. They are left out"):
            assert list(activations(model, tensor(4, 6))) == ["fc"]

    def test_layer_that_runs_sometimes(self):
        model = Shared()
        model.calls = 1

        def batches():
            yield tensor(4, 6)
            model.calls = 0
            yield tensor(4, 6)

        with pytest.raises(InputError, match="'fc' ran in some batches and not in others"):
            activations(model, batches(), "fc")

    @pytest.mark.parametrize("loader", [[], iter(()), torch.empty(0, 6)])
    def test_empty_loader(self, loader):
        with pytest.raises(InputError, match="loader is empty"):
            activations(nn.Linear(6, 2), loader)

    @pytest.mark.parametrize(
        ("loader", "message"),
        [
            ({"x": torch.zeros(3, 6)}, r"not dict\. For a single batch pass \[batch\]"),
            (3, "must be an iterable of batches, not int"),
            (torch.utils.data.TensorDataset(torch.zeros(3, 6)), "yields single samples.*DataLoa"),
            ([np.zeros((3, 6))], r"loader yields ndarray of shape \(3, 6\).*from_numpy"),
            ([torch.tensor(1.0)], r"loader yields Tensor of shape \(\)"),
            (["text"], "loader yields str"),
        ],
    )
    def test_wrong_loader(self, loader, message):
        with pytest.raises(InputTypeError, match=message):
            activations(nn.Linear(6, 2), loader)

    @pytest.mark.parametrize(
        ("layers", "message"),
        [
            ("cov", r"layers='cov' matches no module\. Did you mean 'conv'"),
            (nn.LSTM, "layers='LSTM' matches no module"),
            ([], "layers is empty"),
            (3, "must be names, glob patterns or types of modules, not 3"),
            ([int], "must be names, glob patterns or types"),
        ],
    )
    def test_wrong_layers(self, layers, message):
        with pytest.raises(InputError, match=message):
            activations(small_net(), tensor(4, 3, 8, 8), layers)

    def test_wrong_model_device_and_size(self):
        with pytest.raises(InputTypeError, match=r"model must be a torch\.nn\.Module, not functi"):
            activations(lambda x: x, tensor(4, 6))
        with pytest.raises(InputError, match="no modules with weights"):
            activations(nn.ReLU(), tensor(4, 6))
        with pytest.raises(InputError, match="device='gpu' is not a device of torch"):
            activations(nn.Linear(6, 2), tensor(4, 6), device="gpu")
        with pytest.raises(InputError, match="n_samples=0 must be at least 1"):
            activations(nn.Linear(6, 2), tensor(4, 6), n_samples=0)

    def test_samples_that_are_not_in_the_first_axis(self):
        message = r"'LSTM' returns shape \(7, 4, 5\) for a batch of 4 samples.*Give pool a f"

        class Turned(nn.Module):
            def __init__(self):
                super().__init__()
                self.LSTM = nn.LSTM(6, 5)

            def forward(self, x):
                return self.LSTM(x.movedim(0, 1))

        with pytest.raises(InputError, match=message):
            activations(Turned(), tensor(4, 7, 6))
        found = activations(Turned(), tensor(4, 7, 6), pool=lambda x: x[-1])
        assert found["LSTM"].values.shape == (4, 5)

    def test_values_that_are_not_finite_name_the_layer(self):
        with pytest.raises(InputError, match="dataset 'Linear' has NaN or infinite values"):
            activations(nn.Linear(6, 2), torch.full((4, 6), torch.nan))


@pytest.mark.slow  # the import of torch's compiler takes 10 s
def test_compiled_models_are_unwrapped():
    model = small_net()
    assert list(activations(torch.compile(model, backend="eager"), tensor(4, 3, 8, 8))) == [
        "conv",
        "fc",
    ]


def test_a_device_is_used_and_left():
    model = nn.Linear(6, 2)
    with pytest.raises(InputError, match="device 'meta' have no values"):
        activations(model, tensor(4, 6), device="meta")
    assert model.weight.device.type == "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    activations(model, tensor(4, 6), device="cuda")
    assert model.weight.device.type == "cpu"


class TestHints:
    def test_images_are_answered_with_flattening_and_pooling(self):
        with pytest.raises(InputError, match=r"reshape\(len\(values\), -1\), or average.*mean\("):
            ua.compare([np.zeros((5, 3, 4, 4)), np.zeros((5, 3, 4, 4))])

    @pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x, x], lambda x: {"a": x}])
    def test_loaders_are_answered_with_activations(self, wrap):
        dataset = torch.utils.data.TensorDataset(tensor(20, 6), torch.zeros(20))
        loader = torch.utils.data.DataLoader(dataset, batch_size=5)
        with pytest.raises(InputTypeError, match=r"ua\.torch\.activations\(model, loader\)"):
            ua.compare(wrap(loader))
        followed = torch.cat([batch[0] for batch in loader]).flatten(1)
        assert ua.signature(followed, n_eigenvalues=5).n_samples == 20
