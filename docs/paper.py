"""Write docs/paper.md: every figure, table, proposition and claim of the paper, with our verdict.

Numbers are read from docs/results.md and the other pages, verdicts of experiments from the claims
there: all claims of an item pass (reproduced), some (partly), none (not). What tests prove and what
cannot be had stands in ITEMS. `tests/test_site.py` holds the page to the results.
Run: python docs/paper.py    (after docs/refresh.py)
"""

import re
from itertools import product
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
PAGES = ("results.md", "benchmarks.md", "distances.md", "sizes.md")
NUMBER = r"-?\d+(?:[,.]\d+)*(?:e[+-]?\d+)?"
SHOTS = "1, 5 and 10 shots"
TRENDS = r"as c falls, d\(T2,T2Sc\)"
CLAIMS = "pytest tests/paper/test_claims.py::test"
RESNET = "with ResNet-20 trained on CIFAR-10"
CONV4 = "with Conv-4 trained on each benchmark"
TASKS = RESNET + "; OT and GW on {for OT and GW @#} images per class"
# What a run has in place of the paper's, in the column of the verdict.
INSTEAD = {
    "tasks": TASKS,
    "tasks-conv4": CONV4 + ", {Tasks have @#} images per class (OT and GW: {for OT and GW @#})",
    "cells": "with other cells: CytoTree and three Plasmodium species",
    "layers-allcnn": "with {All-CNN-C here: @#@ seeds} All-CNN-C of half width after {dropout # (#), @# epochs}, {from N = @#} images",
}
TINY10 = "with {Tiny10: @# networks of # layers} (Tiny10) in place of 10 All-CNN-C, {from N = @#} images"
COURSES = ("CytoTree", "P. berghei", "P. falciparum", "P. knowlesi")


def each_course(template: str) -> str:
    """Return a template for every time course of cells, with its name for NAME."""
    return "; ".join(f"{name} {template.replace('NAME', name)}" for name in COURSES)


class Item(NamedTuple):
    """One row of the page.

    In `here` and `instead`, {held} is the number of claims that hold, and {before@shown@after} the
    text `shown` between the two others in the results, where # is a number and … anything.
    """

    where: str
    says: str
    here: str
    by: str  # names of runs in results.md, or a command
    verdict: str = ""  # of what no claim decides
    claims: str = ""  # pattern of the claims that decide
    instead: str | None = None  # None: that of the run


