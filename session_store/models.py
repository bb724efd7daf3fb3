"""Values that callers hand to the store and get back from its transactions. Frozen, plain, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Accepted",
    "Binding",
    "BotCaps",
    "Branch",
    "Change",
    "Claim",
    "ClaimRequest",
    "Compress",
    "Effect",
    "Entrant",
    "Fence",
    "Home",
    "InboxKind",
    "MessageNote",
    "MovedChat",
    "NewAttachment",
    "NewHandoff",
    "NewInbox",
    "NewMessage",
    "NewOutbox",
    "OfferSessions",
    "OutboxKind",
    "PlaceRef",
    "Purpose",
    "RenderedPart",
    "RequestHandoff",
    "RequestStop",
    "ResumeSession",
    "Retitle",
    "SetHome",
    "ShownAnswer",
    "StartSession",
    "TakeBack",
    "TakeLocally",
    "Unlink",
    "Usage",
    "Visibility",
]

InboxKind = Literal["message", "edit", "delete", "command", "button", "migration", "member"]
Purpose = Literal["turn", "summary", "title", "handoff"]
OutboxKind = Literal["answer", "notice", "mirror", "handoff"]


@dataclass(frozen=True, slots=True)
class PlaceRef:
    """A full delivery address. `thread` is '' outside threads and topics; `name` is for people only.

    parent: the chat that a chat hangs on, where what it takes no more may be sent instead; None where that is unknown.
    """

    platform: str
    account: str
    chat_type: str
    chat: str
    thread: str = ""
    name: str | None = field(default=None, compare=False)
    parent: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Visibility:
    """Whose sessions a query may see; the store applies it inside the query.

    owners: ids of persons and rooms. within_room: when set (the asker stands in a shared place), sessions that a
    person owns count only if they live in that room. `None` in place of a Visibility means the library caller, who
    sees everything.
    """

    owners: frozenset[str]
    within_room: str | None = None


@dataclass(frozen=True, slots=True)
class BotCaps:
    """How far bots are listened to in a chat: messages in a row without a person's, and per period of `seconds`."""

    depth: int
    spoken: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Entrant:
    """A sender as the platform names them. account: the name space of the user id; name: what people see."""

    account: str
    user_id: str
    name: str | None


@dataclass(frozen=True, slots=True)
class NewInbox:
    """One event at the edge, authorized and ready to be recorded (transaction *accept*).

    lane: rows of one lane are worked one after another (the session key, or the root id of a session chosen by id).
    holder: process token when only this process may work the row (terminal); else None.
    entrant: who is merely allowed to speak, whose person is found or made with the row; None if person_id says it all.
    caps: what a bot may say; None for people.
    """

    place: PlaceRef
    dedupe_key: str
    kind: InboxKind
    lane: str
    received_at: float
    payload: Mapping[str, Any]
    sender: Mapping[str, Any]
    session_key: str | None = None
    session_id: str | None = None
    person_id: str | None = None
    entrant: Entrant | None = None
    holder: str | None = None
    caps: BotCaps | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Result of accept: the row, and whether this call made it (False: a repeated delivery, nothing changed).

    inbox_id is 0 when nothing was recorded: bots have said enough in that chat.
    """

    inbox_id: int
    created: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What an edit or a delete came to.

    unknown - no such message was ever recorded; nothing was written. repeated - recorded before. same - the text is
    what it was. waiting - no turn had begun: the text was replaced (or the message withdrawn). recorded - on the
    message, for the next turn. latest: the message is the last one that somebody said in its session.
    """

    status: Literal["unknown", "repeated", "same", "waiting", "recorded"]
    latest: bool = False


@dataclass(frozen=True, slots=True)
class MovedChat:
    """A chat of an account that lives on under another id, with the session keys of both (without thread and user)."""

    platform: str
    account: str
    old_chat: str
    new_chat: str
    old_key: str
    new_key: str


