"""Every command of every plan in benchmarks/plans is one that Headwise accepts."""

from pathlib import Path

import pytest
from benchmarks.train_together import Job, read_plan

from headwise.cli.main import build_parser
from headwise.cli.options.parser import parse
from headwise.tasks.recipe import load_recipe

PLANS = sorted((Path(__file__).resolve().parents[2] / "benchmarks" / "plans").glob("*.yaml"))


def _jobs() -> list[Job]:
    return [
        job for plan in PLANS for job in read_plan(plan.read_text(encoding="utf-8"), Path("runs"))
    ]


@pytest.mark.parametrize("job", _jobs(), ids=lambda job: job.name)
def test_a_command_of_a_plan_is_accepted(job: Job) -> None:
    parsed = parse(build_parser(), job.words)
    if parsed.command == "train":
        load_recipe(parsed.recipe, parsed.overrides)


def test_there_are_plans() -> None:
    assert {plan.stem for plan in PLANS} == {"learning", "parallel-distilled", "parallel-raw"}
