"""Subscriptions: tells agents of changes of notes, of the map and of what fades, whoever made them.

Everything is told by state. The watcher, or a call of this process, only wakes; then what is subscribed to
is looked at, and who knew it otherwise hears of it. So it matters neither which process wrote nor which one
keeps the vault, and a write that changes nothing an agent sees (its `rev`) is silent. What an agent did or
read itself is not news to it.

A subscriber holds each of its URIs at most once while it does not read, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.connection import Connection
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    EmptyResult,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from vault_palace.core.errors import VaultError
from vault_palace.surfaces.mcp import resources
from vault_palace.surfaces.mcp.answering import Context, refused
from vault_palace.surfaces.mcp.resources import LONGEST_URI, Place

if TYPE_CHECKING:
    from vault_palace.services.browse import Glimpse
    from vault_palace.services.palace import Palace

logger = logging.getLogger(__name__)

PAUSE = 0.25  # between the first word of a change and the look at it: a save is often several
REST = 0.75  # from one look to the next: who saves ten times a second is told of once
LOOK_SECONDS = 10.0  # looked at anyway, for what nobody tells of: a new day, a vault that is not watched
MOST_URIS = 1_000  # of one subscriber
MOST_SUBSCRIBERS = 1_000
MOST_IN_ALL = 20_000  # URIs of all subscribers: each is looked at again and again

Post = Callable[[str], Awaitable[None]]


@dataclass(eq=False)
class Subscriber:
    """One client, or one stream of it. What it knows is by URI: the state it was last told or has seen."""

    origin: object | None  # equal for the calls of the same client; None where that cannot be told
    places: dict[str, Place] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    pending: dict[str, None] = field(default_factory=dict)
    woken: anyio.Event = field(default_factory=anyio.Event)
    closed: bool = False

    def tell(self, states: Mapping[Place, str]) -> None:
        """Note what of its places is not as it knows it."""
        for uri, place in self.places.items():
            state = states.get(place)
            if state is not None and self.known.get(uri) != state:
                self.known[uri] = state
                self.pending[uri] = None
                self.woken.set()

    def close(self) -> None:
        self.closed = True
        self.woken.set()

    async def deliver(self, post: Post) -> None:
        """Send what is pending, as fast as the client takes it, until the end."""
        while True:
            await self.woken.wait()
            self.woken = anyio.Event()
            while self.pending and not self.closed:
                uri = next(iter(self.pending))
                del self.pending[uri]
                if uri in self.places:
                    await post(uri)
            if self.closed:
                return


class Hub:
    """All subscribers of this process. All methods but `wake` belong to the event loop."""

    def __init__(
        self, question: Callable[[Callable[[Palace], Any]], Any], *, pause: float = PAUSE, rest: float = REST
    ) -> None:
        self._question = question  # puts a question to the palace; called in a thread
        self._pause, self._rest = pause, rest
        self._subscribers: set[Subscriber] = set()
        self._of_connection: dict[Connection, Subscriber] = {}
        self._seen: dict[Place, Glimpse] = {}
        self._held: Counter[Place] = Counter()  # by how many URIs of how many subscribers
        self._woken = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._group: anyio.abc.TaskGroup | None = None
        self._looking = anyio.CapacityLimiter(1)

    # -- from outside ----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Subscriptions are served within it."""
        if self._group is not None:  # a transport that runs the server's life once for each connection
            yield
            return
        async with anyio.create_task_group() as group:
            self._group, self._loop = group, asyncio.get_running_loop()
            group.start_soon(self._look_again_and_again)
            try:
                yield
            finally:
                self._group = self._loop = None
                self.close()
                group.cancel_scope.cancel()

    def wake(self) -> None:
        """Something may have changed. May be called by any thread, and never waits."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """End every stream in good form; what was pending is dropped."""
        for subscriber in self._subscribers:
            subscriber.close()

    def learnt(self, context: Context, states: Mapping[str, str]) -> None:
        """The caller has just seen or made these states of notes, by path: they are no news to it."""
        origin = _origin(context)
        if origin is None:
            return
        for subscriber in self._subscribers:
            if subscriber.origin is not origin:
                continue
            for uri, place in subscriber.places.items():
                if place.kind == "memory" and place.path in states:
                    subscriber.known[uri] = states[place.path]

    # -- handshake -------------------------------------------------------------------------------------------

    async def subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        connection = _connection(context)
        subscriber = self._of_connection.get(connection)
        if subscriber is None or params.uri not in subscriber.places:
            begun = await self._begin([params.uri], strict=True)
            subscriber = self._of_connection.get(connection) or self._new_subscriber(context, connection)
            if len(subscriber.places) >= MOST_URIS:
                raise MCPError(INVALID_PARAMS, f"More than {MOST_URIS} subscriptions.", {"uri": params.uri})
            self._hold(subscriber, begun)
            self.wake()  # it may have changed while it was looked at
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        subscriber = self._of_connection.get(_connection(context))
        if subscriber is not None:
            self._release(subscriber.places.pop(params.uri, None))
            for known in (subscriber.known, subscriber.pending):
                known.pop(params.uri, None)
        return EmptyResult()

    def _new_subscriber(self, context: Context, connection: Connection) -> Subscriber:
        if self._group is None:
            raise MCPError(INTERNAL_ERROR, "The server is ending.")
        subscriber = self._add(context)
        self._of_connection[connection] = subscriber
        scope = anyio.CancelScope()

        def left() -> None:
            self._of_connection.pop(connection, None)
            self._drop(subscriber)
            scope.cancel()

        async def deliver() -> None:
            with scope:
                try:
                    await subscriber.deliver(context.session.send_resource_updated)
                except Exception:  # the outer edge of this task: one client's trouble is not the others'
                    logger.debug("A client could not be told of a change.", exc_info=True)
                    left()

        connection.exit_stack.callback(left)
        self._group.start_soon(deliver)
        return subscriber

    # -- modern ----------------------------------------------------------------------------------------------

    async def listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """One stream: acknowledged first, then a message for each change, until either side ends it."""
        number = context.request_id
        if number is None:
            raise MCPError(INVALID_REQUEST, "subscriptions/listen requires a request id")
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: number}
        wanted = dict.fromkeys(params.notifications.resource_subscriptions or ())
        if len(wanted) > MOST_URIS:
            raise MCPError(INVALID_PARAMS, f"More than {MOST_URIS} subscriptions.")
        begun = await self._begin(wanted, strict=False)
        subscriber = self._add(context)

        async def post(uri: str) -> None:
            changed = ResourceUpdatedNotification(
                params=ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
            )
            await context.session.send_notification(changed, related_request_id=number)

        try:
            self._hold(subscriber, begun)
            # The lists of tools, prompts and resources never change, so nothing is promised of them.
            honoured = SubscriptionFilter(resource_subscriptions=list(begun) or None)
            acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
            await context.session.send_notification(
                SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=number
            )
            self.wake()  # it may have changed while it was looked at
            await subscriber.deliver(post)
        finally:
            self._drop(subscriber)
        return SubscriptionsListenResult(_meta=meta)

    # -- subscribers -----------------------------------------------------------------------------------------

    def _add(self, context: Context) -> Subscriber:
        if len(self._subscribers) >= MOST_SUBSCRIBERS:
            raise MCPError(INTERNAL_ERROR, "Too many clients have subscriptions; close some.")
        subscriber = Subscriber(_origin(context), closed=self._group is None)
        self._subscribers.add(subscriber)
        if subscriber.closed:
            subscriber.close()
        return subscriber

    def _drop(self, subscriber: Subscriber) -> None:
        subscriber.close()
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)
            self._release(*subscriber.places.values())

    def _hold(self, subscriber: Subscriber, begun: Mapping[str, tuple[Place, Glimpse]]) -> None:
        new = {uri: one for uri, one in begun.items() if uri not in subscriber.places}
        if self._held.total() + len(new) > MOST_IN_ALL:
            raise MCPError(
                INTERNAL_ERROR, f"All clients together have more than {MOST_IN_ALL} subscriptions; end some."
            )
        for uri, (place, glimpse) in new.items():
            subscriber.places[uri], subscriber.known[uri] = place, glimpse.rev
            self._held[place] += 1
            self._seen.setdefault(place, glimpse)

    def _release(self, *places: Place | None) -> None:
        for place in places:
            if place is None:
                continue
            self._held[place] -= 1
            if self._held[place] <= 0:
                del self._held[place]
                self._seen.pop(place, None)

    async def _begin(self, uris: Iterable[str], *, strict: bool) -> dict[str, tuple[Place, Glimpse]]:
        """What these URIs mean and how that stands now; *strict* refuses one that can mean nothing.

        What cannot be looked at now stands as what is not there: it is told of when it can be.
        """

        def look(palace: Palace) -> dict[str, tuple[Place, Glimpse]]:
            places: dict[str, Place] = {}
            for uri in uris:
                try:
                    places[uri] = resources.place_of(palace, uri)
                except VaultError as error:
                    if strict:
                        raise refused(error, uri=uri[:LONGEST_URI]) from error
            seen = _glimpses(palace, dict.fromkeys(places.values()))
            return {uri: (place, seen.get(place) or _nothing()) for uri, place in places.items()}

        try:
            return await anyio.to_thread.run_sync(self._question, look, abandon_on_cancel=True)
        except VaultError as error:
            raise refused(error) from error

    # -- looking ---------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._woken.set()

    async def _look_again_and_again(self) -> None:
        while True:
            with anyio.move_on_after(LOOK_SECONDS if self._subscribers else None):
                await self._woken.wait()
            self._woken = anyio.Event()
            if not self._subscribers:
                continue
            await anyio.sleep(self._pause)
            try:
                await self._look()
            except VaultError as error:  # the vault may be away; it is looked at again
                logger.info("What is subscribed to could not be looked at: %s", error)
            except Exception:  # the outer edge of this task: it must outlive whatever one look meets
                logger.exception("What is subscribed to could not be looked at.")
            await anyio.sleep(self._rest)

    async def _look(self) -> None:
        before = {place: self._seen.get(place) for place in self._held}
        found = await anyio.to_thread.run_sync(
            self._question,
            lambda palace: _glimpses(palace, before),
            limiter=self._looking,
            abandon_on_cancel=True,
        )
        self._seen.update((place, glimpse) for place, glimpse in found.items() if place in self._held)
        states = {place: glimpse.rev for place, glimpse in found.items()}
        for subscriber in self._subscribers:
            subscriber.tell(states)


def _glimpses(palace: Palace, before: Mapping[Place, Glimpse | None]) -> dict[Place, Glimpse]:
    """How these places stand now, without those that cannot be looked at."""
    notes = {place.path: place for place in before if place.kind == "memory"}
    seen = palace.glimpses({path: before[place] for path, place in notes.items()})
    found = {notes[path]: glimpse for path, glimpse in seen.items()}
    for place in before.keys() - set(notes.values()):
        with suppress(VaultError):
            found[place] = _glimpse(palace, place, before[place])
    return found


def _glimpse(palace: Palace, place: Place, before: Glimpse | None) -> Glimpse:
    if place.kind == "map":
        return palace.glimpse_of_map(before)
    from vault_palace.services.browse import Glimpse

    text = resources.fading_text(palace.fading())
    return Glimpse(None, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _nothing() -> Glimpse:
    from vault_palace.services.browse import Glimpse

    return Glimpse(None, "")


def _connection(context: Context) -> Connection:
    """The connection of a handshake client: what its requests have in common, and what ends with it.

    The SDK hands its handlers no public way to it.
    """
    return context.session._connection


_STDIO = object()


def _origin(context: Context) -> object | None:
    """What the requests of one client have in common, where that can be told.

    A handshake client has a connection. A modern one has none, but on stdio there is only one client.
    """
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return _connection(context)
    return _STDIO if context.request is None else None
