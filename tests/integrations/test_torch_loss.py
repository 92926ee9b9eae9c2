"""`ua.torch.LESLoss`: unbiased between batches, and to a reference."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import InputError, InputTypeError, RecipeMismatchError

torch = pytest.importorskip("torch")

from unaligned.torch import LESLoss  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_two_samples_of_one_geometry_have_a_loss_of_0_on_average():
    first, second = normal(120, 96, 2), normal(120, 96, 2, seed=1)
    losses = LESLoss(reduction="none", block_size=24)(first, second)
    error = float(losses.std()) / np.sqrt(len(losses))
    assert abs(float(losses.mean())) < 3.5 * error
    signatures = [ua.torch.signature(x, n_eigenvalues=8) for x in (first, second)]
    plain = (signatures[0] - signatures[1]).square().sum(dim=-1)
    assert float(plain.mean()) > 10 * error  # what the correction removes
    far = LESLoss(reduction="none", block_size=24)(first, normal(120, 96, 6, seed=2))
    assert float(far.min()) > 0


def test_statistic_is_that_of_the_permutation_test():
    from unaligned.inference.energy import Design, statistic

    first, second = normal(4, 20, 3), normal(3, 20, 2, seed=1)
    loss = LESLoss(block_size=20, n_eigenvalues=6)(first.reshape(80, 3), second.reshape(60, 2))
    logs = [ua.torch.signature(x, n_eigenvalues=6).numpy() for x in (first, second)]
    both = np.concatenate(logs)
    squared = ((both[:, None] - both) ** 2).sum(axis=-1)
    design = Design.of(4, 3)
    (expected,) = statistic(squared, design.observed[None], design)
    assert float(loss) == pytest.approx(expected)


def test_reductions_and_roots():
    first, second = normal(5, 64, 2), normal(5, 64, 9, seed=1)
    each = LESLoss(reduction="none")(first, second)
    assert each.shape == (5,)
    assert torch.allclose(LESLoss()(first, second), each.mean())
    assert torch.allclose(LESLoss(reduction="sum")(first, second), each.sum())
    assert torch.allclose(LESLoss(reduction="none", squared=False)(first, second) ** 2, each)


def test_root_of_a_negative_estimate_is_0_with_gradient_0():
    for seed in range(20):
        first = normal(64, 2, seed=seed).requires_grad_()
        second = normal(64, 2, seed=100 + seed)
        if LESLoss()(first, second) < 0:
            break
    loss = LESLoss(squared=False)(first, second)
    loss.backward()
    assert loss == 0
    assert torch.equal(first.grad, torch.zeros_like(first))


def test_gradients_are_those_of_the_loss():
    points, other = normal(24, 2).requires_grad_(), normal(24, 3, seed=1)
    assert torch.autograd.gradcheck(
        lambda x: LESLoss(block_size=8, n_eigenvalues=3)(x, other), points
    )


class TestReferences:
    def test_points(self):
        ring, cloud = normal(64, 2), normal(64, 5, seed=1)
        assert torch.equal(LESLoss(ring)(cloud), LESLoss()(cloud, ring))
        assert torch.equal(LESLoss(ring.numpy())(cloud), LESLoss()(cloud, ring))
        assert torch.equal(LESLoss(ua.Dataset(ring.numpy()))(cloud), LESLoss()(cloud, ring))

    def test_signature_of_the_same_size(self):
        reference = ua.signature(normal(60, 2).numpy(), n_eigenvalues=9, gamma=1e-4)
        points = normal(60, 4, seed=1)
        there = ua.signature(points.numpy(), n_eigenvalues=9, gamma=1e-4)
        expected = ua.distance(reference, there) ** 2
        assert float(LESLoss(reference)(points)) == pytest.approx(expected)
        several = LESLoss(reference)(normal(200, 4, seed=1))  # three blocks of 60 rows
        assert float(several) < expected + 5

    def test_signature_of_another_size_raises(self):
        reference = ua.signature(normal(60, 2).numpy(), n_eigenvalues=9)
        with pytest.raises(InputError, match=r"points has 50 rows, fewer than 1 × 60"):
            LESLoss(reference)(normal(50, 2))

    def test_signature_of_another_recipe_raises(self):
        points = normal(60, 2).numpy()
        reference = ua.signature(points, n_eigenvalues=9)
        for options in ({"gamma": 1e-3}, {"n_eigenvalues": 5}, {"block_size": 30}):
            with pytest.raises(RecipeMismatchError, match=f"{next(iter(options))}=.* was given"):
                LESLoss(reference, **options)
        for options in ({"kernel": "laplacian"}, {"preprocess": "standardize"}, {"robust": True}):
            other = ua.signature(points, n_eigenvalues=9, **options)
            with pytest.raises(RecipeMismatchError, match=f"reference has {next(iter(options))}="):
                LESLoss(other)

    def test_reference_moves_with_the_module_and_is_no_parameter(self):
        loss = LESLoss(normal(64, 2)).float()
        assert loss.reference.dtype == torch.float32
        assert not list(loss.parameters())
        assert not loss.state_dict()
        assert loss(normal(64, 3).float()).dtype == torch.float32
        assert repr(loss) == "LESLoss(64 points, reduction='mean', squared=True)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LESLoss()(normal(64, 2)), InputError, r"call it with \(points, other\)"),
        (lambda: LESLoss(normal(64, 2))(normal(64, 2), normal(64, 2)), InputError, "each batch"),
        (lambda: LESLoss(reduction="max"), InputError, "reduction='max' is not known"),
        (lambda: LESLoss(squared=1), InputTypeError, "squared=1 must be True or False"),
        (lambda: LESLoss("ring"), InputTypeError, "reference must be a Signature, points or None"),
        (lambda: LESLoss(torch.zeros(5)), InputError, r"reference must be .*\(M, d\)"),
        (lambda: LESLoss()(normal(15, 2), normal(64, 2)), InputError, "points has 15 rows, fewer"),
        (lambda: LESLoss()(normal(64, 2), normal(9, 2)), InputError, "other has 9 rows, fewer"),
        (lambda: LESLoss()(normal(64), normal(64)), InputTypeError, "points must be a tensor of"),
        (lambda: LESLoss()(np.eye(64), normal(64, 2)), InputTypeError, "points must be a tensor"),
        (lambda: LESLoss(torch.eye(64).to_sparse()), InputTypeError, "reference must be a dense"),
        (lambda: LESLoss()(normal(64, 2), torch.eye(64).to_sparse()), InputTypeError, "other m"),
        (lambda: LESLoss(block_size=1), InputError, "block_size=1 must be at least 2"),
    ],
)
def test_wrong_use_raises(call, error, message):
    with pytest.raises(error, match=message):
        call()
