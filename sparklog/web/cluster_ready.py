"""``/ready``: whether a controller is in office and every partition has a leader, in numbers alone."""

from sparklog.client.errors import ClusterUnavailable
from sparklog.web.verdict import OLD_MS
from sparklog.web.viewer import Viewer


def readiness(viewer: Viewer) -> tuple[bool, str]:
    """Whether it is, and why not. It names nothing, as nobody has to log in to ask."""
    try:
        report = viewer.report()
    except ClusterUnavailable:
        return False, "nobody answers"
    if report.age_ms >= OLD_MS or not any(one.is_active for one in report.controllers):
        return False, f"no controller in office for {report.age_ms // 1_000} s"
    if report.leaderless:
        return False, f"{report.leaderless} of {report.partitions} partitions without a leader"
    return True, f"{report.partitions} partitions led"
