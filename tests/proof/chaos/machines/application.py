"""The Spark application of a run: what `sparklog start` runs, with Spark settings and log directories given.

python application.py OPTIONS.json
"""

import json
import sys
from pathlib import Path

from sparklog_runtime.life.foreground import run_in_foreground, serve
from sparklog_runtime.life.local_cluster import LocalCluster
from sparklog_runtime.start.cluster_options import ClusterOptions
from sparklog_runtime.voice import Voice


def main(path: str) -> int:
    given = json.loads(Path(path).read_text())
    options = ClusterOptions(
        root=Path(given["root"]),
        brokers=given["brokers"],
        port=given["port"],
        zookeeper=given["zookeeper"],
        master=given["master"],
        settings=given["settings"],
        spark_conf=given["spark_conf"],
        log_dir_patterns=tuple(given["log_dir_patterns"]),
        application=given["application"],
    )
    options.check()
    voice = Voice()
    cluster = LocalCluster(options, progress=voice)
    return run_in_foreground(cluster, lambda: serve(cluster), hush=voice.hush)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
