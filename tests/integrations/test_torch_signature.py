"""`ua.torch.signature`: the values of `ua.signature`, with gradients."""

from functools import partial

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import DegenerateDataError, InputError, InputTypeError

torch = pytest.importorskip("torch")

from unaligned.integrations.torch import median  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")
gradcheck = torch.autograd.gradcheck
signature = ua.torch.signature


def normal(*shape, seed=0, grad=False, dtype=torch.float64):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return made.requires_grad_(grad)


def exact(points, k, **options):
    return ua.signature(np.asarray(points), n_eigenvalues=k, solver="exact", **options).values


def grid(n):
    """A ring of n points, whose eigenvalues come in pairs."""
    angle = 2 * torch.pi * torch.arange(n, dtype=torch.float64) / n
    return torch.stack([angle.cos(), angle.sin()], dim=1)


class TestValues:
    @pytest.mark.parametrize("n", [2, 3, 40, 41, 60])
    @pytest.mark.parametrize("d", [1, 3, 30])
    def test_equal_those_of_the_exact_solver(self, n, d):
        points, k = normal(n, d, seed=n + d), min(n, 8)
        there = ua.signature(points.numpy(), n_eigenvalues=k, solver="exact")
        known = there.eigenvalues >= 1e-6
        found = signature(points, n_eigenvalues=k).numpy()
        assert np.allclose(found[known], there.values[known], rtol=0, atol=1e-8)
        far = signature(points + 1e3, n_eigenvalues=k).numpy()
        assert np.allclose(far[known], there.values[known], rtol=0, atol=1e-6)

    @pytest.mark.parametrize(
        "options",
        [{"bandwidth": "mean"}, {"bandwidth": 3.0}, {"bandwidth_factor": 0.5}, {"gamma": 1e-3}],
    )
    def test_options(self, options):
        points = normal(40, 3)
        expected = exact(points, 10, **options)
        assert np.allclose(signature(points, n_eigenvalues=10, **options), expected, atol=1e-8)
        few = signature(points, n_eigenvalues=10, landmarks=40, **options)
        assert np.allclose(few, expected, atol=1e-6)

    def test_kinds(self):
        points = normal(30, 3)
        distances = torch.cdist(points, points)
        affinity = torch.exp(-distances)
        for kind, values in (("distances", distances), ("affinity", affinity), ("spd", affinity)):
            dataset = ua.Dataset(values.numpy(), kind=kind)
            expected = ua.signature(dataset, n_eigenvalues=9, solver="exact").values
            found = signature(values, n_eigenvalues=9, kind=kind)
            assert np.allclose(found, expected, atol=1e-8), kind
        both = signature(distances, n_eigenvalues=9, kind="distances")
        assert torch.allclose(both, signature(points, n_eigenvalues=9), atol=1e-8)

    def test_batches_are_computed_one_by_one(self):
        clouds = normal(2, 3, 25, 4)
        found = signature(clouds, n_eigenvalues=6)
        assert found.shape == (2, 3, 6)
        assert np.allclose(found[1, 2], exact(clouds[1, 2], 6), atol=1e-10)
        few = signature(clouds, n_eigenvalues=6, landmarks=25)
        assert torch.allclose(few, found, atol=1e-6)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    @pytest.mark.parametrize("gamma", [1e-8, 1e-4])
    def test_low_precision_is_as_good_as_its_points(self, dtype, gamma):
        points = normal(60, 2).to(dtype)
        found = signature(points, n_eigenvalues=40, gamma=gamma)
        assert found.dtype == torch.float32
        expected = exact(points.double(), 40, gamma=gamma)
        assert np.abs(found.numpy() - expected).max() < (1e-5 if gamma < 1e-5 else 0.02)

    def test_invariance_to_rotation_scale_and_order(self):
        points = normal(40, 3)
        turn = torch.linalg.qr(normal(3, 3, seed=1)).Q
        moved = 7.0 * (points @ turn + 5.0)[torch.arange(39, -1, -1)]
        first, second = (signature(x, n_eigenvalues=10) for x in (points, moved))
        assert torch.allclose(first, second, atol=1e-8)


