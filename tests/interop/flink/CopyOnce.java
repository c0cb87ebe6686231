import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Flink: copies the values of a topic into another one, exactly once; goes on from the last checkpoint in FOLDER.
 *
 *   java CopyOnce SERVERS APPLICATION FROM TO FOLDER
 *
 * Runs until it is ended.
 */
public final class CopyOnce {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[4]);
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "300 ms");
        settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
        settings.setString("execution.checkpointing.dir", folder.toUri().toString());
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("rest.bind-port", "0");
        lastCheckpoint(folder).ifPresent(
            path -> settings.setString("execution.state-recovery.path", path.toUri().toString()));

        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        flink.setParallelism(1);
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(arguments[0])
            .setGroupId(arguments[1])
            .setTopics(arguments[2])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(arguments[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(arguments[1])
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(arguments[3])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .build();
        flink.fromSource(source, WatermarkStrategy.noWatermarks(), "from").sinkTo(sink);
        flink.execute(arguments[1]);
    }

    /** The newest whole one: its metadata are written last. */
    private static Optional<Path> lastCheckpoint(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return Optional.empty();
        }
        try (Stream<Path> paths = Files.walk(folder)) {
            return paths.filter(path -> path.endsWith("_metadata"))
                .map(Path::getParent)
                .max(Comparator.comparingLong(path -> path.toFile().lastModified()));
        }
    }
}