@dataclass(frozen=True, slots=True)
class MessageNote:
    """What the agent is told beside a user message: who said it (shared sessions only), and what it answers."""

    sender: str | None = None
    quoted: str | None = None
    quoted_name: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call of a model cost, in tokens as its provider counts them.

    request_id is unique for ever: told twice, it counts once. output_tokens include reasoning_tokens; input_tokens
    include neither cache column. provider and base_url: who was asked.
    """

    request_id: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    provider: str | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One transcript row. content is text, or a list/dict of multimodal parts; tool_calls a list of call objects.

    reasoning is for people; reasoning_content and reasoning_details are what the model's provider wants back unchanged.
    """

    role: Literal["user", "assistant", "tool", "system"]
    content: str | Sequence[Any] | Mapping[str, Any] | None = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    op_id: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file that came with a message: its name, harmless to show and to save under, and its kind (image, file, ...).

    hash: of the stored file, None when it was not fetched; then `problem` says why. size in bytes, media_type as
    judged by content; where the file was not fetched, both as the platform claimed them.
    """

    name: str
    kind: str
    hash: str | None = None
    size: int | None = None
    media_type: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class NewOutbox:
    """One thing to deliver. body is Markdown; the owner of the account formats and splits it.

    reply_to: platform message id that is answered, or None. op_id: names it for ever; it is added once.
    over_shown: at the end of a turn, the body instead where the beginning of an answer is shown already: it takes the
    place of that message. None: it stands by itself in any case.
    """

    place: PlaceRef
    kind: OutboxKind
    body: str
    reply_to: str | None = None
    op_id: str | None = None
    over_shown: str | None = None


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The outbox row with the beginning of an answer that is shown while it is made.

    message_id: of the platform, once the row is sent. open: it is sent, or still may be.
    """

    id: int
    message_id: str | None
    open: bool


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """One part as the adapter's formatter made it: `rendered` is JSON that only the adapter understands."""

    body: str
    rendered: str


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of holding a conversation. Every durable step checks it in its own transaction."""

    root_id: str
    turn_id: str
    holder: str
    number: int


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What the transaction *claim* needs to know.

    inbox_ids: the rows that make this turn's input (an album has several), oldest first.
    turn_id: made by the caller, so that a claim with an unknown outcome can be repeated without harm.
    session_id: the session chosen by id, or None to go by `session_key`.
    new_session_id: used if a session must be made. owner: person or room id of a new session.
    room_id: the room of the place, None in private places.
    content, platform_message_id: the user message. note: what is told beside it. attachments: what came with it.
    texts: the text of each row as it was read; the claim is `changed` if one was edited since. None: not looked at.
    origin: who speaks and where (Markdown), for the copies at linked places.
    """

    inbox_ids: Sequence[int]
    turn_id: str
    holder: str
    lane: str
    place: PlaceRef
    source: str
    owner: str
    new_session_id: str
    content: str | Sequence[Any]
    session_key: str | None = None
    session_id: str | None = None
    person_id: str | None = None
    room_id: str | None = None
    platform_message_id: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    user_id: str | None = None
    note: MessageNote | None = None
    texts: Sequence[str] | None = None
    attachments: Sequence[NewAttachment] = ()
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed turn, or why there is none.

    status:
    claimed - this process works it now; busy - another live process or turn holds the conversation (wait, the rows stay
    new); gone - the rows are no longer new (somebody else worked them); changed - a text was edited since it was read
    (read the rows again).
    reset_reason: why an older session was ended for this message ('idle', 'daily'), or None.
    orphan: only when busy, the turn in the way if its process is gone; it must be taken over before this claim can win.
    spoken_in: the rooms in which the person of the turn has spoken.
    """

    status: Literal["claimed", "busy", "gone", "changed"]
    fence: Fence | None = None
    session_id: str | None = None
    message_id: int | None = None
    created: bool = False
    reset_reason: str | None = None
    previous_session_id: str | None = None
    attempt: int = 1
    orphan: str | None = None
    spoken_in: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StartSession:
    """Effect of `/new`: a fresh session; the one that is left is ended with `reason`.

    session_key: its route is moved to the fresh session; None where sessions are chosen by id.
    leaves: the session to end where there is no route (terminal, web); with a key the route tells.
    """

    session_key: str | None
    place: PlaceRef
    source: str
    owner: str
    new_session_id: str
    room_id: str | None = None
    person_id: str | None = None
    title: str | None = None
    model: str | None = None
    user_id: str | None = None
    leaves: str | None = None
    reason: str = "new_command"


@dataclass(frozen=True, slots=True)
class Retitle:
    """Effect of `/title`: the session gets this title (rules of titles.py; None or '' removes it)."""

    session_id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class RequestStop:
    """Effect of `/stop`: the process that works the running turn of this conversation ends it for good."""

    root_id: str
    person_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeSession:
    """Effect of `/resume`: this place leads to the conversation of `session_id` from now on, open again at its tip.

    visible_to: what the asker may see; looked at again when it is done. session_key: whose route is moved, None where
    sessions are chosen by id; then `leaves` names the session that one comes from. What is left ends with `reason`
    unless other places lead to it. given_to: owner and room that the conversation gets, None to leave them.
    """

    session_id: str
    place: PlaceRef
    visible_to: Visibility
    session_key: str | None = None
    person_id: str | None = None
    leaves: str | None = None
    given_to: tuple[str, str] | None = None
    reason: str = "resumed_other"


@dataclass(frozen=True, slots=True)
class OfferSessions:
    """Effect of a numbered list: what each number means to this asker, until the next list or for a day."""

    asker: str
    session_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Home:
    """The chat that a person's conversations go to on a platform, and the identity that they have there."""

    place: PlaceRef
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewHandoff:
    """A request to bring a conversation to a further place (kind `link`: to live there as well).

    op_id names the request for ever. session_id: any session of the conversation. target: the chat to go to, with who
    asks there. asked_at: where it was asked, None where somebody waits for the outcome (terminal).
    visible_to: what the asker may see; a conversation beyond it is not found.
    """

    op_id: str
    kind: Literal["handoff", "link"]
    session_id: str
    target: Home
    person_id: str
    asked_at: PlaceRef | None = None
    visible_to: Visibility | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """What the transaction *bind* needs: a claimed handoff and the place where the conversation goes on.

    session_key: of the next message there. person_id: of the route, None in shared sessions. room_id: of the place,
    None in private ones; owner: who the conversation belongs to from now on, None: as before.
    message: the confirmation for the transcript, with an op_id. confirmation: the same for the place.
    farewell: for the places that are left (of a link: that stay), and the same for shared ones, where less is said.
    """

    handoff_id: int
    fence: Fence
    place: PlaceRef
    session_key: str
    message: NewMessage
    confirmation: NewOutbox
    farewell: str
    farewell_shared: str
    person_id: str | None = None
    room_id: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class SetHome:
    """Effect of `/sethome`: the chat becomes the person's home on its platform."""

    person_id: str
    home: Home


