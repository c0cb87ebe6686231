"""PySpark's loggers leave pytest's handlers as they are."""

import logging
from typing import Any

import pytest
from pyspark.errors import AnalysisException

pytestmark = pytest.mark.integration


def test_an_error_of_spark_leaves_the_log_of_later_tests_readable(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AnalysisException):
        spark.sql("select no_such_column")
    for logger in logging.Logger.manager.loggerDict.values():
        if isinstance(logger, logging.Logger) and not logger.propagate:
            logger.addHandler(caplog.handler)
            logger.removeHandler(caplog.handler)
    logging.getLogger("later").warning("it is %s", "readable")
    assert "WARNING" in caplog.text
    assert '"msg"' not in caplog.text
