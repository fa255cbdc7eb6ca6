"""The palace: one method a verb. Both surfaces call these and only render what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from vault_palace.core.model import Problem
from vault_palace.services import (
    briefing,
    browse,
    canvas,
    conflicts,
    curate,
    forget,
    health,
    history,
    metabolize,
    quiet,
    recall,
    recover,
    relocate,
    remember,
    undo,
)
from vault_palace.services.answers import (
    BeforePurge,
    BriefAnswer,
    CanvasAnswer,
    FadingAnswer,
    FindAnswer,
    ForgetAnswer,
    HealthAnswer,
    HistoryAnswer,
    MapAnswer,
    MapEditAnswer,
    MetabolizeAnswer,
    MoveAnswer,
    PageAnswer,
    PurgeAnswer,
    RateAnswer,
    ReadAnswer,
    RecoverAnswer,
    ReindexAnswer,
    ResolveAnswer,
    RestoreAnswer,
    SearchAnswer,
    SessionNote,
    StatusAnswer,
    UndoAnswer,
    VersionText,
    WriteAnswer,
)
from vault_palace.services.house import House, Limits, PalaceSettings

__all__ = ["Limits", "Palace", "PalaceSettings"]


class Palace:
    """A vault with its verbs. Safe to use from several threads; close it when done.

    Each method's contract is its function's in `services/`: what it answers (the keys of SPEC §9), what
    it refuses. Every refusal is a `VaultError`.
    """

    def __init__(self, house: House) -> None:
        self.house = house

    @classmethod
    def open(cls, root: Path, *, settings: PalaceSettings | None = None) -> Palace:
        """The palace at *root*, unfinished operations recovered; refused when *root* holds none."""
        palace = cls(House.open(root, settings or PalaceSettings()))
        if not palace.house.read_only():
            recover.at_start(palace.house)
        return palace

    def close(self) -> None:
        """Write what is still to be written and let the cache go."""
        try:
            quiet.flush_touches(self.house, quiet.LEAVING_SECONDS)
        finally:
            self.house.close()

    def __enter__(self) -> Palace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wake_up(self, *, room: str | None = None, max_tokens: int | None = None) -> BriefAnswer:
        return briefing.wake_up(self.house, room=room, max_tokens=max_tokens)

    def write(
        self,
        content: str,
        *,
        layer: str | None = None,
        path: str | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        density: float | None = None,
        source_session: str | None = None,
        mode: str = "create",
        if_rev: str | None = None,
        supersedes: str | Sequence[str] | None = None,
    ) -> WriteAnswer:
        return remember.write(
            self.house,
            content,
            layer=layer,
            path=path,
            title=title,
            tags=tags,
            density=density,
            source_session=source_session,
            mode=mode,
            if_rev=if_rev,
            supersedes=supersedes,
        )

    def read(
        self,
        *,
        path: str | None = None,
        id: str | None = None,
        title: str | None = None,
        max_tokens: int | None = None,
        section: str | None = None,
        touch: bool = True,
    ) -> ReadAnswer:
        return recall.read(
            self.house, path=path, id=id, title=title, max_tokens=max_tokens, section=section, touch=touch
        )

    def find(self, query: str, *, layer: str | None = None, max_tokens: int | None = None) -> FindAnswer:
        return recall.find(self.house, query, layer=layer, max_tokens=max_tokens)

    def search(
        self,
        query: str,
        *,
        room: str | None = None,
        layer: str | None = None,
        tags: Sequence[str] | None = None,
        min_density: float | None = None,
        limit: int = 10,
        max_tokens: int | None = None,
        cursor: str | None = None,
        proposed: bool = False,
    ) -> SearchAnswer:
        return recall.search(
            self.house,
            query,
            room=room,
            layer=layer,
            tags=tags,
            min_density=min_density,
            limit=limit,
            max_tokens=max_tokens,
            cursor=cursor,
            proposed=proposed,
        )

    def rate(
        self,
        *,
        path: str | None = None,
        id: str | None = None,
        density: float | None = None,
        pinned: bool | None = None,
        decay_days: float | None = None,
    ) -> RateAnswer:
        return remember.rate(
            self.house, path=path, id=id, density=density, pinned=pinned, decay_days=decay_days
        )

    def metabolize(
        self,
        *,
        dry_run: bool = False,
        confirm: bool = False,
        days_threshold: int | None = None,
        force: bool = False,
        progress: Callable[[int, int, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> MetabolizeAnswer:
        return metabolize.metabolize(
            self.house,
            dry_run=dry_run,
            confirm=confirm,
            days_threshold=days_threshold,
            force=force,
            progress=progress,
            cancelled=cancelled,
        )

    def purge(self, path: str, *, reason: str = "unspecified", confirm: bool = False) -> PurgeAnswer:
        return relocate.purge(self.house, path, reason=reason, confirm=confirm)

    def restore(self, path: str, *, to_layer: str | None = None) -> RestoreAnswer:
        return relocate.restore(self.house, path, to_layer=to_layer)

    def move(self, source: str, dest_layer: str, *, new_path: str | None = None) -> MoveAnswer:
        return relocate.move(self.house, source, dest_layer, new_path=new_path)

    def resolve(self, note: str, *, keep: str | None = None, dry_run: bool = False) -> ResolveAnswer:
        return conflicts.resolve(self.house, note, keep=keep, dry_run=dry_run)

    def read_map(self, max_tokens: int | None = None) -> MapAnswer:
        return curate.read_map(self.house, max_tokens)

    def update_map(self, action: str, link: str) -> MapEditAnswer:
        return curate.update_map(self.house, action, link)

    def history(self, note: str, *, limit: int | None = None, everything: bool = False) -> HistoryAnswer:
        return history.history(self.house, note, limit=limit, everything=everything)

    def version(self, note: str, version: str) -> VersionText:
        return history.version(self.house, note, version)

    def undo(
        self,
        what: str | None = None,
        *,
        session: str | None = None,
        version: str | None = None,
        preview: bool = False,
        confirm: bool = False,
    ) -> UndoAnswer:
        return undo.undo(self.house, what, session=session, version=version, preview=preview, confirm=confirm)

    def forget(self, note: str, *, confirm: bool = False) -> ForgetAnswer:
        return forget.forget(self.house, note, confirm=confirm)

    def recover(self) -> RecoverAnswer:
        return recover.recover(self.house)

    def health(self, patience: float | None = None) -> HealthAnswer:
        return health.health(self.house, patience)

    def faults(self) -> list[Problem]:
        return health.faults(self.house)

    def status(self) -> StatusAnswer:
        return curate.status(self.house)

    def check(self) -> list[Problem]:
        return curate.check(self.house)

    def reindex(self) -> ReindexAnswer:
        return curate.reindex(self.house)

    def canvas(self, *, force: bool = False) -> CanvasAnswer:
        return canvas.draw(self.house, force=force)

    def page(self, path: str, *, max_tokens: int | None = None) -> PageAnswer:
        return browse.page(self.house, path, max_tokens=max_tokens)

    def fading(self, *, room: str | None = None, limit: int = browse.FADING) -> FadingAnswer:
        return browse.fading(self.house, room=room, limit=limit)

    def rooms(self) -> list[str]:
        return browse.rooms(self.house)

    def paths(self, *, archived: bool = False) -> Sequence[str]:
        return browse.paths(self.house, archived=archived)

    def glimpse(self, path: str, before: browse.Glimpse | None = None) -> browse.Glimpse:
        return browse.glimpse(self.house, path, before)

    def glimpses(self, before: Mapping[str, browse.Glimpse | None]) -> dict[str, browse.Glimpse]:
        return browse.glimpses(self.house, before)

    def glimpse_of_map(self, before: browse.Glimpse | None = None) -> browse.Glimpse:
        return browse.glimpse_of_map(self.house, before)

    def readable(self, path: str) -> str:
        return browse.readable(self.house, path)

    def must_confirm(self) -> bool:
        return browse.must_confirm(self.house)

    def before_purge(self, path: str, *, reason: str = "unspecified") -> BeforePurge:
        return browse.before_purge(self.house, path, reason)

    def session_notes(self) -> list[SessionNote]:
        return browse.session_notes(self.house)
