"""Atoms and molecules: charges, places (in Bohr radii a₀) and spins. Energies are in Hartree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

from angd.problems.library import SIZES
from angd.problems.task import Task

SYMBOLS = tuple(
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr".split()  # noqa: SIM905
)
UNITS = {"bohr": 1.0, "angstrom": 1.0 / 0.529177210903}
CLOSEST = 1e-3  # a₀; nuclei that are closer are a mistake
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Molecule:
    """Nuclei, and how many electrons of each spin there are; `Molecule.of` and `Molecule.from_xyz` make one.

    **Arguments:**

    - `symbols`: of the elements, ("Li", "H").
    - `places`: of the nuclei, a triple for each, in Bohr radii.
    - `spins`: electrons up and down, (n↑, n↓).
    - `exact`: a reference energy in Hartree, or None.
    - `source`: where that comes from.

    **Example:** `Molecule.of([("Li", (0, 0, 0)), ("H", (0, 0, 3.015))], units="bohr")`
    """

    symbols: tuple[str, ...]
    places: tuple[Place, ...]
    spins: tuple[int, int]
    exact: float | None = field(default=None, compare=False)
    source: str = field(default="", compare=False)

    def __post_init__(self):
        if len(self.symbols) != len(self.places) or min(self.spins) < 0 or sum(self.spins) < 1:
            raise ValueError(f"A molecule has a place for every atom, and electrons: got {self.symbols}, {self.spins}.")

    @classmethod
    def of(
        cls,
        atoms: Sequence[tuple[str, Place]],
        *,
        units: str,
        charge: int = 0,
        spin: int | None = None,
        exact: float | None = None,
        source: str = "",
    ) -> "Molecule":
        """From atoms [("Li", (0, 0, 0)), …] in `units` "bohr" or "angstrom"; `spin` is n↑ − n↓, by default 0 or 1."""
        if units not in UNITS:
            raise ValueError(f"units must be 'bohr' or 'angstrom', got {units!r}.")
        if not atoms:
            raise ValueError("A molecule needs at least one atom.")
        unknown = [symbol for symbol, _ in atoms if symbol not in SYMBOLS]
        if unknown:
            raise ValueError(f"There is no element called {unknown[0]!r} among the first {len(SYMBOLS)}.")
        if charge != int(charge) or (spin is not None and spin != int(spin)):
            raise ValueError(f"charge and spin must be whole numbers, got {charge} and {spin}.")
        scale = UNITS[units]
        places = tuple((scale * x, scale * y, scale * z) for _, (x, y, z) in atoms)
        _check_apart(places)
        symbols = tuple(symbol for symbol, _ in atoms)
        electrons = sum(map(number, symbols)) - int(charge)
        return cls(symbols, places, _spins(electrons, charge, spin), exact, source)

    @classmethod
    def from_xyz(
        cls, text: str | Path, *, units: str = "angstrom", charge: int = 0, spin: int | None = None
    ) -> "Molecule":
        """From an XYZ file, given as a `Path`, or from its text; in Ångström, as the format says, unless told."""
        lines = (text.read_text(encoding="utf-8") if isinstance(text, Path) else text).strip().splitlines()
        try:
            count = int(lines[0])
            rows = [line.split() for line in lines[2 : 2 + count]]
            atoms: list[tuple[str, Place]] = [(row[0], (float(row[1]), float(row[2]), float(row[3]))) for row in rows]
        except (IndexError, ValueError):
            hint = " For a file, pass pathlib.Path(...)." if len(lines) < 2 else ""
            form = "An XYZ file has the number of atoms, a comment, and then lines 'symbol x y z'."
            raise ValueError(form + hint) from None
        if len(atoms) != count:
            raise ValueError(f"The XYZ file promises {count} atoms and has {len(atoms)}.")
        return cls.of(atoms, units=units, charge=charge, spin=spin)

    @property
    def charges(self) -> tuple[int, ...]:
        return tuple(map(number, self.symbols))

    @property
    def electrons(self) -> int:
        return sum(self.spins)


def number(symbol: str) -> int:
    """Nuclear charge."""
    return SYMBOLS.index(symbol) + 1


def _check_apart(places: Sequence[Place]) -> None:
    if not all(isfinite(x) for place in places for x in place):
        raise ValueError("A nucleus has a place that is not finite: check the coordinates.")
    for (i, a), (j, b) in combinations(enumerate(places), 2):
        if sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) < CLOSEST**2:
            raise ValueError(f"Nuclei {i} and {j} are in the same place {a}: check the coordinates and their units.")


def _spins(electrons: int, charge: int, spin: int | None) -> tuple[int, int]:
    if electrons < 1:
        raise ValueError(f"A charge of {charge} leaves {electrons} electrons: at least one is needed.")
    spin = electrons % 2 if spin is None else int(spin)
    if abs(spin) > electrons or (electrons - spin) % 2:
        parity = "odd" if electrons % 2 else "even"
        raise ValueError(
            f"{electrons} electrons cannot have n↑ − n↓ = {spin}: it must be {parity}, {electrons} at most."
        )
    return (electrons + spin) // 2, (electrons - spin) // 2


def _chain(count: int, distance: float) -> list[tuple[str, Place]]:
    return [("H", (0.0, 0.0, distance * (i - (count - 1) / 2))) for i in range(count)]


def _pair(symbol: str, distance: float) -> list[tuple[str, Place]]:
    return [(symbol, (0.0, 0.0, -distance / 2)), (symbol, (0.0, 0.0, distance / 2))]


ORIGIN = (0.0, 0.0, 0.0)
MOLECULES: Mapping[str, Molecule] = {
    "H": Molecule.of([("H", ORIGIN)], units="bohr", exact=-0.5, source="exact"),
    "He": Molecule.of([("He", ORIGIN)], units="bohr", exact=-2.903724, source="Pekeris 1959; Drake 1996"),
    "LiH": Molecule.of(
        [("Li", ORIGIN), ("H", (0.0, 0.0, 3.015))],
        units="bohr",
        exact=-8.070548,
        source="explicitly correlated Gaussians, Cencek and Rychlewski 2000",
    ),
    "Be": Molecule.of(
        [("Be", ORIGIN)], units="bohr", exact=-14.66736, source="Chakravorty et al., Phys. Rev. A 47 (1993) 3649"
    ),
    "Li2": Molecule.of(
        _pair("Li", 5.051), units="bohr", exact=-14.9954, source="Filippi and Umrigar, J. Chem. Phys. 105 (1996) 213"
    ),
    "H10": Molecule.of(
        _chain(10, 1.8), units="bohr", exact=-5.6655, source="Motta et al., Phys. Rev. X 7 (2017) 031059"
    ),
    "N2": Molecule.of(
        _pair("N", 2.068), units="bohr", exact=-109.5423, source="Filippi and Umrigar, J. Chem. Phys. 105 (1996) 213"
    ),
}


def as_task(molecule: Molecule, network: str = "small", **known: Any) -> Task:
    """The ground state of a molecule as a task, with a FermiNet.

    **Arguments:** `molecule`; `network`, "small", "medium" or "published" ("paper" is the same);
    `known`, arguments of `Task` to set.

    **Returns:** a `Task` whose reference energy is the molecule's `exact`.
    """
    formula = "".join(molecule.symbols)
    usual = {"name": formula, "about": f"ground state of {formula}", "cpu_seconds": 600.0}
    return Task(**usual | wave_function(molecule, network) | known)


def wave_function(molecule: Molecule, network: str = "small") -> dict[str, Any]:
    """The problem of a molecule's ground state and its reference energy, as arguments of `Task`."""
    from angd.problems.vmc.ferminet import FermiNet
    from angd.problems.vmc.hamiltonian import Coulomb
    from angd.problems.vmc.problem import GroundState

    if network not in SIZES:
        raise ValueError(f"network must be one of {', '.join(SIZES)}, got {network!r}.")
    made = {"small": FermiNet, "medium": FermiNet.medium}.get(network, FermiNet.published)(molecule)
    return {"problem": GroundState(made, Coulomb(molecule)), "energy": molecule.exact}
