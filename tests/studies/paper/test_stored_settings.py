"""Settings of runs, as their store has them."""

from contextlib import closing

from iclda.studies.paper.stored_settings import StoredSettings, read_settings
from iclda.studies.store import STORE, Store


def test_settings_come_back_and_those_that_a_store_lacks_have_their_defaults(tmp_path):
    with closing(Store(tmp_path / STORE)) as store:
        assert read_settings(store) == StoredSettings()
        store.note(seed=7, seconds_tables=2.0, seconds_curves=3.0, something_else=1)
        settings = read_settings(store)
    assert settings == StoredSettings(seed=7, seconds_tables=2.0, seconds_curves=3.0)
    assert settings.seconds == 5.0