ITEMS = [
    Item("Eqs. 1-4", "affinity and diffusion operator W", "W to rounding against Eqs. 2-4 entry by entry", "pytest tests/paper/test_equations.py", "reproduced"),
    Item("Section 2", "MMD, MTD and CrossLID need datasets in one space", "`mmd`, `mtd`, `crosslid` (and `frechet`, `wasserstein`, `edistance`) raise an error with the reason for others", "pytest tests/contracts/test_distances.py::test_missing_requirements_raise_not_applicable", "reproduced"),
    Item("Section 3.1", "the normalisation of Eq. 2 mitigates non-uniform sampling", "eigenvalues of an unevenly sampled circle: less than half of the error without it", f"{CLAIMS}_the_normalisation_mitigates_non_uniform_sampling", "reproduced"),
    Item("Section 3.1", "eigenvalues of (I - W)/σ² converge to those of the Laplace-Beltrami operator", "to a quarter of them, as exp(-d²/σ²) has no factor 4: on a circle of 600 points the error falls with σ²", f"{CLAIMS}_eigenvalues_of_a_circle_are_those_of_its_laplacian", "partly"),
    Item("Section 3.1", "W and W_DM share eigenvalues", "to 1e-10", f"{CLAIMS}_both_diffusion_operators_have_the_same_eigenvalues", "reproduced"),
    Item("Section 3.2", "the LE and AI metrics on SPD matrices share invariance to inversion, translation, scaling and orthogonal transformations", "to rounding; translation in each metric's own group (LE: W₁ ⊙ W₂; AI: GWGᵀ), and neither under the other's nor under W + cI", f"{CLAIMS}_both_metrics_are_invariant_to_inversion_scaling_and_rotation; {CLAIMS}_each_metric_is_invariant_to_the_translations_of_its_own_group", "reproduced"),
    Item("Section 3.2", "LE costs less than AI", "LE takes r logarithms for r matrices, AI r(r - 1)/2 eigenvalue problems: {bench_metrics.py` | @# × the time for two matrices, # × for 20}", "python benchmarks/bench_metrics.py", "partly"),
    Item("Section 3.2, Algorithm 2", "consequences for LES: invariant to rotation, translation and scale of the points (implied, not claimed)", "to rounding, and to the order of rows and columns", "pytest tests/paper/test_invariances.py::test_les_is_invariant", "reproduced"),
    Item("Proposition 1", "a lower and an upper bound of LE by the eigenvalues in the same and in reversed order", "lower: broken in {broken in @#} of {broken in # of @#} pairs of operators, LES / LE from {LES / LE from @# to #}; both: in no random pair", "aligned; pytest tests/spectra/test_bounds.py::test_log_euclidean_distance_lies_between_bounds", "", "^LES is at most LE"),
    Item("Proposition 1", "equality for matrices with the same eigenvectors: lower bound in the same order, upper bound in the opposite one", "to 1e-9 on both sides", "pytest tests/spectra/test_bounds.py::test_bounds_are_attained_by_commuting_matrices", "reproduced"),
    Item("Section 4.1", "the upper bound is loose", "more than 2.5 times LE on aligned tori, where LES is more than LE / 2.5", f"{CLAIMS}_the_upper_bound_is_loose_on_diffusion_operators", "reproduced"),
    Item("Eq. 7", "the log-Hilbert-Schmidt distance; γ = μ is the log-Euclidean one", "equal to rounding", "pytest tests/spectra/test_bounds.py::test_aligned_log_hilbert_schmidt_equals_independent_formulas", "reproduced"),
    Item("Section 4.2", "regularized, the distance does not diverge as N grows", "LES of T2 and T3: {| n_samples=750 | @#} at N = 750, {| n_samples=12000 | @#} at N = 12,000", "sensitivity", "reproduced"),
    Item("Section 4.2", "regularization reduces the effect of noise", "noise of 0.01 moves T2 by {| γ = 1e-10 | # | # | @#} (γ = 1e-10), {| γ = 1e-08 | # | # | @#} (1e-8), {| γ = 1e-05 | # | # | @#} (1e-5)", "sensitivity", "reproduced"),
    Item("Section 4.2, remark", "larger γ for very noisy data", "noise of 0.1 moves T2 less (as above), but the crossing is higher: {| γ = 1e-10 | # | # | # | # | # ± # | # ± # | @#} (γ = 1e-10), {| γ = 1e-08 | # | # | # | # | # ± # | # ± # | @#} (1e-8), {| γ = 1e-05 | # | # | # | # | # ± # | # ± # | @#} (1e-5)", "sensitivity", "partly"),
    Item("Section 4.2.1", "truncation does not affect the structures that are captured", "crossing {| K = 50 | # | # | # | # | @#} with K = 50, {| K = 100 | # | # | # | # | @#} with 100, {| K = 200 | # | # | # | # | @#} with 200, {| K = 500 | # | # | # | # | @#} with 500", "sensitivity", "partly"),
    Item("Section 4.2, remark", "LES is the lower bound of a fixed-rank distance (Bonnabel & Sepulchre, Collard et al.) that drops the term of the rotations", "γ = 0, rank K: below the distance of Bonnabel & Sepulchre, and equal where eigenvectors are the same", f"{CLAIMS}_les_is_below_a_fixed_rank_distance_and_equal_without_rotations", "reproduced"),
    Item("Section 4.2, remark", "the ratios λᵢ/λᵢ₊₁ tell data from noise", "a torus with noise in 20 dimensions: eigenvalues above the γ of `ua.diagnose` are those of the torus", f"{CLAIMS}_the_knee_of_the_ratios_tells_a_torus_from_noise", "reproduced"),
    Item("Section 4.2, remark", "truncating the spectrum is significantly more advantageous than changing the size of a dataset", "two samples of T2, 1600 and 400 rows, are nearer than at a common size; of N(0, I₃), 200 and 800 rows, K = 200, farther: {| 3 | 200 | # | # | # | @#} against {| 3 | 200 | # | # | # | # | @#} ([sizes](sizes.md))", f"{CLAIMS}_truncation_beats_a_common_size_only_where_the_spectrum_is_resolved; python benchmarks/bench_sizes.py", "partly"),
    Item("Section 4.2, remark", "truncation keeps the lower bound of LE", "for all K, and LES never falls as K grows", f"{CLAIMS}_truncation_keeps_the_lower_bound", "reproduced"),
    Item("Section 4.2", "larger σ², faster spectral decay", "every eigenvalue but the first falls", f"{CLAIMS}_a_larger_scale_has_a_faster_decay", "reproduced"),
    Item("Proposition 2", "expected error of Algorithm 1, of eigenvalues and of their logarithms", "holds in the mean over seeds, nearly attained where there is a gap at K. Its second part needs relative errors of at most 0.5828 (Appendix A), which depend on Ω: it is about the seeds where they are", f"pytest tests/spectra/test_nystrom.py::test_proposition_2_holds_on_average; {CLAIMS}_the_logarithm_of_appendix_a_is_bounded", "reproduced"),
    Item("Algorithm 1", "fixed-rank Nyström approximation, M = 2K", "as written, to rounding; biased downward where the spectrum decays slowly: error {| digits, …K=200 | # | @#} on digits, where `auto` has {| digits, …K=200 | @#}", "pytest tests/spectra/test_nystrom.py::test_solver_equals_algorithm_1; python benchmarks/bench_accuracy.py", "reproduced"),
    Item("Eq. 11, Algorithm 2", "the LES distance and descriptor", "{four tori | `python benchmarks/bench_faithful.py` | @at most #} from the authors' way on four tori", "python benchmarks/bench_faithful.py", "reproduced"),
    Item("Section 4.3, remark", "isospectral operators are indistinguishable; distance 0 only with exact eigenvalues; any SPD matrix may be compared", "0 after a rotation of the matrix; Algorithm 1 with two Ω: 0.002 for one dataset in 5 dimensions. Here Ω depends on the data, so that d(A, A) = 0; `kind=\"spd\"`", f"{CLAIMS}_isospectral_matrices_are_indistinguishable; {CLAIMS}_approximate_eigenvalues_of_one_dataset_differ; pytest tests/paper/test_invariances.py::test_distance_of_dataset_to_itself_is_exactly_zero; pytest tests/paper/test_equations.py::test_eigenvalues_of_spd_matrix_are_used_directly", "reproduced"),
    Item("Section 4.3, remark", "distance close to 0 for different samples of one manifold", "T2 and T3 are {mean of two independent samples of T2 | @#} times as far apart as two samples of T2; but two of 200 rows of N(0, I₃) with K = 200 are {| 3 | 200 | @#} apart ([sizes](sizes.md))", "tori", "", "at least 60 times"),
    Item("Section 4.3", "IMD (our approach), the heat traces of the eigenvalues of W", "`imd-diffusion` equals the formula", "pytest tests/metrics/test_les.py::test_imd_diffusion_equals_the_formula", "reproduced"),
    Item("Section 4.3", "LES outperforms IMD in all applications", "{held}; not: P. knowlesi ({P. knowlesi: LES follows time better than IMD, GS and MTD | @LES #, IMD #} and gene subsets), All-CNN-C on different inputs; with Conv-4 (Table 2) IMD is ahead on CIFAR-FS with min; on tori the plain IMD crosses lower", "cells; tasks; layers; layers-allcnn", "", "LES (follows time better than IMD|outperforms IMD|matches more layers)", "with the data and networks of the rows below"),
    Item("Fig. 1", "LES, GW and IMD (our approach) show the four trends, IMD and GS do not", "{held}; GW is not monotone, by up to {Gromov-Wasserstein: as…d(T2,T3Sc) in # of # steps, by up to @#} where its mean is {Gromov-Wasserstein: as…d(T2,T3Sc) in # of # steps, by up to # where its mean is @#}", "tori", "", rf"{TRENDS}|does not show the four trends"),
    Item("Fig. 1", "crossings, by the authors' code: LES at about c = 0.41, IMD (our approach) 0.82", "LES {LES: …cross at about…c = @#@ | pass}, IMD (our approach) {IMD (our approach): …cross at about…c = @#@ | pass}", "tori", "", "cross at about"),
    Item("Section 5.1", "IMD captures mainly dimension and is not sensitive to small differences of scale", "scale over dimension, 0.8 ≤ c < 1: IMD {at 0.8 ≤ c < 1: @#}, about its sampling noise, LES {for imd; @#}; the same with 5, 10 and 20 neighbours", f"tori; {CLAIMS}_imd_sees_mainly_dimension_with_any_number_of_neighbours", "reproduced"),
    Item("Section 5.1", "estimating heat kernel eigenvalues makes IMD more stable", "standard deviation of d(T2, T3): IMD {over its mean: IMD @#@%, IMD} %, IMD (our approach) {(our approach) @#@%, LES} %, LES {%, LES @#@%} %", "tori", "", "yields a more stable"),
    Item("Section 5.1", "LES separates dimension from scale over a wider range than GW and IMD (our approach)", "crossings: LES {LES c = @#}, IMD (our approach) {IMD (our approach) c = @#}, GW {Gromov-Wasserstein c = @#}; also IMD {IMD c = @#}, GS {n = 2000 c = @#}", "tori", "", "wider range of c"),
    Item("Fig. 2a", "LES and IMD take far less time than GW and GS; LES more than IMD", "N = 10,000: LES {at N = 10,000: LES @#} s, IMD {at N = 10,000: …IMD @#} s, GS {at N = 10,000: …Geometry Score @#} s, GW {at N = 10,000: …Gromov-Wasserstein @#} s", "scaling", "", "less time than|more time than IMD"),
    Item("Fig. 2b", "LES is the most robust to the number of samples", "change of d(T2, T3): LES {against N = 10,000: LES @#} %, IMD {against N = 10,000: …IMD @#} %, GS {against N = 10,000: …Geometry Score @#} %, GW {against N = 10,000: …Gromov-Wasserstein @#} %", "scaling", "", "most robust"),
    Item("Appendix B.1", "the sampled tori", "[drawn](figures/tori-samples.png)", "tori", "reproduced"),
    Item("Appendix B.1", "non-default parameters of GW, IMD and GS make no significant difference", "IMD alike with 5, 10 and 20 neighbours, GS with 32 and 64 landmarks; with 128 GS loses T2 against T3; GW alike with squared distances and with Armijo's line search; with the KL loss it never separates", f"{CLAIMS}_imd_sees_mainly_dimension_with_any_number_of_neighbours; {CLAIMS}_gromov_wasserstein_sees_dimension_before_scale_only_near_1; {CLAIMS}_many_landmarks_hide_the_dimension_from_the_geometry_score", "partly"),
    Item("Appendix B.2", "H₀ and H₁ bottleneck distances capture meaningful differences", "d(T2, T3) over that of two samples of T2: H₀ {H₀ …d(T2,T3) is @#}, H₁ {H₁ …d(T2,T3) is @#}", "topology", "reproduced"),
    Item("Appendix B.2", "LES separates over a wider range than H₀, H₁, H₂ bottleneck distances", "crossings: LES {LES c = @#}, H₀ {H₀ bottleneck c = @#}, H₁ {H₁ bottleneck c = @#}, H₂ {H₂ bottleneck c = @#}", "topology", "", "wider range of c"),
    Item("Appendix B.3", "LE and AI separate over a wider range than Euclidean and SpecGW", "crossings: LE {LE c = @#}, AI {AI c = @#}, Euclidean {Euclidean c = @#}, SpecGW {Spectral GW c = @#}. AI is by W₁^-½ W₂ W₁^-½: the norm of log W₁⁻¹W₂, as printed, is another number", "aligned", "", "LE and AI separate"),
    Item("Appendix B.3", "LES and IMD (our approach) follow the trends of LE and SpecGW", "{held}: all curves of the six distances are monotone", "aligned", "", TRENDS),
    Item("Appendix B.3", "IMD is a lower bound of SpecGW", "in the nuclear norm a theorem ([distances](distances.md#imd-and-spectral-gromov-wasserstein)); false in the Frobenius and spectral norms for I and 1e-9 I, N = 200", f"{CLAIMS}_imd_is_below_spectral_gw_in_the_nuclear_norm; {CLAIMS}_imd_is_a_lower_bound_of_spectral_gw_in_the_nuclear_norm_only", "partly"),
    Item("Appendix B.3", "values of SpecGW are smaller than those of IMD (our approach)", "{smaller in # of # pairs; median ratio #}, in the Frobenius norm (the paper names none), both at N = 100; the paper's IMD is of N = 3000", "aligned", "not"),
    Item("Fig. 3, gene_vis", "39 time points of Schiebinger et al.: LES 0.74, IMD 0.28, OT 0.6, GS 0.03, MTD 0.1", "the data is in no package registry; `--data FILE` takes it; other cells stand in below", "unaligned reproduce cells --full --data FILE", "not obtainable"),
    Item("Section 5.2", "LES follows time significantly better than IMD, GS and MTD", "{held} (bar: by 0.1); " + each_course("{NAME: LES follows time better than IMD, GS and MTD | @LES #, IMD #, GS #, MTD #}"), "cells", "", "significantly better than IMD, GS and MTD"),
    Item("Section 5.2", "LES follows time slightly better than OT (0.74 and 0.6)", each_course("{NAME: LES follows time slightly better than OT, which knows positions | @LES #, OT #}"), "cells", "", "slightly better than OT"),
    Item("Section 5.2", "subsets of genes: slightly reduced, 0.69 for LES, 0.27 for IMD", "{held}; " + each_course("{NAME, gene subsets: LES follows time better…| @LES #} and {NAME, gene subsets: LES follows time better…, @IMD #}"), "cells", "", "gene subsets"),
    Item("Appendix C", "γ = 1e-5, slightly larger than the largest λ₅₀₀ of all time points", "`gamma=\"cutoff\"` is this rule; 1e-5 is above λ₅₀₀ of CytoTree, and below that of P. falciparum", f"pytest tests/test_diagnosis.py::test_cutoff_is_slightly_above_the_largest_last_eigenvalue; {CLAIMS}_gamma_of_the_cells_against_the_largest_last_eigenvalue", "partly", "", INSTEAD["cells"]),
    Item("Table 1", f"accuracies of MetaOptNet: FC100 38.2, 54.5, 60.5 % ({SHOTS}), CIFAR-FS 70.8, 84.0, 87.1 %", "FC100 {unseen classes, …FC100 1-shot @#}, {unseen classes, …FC100 5-shot @#}, {unseen classes, …FC100 10-shot @#} %, CIFAR-FS {unseen classes, …CIFAR-FS 1-shot @#}, {unseen classes, …CIFAR-FS 5-shot @#}, {unseen classes, …CIFAR-FS 10-shot @#} %", "tasks", "not", "", RESNET),
    Item("Table 1", "the same", "FC100 {unseen classes, …FC100 1-shot @#}, {unseen classes, …FC100 5-shot @#}, {unseen classes, …FC100 10-shot @#} %, CIFAR-FS {unseen classes, …CIFAR-FS 1-shot @#}, {unseen classes, …CIFAR-FS 5-shot @#}, {unseen classes, …CIFAR-FS 10-shot @#} %", "tasks-conv4", "partly", "", CONV4),
    Item("Table 1", f"LES on FC100: r = -0.934, -0.945, -0.935 ({SHOTS})", "{LES: r ≤ -0.9 on FC100, mean over references | 1-shot @#}, {LES: r ≤ -0.9 on FC100…5-shot @#}, {LES: r ≤ -0.9 on FC100…10-shot @#}", "tasks", "", "r ≤ -0.9 on FC100", RESNET),
    Item("Table 1", "the same", "{LES: r ≤ -0.9 on FC100, mean over references | 1-shot @#}, {LES: r ≤ -0.9 on FC100…5-shot @#}, {LES: r ≤ -0.9 on FC100…10-shot @#}", "tasks-conv4", "", "r ≤ -0.9 on FC100", CONV4),
    Item("Table 1", f"LES on CIFAR-FS: r = -0.671, -0.698, -0.657 ({SHOTS})", "{mean LES}: stronger than the paper's", "tasks", "not", "", RESNET),
    Item("Table 1", "the same", "{mean LES}", "tasks-conv4", "not", "", CONV4),
    Item("Tables 1 to 3", "the 90 values of LES, IMD, OT, GW and GS ([below](#tables-1-to-3))", "within the paper's standard deviation: {near}", "tasks", "partly"),
    Item("Table 1", "LES outperforms IMD, GS and OT in all settings by a large margin", "{LES outperforms IMD, GS, OT in all settings (mean over references) | @in # of # comparisons}", "tasks", "", r"outperforms.*mean over"),
    Item("Table 1", "the same", "{LES outperforms IMD, GS and OT in all settings (mean over references) | @in # of # comparisons}; not: GS on CIFAR-FS", "tasks-conv4", "", r"outperforms.*mean over"),
    Item("Tables 1, 3", "OT has the wrong sign, r from 0.18 to 0.75", "{OT has the wrong sign…| @positive in # of # cells}; not: the mean", "tasks", "", "OT has the wrong sign"),
    Item("Tables 1, 3", "the same", "{OT has the wrong sign…| @positive in # of # cells}; not: max on CIFAR-FS", "tasks-conv4", "", "OT has the wrong sign"),
    Item("Tables 2, 3", "LES outperforms IMD, GS and OT with min and max too; the aggregate hardly matters", "min {(min over references) | @in # of #}, max {(max over references) | @in # of #} comparisons; r of LES changes {does not alter…| @by at most #}", "tasks", "", r"outperforms.*(min|max) over|does not alter"),
    Item("Tables 2, 3", "the same", "min {(min over references) | @in # of #}, max {(max over references) | @in # of #} comparisons; r of LES changes {does not alter…| @by at most #}", "tasks-conv4", "", r"outperforms.*(min|max) over|does not alter"),
    Item("Appendix D", "LES is the best distance overall, whatever the aggregate (in 16 of 18 cells)", "lowest r: {best} of 18 cells", "tasks", "not"),
    Item("Appendix D", "the same", "lowest r: {best} of 18 cells", "tasks-conv4", "not"),
    Item("Section 5.3", "accuracy on tasks of seen classes is above 90 % in all settings", "FC100 {above 90 % in all settings | FC100 1-shot @#}, {above 90 %…FC100 5-shot @#}, {above 90 %…FC100 10-shot @#} %; the seen classes of CIFAR-FS are the same", "tasks", "", "above 90 %", RESNET),
    Item("Section 5.3", "the same", "FC100 {above 90 % in all settings | FC100 1-shot @#}, {above 90 %…FC100 5-shot @#}, {above 90 %…FC100 10-shot @#} %, CIFAR-FS {above 90 %…CIFAR-FS 1-shot @#}, {above 90 %…CIFAR-FS 5-shot @#}, {above 90 %…CIFAR-FS 10-shot @#} %", "tasks-conv4", "", "above 90 %", CONV4),
    Item("Section 5.3", "the correlation on CIFAR-FS is worse than on FC100 for all distances", "{is weaker than on FC100 for all distances | @in # of # cells}", "tasks", "", "is weaker than on FC100"),
    Item("Section 5.3", "the same", "{is weaker than on FC100 for all distances | @in # of # cells}; not: GW, 1 shot", "tasks-conv4", "", "is weaker than on FC100"),
    Item("Section 5.3", "GW is comparable to LES in r", "r(GW) - r(LES) {r(GW) - r(LES) @from # to #}", "tasks", "", "GW is comparable"),
    Item("Section 5.3", "the same", "r(GW) - r(LES) {r(GW) - r(LES) @from +# to +#}", "tasks-conv4", "", "GW is comparable"),
    Item("Table 4", "GW is orders of magnitude slower than LES (1459 to 1716 s and 18.8 to 26.2 s)", "{orders of magnitude…| @# times: # s against # s}", "tasks", "", "orders of magnitude", RESNET + "; OT and GW on all images"),
    Item("Table 4", "IMD and LES are the fastest: 16.1 to 24.1 s and 18.8 to 26.2 s; OT 28.2 to 40.3, GS 96.2 to 99.8", "IMD {| IMD | @#@ ± # | # to # |} s, GS {| GS | @#@ ± # | # to # |} s ({N = 3000, @# rounds}), LES {| LES | @#@ ± # | # to # |} s, OT {| OT | @#@ ± # | # to # |} s", "tasks", "partly", "", RESNET + "; OT and GW on all images"),
    Item("Table 4", "GW is orders of magnitude slower than LES", "{orders of magnitude…| @# times: # s against # s}, N = 1000", "tasks-conv4", "", "orders of magnitude"),
    Item("Appendix D, figure", "LES(left, center) = 188.6 ≫ LES(left, right) = 3.5 in the text, 0.5 in the caption; IMD 3.5 < 12.6", "LES {IMD below) | LES @# and #}, IMD {IMD below) | LES # and #, IMD @# and #}", "tasks", "", r"188\.6"),
    Item("Appendix D", "γ = 1e-6; other values of γ do not matter", "r of LES (mean, min, max) moves by at most 0.011 from γ = 1e-8 to 1e-4; on tori γ does matter: crossings {| γ = 1e-10 |… | @#@ ± # |} to {| γ = 0.0001 |… | @#@ ± # |}", "unaligned reproduce tasks --quick --set embedder=resnet20 --set benchmarks=fc100,cifar-fs --set gamma=1e-4 --only accuracy,les --trials 2 --seed 0; unaligned reproduce tasks --quick --set embedder=resnet20 --set benchmarks=fc100,cifar-fs --set gamma=1e-8 --only accuracy,les --trials 2 --seed 0; sensitivity", "reproduced", "", RESNET + ", 200 images per class"),
    Item("Appendix E", "LeNet on MNIST: distances of LES are smallest between corresponding layers, those of IMD not always", "{Layers of LeNet: @LES matches all # layers of ten pairs of seeds in both directions (IMD # and #)}", "layers", "reproduced"),
    Item("Appendix E, figure", "the log-margin of LES is above 0 for all shifts", "{LES: the log margin factor is above 0…seeds; @in # of # pairs}; mean at δ = 1: {LES: the log margin factor is above 0…δ = 1…4: @#}", "layers", "", "LES: the log margin factor is above 0"),
    Item("Appendix E, figure", "the log-margin of IMD dips below 0 at δ = ±1", "{IMD: the log margin factor is below 0…seeds; @in # of # pairs}; mean {IMD: the log margin factor is below 0…δ = 1…4: @#}", "layers", "", "IMD: the log margin factor is below 0"),
    Item("Appendix E, figure", "both curves rise with the shift", "LES {LES: the log margin factor increases…seeds; @in # of # pairs}, IMD {IMD: the log margin factor increases…seeds; @in # of #}", "layers", "", "the log margin factor increases"),
    Item("Appendix E", "All-CNN-C: train and test accuracies of 85 and 80 %", "train {epochs, @# to #} %, test {of training images right, @# to #} %", "layers-allcnn", "reproduced", "", "with {All-CNN-C here: @#@ seeds} networks of half width after {dropout # (#), @# epochs}"),
    Item("Table 5", "layers matched, identical and different inputs: LES 96 and 95.8 %, IMD 85.2 and 81 %, CKA 97.3 %", "LES {| Tiny10 | LES | @#} and {| Tiny10 | LES | # ± # % | @#} %, IMD {| Tiny10 | IMD | @#} and {| Tiny10 | IMD | # ± # % | @#} %, CKA {| Tiny10 | CKA | @#} %: LES and CKA within 2 points, IMD 14 to 16 below", "layers", "partly", "", TINY10),
    Item("Table 5", "the same", "LES {| All-CNN-C | LES | @#} and {| All-CNN-C | LES | # ± # % | @#} %, IMD {| All-CNN-C | IMD | @#} and {| All-CNN-C | IMD | # ± # % | @#} %, CKA {| All-CNN-C | CKA | @#} %", "layers-allcnn", "", "All-CNN-C.*(more layers than IMD|close to CKA)"),
]  # fmt: skip


