"""Seeing a commit from outside."""

from bench.latency import LogWatch


def commit(log, version, text):
    (log / f"{version:020}.json").write_text(text)


def test_only_a_commit_with_rows_counts(tmp_path):
    log = tmp_path / "_delta_log"
    log.mkdir()
    commit(log, 0, '{"protocol":{}}\n')
    commit(log, 1, '{"add":{}}\n')
    watch = LogWatch(tmp_path)
    assert not watch.has_new_rows()
    commit(log, 2, '{"txn":{}}\n')
    assert not watch.has_new_rows()
    commit(log, 3, '{"txn":{}}\n{"add":{}}\n')
    assert watch.has_new_rows()
    assert not watch.has_new_rows()


def test_a_table_that_is_made_by_its_first_row(tmp_path):
    watch = LogWatch(tmp_path / "later")
    assert not watch.has_new_rows()
    log = tmp_path / "later" / "_delta_log"
    log.mkdir(parents=True)
    commit(log, 0, '{"metaData":{}}\n{"add":{}}\n')
    assert watch.has_new_rows()
