"""Topics of a broker, which kgs itself never deletes."""


def delete_topic(admin, name):
    """Delete a topic and wait until it is unknown; False if there was none."""
    what = f"delete topic '{name}'"
    error = admin._errors(what, lambda c, s: c.delete_topics([name], request_timeout=s)).get(name)
    if error is not None and error.name() != "UNKNOWN_TOPIC_OR_PART":
        raise admin._error(what, error)
    admin._settle(what, lambda: not admin.describe([name]))
    return error is None
