"""Episodic training: the ridge head is right, and a stopped training gives the same embedder."""

import numpy as np
import pytest

from unaligned.errors import FileError, InputError

torch = pytest.importorskip("torch")

from unaligned.experiments import embedders, few_shot, networks, training  # noqa: E402
from unaligned.experiments.training import Training, episode, ridge_scores, train  # noqa: E402

TINY = Training(n_episodes=5, n_way=2, n_support=2, n_query=1)


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 256, size=(8, 32, 32, 3), dtype=np.uint8) for name in "abc"}


def test_ridge_head_is_ridge_regression():
    from sklearn.linear_model import Ridge

    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, query = rng.normal(size=(10, 30)), rng.normal(size=(4, 30))
        y = np.arange(10) % 3
        scores = ridge_scores(*map(torch.from_numpy, (X, y, query)), 0.7)
        expected = Ridge(alpha=0.7, fit_intercept=False).fit(X, np.eye(3)[y]).predict(query)
        np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-9)


def test_ridge_head_is_differentiable():
    generator = torch.Generator().manual_seed(0)
    X, query = (
        torch.randn(n, 4, dtype=torch.float64, generator=generator, requires_grad=True)
        for n in (6, 3)
    )
    penalty = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    labels = torch.arange(6) % 3
    assert torch.autograd.gradcheck(
        lambda a, b, c: ridge_scores(a, labels, b, c), (X, query, penalty)
    )


def test_episodes_have_support_before_query_and_depend_on_their_number(classes):
    images = [np.full((8, 32, 32, 3), i, dtype=np.uint8) for i in (10, 20, 30)]
    drawn, labels = episode(TINY, 0, images)
    assert drawn.shape == (6, 32, 32, 3)
    assert labels.tolist() == [0, 1, 0, 1, 0, 1]
    values = drawn[:, 0, 0, 0]
    assert values.tolist() == [values[0], values[1]] * 3
    again, _ = episode(TINY, 0, images)
    np.testing.assert_array_equal(again, drawn)
    real = list(classes.values())
    assert not np.array_equal(episode(TINY, 1, real)[0], episode(TINY, 2, real)[0])


def test_stopped_training_gives_the_same_embedder(monkeypatch, tmp_path, classes):
    whole = train(TINY, classes, tmp_path / "whole.npz", per_checkpoint=2)
    original, steps = training._Learner.step, iter(range(3))

    def step(self, *arguments):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training._Learner, "step", step)
        with pytest.raises(KeyboardInterrupt):
            train(TINY, classes, tmp_path / "cut.npz", per_checkpoint=2)
    resumed = train(TINY, classes, tmp_path / "cut.npz", per_checkpoint=2)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], value, rtol=0, atol=0)


def test_training_of_other_settings_is_rejected(tmp_path, classes):
    path = tmp_path / "embedder.npz"
    train(TINY, classes, path)
    with pytest.raises(FileError, match=r"training with other settings .* Delete it"):
        train(Training(n_episodes=4, n_way=2), classes, path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileError, match="was not written by unaligned, or it is damaged"):
        train(TINY, classes, path)


def test_invalid_training_raises(tmp_path, classes):
    with pytest.raises(InputError, match=r"n_way=5 needs as many classes; got 3"):
        train(Training(), classes, tmp_path / "embedder.npz")
    with pytest.raises(InputError, match=r"architecture='conv5' is not known"):
        Training("conv5")
    with pytest.raises(InputError, match=r"n_episodes=0 must be at least 1"):
        Training(n_episodes=0)


@pytest.mark.parametrize(("build", "d"), [(embedders.conv4, 256), (embedders.resnet12, 2560)])
def test_embeddings_are_kept_and_have_the_stated_dimension(build, d, tmp_path, classes):
    network = build()
    few = {name: images[:2] for name, images in classes.items()}
    first = embedders.embed_classes(network, few, tmp_path, networks.CIFAR100)
    assert {points.shape for points in first.values()} == {(2, d)}
    assert len(list(tmp_path.iterdir())) == 3
    next(tmp_path.iterdir()).write_bytes(b"damaged")
    again = embedders.embed_classes(network, few, tmp_path, networks.CIFAR100)
    other = embedders.embed_classes(build(), {"a": few["a"]}, tmp_path, networks.CIFAR100)
    np.testing.assert_array_equal(again["a"], first["a"])
    assert not np.array_equal(other["a"], first["a"])  # other weights


def test_foreign_weights_are_rejected(monkeypatch, tmp_path):
    monkeypatch.setenv("UNALIGNED_DATA", str(tmp_path))
    path = tmp_path / "resnet_cifar10" / "resnet20-12fca82f.th"
    path.parent.mkdir()
    path.write_bytes(b"not weights")
    with pytest.raises(FileError, match=r"has no weights of ResNet-20"):
        networks.resnet(20)
    torch.save({"state_dict": {"module.conv1.weight": torch.zeros(16, 3, 3, 3)}}, path)
    with pytest.raises(FileError, match=r"has no weights of ResNet-20"):
        networks.resnet(20)


def test_omniglot_is_loaded_trained_and_embedded(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    numbers = np.repeat(np.arange(9), 6)  # of 9 characters, 6 drawings each
    arrays = {
        "images": rng.integers(0, 256, size=(len(numbers), 28, 28), dtype=np.uint8),
        "class_id": numbers,
        "alphabet": np.minimum(numbers // 3, 2),
        "evaluation": (numbers >= 6).astype(np.uint8),
        "alphabet_names": np.array(["Greek", "Latin", "Malay"]),
    }
    np.savez(tmp_path / "omniglot28.npz", **arrays)
    monkeypatch.setenv("UNALIGNED_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    few = {"n_episodes": 2, "n_way": 3, "n_support": 2, "n_query": 2}
    monkeypatch.setattr(few_shot, "_OMNIGLOT", few)
    found = few_shot.load_benchmark("omniglot", "resnet20")  # it has an embedder of its own
    assert list(found.seen) == [
        *(f"Greek/{i}" for i in range(3)),
        *(f"Latin/{i}" for i in (3, 4, 5)),
    ]
    assert list(found.unseen) == ["Malay/6", "Malay/7", "Malay/8"]
    assert {points.shape for points in (*found.seen.values(), *found.unseen.values())} == {
        (6, 256)
    }
    assert found.n_way == 3
    assert {name[:5] for name in found.draw(1.0, rng)} == {"Malay"}