class TestGradients:
    @pytest.mark.parametrize("n", [8, 9])  # the median of one pair or of two
    @pytest.mark.parametrize("bandwidth", ["median", "mean", 2.0])
    def test_points(self, n, bandwidth):
        points = normal(2, n, 3, grad=True)
        assert gradcheck(lambda x: signature(x, n_eigenvalues=4, bandwidth=bandwidth), points)

    def test_a_detached_bandwidth_has_another_gradient(self):
        points = normal(8, 3, grad=True)
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            gradcheck(lambda x: signature(x, n_eigenvalues=4, detach_bandwidth=True), points)

    @pytest.mark.parametrize("kind", ["distances", "affinity", "spd"])
    def test_other_kinds(self, kind):
        points = normal(8, 3)
        matrix = torch.cdist(points, points)
        matrix = matrix if kind == "distances" else torch.exp(-matrix.square())
        matrix = matrix.clone().requires_grad_()
        assert gradcheck(lambda a: signature(a, n_eigenvalues=4, kind=kind), matrix)

    def test_landmarks(self):
        points = normal(12, 3, grad=True)
        assert gradcheck(lambda x: signature(x, n_eigenvalues=4, landmarks=6), points)
        batch = normal(2, 12, 2, grad=True)
        assert gradcheck(lambda x: signature(x, n_eigenvalues=4, landmarks=9), batch)

    def test_sums_over_equal_eigenvalues(self):
        ring = grid(12).requires_grad_()

        def sums(points):
            values = signature(points, n_eigenvalues=5, bandwidth=1.0)
            return torch.stack([values[0], values[1] + values[2], values[3] + values[4]])

        single = signature(ring, n_eigenvalues=5)
        assert torch.allclose(single[1], single[2])
        assert torch.autograd.grad(single[1], ring)[0].isfinite().all()
        assert gradcheck(sums, ring)

    def test_duplicates_have_finite_gradients(self):
        points = normal(12, 3)
        points[4:8] = points[:4]
        points.requires_grad_()
        for landmarks in (None, 12):
            values = signature(points, n_eigenvalues=8, landmarks=landmarks)
            assert torch.autograd.grad(values.sum(), points)[0].isfinite().all()
        # The median has a kink where the middle pair is one of two equal ones.
        assert gradcheck(lambda x: signature(x, n_eigenvalues=4, bandwidth=2.0), points)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_descent_lowers_the_distance(self, dtype):
        target = signature(grid(40).to(dtype), n_eigenvalues=10)
        points = normal(40, 2, grad=True, dtype=dtype)
        optimizer = torch.optim.Adam([points], lr=0.05)
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = (signature(points, n_eigenvalues=10) - target).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < 0.2 * losses[0]


class TestLandmarks:
    @pytest.mark.parametrize("seed", range(2))
    def test_error_falls_with_their_number_and_gradients_agree(self, seed):
        points = normal(300, 3, seed=seed, grad=True)
        dense = signature(points, n_eigenvalues=20)
        (slope,) = torch.autograd.grad(dense.sum(), points, retain_graph=True)
        errors = []
        for r in (25, 50, 100):
            few = signature(points, n_eigenvalues=20, landmarks=r)
            errors.append(float((few - dense).detach().norm()))
        assert errors[0] > 3 * errors[1] > 9 * errors[2]
        (other,) = torch.autograd.grad(few.sum(), points)
        cosine = torch.nn.functional.cosine_similarity(slope.ravel(), other.ravel(), dim=0)
        assert cosine > 0.99

    @pytest.mark.parametrize("n", [600, 601])
    def test_median_by_tiles_is_exact(self, n, monkeypatch):
        monkeypatch.setattr(median, "_SAMPLE", 1 << 12)
        monkeypatch.setattr(median, "_collect", partial(median._collect, tile_size=1 << 14))
        points = normal(n, 3)
        few = signature(points, n_eigenvalues=5, landmarks=200)
        assert np.allclose(few, exact(points, 5), atol=1e-7)

    def test_memory_is_linear(self):
        points = normal(3000, 2, grad=True)
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: saved.append(t.numel()) or t, lambda t: t
        ):
            signature(points, n_eigenvalues=10, landmarks=40).sum().backward()
        assert max(saved) <= 3000 * 64

    def test_an_affinity_of_low_rank(self):
        points = normal(5, 2).repeat(4, 1)  # 20 points of rank 5
        found = signature(points, n_eigenvalues=8, landmarks=20, bandwidth="mean")
        assert np.allclose(found[:5], exact(points, 8, bandwidth="mean")[:5], atol=1e-6)
        assert (found[5:] < np.log(1e-7)).all()


