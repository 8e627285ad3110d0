"""The forms in which a real patient shows in a text: a label and a value, or a form that only names and ids have."""

from __future__ import annotations

import re
from dataclasses import dataclass

NOBODY = re.compile(
    r"anon|phantom|removed|unknown|redacted|de-?ident|test|dummy|none|null|pseudo|synthetic|example",
    re.IGNORECASE,
)
"""A value with one of these in it names nobody."""

_PROPER = r"[A-ZÀ-Þ][\w.-]*(?:['’]?\w)+"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_YEAR, _MONTH_NUMBER, _DAY = r"(?:19|20)\d\d", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_DATE = "|".join(
    (
        rf"{_YEAR}[-/.]{_MONTH_NUMBER}[-/.]{_DAY}",
        rf"{_DAY}[-/.]{_MONTH_NUMBER}[-/.]{_YEAR}",
        rf"{_MONTH_NUMBER}/{_DAY}/{_YEAR}",
        rf"{_DAY}[- ]{_MONTH}[- ,]+{_YEAR}",
        rf"{_MONTH} {_DAY}, ?{_YEAR}",
        rf"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])",
    )
)
DATE = rf"(?<!\d)(?:{_DATE})(?!\d)"
ANY_DATE = re.compile(DATE)

_NAME_TAGS = r"0010,\s?(?:0010|1001|1005|1060)|0008,\s?(?:0080|0081|0090|1048|1050|1060|1070)"
_ID_TAGS = r"0010,\s?(?:0020|0030|1000|1040|2154)|0008,\s?0050"
_DUMPED = r"\((?:{})\)[^\n]{{0,80}}?[A-Z]{{2}}:?\s['\"]"
"""A DICOM data set as it is printed: tag, name, type of value."""

_PERSONS = (
    r"patient(?:'?s)?|referring[ _]?physician(?:'?s)?|performing[ _]?physician(?:'?s)?|operator(?:'?s)?"
)
_NAME_KEYS = (
    rf"(?i:(?:{_PERSONS})[ _]?(?:birth[ _]?)?name|physicians?[ _]?of[ _]?record|name[ _]of[ _]patient)"
)
_ID_KEYS = (
    r"(?i:(?:other[ _]?)?patient(?:'?s)?[ _]?(?:ids?|no\.?|num(?:ber)?|nr\.?)"
    r"|(?:pat|subject|study|exam|encounter|admission|hadm)[ _]?id|accession(?:[ _]?(?:no\.?|num(?:ber)?))?|patient)"
)
_NUMBERED = ("pat", "subject", "study", "exam", "encounter", "admission", "hadm")
_ID_HINTS = ("patient", "accession", *(f"{word}{gap}id" for word in _NUMBERED for gap in ("", " ", "_")))
_RECORD_KEYS = (
    r"(?i:\bm\.?r\.?n\b\.?|(?:medical[ _]record|hospital|nhs)[ _](?:number|no\.?|id)"
    r"|\bssn\b|social[ _]security(?:[ _]number)?)"
)
_BIRTH_KEYS = (
    r"(?i:patient(?:'?s)?[ _]?birth[ _]?date|date[ _]of[ _]birth|birth[ _]?date"
    r"|\bd\.?o\.?b\b\.?|\bborn(?: on)?)"
)
_TO = r"['\"]?\]?\s{0,3}[:=#]?\s{0,3}(?:[A-Z]{2}:\s?)?['\"(\[]*"
"""Between a label and its value."""
_NUMBER = r"[A-Z]{0,3}-?\d(?:[ -]?\d){5,11}(?!\d)"
_ID = r"[A-Z]{0,3}-?\d{4,12}\b"


@dataclass(frozen=True)
class Rule:
    """What is looked for in a text that has one of ``hints`` in small letters (any text, where there are none).

    The group ``value`` is what a finding masks; a group ``date`` may turn out to be the run's own.
    """

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()


RULES = (
    Rule("patient name", re.compile(rf"(?<![\w^\\])(?P<value>{_PROPER}\^{_PROPER}(?:\^[\w .-]*)*)"), ("^",)),
    Rule(
        "patient name",
        re.compile(_DUMPED.format(_NAME_TAGS) + r"(?P<value>[^'\"\n]{3,})"),
        ("(0010", "(0008"),
    ),
    Rule(
        "patient data",
        re.compile(_DUMPED.format(_ID_TAGS) + r"(?P<value>[^'\"\n]*\d{5,}[^'\"\n]*)"),
        ("(0010", "(0008"),
    ),
    Rule(
        "patient name",
        re.compile(rf"{_NAME_KEYS}{_TO}(?P<value>{_PROPER}(?:[,^]? ?{_PROPER})+)"),
        ("patient", "physician", "operator"),
    ),
    Rule(
        "record number",
        re.compile(rf"{_RECORD_KEYS}(?:\s+is)?{_TO}(?P<value>{_NUMBER})"),
        (
            "mrn",
            "m.r",
            "medical record",
            "medical_record",
            "hospital",
            "nhs",
            "ssn",
            "social security",
            "social_security",
        ),
    ),
    Rule("social security number", re.compile(r"(?<![\w.-])(?P<value>\d{3}-\d{2}-\d{4})(?![\w-])"), ("-",)),
    Rule(
        "date of birth",
        re.compile(rf"{_BIRTH_KEYS}{_TO}(?P<value>{DATE})"),
        ("birth", "dob", "d.o.b", "born"),
    ),
    Rule(
        "date next to an id",
        re.compile(rf"{_ID_KEYS}{_TO}(?P<value>{_ID}.{{0,40}}?(?P<date>{DATE}))"),
        _ID_HINTS,
    ),
    Rule(
        "date next to an id",
        re.compile(rf"(?P<value>(?P<date>{DATE}).{{0,40}}?{_ID_KEYS}{_TO}{_ID})"),
        _ID_HINTS,
    ),
    Rule(
        "date next to an id",
        re.compile(
            rf"(?m)^\W{{0,3}}(?P<value>[A-Z]{{0,3}}\d{{6,10}}['\"]?\s?[,;|\t]\s?['\"]?(?P<date>{DATE}))"
        ),
    ),
)