def section(pages: str, name: str) -> str:
    """Return the section of one run in docs/results.md, or nothing."""
    return pages.partition(f"<!-- begin {name} -->")[2].partition(f"<!-- end {name} -->")[0]


def decided(text: str, pattern: str) -> list[bool]:
    """Return whether each claim that matches holds."""
    rows = re.findall(r"^\| [^|]* \| (.*) \| (pass|FAIL) \|$", text, flags=re.MULTILINE)
    return [verdict == "pass" for claim, verdict in rows if re.search(pattern, claim)]


def filled(template: str, text: str) -> str:
    """Return a template with the numbers that the text has."""

    def found(slot: re.Match[str]) -> str:
        parts = slot[1].split("@")
        before, shown, after = {1: ["", *parts, ""], 2: [*parts, ""]}.get(len(parts), parts)
        pattern = f"{re.escape(before)}({re.escape(shown)}){re.escape(after)}"
        pattern = pattern.replace(r"\#", NUMBER).replace("…", r"[^\n]*?")
        match = re.search(pattern, text)
        if not match:
            raise ValueError(f"no page has {slot[1]!r}; adapt ITEMS in docs/paper.py")
        return match[1]

    return re.sub(r"\{([^{}]+)\}", found, template)


def correlations(text: str) -> dict[tuple[str, str], list[list[float]]]:
    """Return r, its deviation and the paper's two of each cell of Tables 1 to 3."""
    found = {}
    for name, table in re.findall(r"\*\*(mean|min|max)\*\* over.*?\n\n(.*?)\n\n", text, re.DOTALL):
        for line in table.splitlines()[2:]:
            label, *cells = line.strip("| ").split(" | ")
            values = [[float(x) for x in re.findall(NUMBER, cell)] for cell in cells]
            if len(values[0]) == 4:
                found[name, label] = values
    return found


