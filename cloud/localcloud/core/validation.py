"""What pydantic finds, in the words of a file that a person wrote."""

from __future__ import annotations

from pydantic import ValidationError


def problems(error: ValidationError) -> list[str]:
    """One line for each problem: `vaults[0].name: Field required`."""
    return [f"{place(problem['loc'])}: {problem['msg']}" for problem in error.errors(include_url=False)]


def place(parts: tuple[str | int, ...]) -> str:
    """`resources[3].name`; the whole file for no parts."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".") or "the file"
