"""
A real network and random models of it
======================================

The characters of *Les Misérables* (77 vertices, inside networkx), and three random models of that
graph: as many edges, the same degrees (edges swapped in pairs), and preferential attachment of about
as many edges, four draws each. LES compares the spectra of exp(-L).
"""

# needs: networkx
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_graphs.png'

import matplotlib.pyplot as plt
import networkx as nx

import unaligned as ua

real = nx.les_miserables_graph()
n, m = real.number_of_nodes(), real.number_of_edges()
models = {
    "same edges": lambda seed: nx.gnm_random_graph(n, m, seed=seed),
    "same degrees": lambda seed: nx.double_edge_swap(real.copy(), 10 * m, 10**6, seed=seed),
    "attachment": lambda seed: nx.barabasi_albert_graph(n, round(m / n), seed=seed),
}
graphs, kind = {"Les Misérables": real}, ["real"]
for name, draw in models.items():
    for seed in range(4):
        graphs[f"{name} {seed + 1}"] = draw(seed)
        kind.append(name)

# %%
# Each isolated vertex would add an eigenvalue 1: they are left out of the random graphs. Those have no
# weights, so that the weights of the real one are left out too (``weight=None``).

datasets = {}
for name, graph in graphs.items():
    graph = graph.subgraph(vertex for vertex, degree in graph.degree() if degree)
    datasets[name] = ua.Dataset(nx.to_numpy_array(graph, weight=None), kind="graph")
les = ua.compare(datasets, n_eigenvalues=60)
netlsd = ua.compare(datasets, distance="netlsd")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, found, title in zip(axes, (les, netlsd), ("LES", "NetLSD"), strict=True):
    found.plot("embedding", ax=ax, color=kind, title=title)
plt.show()
