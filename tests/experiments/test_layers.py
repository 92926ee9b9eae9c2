"""The layer experiment: margins, matching, CKA by minibatches, networks and verdicts."""

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.errors import InputError
from unaligned.experiments.layers import LENET, Layers, matching_shares, minibatch_cka

torch = pytest.importorskip("torch")

from unaligned.experiments import layer_claims, networks  # noqa: E402
from unaligned.experiments.pictures import Pictures  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def lenet_table(distances, method="lenet-les"):
    """Return the table of trials with these matrices of distances."""
    pairs = [f"{a}:{b}" for a in LENET for b in LENET]
    return pd.DataFrame(
        {"trial": trial, "different_inputs": 0.0, "method": method, "pair": pair, "value": value}
        for trial, matrix in enumerate(distances)
        for pair, value in zip(pairs, np.ravel(matrix), strict=True)
    )


def shifted(slope):
    return 1.0 + slope * np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))


@pytest.mark.parametrize(("slope", "holds"), [(0.5, True), (-0.1, False)])
def test_verdicts_follow_from_the_margins(slope, holds):
    les = layer_claims.claims_of(lenet_table([shifted(slope)] * 2))
    assert [claim.passed for claim in les] == [holds, holds]
    assert ("in 2 of 2 pairs" if holds else "in 0 of 2 pairs") in les[0].measured
    imd = layer_claims.claims_of(lenet_table([shifted(slope)], "lenet-imd"))
    assert [claim.passed for claim in imd] == [not holds, holds]


def test_shares_of_matched_layers():
    # Two networks of three layers, the second of which has its last two layers exchanged.
    place = np.array([0.0, 1.0, 2.0, 0.1, 2.1, 1.1])
    shares = matching_shares(np.abs(np.subtract.outer(place, place)), 2)
    assert shares == {(0, 1): pytest.approx(1 / 3), (1, 0): pytest.approx(1 / 3)}


@pytest.mark.parametrize("seed", range(3))
def test_minibatch_cka(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 6))
    layers = [points, np.tanh(points @ rng.normal(size=(6, 30))), rng.normal(size=(40, 4))]
    found = minibatch_cka([layers])
    expected = ua.compare(layers, distance="cka", debiased=True).distances
    assert np.allclose(found, expected, atol=1e-5)
    halves = minibatch_cka([[x[:20] for x in layers], [x[20:] for x in layers]])
    assert halves[0, 1] < halves[0, 2]
    assert np.allclose(minibatch_cka([[100.0 * x for x in layers]]), found, atol=1e-5)


def test_stages_of_trials():
    experiment = Layers(n_trials=2)
    tasks = [task for stage in experiment.tasks(experiment.methods) for task in stage]
    assert {t.methods[0] for t in tasks if t.trial == 1} == {"lenet-les", "training-les"}
    assert "allcnn-les" not in experiment.methods
    assert "allcnn-les" in Layers(train=True).methods
    assert "train" not in experiment.settings()


@pytest.mark.parametrize("with_accuracy", [True, False])
def test_the_table_says_how_well_all_cnn_was_trained(with_accuracy):
    rows = [("allcnn-les", f"{i}:{j}", 0.9) for i in range(2) for j in range(2) if i != j]
    for name, right in (("accuracy", 0.5), ("accuracy-training", 0.8)):
        accuracies = [(f"allcnn-{name}", f"seed {i}", right + i / 10) for i in range(2)]
        rows += accuracies * with_accuracy
    table = pd.DataFrame(rows, columns=["method", "pair", "value"]).assign(different_inputs=0.0)
    experiment = Layers(train=True, n_seeds=2, width=48, all_cnn_epochs=3)
    assert experiment.pairs("allcnn-accuracy") == ("seed 0", "seed 1")
    text, found = layer_claims.accuracy_note(table, experiment)
    assert "2 seeds, width 48 (the paper's is 96), dropout 0.5 (0.5), 3 epochs" in text
    assert ("80.0 to 90.0 % of training images right" in text) == with_accuracy
    assert ("50.0 to 60.0 % of test images right" in text) == with_accuracy
    assert "| All-CNN-C | LES | 90.0 ± 0.0 % |" in found


def test_different_inputs_are_of_different_sizes_and_within_the_limits():
    experiment = Layers(n_images=1000, n_networks=4)
    (same, other), (equal,) = (
        [t for stage in experiment.tasks([name]) for t in stage]
        for name in ("tiny10-les", "tiny10-les-equal")
    )
    images = experiment._inputs(same, 4)
    assert all(np.array_equal(rows, images[0]) for rows in images)
    sizes = [len(rows) for rows in experiment._inputs(other, 4)]
    assert min(sizes) >= 700
    assert max(sizes) <= 1000
    assert len(set(sizes)) > 1
    assert {len(rows) for rows in experiment._inputs(equal, 4)} == {700}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_images": 100}, "n_images=100 must be at least 286"),
        ({"lenet_images": 20_000}, "lenet_images must be at most 10,000"),
        ({"n_networks": 1}, "n_networks=1 must be at least 2"),
        ({"width": 0}, "width=0 must be at least 1"),
        ({"dropout": 2.0}, "dropout=2.0 must be below 1"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        Layers(**settings)


def test_all_cnn_has_ten_layers_and_training_resumes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = rng.integers(100, size=(40, 32, 32, 3)) + 100 * labels[:, None, None, None]
    pictures = Pictures(images.astype(np.uint8), labels)
    epochs = []

    def stopped(message):
        epochs.append(message)
        raise RuntimeError("stopped")

    options = {"width": 2, "dropout": 0.5, "n_epochs": 2, "pictures": pictures}
    with pytest.raises(RuntimeError, match="stopped"):
        networks.trained_all_cnn(0, **options, report=stopped)
    resumed = networks.trained_all_cnn(0, **options, report=epochs.append)
    assert [message[-6:] for message in epochs] == ["1 of 2", "2 of 2"]
    for path in networks.networks_folder().iterdir():
        path.unlink()
    whole = networks.trained_all_cnn(0, **options)
    for a, b in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)
    inputs = networks.cifar_inputs(pictures.images[:8])
    found = ua.torch.activations(whole, inputs, [*(f"conv{i}" for i in range(1, 10)), "logits"])
    assert len(found) == 10
    assert found["logits"].n_features == 10


def test_lenet_layers_are_those_of_the_paper():
    inputs = networks.mnist_inputs(np.zeros((3, 28, 28), dtype=np.uint8))
    found = ua.torch.activations(networks.lenet(), inputs, LENET[1:])
    assert [dataset.n_features for dataset in found.values()] == [1176, 400, 120, 84]
