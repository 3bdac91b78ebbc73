"""What went wrong in a Spark task, told from Spark's exception."""

import pytest

from kgs_core.spark.errors import MAX_LENGTH, cause, transient

SPARK = """An error occurred while calling o42.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Traceback (most recent call last):
  File "/x/worker.py", line 2170, in main
    process()
{error}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:574)
"""


def spark(error):
    return Exception(SPARK.format(error=error))


def test_our_own_try_again_is_found_in_sparks_words():
    found = transient(spark("kgs_core.errors.TransientError: lake /lake: no space left: free some"))
    assert str(found) == "lake /lake: no space left: free some"


@pytest.mark.parametrize(
    "error", ["kgs_core.errors.PermanentError: lake: refused", "ValueError: TransientError: x", ""]
)
def test_nothing_else_is_tried_again(error):
    assert transient(spark(error)) is None


def test_the_cause_is_the_line_of_the_error_and_not_sparks():
    assert cause(spark("ValueError: cannot do this")) == "ValueError: cannot do this"
    assert cause(spark("my.clean.BadRowError: line 7")) == "my.clean.BadRowError: line 7"


@pytest.mark.parametrize(("error", "said"), [(Exception("\n plain \nmore"), "plain"), (KeyError(), "KeyError")])
def test_without_such_a_line_there_is_still_something_to_say(error, said):
    assert cause(error) == said


def test_words_without_end_are_cut():
    assert len(cause(spark("ValueError: " + "x" * 5000))) == MAX_LENGTH
