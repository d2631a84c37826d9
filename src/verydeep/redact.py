"""Command lines and addresses without their passwords, for whatever is printed or written to disk.

The rules err on the side of hiding too much. SQLAlchemy's `make_url` does not help here: it is slow to import, takes a
password to end at its first "@", and rejects the malformed addresses that error messages are about.
"""

import re
from urllib.parse import unquote_plus

_HIDDEN = "***"
_SECRET = r"(?:password|passwd|passphrase|passfile|pwd|secret|token|credentials?|api[-_]?key|\bpass|_pass)"
_NAME = re.compile(_SECRET + r"\Z", flags=re.IGNORECASE)
_ASSIGNED = re.compile(rf"({_SECRET}(?:\s*=|[\"']\s*:)).*", flags=re.IGNORECASE | re.DOTALL)
# The user's name ends at the first colon, the password at the last @: it may contain both, and slashes. What matches
# anywhere in a word matches from its start, so it is only tried there: the time grows with the word, not its square.
_LOGIN = re.compile(r"((?:[^:@]*://)?+[^:]*):(.*)@([^&]*)", flags=re.DOTALL)


def redact(*words: str) -> str:
    """Describe a storage's address, an argument or a whole command line without secrets.

    Passwords disappear from `user:password@host`, with or without a scheme, and from an address's query. Values of
    options and variables whose names end in `password`, `token` and the like become `***`.

    Args:
        words: The address, or the arguments as the program received them.

    Returns:
        The words, joined by spaces.
    """
    shown, hide_next = list[str](), False
    for word in words:
        shown.append(_HIDDEN if hide_next else _redact_word(word))
        hide_next = word.startswith("-") and "=" not in word and bool(_NAME.search(word))
    return " ".join(shown)


def redact_text(text: str) -> str:
    """Hide the secrets in a message, which may quote an address or an argument anywhere."""
    return re.sub(r"\S+", lambda word: _redact_word(word[0]), text)


def _redact_word(word: str) -> str:
    if login := _LOGIN.match(word):
        word = _redact_login(login) + word[login.end() :]
    start, question_mark, query = word.partition("?")
    if question_mark:
        fields = [field for field in query.split("&") if not _is_secret(field)]
        word = start + question_mark * bool(fields) + "&".join(fields)
    return _ASSIGNED.sub(rf"\1{_HIDDEN}", word)


def _redact_login(login: re.Match[str]) -> str:
    user, password, host = login.groups()
    is_query = _ASSIGNED.search(unquote_plus(password))  # the last @ may belong to another password, in the query
    return f"{user}@{'' if is_query else host}"


def _is_secret(field: str) -> bool:
    name, equals, _ = field.partition("=")
    return bool(equals and _NAME.search(unquote_plus(name)))
