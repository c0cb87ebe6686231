"""Who answers the page's requests: one viewer for all, or one for each user who logs in."""

from dataclasses import dataclass

from sparklog.web.page_logins import PageLogins
from sparklog.web.viewer import Viewer


@dataclass(frozen=True, slots=True)
class OneViewer:
    """Everybody who reaches the page sees the same."""

    viewer: Viewer

    @property
    def needs_login(self) -> bool:
        return False

    def of_request(self, authorization: str | None) -> Viewer:
        return self.viewer

    def anyone(self) -> Viewer | None:
        return self.viewer

    def refused(self, viewer: Viewer) -> None:
        """The page cannot log in as somebody else."""


@dataclass(frozen=True, slots=True)
class ViewersWhoLogIn:
    """Each user sees what that user may see."""

    logins: PageLogins

    @property
    def needs_login(self) -> bool:
        return True

    def of_request(self, authorization: str | None) -> Viewer:
        return self.logins.viewer(authorization)

    def anyone(self) -> Viewer | None:
        return self.logins.last_used()

    def refused(self, viewer: Viewer) -> None:
        self.logins.forget(viewer)
