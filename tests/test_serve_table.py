"""The judge of the serving race: medians, the best peer, which way is better, and the floor."""

from __future__ import annotations

from serve_table import FIGURES, losses, rows_of, table


def test_ours_is_held_against_the_best_peer_in_the_direction_that_is_better() -> None:
    rounds = {
        "radixlm": [{"W1": {"decode_tok_s": 200}, "W5": {"wall_s": 4.0}}] * 3,
        "slow": [{"W1": {"decode_tok_s": 50}, "W5": {"wall_s": 9.0}}],
        "fast": [{"W1": {"decode_tok_s": 100}, "W5": {"wall_s": 6.0}}],
    }
    by_name = {row.figure.workload: row for row in rows_of(rounds, "radixlm")}
    assert (by_name["W1"].best_peer, by_name["W1"].ratio, by_name["W1"].verdict) == (
        "fast",
        2.0,
        "met",
    )
    assert (by_name["W5"].best_peer, by_name["W5"].ratio) == ("fast", 1.5)
    assert by_name["W5"].verdict == "met"
    assert by_name["W2"].verdict == "no peer"


def test_a_median_over_rounds_ignores_one_bad_round_and_missing_figures() -> None:
    rounds = {
        "radixlm": [{"W1": {"decode_tok_s": value}} for value in (100, 1, 102)] + [{}],
        "peer": [{"W1": {"decode_tok_s": 99}}],
    }
    row = rows_of(rounds, "radixlm")[0]
    assert row.values == {"radixlm": 100, "peer": 99}
    assert row.verdict == "missed"  # 1.01 is below the floor of 1.15


def test_failed_requests_are_counted_and_every_figure_is_a_row() -> None:
    rounds = {"radixlm": [{"W8": {"failed": 1, "long_failed": 2}}, {"W1": {"failed": 0}}]}
    assert losses(rounds) == {"radixlm": 3}
    assert len(table(rows_of(rounds, "radixlm"), ["radixlm"]).splitlines()) == len(FIGURES) + 2


def test_of_a_trade_both_figures_are_held_against_the_peer_that_serves_the_long_prompts_first() -> (
    None
):
    rounds = {
        "radixlm": [{"W8": {"win_itl_p99": 100, "long_ttft_p50": 2000}}],
        "patient": [{"W8": {"win_itl_p99": 30, "long_ttft_p50": 9000}}],
        "brisk": [{"W8": {"win_itl_p99": 300, "long_ttft_p50": 2500}}],
    }
    pauses, waits = (row for row in rows_of(rounds, "radixlm") if row.figure.workload == "W8")
    assert (pauses.best_peer, pauses.ratio, pauses.verdict) == ("brisk", 3.0, "met")
    assert (waits.best_peer, waits.ratio) == ("brisk", 1.25)
