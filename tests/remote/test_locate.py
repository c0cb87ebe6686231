"""URLs of stores: what they name, and what is refused before anything is opened."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.remote.locate import StoreUrl, parse_store_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("file:///mnt/history/", StoreUrl("file", "", None, "/mnt/history")),
        ("file:///with%20blank", StoreUrl("file", "", None, "/with blank")),
        ("hdfs://namenode:8020/sparklog", StoreUrl("hdfs", "namenode", 8020, "/sparklog")),
        ("hdfs://nameservice", StoreUrl("hdfs", "nameservice", None, "")),
        ("webhdfs://[::1]:9870/a", StoreUrl("webhdfs", "::1", 9870, "/a")),
        ("hdfs://NameService/a/b", StoreUrl("hdfs", "NameService", None, "/a/b")),
    ],
)
def test_a_url_names_scheme_host_and_folder(text: str, url: StoreUrl) -> None:
    assert parse_store_url(text) == url


@pytest.mark.parametrize("text", ["hdfs://a:1/b", "webhdfs://[::1]:9870/a", "s3://bucket", "file:///a"])
def test_a_url_is_shown_as_it_was_written(text: str) -> None:
    assert str(parse_store_url(text)) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/mnt/history", "does not begin with one of file://, hdfs://, s3://, webhdfs://"),
        ("gs://bucket", "does not begin with one of"),
        ("", "does not begin with one of"),
        ("file://mnt/history", "write file:///folder, with three slashes"),
        ("file:///", "names a host or no folder"),
        ("file:///a/../b", "has '..' in it"),
        ("hdfs:///folder", "does not name a host; write hdfs://NAME/folder"),
        ("s3:///folder", "does not name a bucket"),
        ("hdfs://host:http/a", "cannot be read: .*; write host:port"),
        ("hdfs://[::1/a", "cannot be read"),
        ("s3://bucket/a?region=x", "has '\\?' or '#' in it"),
        ("s3://bucket:9000/a", "names a port, and a bucket has none; set AWS_ENDPOINT_URL"),
    ],
)
def test_urls_that_name_no_store_are_refused_with_the_remedy(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_store_url(text)


@pytest.mark.parametrize(
    "text", ["s3://key:s3cret@bucket/a", "hdfs://s3cret@host/a", "s3://k:a/s3cret@b", "s3://k:#s3cret@b/a"]
)
def test_a_password_in_a_url_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="a user or a password before its '@'") as refused:
        parse_store_url(text)
    assert "s3cret" not in str(refused.value)