@dataclass(frozen=True, slots=True)
class RequestHandoff:
    """Effect of `/handoff` and `/link`: the request is there for the gateway that owns the account."""

    handoff: NewHandoff


@dataclass(frozen=True, slots=True)
class TakeLocally:
    """Effect of `/handoff cli`: the conversation leaves its chats for the terminal or the web page.

    place: of the terminal or page. asked_at: gets the command's reply and no farewell.
    """

    session_id: str
    place: PlaceRef
    person_id: str
    farewell: str
    farewell_shared: str
    asked_at: PlaceRef | None = None


@dataclass(frozen=True, slots=True)
class Unlink:
    """Effect of `/unlink`: the conversation no longer lives in this place. farewell: for that place, if it is told."""

    session_id: str
    place: PlaceRef
    person_id: str | None = None
    farewell: str | None = None


@dataclass(frozen=True, slots=True)
class Compress:
    """What the transaction *compress* needs; as an effect, that of `/compress`.

    fence: the conversation is held. session_id: its live session. child_id: of the continuation, chosen by the caller.
    summary: of everything before `context_from`, the id of the first message that stays in sight.
    title: what the continuation is called unless somebody took that title meanwhile; None: nothing.
    usage: what the summary cost. notice: goes to every place that the conversation lives in.
    """

    fence: Fence
    session_id: str
    child_id: str
    summary: str
    context_from: int
    title: str | None = None
    usage: Sequence[Usage] = ()
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Effect of `/undo`: what is seen of the held conversation from this message on is taken back."""

    fence: Fence
    session_id: str
    first_id: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Effect of `/branch`: the place goes on in a branch of the held conversation.

    session_key: whose route is moved, None where sessions are chosen by id. title: None makes one from the parent's.
    """

    fence: Fence
    session_id: str
    branch_id: str
    place: PlaceRef
    title: str | None = None
    session_key: str | None = None
    person_id: str | None = None


Effect: TypeAlias = (
    StartSession
    | Retitle
    | RequestStop
    | ResumeSession
    | OfferSessions
    | SetHome
    | RequestHandoff
    | TakeLocally
    | Unlink
    | Compress
    | TakeBack
    | Branch
)
