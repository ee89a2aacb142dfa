"""Regression as a task of Headwise: learn a number from a few numbers.

    task: regression
    data: {train: points.txt}
    model: {hidden: 16}

`TASK` is what the entry point in pyproject.toml names. It says where the recipe type and the task
are; they are imported when a recipe asks for them.
"""

from headwise.tasks.table import TableEntry

TASK = TableEntry(
    word="regression",
    command="",  # no command of Headwise uses such a model; Python does (regressor.py)
    recipe="headwise_regression.recipe:RegressionRecipe",
    task="headwise_regression.task:RegressionTask",
    title=("regression", "回归"),
)
