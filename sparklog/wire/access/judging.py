"""What of a request is served: the same code for brokers and for the controller.

The table of APIs says which rights a request needs, ``places`` of what, and ``cases`` when. Rights on the
whole request come first, in the order of the table, then those on its items. A name that is not there and one
that may not be seen get one answer, because rights are judged before anything is looked up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

from sparklog.core.security.acl import Right
from sparklog.model.errors import ErrorCode
from sparklog.wire.access.cases import CASES
from sparklog.wire.access.mirror import ERRORS, item_type, mirrored, refused
from sparklog.wire.access.partly import PARTLY
from sparklog.wire.access.places import PLACES, Items, Shown, Whole
from sparklog.wire.access.question import Admitted, Denied, Finish, Question, Verdict
from sparklog.wire.codec import message_class

__all__ = ["Admitted", "Denied", "Question", "Verdict", "judge"]


def judge(asked: Question) -> Verdict:
    """What is served of the request, by the rules of now."""
    places = list(zip(asked.api.rights, PLACES.get(asked.api.name, ()), strict=True))
    for right, place in places:
        if (
            isinstance(place, Whole)
            and CASES[right.condition](asked, asked.request)
            and not asked.access.has(right, place.name(asked.request))
        ):
            return Denied(refused(asked.request, ERRORS[right.refusal.resource]))
    finishes: list[Finish] = []
    is_empty = False
    for right, place in places:
        if isinstance(place, Items):
            request, finish = _split(asked, right, place)
            asked = replace(asked, request=request)
            if finish is not None:
                finishes.append(finish)
                is_empty = not getattr(request, place.items)
        elif isinstance(place, Shown):
            finishes.append(_hide(asked, right, place))
    together = _together(finishes)
    if is_empty and together is not None:
        return Denied(together(message_class(asked.api.key, "response")()))
    special = PARTLY.get(asked.api.name)
    if special is None:
        return Admitted(asked.request, together)
    verdict = special(asked)
    if isinstance(verdict, Admitted):
        finishes += [] if verdict.finish is None else [verdict.finish]
        return Admitted(verdict.request, _together(finishes))
    return verdict


def _together(finishes: Sequence[Finish]) -> Finish | None:
    if not finishes:
        return None

    def finish(response: Any) -> Any:
        for one in finishes:
            response = one(response)
        return response

    return finish


def _split(asked: Question, right: Right, place: Items) -> tuple[Any, Finish | None]:
    """The request without the items that lack the right, and how their answers get into the response."""
    request, case = asked.request, CASES[right.condition]
    items: Iterable[Any] = getattr(request, place.items) or ()
    verdicts: dict[str, bool] = {}
    allowed: list[Any] = []
    denied: list[Any] = []
    for item in items:
        if case(asked, item):
            name = place.name(item)
            if name not in verdicts:
                verdicts[name] = asked.access.has(right, name)
            (allowed if verdicts[name] else denied).append(item)
        else:
            allowed.append(item)
    if not denied:
        return request, None
    answers = answers_of(request, place.answers, denied, ERRORS[right.refusal.resource])
    return replace(request, **{place.items: allowed}), _added(place.answers, answers)


def answers_of(request: Any, name: str, items: Iterable[Any], error: ErrorCode) -> list[Any]:
    """The answers in the list ``name`` of the response that refuse ``items``."""
    answer_type = item_type(get_type_hints(message_class(request.API_KEY, "response"))[name])
    assert answer_type is not None, name
    return [mirrored(item, answer_type, error) for item in items]


def _added(name: str, answers: Iterable[Any]) -> Finish:
    def finish(response: Any) -> Any:
        if getattr(response, "error_code", ErrorCode.none) is ErrorCode.none:
            getattr(response, name).extend(answers)
        return response

    return finish


def _hide(asked: Question, right: Right, place: Shown) -> Finish:
    def left(items: Iterable[Any]) -> list[Any]:
        return [one for one in items if asked.access.shows(right, place.name(one))]

    def finish(response: Any) -> Any:
        holders = getattr(response, place.within) if place.within else [response]
        for holder in holders:
            setattr(holder, place.answers, left(getattr(holder, place.answers)))
        return response

    return finish
