"""kafka-python uses deprecated calls of the standard library while it is imported; not our concern."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.codec
    import kafka.record  # noqa: F401
