"""What a person types in one word: lists, whole numbers, budgets. Imports nothing heavy."""

from typing import Any

# What a budget is when only its unit is named.
UNITS = {"steps": ("steps", 300), "seconds": ("seconds", 60), "cpu-seconds": ("cpu_seconds", 60)}


def words(text: str, option: str) -> list[str]:
    """Names with commas between, each once."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{option} takes names with commas between, each once, got {text!r}.")
    return found


def whole_numbers(text: str, option: str) -> list[int]:
    """Whole numbers that are not negative, with commas between, each once."""
    found = words(text, option)
    if not all(word.isdecimal() and len(word) < 10 for word in found):
        raise ValueError(f"{option} takes whole numbers from 0 to 999999999 with commas between, got {text!r}.")
    return [int(word) for word in found]


def budget(text: str) -> dict[str, Any]:
    """'300 steps' as a limit of a configuration."""
    parts = text.split()
    if not parts or parts[-1] not in UNITS or len(parts) > 2:
        raise ValueError(f"--budget takes a number and a unit ({', '.join(UNITS)}), e.g. '300 steps', got {text!r}.")
    name, amount = UNITS[parts[-1]]
    if len(parts) == 2:
        try:
            amount = int(parts[0]) if parts[-1] == "steps" else float(parts[0])
        except ValueError:
            raise ValueError(f"--budget: {parts[0]!r} is not a number of {parts[-1]}.") from None
    return {name: amount}
