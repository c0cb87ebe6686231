"""A real HDFS: a NameNode and a DataNode, each a process, on folders of the test's own."""

import json
import subprocess
from pathlib import Path
from urllib.request import urlopen

from tests.remote.servers.java import OPTIONS, SPARK_JARS, JavaProcess, jars
from tests.waiting import until

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
SPARK = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*")


class Hdfs:
    """Started and formatted by the constructor; ``end`` ends both processes."""

    def __init__(self, folder: Path, port: int, web_port: int) -> None:
        (client_api,) = SPARK_JARS.glob("hadoop-client-api-*.jar")
        version = client_api.stem.removeprefix("hadoop-client-api-")
        servers = jars(f"hdfs-{version}")
        self.address = f"127.0.0.1:{port}"
        self.web_address = f"127.0.0.1:{web_port}"
        self._folder = folder
        self._class_path = [
            folder,
            *servers.glob("*.jar"),
            *(jar for pattern in SPARK for jar in SPARK_JARS.glob(f"{pattern}.jar")),
        ]
        self._configure()
        self._run(NAME_NODE, "-format", "-nonInteractive")
        self.name_node = self._start(NAME_NODE)
        self.data_node = self._start(DATA_NODE)
        until(self._is_ready, lambda: f"HDFS:\n{self.name_node}\n{self.data_node}", timeout_s=120)

    def admin(self, *words: str) -> None:
        """``hdfs dfsadmin WORDS``."""
        self._run(ADMIN, *words)

    def end(self) -> None:
        self.data_node.end()
        self.name_node.end()

    def _start(self, main: str) -> JavaProcess:
        return JavaProcess(self._class_path, [main], self._folder / f"{main.rpartition('.')[2]}.log")

    def _run(self, *words: str) -> None:
        class_path = ":".join(map(str, self._class_path))
        command = ["java", *OPTIONS, "-cp", class_path, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]

    def _is_ready(self) -> bool:
        bean = "Hadoop:service=NameNode,name=FSNamesystemState"
        try:
            with urlopen(f"http://{self.web_address}/jmx?qry={bean}", timeout=5) as answer:
                beans = json.load(answer)["beans"]
        except OSError:
            assert self.name_node.is_alive(), self.name_node
            return False
        return bool(beans) and beans[0]["NumLiveDataNodes"] == 1 and beans[0]["FSState"] == "Operational"

    def _configure(self) -> None:
        self._write("core-site.xml", {"fs.defaultFS": f"hdfs://{self.address}"})
        self._write(
            "hdfs-site.xml",
            {
                "dfs.namenode.name.dir": f"{self._folder}/name",
                "dfs.datanode.data.dir": f"{self._folder}/data",
                "dfs.namenode.http-address": self.web_address,
                "dfs.datanode.address": "127.0.0.1:0",
                "dfs.datanode.http.address": "127.0.0.1:0",
                "dfs.datanode.ipc.address": "127.0.0.1:0",
                "dfs.datanode.hostname": "127.0.0.1",
                "dfs.replication": "1",
                "dfs.blocksize": str(4 * 1024 * 1024),
                "dfs.namenode.safemode.extension": "0",
                "dfs.heartbeat.interval": "1",
            },
        )

    def _write(self, name: str, properties: dict[str, str]) -> None:
        rows = "".join(
            f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items()
        )
        (self._folder / name).write_text(f'<?xml version="1.0"?>\n<configuration>{rows}</configuration>\n')
