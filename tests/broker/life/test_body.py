"""What a body decides by itself; servers and the simulation run the rest."""

import pytest

from sparklog.broker.life.body import Lanes


@pytest.mark.parametrize("fetchers", [1, 3])
def test_each_lane_has_one_purpose(fetchers: int) -> None:
    lanes = Lanes(fetchers)
    assert [*range(lanes.fetchers), lanes.markers, lanes.verifications] == list(range(lanes.count))
