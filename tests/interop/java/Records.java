import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers, and consumers outside groups. Each command has a client of its own. */
final class Records {
    static final int SHOWN_BYTES = 1000;
    private final Cluster cluster;

    Records(Cluster cluster) {
        this.cluster = cluster;
    }

    void register(Map<String, Driver.Command> commands) {
        commands.put("hello", request -> "Java " + org.apache.kafka.common.utils.AppInfoParser.getVersion());
        commands.put("produce", this::produce);
        commands.put("read", this::read);
        commands.put("offsets", this::offsets);
    }

    static Properties consumerSettings(Cluster cluster) {
        Properties settings = cluster.settings();
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("enable.auto.commit", "false");
        return settings;
    }

    private Object produce(JsonNode request) throws Exception {
        Properties settings = cluster.settings();
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("acks", Driver.textOf(request, "acks", "all"));
        settings.put("compression.type", Driver.textOf(request, "codec", "none"));
        settings.put("enable.idempotence", Driver.textOf(request, "idempotent", "false"));
        settings.put("linger.ms", Driver.textOf(request, "linger_ms", "5"));
        settings.put("retries", "1000");
        settings.put("delivery.timeout.ms", "40000");
        settings.put("request.timeout.ms", "15000");
        settings.put("max.block.ms", "20000");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<Object> done = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (JsonNode record : request.get("records")) {
                sent.add(producer.send(recordOf(request.get("topic").asText(), record)));
                Thread.sleep(Driver.intOf(request, "pace_ms", 0));
            }
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                RecordMetadata place = each.get(30, TimeUnit.SECONDS);
                done.add(Arrays.asList(place.partition(), place.offset()));
            }
        }
        return done;
    }

    static ProducerRecord<byte[], byte[]> recordOf(String topic, JsonNode record) {
        byte[] value = Driver.bytesOf(record, "value");
        if (record.has("size")) {
            value = new byte[record.get("size").asInt()];
            Arrays.fill(value, (byte) 'v');
        }
        List<Header> headers = new ArrayList<>();
        if (record.has("headers")) {
            for (JsonNode header : record.get("headers")) {
                String text = header.get(1).isNull() ? null : header.get(1).asText();
                headers.add(new RecordHeader(header.get(0).asText(), text == null ? null : text.getBytes()));
            }
        }
        Integer partition = record.has("partition") ? record.get("partition").asInt() : null;
        Long timestamp = record.has("timestamp") ? record.get("timestamp").asLong() : null;
        return new ProducerRecord<>(topic, partition, timestamp, Driver.bytesOf(record, "key"), value, headers);
    }

    private Object read(JsonNode request) {
        Properties settings = consumerSettings(cluster);
        String reset = Driver.textOf(request, "reset", "error");
        settings.put("auto.offset.reset", reset.equals("error") ? "none" : reset);
        boolean committed = request.has("committed") && request.get("committed").asBoolean();
        settings.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        if (request.hasNonNull("fetch_bytes")) {
            settings.put("max.partition.fetch.bytes", request.get("fetch_bytes").asText());
            settings.put("fetch.max.bytes", request.get("fetch_bytes").asText());
        }
        TopicPartition part = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        int count = request.get("count").asInt();
        long deadline = System.currentTimeMillis() + Driver.intOf(request, "timeout_ms", 10_000);
        List<Object> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(Collections.singletonList(part));
            seek(consumer, part, request.get("start"));
            consumer.position(part);
            while (found.size() < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    if (found.size() < count) {
                        found.add(shown(record));
                    }
                }
            }
        }
        return found;
    }

    private static void seek(KafkaConsumer<byte[], byte[]> consumer, TopicPartition part, JsonNode start) {
        if (start.isObject()) {
            long time = start.get("time").asLong();
            consumer.seek(part, consumer.offsetsForTimes(Collections.singletonMap(part, time)).get(part).offset());
        } else if (start.asText().equals("earliest")) {
            consumer.seekToBeginning(Collections.singletonList(part));
        } else if (start.asText().equals("latest")) {
            consumer.seekToEnd(Collections.singletonList(part));
        } else {
            consumer.seek(part, start.asLong());
        }
    }

    private static Map<String, Object> shown(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> shown = new LinkedHashMap<>();
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), Driver.textOf(header.value())));
        }
        byte[] value = record.value();
        shown.put("offset", record.offset());
        shown.put("timestamp", record.timestamp());
        shown.put("key", Driver.textOf(record.key()));
        shown.put("value", value == null || value.length > SHOWN_BYTES ? null : Driver.textOf(value));
        shown.put("size", value == null ? -1 : value.length);
        shown.put("headers", headers);
        return shown;
    }

    private Object offsets(JsonNode request) {
        TopicPartition part = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        Map<String, Object> answer = new LinkedHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumerSettings(cluster))) {
            List<Object> times = new ArrayList<>();
            for (JsonNode time : request.get("times")) {
                OffsetAndTimestamp found =
                        consumer.offsetsForTimes(Collections.singletonMap(part, time.asLong())).get(part);
                times.add(found == null ? -1 : found.offset());
            }
            answer.put("earliest", consumer.beginningOffsets(Collections.singletonList(part)).get(part));
            answer.put("latest", consumer.endOffsets(Collections.singletonList(part)).get(part));
            answer.put("times", times);
        }
        return answer;
    }
}