def summary(table: dict[tuple[str, str], list[list[float]]]) -> dict[str, str]:
    """Return what the page says of Tables 1 to 3 in a few words."""
    near: dict[str, list[bool]] = {}
    for (_, label), cells in table.items():
        near[label] = near.get(label, []) + [abs(r - paper) <= sd for r, _, paper, sd in cells]
    lowest = dict.fromkeys(near, 0)
    for name, i in product(("mean", "min", "max"), range(6)):
        column = sorted(
            (cells[i][0], label) for (key, label), cells in table.items() if key == name
        )
        if column[0][0] < column[1][0]:  # no tie
            lowest[column[0][1]] += 1
    return {
        "near": ", ".join(f"{label} {sum(hits)} of {len(hits)}" for label, hits in near.items()),
        "best": ", ".join(f"{label} in {n}" for label, n in lowest.items() if n),
        "mean LES": ", ".join(f"{cell[0]:.3f}" for cell in table["mean", "LES"][3:]),
    }


def row(item: Item, pages: str) -> tuple[str, str, list[str]]:
    """Return what we have, the verdict and the commands of an item."""
    names = item.by.split("; ") if item.by else []
    runs = {name: section(pages, name) for name in names if " " not in name}
    made = {name: re.search(r"Made by `([^`]*)`", text) for name, text in runs.items()}
    full = {name: f"unaligned reproduce {name} --full" for name in runs}
    commands = [found[1] if (found := made.get(n)) else full.get(n, n) for n in names]
    if not all(made.values()):
        return "", "not run yet", commands
    text = "\n".join(runs.values())
    outcome = decided(text, item.claims) if item.claims else []
    if item.claims and not outcome:
        raise ValueError(f"no claim matches {item.claims!r}; adapt ITEMS in docs/paper.py")
    words = {"held": f"{sum(outcome)} of {len(outcome)} claims hold"}
    if table := correlations(text):
        words |= summary(table)
    here, instead = item.here, INSTEAD.get(names[0] if names else "", "")
    for name, word in words.items():
        here = here.replace(f"{{{name}}}", word)
    verdict = item.verdict or ("partly" if any(outcome) else "not")
    verdict = "reproduced" if outcome and all(outcome) else verdict
    instead = filled(instead if item.instead is None else item.instead, text)
    return filled(here, f"{text}\n{pages}"), f"**{verdict}** {instead}".strip(), commands


