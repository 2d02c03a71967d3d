"""Ways to use a model that people use again and again, each in one short file: functions of a state, to be called in a program.

    self_consistency     many attempts, the answer that most agree on           best_of_n           many candidates, a judge picks one
    branch_solve_merge   divide a task, solve the parts, put them together     tree_of_thought     steps in all ways, the best ones kept
    skeleton_of_thought  an outline, its points written side by side           react               thought, action, observation
    map_reduce           a long text part by part, then as a whole             retry_until_valid   draw again until a check passes
    thinking             think for so many tokens at most, then answer         winners.py          what they share: reading forks, taking one over

They use what any program may use (fork, gen, select, roles), so they run on every backend, under run, run_batch and arun, and can be nested:
a part of one is a node, or a function of a state. What they ask stands on forks; the state itself gets the outcome. An attempt whose output is no
value (`OutputError`) counts as failed and the others go on; any other error raises, with the number of the fork.
"""

from __future__ import annotations

from .best_of_n import Judged, best_of_n
from .branch_solve_merge import branch_solve_merge
from .map_reduce import map_reduce, split_text
from .react import Step, react
from .retry_until_valid import retry_until_valid
from .self_consistency import Vote, self_consistency
from .skeleton_of_thought import skeleton_of_thought
from .thinking import thinking
from .tree_of_thought import Thought, tree_of_thought

__all__ = [
    "Judged",
    "Step",
    "Thought",
    "Vote",
    "best_of_n",
    "branch_solve_merge",
    "map_reduce",
    "react",
    "retry_until_valid",
    "self_consistency",
    "skeleton_of_thought",
    "split_text",
    "thinking",
    "tree_of_thought",
]
