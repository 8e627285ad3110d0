"""The one error a reader raises for a file it does not accept."""

from __future__ import annotations

LONGEST_MESSAGE = 400


class ReadError(Exception):
    """An untrusted file was refused.

    Parameters
    ----------
    code : str
        Stable snake_case name, listed in `CODES`.
    message : str
        What was expected and what was found. It never repeats more than a few characters of the file; it becomes one
        line of at most `LONGEST_MESSAGE` characters, whatever a library put into it.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = " ".join(message.split())[:LONGEST_MESSAGE]
        super().__init__(f"{code}: {self.message}")


CODES: dict[str, str] = {
    "missing": "the file is not there",
    "link": "a symbolic link where a regular file is expected",
    "not_regular": "a folder, FIFO, socket or device where a regular file is expected",
    "unreadable": "the operating system, or the library behind the format, could not read it",
    "empty": "the file has no content",
    "too_large": "the file, or what its header claims, is larger than the cap",
    "truncated": "the file ends before its content does",
    "corrupt": "compressed data that do not decompress, or a checksum that fails",
    "trailing_data": "the file goes on after its content",
    "bad_format": "not a file of the expected format, or a header that contradicts itself",
    "unsupported_dtype": "a data type that the task cannot use (RGB, complex, bool labels, text)",
    "pickled": "Python objects, which are never unpickled",
    "wrong_dimensions": "another number of dimensions than expected",
    "wrong_shape": "another shape than expected",
    "wrong_grid": "the right shape at another place, orientation or spacing",
    "bad_geometry": "an affine that is missing, singular or not finite, or sform and qform that disagree",
    "non_finite": "NaN or infinity",
    "non_integer_labels": "a label map with values further than 0.001 from an integer",
    "unknown_label": "a label the task does not have",
    "animated": "more than one frame or page",
    "not_utf8": "text in another encoding than UTF-8",
    "byte_order_mark": "text that starts with a byte order mark",
    "control_character": "a control character other than newline and tab",
    "too_many_marks": "text with more than 30 combining marks in a row",
    "lone_surrogate": "half of a surrogate pair, which is no character",
    "bad_json": "not JSON (NaN and Infinity included)",
    "duplicate_key": "a JSON object with the same key twice",
    "too_deep": "JSON nested deeper than the cap",
    "bad_csv": "rows that do not fit the header, or broken quoting",
    "bad_dicom": "not a DICOM image the reader accepts",
    "unavailable": "the package that reads this format is not installed here",
}