def page() -> str:
    """Return the text of docs/paper.md."""
    pages = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    rows, counts, numbers = [], {}, {}
    for item in ITEMS:
        here, verdict, commands = row(item, pages)
        word = verdict.split("**")[1] if "**" in verdict else verdict
        counts[word] = counts.get(word, 0) + 1
        links = [f'<a href="#c{n}">{n}</a>' for n in (numbers.setdefault(c, len(numbers) + 1) for c in commands)]  # fmt: skip
        rows.append(
            f"| {item.where} | {item.says} | {here} | {verdict} | {', '.join(links) or '–'} |"
        )
    total = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    listed = [f'| <a id="c{n}"></a>{n} | `{command}` |' for command, n in numbers.items()]
    values = [
        f"| {name} | {label} | {' | '.join(f'{cell[0]:.3f} ({cell[2]:.3f})' for cell in cells)} |"
        for (name, label), cells in correlations(section(pages, "tasks")).items()
    ]
    return f"""# The paper, claim by claim

Every figure, table, proposition and claim of "Log-Euclidean Signatures for Intrinsic Distances Between Unaligned
Datasets", what it says, what we have, and the command. "Reproduced" is an item all of whose claims hold here, "partly"
one with some, "not" one with none (a claim about all settings fails with one of them), "not obtainable" one whose data
cannot be had. "With …" names what stands in for the paper's data or network. An experiment's claims are those of
[results](results.md), each with the bar it has to pass.

{total}.

Written by `python docs/paper.py` from [results](results.md), where the settings and the figures are. Crossings are the
radius scale c below which a change of scale is larger than one of dimension (lower is better); LE is the log-Euclidean,
AI the affine-invariant distance. A command with `--quick` is smaller than the paper's setting. The last column is the
number of the [command](#commands).

| paper | it says | here | verdict | by |
|---|---|---|---|---|
{chr(10).join(rows)}

## Tables 1 to 3

Pearson's r of accuracy and dissimilarity here, and in brackets the paper's; Table 1 is the mean over the references,
Table 2 min, Table 3 max. {filled(TASKS, section(pages, "tasks")).replace("with", "Here with", 1)}.

| | | FC100 1-shot | FC100 5-shot | FC100 10-shot | CIFAR-FS 1-shot | CIFAR-FS 5-shot | CIFAR-FS 10-shot |
|---|---|---|---|---|---|---|---|
{chr(10).join(values)}

## Commands

| | command |
|---|---|
{chr(10).join(listed)}
"""


if __name__ == "__main__":
    (DOCS / "paper.md").write_text(page(), encoding="utf-8")
