import pytest

from kgs_core.demo.flights import find_data, load_flights, load_weather


@pytest.fixture(scope="session")
def flights():
    return load_flights(find_data())


@pytest.fixture(scope="session")
def weather():
    return load_weather(find_data())
