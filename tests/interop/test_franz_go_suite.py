"""franz-go's own integration tests, unchanged, with few records: all that talk to a cluster, but some.

Not run: share groups, the group protocol of KIP-848, SCRAM and OAUTHBEARER.
"""

import os
import subprocess

import pytest

from tests.interop.clients import CACHE, why_missing

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(300)]

SUITE = CACHE / "franz-go-suite"
TESTS = """
    TestUnknownGroupOffsetFetchPinned TestPing TestIssue1034 TestIssue325 TestConsumeTopicRetrieval
    TestConsumeTopicRetrieval_Many TestConsumeRegex TestIssue337 TestDirectPartitionPurge TestIssue434
    TestAddRemovePartitions TestPauseIssue489 TestPauseIssueOct2023 TestIssue523 TestIssue648 TestIssue810
    TestIssue865 TestIssueFetchLargerThanBrokerMaxReadBytes TestPooling TestGroupSimple TestHookPollStart
    TestConsumeMaxDecompressBatchBytes TestGroupETL TestClient_Produce TestIssue769
    TestIssueProduceBrokerTooOldFailsRecords TestIssueProduceSyncManualPartitionNegativeDoesNotPanic
    TestIssue831 TestClient_ProduceLargeMessages TestTxnEtl
""".split()
RECORDS = "4000"


@pytest.mark.parametrize("name", TESTS)
def test_franz_go(target, tmp_path, name):
    if (reason := why_missing(SUITE)) is not None:
        pytest.skip(reason)
    environment = {
        **os.environ,
        "KGO_SEEDS": target.bootstrap_servers,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": RECORDS,
        "KGO_TEST_MAX_TOPIC_PARTS": "7",
        "KGO_LOG_LEVEL": "none",
    }
    line = [str(SUITE), "-test.run", f"^{name}$", "-test.v", "-test.timeout", "150s", "-test.parallel", "2"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=200, env=environment, cwd=tmp_path)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    if f"\n--- SKIP: {name} " in output:  # of a part alone it is indented
        pytest.skip("franz-go skips it: " + output.partition("--- SKIP")[0].strip().splitlines()[-1][:100])
    assert f"--- PASS: {name}" in output, output[-4000:]