class TestTransforms:
    def test_vmap_gives_the_batch(self):
        clouds = normal(3, 20, 2)
        mapped = torch.func.vmap(lambda x: signature(x, n_eigenvalues=5))(clouds)
        assert torch.allclose(mapped, signature(clouds, n_eigenvalues=5))

    def test_func_grad(self):
        points = normal(15, 2, grad=True)
        slope = torch.func.grad(lambda x: signature(x, n_eigenvalues=5).sum())(points)
        (expected,) = torch.autograd.grad(signature(points, n_eigenvalues=5).sum(), points)
        assert torch.allclose(slope, expected)

    @pytest.mark.slow  # the import of torch's compiler takes 10 s
    def test_compile_without_graph_breaks(self):
        points = normal(15, 2, grad=True)
        compiled = torch.compile(
            lambda x: signature(x, n_eigenvalues=5), fullgraph=True, backend="aot_eager"
        )
        found = compiled(points)
        assert torch.allclose(found, signature(points, n_eigenvalues=5))
        assert torch.autograd.grad(found.sum(), points)[0].isfinite().all()

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    def test_cuda_without_waiting_for_the_device(self):
        points = normal(30, 2).cuda()
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = signature(points, n_eigenvalues=5)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert torch.allclose(found.cpu(), signature(points.cpu(), n_eigenvalues=5), atol=1e-8)


@pytest.mark.parametrize(
    ("points", "options", "error", "message"),
    [
        (np.eye(5), {}, InputTypeError, "must be a torch.Tensor, not ndarray.*ua.signature"),
        (torch.eye(5, dtype=torch.int64), {}, InputTypeError, "floating-point, not torch.int64"),
        (torch.eye(5).to_sparse(), {}, InputTypeError, r"dense tensor. Use points.to_dense\(\)"),
        (
            torch.nested.as_nested_tensor([torch.eye(5)], layout=torch.jagged),
            {},
            InputTypeError,
            r"points.unbind\(\)",
        ),
        (torch.zeros(5), {}, InputError, r"must be \(…, N, d\).*shape is \(5,\)"),
        (torch.zeros(0, 3), {}, InputError, r"not empty; the shape is \(0, 3\)"),
        (torch.zeros(1, 3), {"n_eigenvalues": 1}, InputError, "one row; at least two"),
        (torch.zeros(3, 2), {"n_eigenvalues": 4}, InputError, "n_eigenvalues=4 needs at least 4"),
        (torch.eye(5)[:, :4], {"kind": "spd"}, InputError, "kind='spd' needs a square matrix"),
        (torch.eye(5), {"kind": "graph"}, InputError, "kind='graph' is not known"),
        (torch.zeros(5, 2), {}, DegenerateDataError, "σ²=0: half of all pairs"),
        (torch.rand(1, 9).repeat(5, 1) + 3, {}, DegenerateDataError, "σ²=0: half of all pairs"),
        (torch.zeros(5, 2), {"landmarks": 4}, DegenerateDataError, "σ²=0: half of all pairs"),
        (torch.full((5, 2), torch.nan), {}, InputError, "NaN or infinite"),
        (torch.eye(5), {"gamma": -1.0}, InputError, "gamma=-1.0 must be at least 0"),
        (torch.eye(5), {"bandwidth": "modus"}, InputError, "bandwidth='modus' is not known"),
        (torch.eye(5), {"bandwidth": 0.0}, InputError, "bandwidth=0.0 must be above 0"),
        (torch.eye(5), {"landmarks": 2}, InputError, "landmarks=2 must be at least 3"),
        (torch.eye(5), {"landmarks": 4, "kind": "affinity"}, InputError, "landmarks needs kind="),
        (torch.eye(5), {"detach_bandwidth": 1}, InputTypeError, "must be True or False"),
    ],
)
def test_wrong_input_raises(points, options, error, message):
    with pytest.raises(error, match=message):
        signature(points, **{"n_eigenvalues": 3, **options})
