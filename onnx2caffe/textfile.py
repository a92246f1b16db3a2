"""Text files that a user names: whatever a path turns out to be, text or one clear error."""

from __future__ import annotations

from pathlib import Path

from onnx2caffe.errors import UnreadableFile

__all__ = ["read_text"]


def read_text(path: Path, what: str = "text", errors: str = "strict") -> str:
    """A file's text in UTF-8; `errors` as `bytes.decode` has it, `what` the file should be.

    Raises:
        UnreadableFile: it cannot be read, is no such text, or is a pipe or device, which may never end.

    """
    try:
        if path.is_dir():
            raise UnreadableFile(f"{path} is a folder, not {what}")
        if path.exists() and not path.is_file():
            raise UnreadableFile(f"{path} is no regular file")
        text = path.read_text("utf-8", errors=errors)
        if "\0" in text:
            raise UnreadableFile(f"{path} is not {what} in UTF-8: it holds NUL, as binary files and UTF-16 do")
        return text
    except UnicodeDecodeError as problem:
        raise UnreadableFile(f"{path} is not {what}: no text in UTF-8 at byte {problem.start}") from problem
    except (OSError, ValueError) as problem:  # ValueError: a path with NUL in it
        reason = getattr(problem, "strerror", None) or problem
        raise UnreadableFile(f"cannot read {str(path)!r}: {reason}") from problem
