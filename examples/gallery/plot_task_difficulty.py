"""
Which task will be hard?
========================

A network has learned to tell the digits 0 to 4 apart. Its hidden layer embeds new tasks, three
digits each, some of which it has never seen; five labelled images of each digit then train a
classifier. The distance of a task's unlabelled embeddings to those of known tasks tells beforehand
how well that will go (Section 5.3 of the paper; ``unaligned reproduce tasks`` has photographs).
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

import unaligned as ua

images, labels = load_digits(return_X_y=True)
images, seen = images / 16, labels < 5
network = MLPClassifier((32,), activation="tanh", random_state=0, max_iter=400)
network.fit(images[seen], labels[seen])
hidden = np.tanh(images @ network.coefs_[0] + network.intercepts_[0])
digits = [hidden[labels == digit][:170] for digit in range(10)]  # equally many of each


def accuracy(task, rng, shots=5, draws=20):
    """Return the accuracy of a linear SVM on a few labelled images, averaged over draws."""
    found = []
    for _ in range(draws):
        orders = [rng.permutation(digits[digit]) for digit in task]
        known = np.concatenate([order[:shots] for order in orders])
        others = np.concatenate([order[shots:] for order in orders])
        head = LinearSVC(random_state=0, max_iter=100_000).fit(known, np.repeat(task, shots))
        found.append(head.score(others, np.repeat(task, 170 - shots)))
    return np.mean(found)


# %%
# References are five tasks of seen digits. New tasks have 0 to 3 unseen digits.

tasks = {"".join(map(str, task)): task for task in combinations(range(10), 3)}
points = {name: np.concatenate([digits[d] for d in task]) for name, task in tasks.items()}
n_unseen = {name: sum(d >= 5 for d in task) for name, task in tasks.items()}
known = [name for name in tasks if n_unseen[name] == 0][::2]
references = {name: points[name] for name in known}
rng = np.random.default_rng(0)
chosen = []
for n in range(4):
    others = [name for name in tasks if n_unseen[name] == n and name not in known]
    chosen += map(str, rng.choice(others, 5, replace=False))
found = ua.compare(
    {name: points[name] for name in chosen}, references, n_eigenvalues=150, gamma=1e-6
)
difficulty = found.aggregate("mean")  # or "min", "max"
accuracies = {name: accuracy(tasks[name], rng) for name in chosen}

# %%
# The farther, the harder.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
counts = [n_unseen[name] for name in chosen]
shades = axes.scatter(
    difficulty, [accuracies[name] for name in chosen], c=counts, cmap="viridis_r"
)
figure.colorbar(shades, label="digits that the network has not seen", ticks=range(4))
r = found.correlate(accuracies)
axes.set(xlabel="mean LES distance to known tasks", ylabel="5-shot accuracy")
axes.set_title(f"Pearson's r = {r:.2f}, p = {r.p_value:.1g}")
plt.show()

# %%
# The hardest tasks by their distance, with what came true.

print(difficulty.nlargest(3).to_frame("distance").assign(accuracy=accuracies).round(2))
