"""Lines go in, the same lines come out; what cannot work is said plainly."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.client.partitioning.partitioner import partition_for_key
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

Sparklog = Callable[..., Any]


def consumed(sparklog: Sparklog, count: int, *options: str) -> list[str]:
    ran = sparklog("consume", "--topic", "t", "--max-messages", str(count), *options)
    assert ran.status == DONE, ran.err
    lines: list[str] = ran.out.splitlines()
    return lines


def test_lines_come_out_as_they_went_in(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    ran = sparklog("produce", "--topic", "t", stdin="one\n\nthree: ä\nfour".encode())
    assert (ran.status, ran.out, ran.err) == (DONE, "", "")
    assert consumed(sparklog, 4, "--from-beginning") == ["one", "", "three: ä", "four"]


@pytest.mark.parametrize("acks", ["all", "1", "-1"])
def test_any_acks_will_do(acks: str, sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    assert sparklog("produce", "--topic", "t", f"--acks={acks}", stdin=b"x\n").status == DONE
    assert consumed(sparklog, 1, "--from-beginning") == ["x"]


def test_keys_are_split_off_and_decide_the_partition(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 3)
    assert sparklog("produce", "--topic", "t", "--key-separator", ":", stdin=b"k:v:w\n").status == DONE
    partition = str(partition_for_key(b"k", 3))
    options = ("--partition", partition, "--from-beginning", "--print-key")
    assert consumed(sparklog, 1, *options) == ["k\tv:w"]
    assert consumed(sparklog, 1, *options, "--key-separator", "=") == ["k=v:w"]


def test_a_line_without_separator_ends_the_input_after_what_came_before(
    sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t")
    ran = sparklog("produce", "--topic", "t", "--key-separator", ":", stdin=b"a:1\nbroken\nb:2\n")
    assert ran.status == FAILED
    assert "line 2 has no key separator ':'" in ran.err
    assert consumed(sparklog, 1, "--from-beginning", "--timeout-ms", "100") == ["1"]


def test_a_record_without_a_key_is_printed_with_null(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"v\n")
    assert consumed(sparklog, 1, "--from-beginning", "--print-key") == ["null\tv"]


def test_consuming_from_an_offset_of_a_partition(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 2)
    sparklog("produce", "--topic", "t", "--partition", "1", stdin=b"0\n1\n2\n3\n")
    assert consumed(sparklog, 2, "--partition", "1", "--offset", "1") == ["1", "2"]


def test_consuming_ends_when_nothing_comes_for_so_long(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"old\n")
    ran = sparklog("consume", "--topic", "t", "--timeout-ms", "100")
    assert (ran.status, ran.out) == (DONE, "")


def test_records_that_were_deleted_are_passed_over_with_a_warning(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"0\n")
    sparklog("produce", "--topic", "t", stdin=b"1\n")
    fake.log("t").log_start_offset = 1
    options = ("--partition", "0", "--offset", "0", "--max-messages", "1")
    ran = sparklog("consume", "--topic", "t", *options)
    assert ran.out == "1\n"
    assert "offset 0 of t-0 was deleted" in ran.err


def test_options_that_contradict_each_other_are_wrong_usage(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    ran = sparklog("consume", "--topic", "t", "--offset", "3")
    assert ran.status == WRONG_USAGE
    assert "--offset 3 needs a --partition" in ran.err
    both = ("--offset", "3", "--from-beginning", "--partition", "0")
    assert sparklog("consume", "--topic", "t", *both).status == WRONG_USAGE
    assert sparklog("consume").status == WRONG_USAGE
    assert sparklog("produce", "--topic", "t", "--acks", "2").status == WRONG_USAGE
    assert sparklog("produce", "--topic", "t", "--key-separator", "").status == WRONG_USAGE


def test_what_consume_prints_as_json_produce_takes_whatever_bytes_it_has(
    sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t", 2)
    lines = (
        b'{"key": {"base64": "/wA="}, "value": "v\xc3\xa4", "partition": 1, "timestamp_ms": 12, '
        b'"headers": [{"key": "a", "value": {"base64": "/w=="}}, {"key": "a", "value": null}]}\n'
        b'{"value": null, "partition": 0, "timestamp_ms": 13}\n'
    )
    assert sparklog("produce", "--topic", "t", "--json", stdin=lines).err == ""
    read = sparklog("consume", "--topic", "t", "--json", "--from-beginning", "--max-messages", "2").out
    fake.create_topic("u", 2)
    assert sparklog("produce", "--topic", "u", "--json", stdin=read.encode()).err == ""
    again = sparklog("consume", "--topic", "u", "--json", "--from-beginning", "--max-messages", "2").out
    first, second = sorted(map(json.loads, again.splitlines()), key=lambda record: -record["partition"])
    assert first == {
        "topic": "u",
        "partition": 1,
        "offset": 0,
        "timestamp_ms": 12,
        "key": {"base64": "/wA="},
        "value": "vä",
        "headers": [{"key": "a", "value": {"base64": "/w=="}}, {"key": "a", "value": None}],
    }
    assert (second["value"], second["key"], second["timestamp_ms"], second["headers"]) == (None, None, 13, [])
    assert sorted(read.replace('"topic": "t"', '"topic": "u"').splitlines()) == sorted(again.splitlines())


def test_a_format_shows_offset_partition_time_and_headers(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    headers = ("--header", "source=shell", "--header", "empty=")
    assert sparklog("produce", "--topic", "t", *headers, stdin=b"v\n").status == DONE
    form = r"{topic}-{partition}\t{offset} {value} {headers}"
    assert consumed(sparklog, 1, "--from-beginning", "--format", form) == ["t-0\t0 v source=shell,empty="]
    (timestamp,) = consumed(sparklog, 1, "--from-beginning", "--format", "{timestamp}")
    assert abs(int(timestamp) - time.time() * 1_000) < 60_000


def test_a_partition_on_the_command_line_goes_over_those_of_the_objects(
    sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t", 2)
    line = b'{"value": "v", "partition": 7}\n'
    ran = sparklog("produce", "--topic", "t", "--json", stdin=line)
    assert ran.status == FAILED
    assert "line 1 has partition 7, but the topic has 0 to 1; --partition goes over it" in ran.err
    assert sparklog("produce", "--topic", "t", "--json", "--partition", "1", stdin=line).status == DONE
    assert consumed(sparklog, 1, "--partition", "1", "--from-beginning") == ["v"]


def test_a_line_that_is_no_record_ends_the_input_after_what_came_before(
    sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t")
    lines = b'{"value": "1"}\n{"vlaue": "2"}\n{"value": "3"}\n'
    ran = sparklog("produce", "--topic", "t", "--json", stdin=lines)
    assert ran.status == FAILED
    assert "line 2 has 'vlaue', which is no part of a record; did you mean value?: " in ran.err
    assert "the lines before it were written, it and the rest were not" in ran.err
    assert consumed(sparklog, 2, "--from-beginning", "--timeout-ms", "100") == ["1"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("produce", "--json", "--header", "a=b"), "--header and --json: "),
        (("produce", "--json", "--key-separator", ":"), "--key-separator and --json: "),
        (("produce", "--header", "a"), "--header: 'a' is not of the form NAME=VALUE"),
        (("produce", "--header", "=b"), "--header: '=b' is not of the form NAME=VALUE"),
        (("consume", "--json", "--print-key"), "not allowed with"),
        (("consume", "--json", "--format", "{value}"), "not allowed with"),
        (("consume", "--format", "{vale}"), "--format: {vale} is no part of a record; did you mean value?"),
    ],
)
def test_options_of_a_record_s_parts_that_cannot_be_are_wrong_usage(
    sparklog: Sparklog, words: tuple[str, ...], complaint: str
) -> None:
    ran = sparklog(*words, "--topic", "t")
    assert ran.status == WRONG_USAGE
    assert complaint in ran.err


def test_a_group_chooses_partitions_itself(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    ran = sparklog("consume", "--topic", "t", "--group", "g", "--partition", "0")
    assert ran.status == WRONG_USAGE
    assert "the group chooses the partitions" in ran.err
    ran = sparklog("consume", "--topic", "t", "--assignor", "range")
    assert ran.status == WRONG_USAGE
    assert "for members of a --group" in ran.err


def test_several_topics_are_read_together(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    fake.create_topic("u")
    for topic in ("t", "u"):
        assert sparklog("produce", "--topic", topic, stdin=f"of {topic}\n".encode()).status == DONE
    assert sorted(consumed(sparklog, 2, "--topic", "u", "--from-beginning")) == ["of t", "of u"]
    ran = sparklog("consume", "--topic", "t", "--topic", "u", "--partition", "0")
    assert ran.status == WRONG_USAGE


def test_a_partition_that_is_not_there_is_named(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 2)
    for words in (("consume", "--from-beginning"), ("produce",)):
        ran = sparklog(*words, "--topic", "t", "--partition", "7", stdin=b"x\n")
        assert ran.status == FAILED
        assert ran.err == "sparklog: --partition 7: topic 't' has partitions 0 to 1\n"


def test_an_unknown_topic_is_not_created_but_named_with_the_remedies(sparklog: Sparklog, fake: Any) -> None:
    create = f"create it with: sparklog topics create quake --bootstrap-server {fake.bootstrap_servers}"
    ran = sparklog("produce", "--topic", "quake", stdin=b"x\n")
    assert (ran.status, ran.err) == (
        FAILED,
        f"sparklog: there is no topic 'quake', nor any other; {create}\n",
    )
    fake.create_topic("quakes")
    for command in ("produce", "consume"):
        ran = sparklog(command, "--topic", "quake", stdin=b"x\n")
        assert ran.status == FAILED
        assert ran.err == f"sparklog: there is no topic 'quake'; did you mean quakes? Or {create}\n"
    assert list(fake.topics) == ["quakes"]


def test_no_line_is_no_record_and_an_empty_line_is_an_empty_one(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    assert sparklog("produce", "--topic", "t", stdin=b"").status == DONE
    assert fake.log("t").end == 0
    assert sparklog("produce", "--topic", "t", stdin=b"\n").status == DONE
    assert consumed(sparklog, 1, "--from-beginning") == [""]


def test_a_huge_line_is_refused_without_taking_those_before_it_along(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    ran = sparklog("produce", "--topic", "t", stdin=b"before\n" + b"x" * 2_000_000 + b"\nbehind\n")
    assert ran.status == FAILED
    assert "MESSAGE_TOO_LARGE" in ran.err
    assert ran.err.count("MESSAGE_TOO_LARGE") == 1
    assert ran.err.endswith("of 3 records read 1 were acknowledged\n")
    assert consumed(sparklog, 1, "--from-beginning") == ["before"]


def test_no_message_at_all_is_what_was_asked_for(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    assert consumed(sparklog, 0) == []


def test_an_offset_beyond_the_end_is_refused_with_those_there_are(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"0\n1\n")
    ran = sparklog("consume", "--topic", "t", "--partition", "0", "--offset", "99")
    assert ran.status == FAILED
    assert "offset 99 of t-0 is beyond the end of the log; offsets from 0 up to, not including, 2" in ran.err


def test_a_closed_pipe_is_the_quiet_end_of_a_consumer_even_while_nothing_new_comes(
    sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"first\nsecond\n")
    command = [sys.executable, "-m", "sparklog.cli.main", "consume", "--topic", "t", "--from-beginning"]
    with subprocess.Popen(
        [*command, "--bootstrap-server", fake.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert consumer.stdout.readline() == b"first\n"
        consumer.stdout.close()
        assert consumer.wait(30) == DONE
        assert consumer.stderr.read() == b""


@pytest.mark.parametrize("redirection", ["<&-", "< /dev/null > /dev/full", ">&-"])
def test_standard_streams_that_cannot_be_used_are_an_error_and_no_traceback(
    redirection: str, sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"first\n")
    words = "produce --topic t" if redirection == "<&-" else "consume --topic t --from-beginning"
    servers = f"--bootstrap-server {fake.bootstrap_servers}"
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m sparklog.cli.main {words} {servers} {redirection}"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode in (FAILED, WRONG_USAGE)
    assert ran.stderr.startswith("sparklog: ")
    assert ran.stderr.count("\n") == 1


def test_a_refused_record_is_reported_with_partition_and_reason(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    fake.refusals[TopicPartition("t", 0)].append(ErrorCode.message_too_large)
    ran = sparklog("produce", "--topic", "t", stdin=b"x\n")
    assert ran.status == FAILED
    assert "cannot write to t-0: MESSAGE_TOO_LARGE" in ran.err


def test_ctrl_c_is_the_quiet_end_of_a_consumer_that_prints_each_record_at_once(
    sparklog: Sparklog, fake: Any
) -> None:
    fake.create_topic("t")
    sparklog("produce", "--topic", "t", stdin=b"first\n")
    command = [sys.executable, "-m", "sparklog.cli.main", "consume", "--topic", "t", "--from-beginning"]
    with subprocess.Popen(
        [*command, "--bootstrap-server", fake.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert consumer.stdout.readline() == b"first\n"
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(30) == DONE
        assert consumer.stderr.read() == b""


def test_ctrl_c_ends_the_input_of_a_producer_and_keeps_what_it_read(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    command = [sys.executable, "-m", "sparklog.cli.main", "produce", "--topic", "t"]
    with subprocess.Popen(
        [*command, "--bootstrap-server", fake.bootstrap_servers],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as producer:
        assert producer.stdin is not None
        assert producer.stderr is not None
        producer.stdin.write(b"typed\n")
        producer.stdin.flush()
        assert consumed(sparklog, 1, "--from-beginning") == ["typed"]
        producer.send_signal(signal.SIGINT)
        assert producer.wait(30) == DONE
        assert producer.stderr.read() == b""
