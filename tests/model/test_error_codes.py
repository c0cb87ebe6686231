"""Kafka's error codes are Kafka's."""

from kio.schema.errors import ErrorCode as KioErrorCode

from sparklog.model.error_codes import ErrorCode


def test_names_numbers_and_retriability_are_those_of_kio() -> None:
    ours = {(code.name, int(code), code.retriable) for code in ErrorCode}
    assert ours == {(code.name, int(code), code.retriable) for code in KioErrorCode}


def test_a_number_is_a_code() -> None:
    assert ErrorCode(6) is ErrorCode.not_leader_or_follower
    assert ErrorCode.not_leader_or_follower == 6
