import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers, which live until they are closed. */
final class Transactions {
    private final Cluster cluster;
    private final Groups groups;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    Transactions(Cluster cluster, Groups groups) {
        this.cluster = cluster;
        this.groups = groups;
    }

    void register(Map<String, Driver.Command> commands) {
        commands.put("txn_init", this::init);
        commands.put("txn_begin", request -> {
            producer(request).beginTransaction();
            return null;
        });
        commands.put("txn_send", this::send);
        commands.put("txn_offsets", this::offsets);
        commands.put("txn_end", this::end);
        commands.put("txn_close", request -> {
            producers.remove(request.get("producer").asText()).close(); // aborts what is open
            return null;
        });
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        return producers.get(request.get("producer").asText());
    }

    private Object init(JsonNode request) {
        Properties settings = cluster.settings();
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("transactional.id", request.get("transactional_id").asText());
        settings.put("transaction.timeout.ms", Driver.intOf(request, "timeout_ms", 60_000));
        settings.put("max.block.ms", "20000");
        settings.put("delivery.timeout.ms", "40000");
        settings.put("request.timeout.ms", "15000");
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        producers.put(request.get("producer").asText(), producer);
        producer.initTransactions();
        return null;
    }

    private Object send(JsonNode request) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(request);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            sent.add(producer.send(Records.recordOf(request.get("topic").asText(), record)));
        }
        producer.flush();
        List<Object> done = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata place = each.get(30, TimeUnit.SECONDS);
            done.add(Arrays.asList(place.partition(), place.offset()));
        }
        return done;
    }

    private Object end(JsonNode request) {
        if (request.get("commit").asBoolean()) {
            producer(request).commitTransaction();
        } else {
            producer(request).abortTransaction();
        }
        return null;
    }

    /** With the group's metadata from release 2.5 on, with its id alone before; neither is in all releases. */
    private Object offsets(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        for (JsonNode row : request.get("offsets")) {
            TopicPartition part = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
            wanted.put(part, new OffsetAndMetadata(row.get(2).asLong()));
        }
        String member = request.get("member").asText();
        Class<?> type;
        Object group;
        try {
            type = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
            group = groups.with(member, consumer -> KafkaConsumer.class.getMethod("groupMetadata").invoke(consumer));
        } catch (ClassNotFoundException older) {
            type = String.class;
            group = request.get("group").asText();
        }
        KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, type)
                .invoke(producer(request), wanted, group);
        return null;
    }
}
