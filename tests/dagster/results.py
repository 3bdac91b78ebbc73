"""What a run, a tick or a check by hand came to, as plain values; and work that cannot be done."""

import dagster as dg

from kgs_core.errors import UnsafeError

WHY = "table bronze/orders: not there"


def refusing(*_):
    raise UnsafeError(WHY)


def failure(result):
    """Of the one step that failed: its name, and what a person is told."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    return event.step_key.split("__")[-1], data.user_failure_data.description if data.user_failure_data else None


def plain(value):
    return [dict(row.data) for row in value.records] if isinstance(value, dg.TableMetadataValue) else value.value


def figures(event):
    """Metadata of an event as plain values; a table as a list of rows."""
    return {name: plain(value) for name, value in event.metadata.items()}


def recorded(result):
    """Asset's name -> the figures of its materialization."""
    events = result.get_asset_materialization_events()
    return {event.asset_key.path[-1]: figures(event.materialization) for event in events}


def output(result):
    """The figures of a run's one output."""
    (event,) = [event for event in result.all_events if event.is_successful_output]
    return figures(event.step_output_data)


def evaluations(result):
    """Names of asset and check -> the evaluation."""
    return {(each.asset_key.path[-1], each.check_name): each for each in result.get_asset_check_evaluations()}


def checks(result):
    """Names of asset and check -> whether it passed."""
    return {names: each.passed for names, each in evaluations(result).items()}


def checked(defs, instance, *keys):
    """Checks, by hand."""
    job = defs.resolve_implicit_global_asset_job_def()
    return job.get_subset(asset_check_selection={*keys}, asset_selection=set()).execute_in_process(instance=instance)
