"""Where things are drawn: columns, rows, and text that fits."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.graph.layout import (
    CHIP_HEIGHT,
    COLUMNS,
    DETAIL_SIZE,
    ELLIPSIS,
    NAME_SIZE,
    Box,
    Drawing,
    draw,
    fitted,
    room_for_name,
    shared_words,
    width,
    wrapped,
)
from ops.graph.model import NodeKind, Relation
from tests.unit.ops.graph_world import GraphWorld, fifty_clusters, one_cluster, small_cluster

COLUMN = {kind: name for name, kinds in COLUMNS.items() for kind in kinds}


def drawing(name: str) -> Drawing:
    if name == "many":
        return draw(fifty_clusters().only("cluster-31"))
    return draw((one_cluster() if name == "one" else small_cluster()).graph().only("hc1"))


@pytest.fixture(params=["small", "one", "many"])
def found(request: pytest.FixtureRequest) -> Drawing:
    return drawing(request.param)


def test_one_cluster_is_drawn_whole_in_the_catalogues_order() -> None:
    graph = one_cluster().graph().only("hc1")
    drawn = draw(graph)
    assert drawn.width <= 1390 / 0.9, "it fits a window of 1440 pixels, scaled by a tenth at most"
    boxes = sorted((box for box in drawn.boxes if box.node.kind is NodeKind.IDENTITY), key=lambda box: box.y)
    assert [box.node for box in boxes] == graph.identities("hc1")
    # Frames show the others.
    assert set(Relation) - {line.edge.relation for line in drawn.lines} == {Relation.FETCHES_AS, Relation.AT}


def test_no_two_cards_overlap(found: Drawing) -> None:
    def apart(a: Box, b: Box) -> bool:
        return a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y

    assert all(apart(a, b) for a, b in combinations(found.boxes, 2))
    assert all(box.x >= 0 and box.y >= 0 for box in found.boxes)
    assert all(box.x + box.width <= found.width and box.y + box.height <= found.height for box in found.boxes)


def test_the_cards_of_a_column_are_aligned_and_in_the_order_of_the_chain(found: Drawing) -> None:
    lefts: dict[str, set[float]] = {}
    for box in found.boxes:
        if box.node.kind in COLUMN:
            lefts.setdefault(COLUMN[box.node.kind], set()).add(round(box.x, 3))

    assert [len(left) for left in lefts.values()] == [1] * len(COLUMNS)
    assert [name for _, name in found.headings] == list(COLUMNS)
    assert [x for x, _ in found.headings] == sorted(x for x, _ in found.headings)


def test_a_credential_is_in_one_row_from_identity_to_class(found: Drawing) -> None:
    rows: dict[str | None, set[float]] = {}
    for box in found.boxes:
        if box.node.kind in (NodeKind.SECRET, NodeKind.SECRET_PROVIDER_CLASS):
            rows.setdefault(box.node.identity, set()).add(round(box.y, 3))

    assert rows
    assert all(len(row) == 1 for row in rows.values())


def test_a_frame_surrounds_every_card_of_its_owner_and_no_other() -> None:
    found = drawing("one")
    kinds = {
        "vault": {NodeKind.VAULT, NodeKind.SECRET},
        "keyVaultUser": {NodeKind.KEY_VAULT_USER, NodeKind.SECRET_PROVIDER_CLASS},
    }

    for frame in found.frames:
        inside = {
            box.node.kind
            for box in found.boxes
            if frame.x < box.x + box.width
            and box.x < frame.x + frame.width
            and frame.y < box.y + box.height
            and box.y < frame.y + frame.height
        }
        assert inside == kinds[frame.node.id]


def test_no_line_crosses_a_card_on_its_level_part(found: Drawing) -> None:
    for line in found.lines:
        (x, y), (end, _) = line.begin, line.end
        level = (x + 0.1, end - line.gap - 0.1)
        assert not [
            box.node.id
            for box in found.boxes
            if box.y < y < box.y + box.height and box.x < level[1] and level[0] < box.x + box.width
        ]


def test_the_scopes_of_a_role_are_chips_in_its_card() -> None:
    graph = one_cluster().graph().only("hc1")
    scopes = [edge for edge in graph.edges if edge.relation is Relation.AT and edge.target.startswith("scope/")]
    boxes = [box for box in draw(graph).boxes if box.chips]

    assert {(box.node.id, chip.node.id) for box in boxes for chip in box.chips} == {
        (edge.source, edge.target) for edge in scopes
    }
    for box in boxes:
        for chip, other in combinations(box.chips, 2):
            assert chip.y != other.y or chip.x + chip.width < other.x
        for chip in box.chips:
            assert chip.x > 0
            assert chip.x + chip.width < box.width
            assert chip.y + CHIP_HEIGHT < box.height


def test_roles_are_named_by_what_differs() -> None:
    names = [" ".join(box.lines) for box in drawing("one").boxes if box.node.kind is NodeKind.ROLE]

    assert {"… Cluster Ingress Operator", "… Network Operator", "Key Vault Crypto User"} <= set(names)
    assert not [name for name in names if ELLIPSIS in name[1:]]
    note = drawing("one").note
    assert note is not None
    assert note[1] == "… Azure Red Hat OpenShift"
    assert drawing("small").note is None
    assert shared_words(["Azure Red Hat A", "Azure Red Hat B", "Reader"]) == "Azure Red Hat"
    for apart in (["Azure Red Hat A", "Azure Red Hat A"], ["Key Reader", "Key Writer"], []):
        assert shared_words(apart) == ""


@given(st.text(max_size=80), st.integers(30, 300))
def test_shortened_text_is_no_wider_than_its_room(text: str, room: int) -> None:
    in_the_middle, at_the_end = (fitted(text, NAME_SIZE, room, is_name=is_name) for is_name in (True, False))

    assert max(width(shown, NAME_SIZE) for shown in (in_the_middle, at_the_end)) <= room
    assert in_the_middle == text or ELLIPSIS in in_the_middle
    assert at_the_end == text or at_the_end.endswith(ELLIPSIS)


@given(st.text(max_size=120), st.integers(30, 300), st.integers(1, 3))
def test_wrapped_text_takes_no_more_lines_than_it_may(text: str, room: int, lines: int) -> None:
    shown = wrapped(text, NAME_SIZE, room, lines)

    assert 1 <= len(shown) <= lines
    assert all(width(line, NAME_SIZE) <= room for line in shown)
    assert any(ELLIPSIS in line for line in shown) or " ".join(shown).split() == text.split()


@given(st.text(min_size=1, max_size=80))
def test_any_name_fits_its_card(name: str) -> None:
    world = GraphWorld()
    world.add_cluster(name, identities=(), data_plane=False)
    [box] = draw(world.graph().only(name)).boxes

    assert all(width(line, NAME_SIZE) <= room_for_name(box.width, box.node) for line in box.lines)
    assert width(box.node.detail, DETAIL_SIZE) > 0
