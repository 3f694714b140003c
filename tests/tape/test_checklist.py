"""Every line of the semantics and every block of the guides has a test: which one is written here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

LINES = 108

# Blocks of code in the order in which they stand; what a text says without code is a block too.
INTRODUCTION = {
    1: "test_the_sigmoid_can_be_plotted",  # the imports
    2: "test_a_scalar",
    3: "test_a_scalar",
    4: "test_several_sources",
    5: "test_several_sources",
    6: "test_several_sources",
    7: "test_several_sources",
    8: "test_a_model",
    9: "test_a_model",
    10: "test_what_is_watched",
    11: "test_what_is_watched",
    12: "test_watching",
    13: "test_watching",
    14: "test_watching",
    15: "test_intermediate_results_and_persistence",
    16: "test_intermediate_results_and_persistence",
    17: "test_intermediate_results_and_persistence",
    18: "test_targets_that_are_not_scalar",
    19: "test_targets_that_are_not_scalar",
    20: "test_targets_that_are_not_scalar",
    21: "test_the_sigmoid_can_be_plotted",
    22: "test_control_flow",
    23: "test_control_flow",
    24: "test_unconnected_and_replaced",
    25: "test_unconnected_and_replaced",
    26: "test_numpy_functions_are_recorded_here",
    27: "test_integers",
    28: "test_state",
    29: "test_an_operation_without_a_gradient",
    30: "test_zeros_instead_of_none",
}
TUTORIAL = {
    1: "test_a_branch_chooses_a_variable",  # the imports
    2: "test_a_tape_is_used_once",
    3: "test_a_tape_is_used_once",
    4: "test_a_tape_is_used_once",
    5: "test_a_tape_is_used_once",
    6: "test_line_012_deleting_frees_the_record",
    7: "test_when_to_watch",
    8: "test_when_to_watch",
    9: "test_when_to_watch",
    10: "test_integers_have_no_gradients",
    11: "test_when_to_watch",
    12: "test_lists_and_dictionaries_of_sources_and_targets",
    13: "test_lists_and_dictionaries_of_sources_and_targets",
    14: "test_lists_and_dictionaries_of_sources_and_targets",
    15: "test_lists_and_dictionaries_of_sources_and_targets",
    16: "test_when_to_watch",
    17: "test_two_layers",
    18: "test_a_branch_chooses_a_variable",
    19: "test_a_branch_chooses_a_variable",
    20: "test_a_branch_chooses_a_variable",
    21: "test_a_branch_chooses_a_variable",
    22: "test_a_branch_chooses_a_variable",
    23: "test_a_branch_chooses_a_variable",
}
WALK_THROUGH = {
    1: "test_the_sigmoid_can_be_plotted",
    2: "test_a_scalar",
    3: "test_several_sources",
    4: "test_a_training_loop",
    5: "test_gradient_descent",
    6: "test_targets_that_are_not_scalar",
    7: "test_line_051_persistent_tapes_answer_again",
    8: "test_a_custom_gradient_that_does_not_overflow",
    9: "test_line_086_clipping_a_gradient",
    10: "test_what_is_watched",
    11: "test_intermediate_results_and_persistence",
    12: "test_unconnected_and_replaced",
    13: "test_line_055_numpy_records_and_numpy_leaves",
    14: "test_line_053_integers_break_the_path",
    15: "test_state",
    16: "test_higher_order",
    17: "test_the_jacobian_of_a_scalar_source",
    18: "test_line_093_hessians",
}


def names() -> set[str]:
    """All tests of tapes."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted(Path(__file__).parent.glob("test_*.py")))
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def lines_of(name: str) -> range:
    """The lines that a test is named after."""
    found = re.match(r"test_line_(\d+)_(?:(?:to|and)_(\d{3})_)?", name)
    return range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)


def test_no_line_is_without_a_test() -> None:
    covered = {line for name in names() for line in lines_of(name)}
    assert sorted(set(range(1, LINES + 1)) - covered) == []
    assert "test_section_12" in names()  # the table of values


def test_no_block_is_without_a_test() -> None:
    for guide, count in ((INTRODUCTION, 30), (TUTORIAL, 23), (WALK_THROUGH, 18)):
        assert list(guide) == list(range(1, count + 1))
        assert set(guide.values()) <= names()
