"""What each part of a run is."""

import pytest

from chaos.bugs import BUGS
from chaos.command import parsed
from chaos.machines.places import PlainPlaces
from chaos.nemesis import EXECUTORS, SPARES
from chaos.planned import part_options
from chaos.report import Part, Window


def _options(tmp_path, *arguments, parts=()):
    return part_options(parsed(arguments), tmp_path, parts)


def _lived(minutes, windows=0, **fields):
    window = Window(1, "kill-leader", "broker 1", 0, 1, 2)
    return Part(1, 60.0 * minutes, [window] * windows, **fields)


def _kinds(options):
    return {nemesis.kind for nemesis in options.nemeses}


def test_the_first_part_of_the_standard_hour_has_the_faults_that_need_spares(tmp_path):
    options = _options(tmp_path)
    assert (options.spark, options.seconds) == ("none", 300)
    assert options.first == ["zombie-elsewhere"]
    assert {"zombie-elsewhere", "kill-leader", "pause-zookeeper-1x", "empty-disk"} <= _kinds(options)
    assert all(nemesis.needs <= {SPARES} for nemesis in options.nemeses)
    assert isinstance(options.places, PlainPlaces)
    assert not any(plan.library == "spark" for plan in options.clients)
    assert not options.is_over_then, "the other faults come after it"


def test_all_other_parts_are_upon_executors_with_every_kind(tmp_path):
    options = _options(tmp_path, parts=[_lived(5, spark="none")])
    assert (options.spark, options.seconds, options.first) == ("workers", 900, [])
    assert any(EXECUTORS in nemesis.needs for nemesis in options.nemeses)
    assert any(plan.library == "spark" for plan in options.clients)


def test_the_last_part_is_as_long_as_what_is_left_of_the_run(tmp_path):
    options = _options(
        tmp_path,
        parts=[_lived(5), *[_lived(15)] * 3],
    )
    assert options.seconds == pytest.approx(600)


def test_a_run_of_so_many_windows_gives_the_first_part_its_share_of_them(tmp_path):
    assert _options(tmp_path, "--windows", "36").windows_max == 3
    assert _options(tmp_path, "--windows", "4").windows_max == 1
    assert _options(tmp_path, "--windows", "4", parts=[_lived(1, 1)]).windows_max == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--only", "kill-leader"),  # nothing that needs spares
        ("--without", "zombie-elsewhere"),
        ("--minutes", "1"),  # too short for two clusters
        ("--windows", "1"),
    ],
)
def test_a_run_that_needs_no_spares_or_is_too_short_has_executors_from_the_first_part_on(tmp_path, arguments):
    options = _options(tmp_path, *arguments)
    assert (options.spark, options.first) == ("workers", [])


def test_a_run_of_nothing_but_what_needs_spares_is_outside_of_spark_to_its_end(tmp_path):
    arguments = ("--only", "zombie-elsewhere", "--minutes", "20")
    first = _options(tmp_path, *arguments)
    second = _options(tmp_path, *arguments, parts=[_lived(15, 30, spark="none")])
    assert [part.spark for part in (first, second)] == ["none", "none"]
    assert [part.seconds for part in (first, second)] == [900, 300]


@pytest.mark.parametrize("spark", ["none", "local"])
def test_a_run_upon_something_else_stays_there(tmp_path, spark):
    options = _options(tmp_path, "--spark", spark)
    assert (options.spark, options.seconds, options.first) == (spark, 900, [])


def test_a_part_in_order_has_the_named_kinds_and_no_other(tmp_path):
    options = _options(tmp_path, "--in-order", "--only", "zombie-elsewhere", "kill-all", "--spark", "none")
    assert (options.first, options.is_over_then) == (["zombie-elsewhere", "kill-all"], True)


def test_one_part_of_four_is_of_a_secured_cluster(tmp_path):
    lived = [_lived(5), *[_lived(15)] * 6]
    secured = [_options(tmp_path, "--minutes", "600", parts=lived[:n]).is_secured for n in range(7)]
    assert secured == [False, False, True, False, False, False, True]


def test_every_part_of_a_secured_run_has_changes_of_logins_and_clients_that_are_denied(tmp_path):
    for parts in ([], [_lived(5)]):
        options = _options(tmp_path, "--secured", parts=parts)
        assert options.is_secured
        assert {"take-rule", "rotate-password", "renew-certificates"} <= _kinds(options)
        assert {"trespasser", "guest"} <= {plan.role for plan in options.clients}
        assert options.first[-3:] == ["renew-certificates", "rotate-password", "take-rule"], "each comes once"


def test_an_open_cluster_has_neither(tmp_path):
    options = _options(tmp_path, parts=[_lived(5)])
    assert not options.is_secured
    assert not {"take-rule", "rotate-password", "renew-certificates"} & _kinds(options)
    assert not {"trespasser", "guest"} & {plan.role for plan in options.clients}


def test_bugs_are_caught_on_open_clusters(tmp_path):
    arguments = ("--spark", "none", "--mutant", next(iter(BUGS)))
    assert not _options(tmp_path, *arguments, parts=[_lived(15)] * 2).is_secured


@pytest.mark.parametrize("kind", ["crash-point", "write-fails", "sync-fails", "disk-full"])
def test_brokers_of_one_machine_have_the_shim_where_a_fault_needs_it(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("chaos.machines.shim.probe", lambda: None)
    needing = _options(tmp_path, "--places", "plain", "--only", kind, "kill-leader")
    assert next(one for one in needing.nemeses if one.kind == kind).needs <= needing.places.features
    assert _options(tmp_path, "--places", "plain", "--only", "kill-leader").places.features == set()


def test_clients_are_of_the_kinds_that_were_asked_for(tmp_path):
    plain = _options(tmp_path, "--clients", "plain", "--spark", "none")
    assert {plan.kind for plan in plain.clients} == {"plain"}
    both = _options(tmp_path, "--clients", "plain", "groups", parts=[_lived(5, spark="none")])
    assert {plan.kind for plan in both.clients} == {"plain", "groups"}
    assert any(plan.library == "spark" for plan in both.clients)
    assert {plan.kind for plan in _options(tmp_path).clients} == {
        "plain",
        "groups",
        "transactions",
        "writes",
        "typed",
    }


def test_brokers_are_four_where_some_are_drained(tmp_path):
    later = {"parts": [_lived(5, spark="none")]}
    assert _options(tmp_path, **later).brokers == 4
    assert _options(tmp_path, "--without", "operator-drain", **later).brokers == 3
    assert _options(tmp_path, "--spark", "none", **later).brokers == 3
    assert _options(tmp_path).brokers == 3, "its first part is outside of Spark"
