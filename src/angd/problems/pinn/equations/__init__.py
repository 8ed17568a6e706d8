"""Equations by name: what `angd run poisson-5d` solves, one file each, with an exact or a spectral reference.

    known()      the arguments of a `Task`: a problem, its reference, names
    spectral     Fourier × ETDRK4 in time, for references on a circle
    chebyshev    collocation on a square, for the reference of the cavity

Burgers, Euler's test 123 and the small heat equation stand beside this room.
"""
