"""The published scores: what the claims in `claims.py` were made of, and what ours are compared with."""

from collections.abc import Mapping

Score = tuple[float, float]
"""Cardinal bin score CBS, average Rscore E[R]."""

Scores = Mapping[int, Mapping[str, Score]]
"""Delta -> algorithm -> score."""

NAMES = ("mwf", "mbf", "mbfp", "mwfp", "bfd", "ffd", "wfd", "nfd")
MODIFIED = ("mwf", "mbf", "mwfp", "mbfp")

PUBLISHED_SCORES: Scores = {
    delta: dict(zip(NAMES, row, strict=True))
    for delta, row in {
        0: ((0, 0.04), (0, 0), (0, 0), (0, 0.37), (0, 0), (0, 0), (0, 0), (0.2143, 0)),
        5: ((0.1181, 9.20), (0.0377, 16.04), (0.0016, 23.10), (0.1233, 16.90),
            (0, 24.16), (0.0005, 24.04), (0.0019, 24.12), (0.2380, 20.54)),
        10: ((0.1147, 11.79), (0.0321, 18.88), (0.0034, 24.21), (0.1244, 16.96),
             (0, 25.53), (0.0010, 25.41), (0.0041, 25.24), (0.2409, 21.49)),
        15: ((0.1049, 12.83), (0.0257, 19.88), (0.0019, 24.00), (0.1109, 17.20),
             (0, 25.47), (0.0004, 25.52), (0.0020, 25.34), (0.2240, 20.60)),
        20: ((0.0935, 13.83), (0.0218, 20.61), (0.0015, 23.80), (0.0938, 17.82),
             (0, 25.80), (0.0003, 25.73), (0.0011, 25.47), (0.2090, 19.90)),
        25: ((0.0881, 15.00), (0.0183, 21.48), (0.0014, 24.09), (0.0846, 18.55),
             (0, 26.44), (0.0004, 26.28), (0.0016, 26.21), (0.2058, 19.73)),
    }.items()
}  # fmt: skip
"""Start `uniform`, 200 partitions, 501 measurements, one stream for each delta.

References:
    Landau 2022, section "Modified Any Fit Evaluation", Fig. 6 to 9; the figures are those of its authors' raw data.
"""
