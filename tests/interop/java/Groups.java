import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Members of groups, each in the thread that polls it. */
final class Groups {
    private static final Map<String, String> ASSIGNORS = new HashMap<>();

    static {
        ASSIGNORS.put("range", "org.apache.kafka.clients.consumer.RangeAssignor");
        ASSIGNORS.put("roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor");
        ASSIGNORS.put("sticky", "org.apache.kafka.clients.consumer.StickyAssignor");
        ASSIGNORS.put("cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    }

    private final Cluster cluster;
    private final Map<String, Member> members = new HashMap<>();

    Groups(Cluster cluster) {
        this.cluster = cluster;
    }

    void register(Map<String, Driver.Command> commands) {
        commands.put("join", this::join);
        commands.put("state", request -> call(request, Member::state));
        commands.put("commit", request -> call(request, member -> member.commit(request.get("offsets"))));
        commands.put("committed", request -> call(request, member -> member.committed(request.get("partitions"))));
        commands.put("leave", request -> {
            members.remove(request.get("member").asText()).leave();
            return null;
        });
    }

    private interface Work {
        Object on(Member member) throws Exception;
    }

    private Object call(JsonNode request, Work work) throws Exception {
        Member member = members.get(request.get("member").asText());
        return member.call(() -> work.on(member));
    }

    interface OnConsumer {
        Object run(KafkaConsumer<byte[], byte[]> consumer) throws Exception;
    }

    /** The result of work in the thread of a member, with its consumer. */
    Object with(String name, OnConsumer work) throws Exception {
        Member member = members.get(name);
        return member.call(() -> work.run(member.consumer));
    }

    private Object join(JsonNode request) throws Exception {
        String assignor = ASSIGNORS.get(Driver.textOf(request, "assignor", "range"));
        String instance = Driver.textOf(request, "instance", null);
        String version = org.apache.kafka.common.utils.AppInfoParser.getVersion();
        try {
            Class.forName(assignor);
        } catch (ClassNotFoundException absent) {
            throw new Driver.Unsupported("the Java client " + version + " has no cooperative assignor");
        }
        if (instance != null && version.startsWith("2.1")) {
            throw new Driver.Unsupported("the Java client " + version + " has no static members");
        }
        int session = Driver.intOf(request, "session_ms", 6000);
        Properties settings = Records.consumerSettings(cluster);
        settings.put("group.id", request.get("group").asText());
        settings.put("client.id", Driver.textOf(request, "client", "interop"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        settings.put("session.timeout.ms", session);
        settings.put("heartbeat.interval.ms", session / 6);
        settings.put("partition.assignment.strategy", assignor);
        settings.put("metadata.max.age.ms", "500");
        if (instance != null) {
            settings.put("group.instance.id", instance);
        }
        Member member = new Member(settings, request);
        members.put(request.get("member").asText(), member);
        member.start();
        member.call(() -> null);
        return null;
    }

    private static final class Member extends Thread {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final ConcurrentLinkedQueue<Runnable> calls = new ConcurrentLinkedQueue<>();
        private final List<Object> records = new ArrayList<>();
        private final List<Object> errors = new ArrayList<>();
        private int rebalances;
        private boolean leaves;

        Member(Properties settings, JsonNode request) {
            setDaemon(true);
            consumer = new KafkaConsumer<>(settings);
            ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    rebalances++;
                }
            };
            String pattern = Driver.textOf(request, "pattern", null);
            if (pattern != null) {
                consumer.subscribe(Pattern.compile(pattern), listener);
            } else {
                List<String> topics = new ArrayList<>();
                request.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics, listener);
            }
        }

        Object call(Callable<Object> work) throws Exception {
            CompletableFuture<Object> answer = new CompletableFuture<>();
            calls.add(() -> {
                try {
                    answer.complete(work.call());
                } catch (Throwable error) {
                    answer.completeExceptionally(error);
                }
            });
            return answer.get(40, TimeUnit.SECONDS);
        }

        void leave() throws Exception {
            calls.add(() -> leaves = true);
            join(20_000);
        }

        @Override
        public void run() {
            try {
                while (!leaves) {
                    try {
                        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                            String value = Driver.textOf(record.value());
                            records.add(Arrays.asList(record.topic(), record.partition(), record.offset(), value));
                        }
                    } catch (RuntimeException error) {
                        errors.add(Driver.nameOf(Driver.cause(error)) + ": " + error.getMessage());
                        Thread.sleep(100);
                    }
                    for (Runnable call = calls.poll(); call != null; call = calls.poll()) {
                        call.run();
                    }
                }
            } catch (InterruptedException end) {
                throw new IllegalStateException(end);
            } finally {
                consumer.close(Duration.ofSeconds(10));
            }
        }

        Object state() {
            List<Object> assignment = new ArrayList<>();
            consumer.assignment().stream()
                    .sorted((a, b) -> a.topic().equals(b.topic())
                            ? Integer.compare(a.partition(), b.partition())
                            : a.topic().compareTo(b.topic()))
                    .forEach(part -> assignment.add(Arrays.asList(part.topic(), part.partition())));
            Map<String, Object> state = new LinkedHashMap<>();
            state.put("assignment", assignment);
            state.put("records", new ArrayList<>(records));
            state.put("errors", new ArrayList<>(errors));
            state.put("rebalances", rebalances);
            return state;
        }

        Object commit(JsonNode offsets) {
            Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
            for (JsonNode row : offsets) {
                TopicPartition part = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
                wanted.put(part, new OffsetAndMetadata(row.get(2).asLong(), row.get(3).asText()));
            }
            consumer.commitSync(wanted);
            return null;
        }

        Object committed(JsonNode partitions) throws Exception {
            List<Object> found = new ArrayList<>();
            for (JsonNode row : partitions) {
                TopicPartition part = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
                OffsetAndMetadata value = committed(part);
                found.add(Arrays.asList(part.topic(), part.partition(),
                        value == null ? -1 : value.offset(), value == null ? "" : value.metadata()));
            }
            return found;
        }

        /** The question about one partition is gone from release 4, that about several comes with 2.4. */
        private OffsetAndMetadata committed(TopicPartition part) throws Exception {
            try {
                Map<?, ?> found = (Map<?, ?>) KafkaConsumer.class.getMethod("committed", java.util.Set.class)
                        .invoke(consumer, Collections.singleton(part));
                return (OffsetAndMetadata) found.get(part);
            } catch (NoSuchMethodException older) {
                return (OffsetAndMetadata) KafkaConsumer.class.getMethod("committed", TopicPartition.class)
                        .invoke(consumer, part);
            }
        }
    }
}
