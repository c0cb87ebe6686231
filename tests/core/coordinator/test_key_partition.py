"""Keys are placed where Kafka places them."""

import pytest

from sparklog.core.coordinator.key_partition import partition_of


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [
        ("", 0),
        ("g", 103),
        ("my-group", -1_906_497_762),
        ("console-consumer-12345", 158_455_506),
        ("ä€", 15_432),
        ("😀", 1_772_899),
    ],
)
def test_the_partition_is_javas_hash_of_the_key_modulo_the_partitions(key, java_hash):
    assert partition_of(key, 2**31) == abs(java_hash)
    assert partition_of(key, 50) == abs(java_hash) % 50


def test_the_least_hash_which_has_no_absolute_value_is_partition_zero():
    assert partition_of("polygenelubricants", 50) == 0
