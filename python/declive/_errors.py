"""What can go wrong. Files that can't be opened raise ``OSError``, and a process that was forked after a solve gets a ``RuntimeError``."""


class DecliveError(Exception):
    """An error of the library, with what is wrong and what to do about it."""


class InputError(DecliveError, ValueError):
    """A matrix, a vector, a file or an option that is not what it should be."""


class DeviceError(DecliveError, RuntimeError):
    """A device or a driver that failed, or that is not there."""


class OutOfMemoryError(DecliveError, MemoryError):
    """More memory than the machine or a device can give."""
