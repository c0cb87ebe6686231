import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** What an admin client asks. */
final class Administration {
    private final Cluster cluster;

    Administration(Cluster cluster) {
        this.cluster = cluster;
    }

    void register(Map<String, Driver.Command> commands) {
        commands.put("create_topic", this::createTopic);
        commands.put("delete_topic", request -> get(cluster.admin().deleteTopics(list(topic(request))).all()));
        commands.put("add_partitions", request -> get(cluster.admin().createPartitions(
                Collections.singletonMap(topic(request), NewPartitions.increaseTo(request.get("total").asInt()))).all()));
        commands.put("topics", request -> topics());
        commands.put("configs", this::configs);
        commands.put("set_config", this::setConfig);
        commands.put("delete_records", request -> {
            TopicPartition part = new TopicPartition(topic(request), request.get("partition").asInt());
            RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("offset").asLong());
            return get(cluster.admin().deleteRecords(Collections.singletonMap(part, before)).lowWatermarks().get(part))
                    .lowWatermark();
        });
        commands.put("cluster", request -> described());
        commands.put("groups", request -> {
            TreeSet<String> names = new TreeSet<>();
            get(cluster.admin().listConsumerGroups().all()).forEach(group -> names.add(group.groupId()));
            return names;
        });
        commands.put("describe_group", this::describeGroup);
        commands.put("delete_group", request -> get(cluster.admin().deleteConsumerGroups(list(group(request))).all()));
        commands.put("group_offsets", this::groupOffsets);
        commands.put("set_group_offsets", this::setGroupOffsets);
        commands.put("fence_producers", this::fenceProducers);
    }

    private static String topic(JsonNode request) {
        return request.get("topic").asText();
    }

    private static String group(JsonNode request) {
        return request.get("group").asText();
    }

    private static <T> List<T> list(T one) {
        return Collections.singletonList(one);
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    private Object createTopic(JsonNode request) throws Exception {
        Map<String, String> configs = new HashMap<>();
        if (request.hasNonNull("configs")) {
            request.get("configs").fields().forEachRemaining(one -> configs.put(one.getKey(), one.getValue().asText()));
        }
        NewTopic wanted = new NewTopic(topic(request), request.get("partitions").asInt(),
                (short) Driver.intOf(request, "replicas", 3)).configs(configs);
        return get(cluster.admin().createTopics(list(wanted)).all());
    }

    private Object topics() throws Exception {
        Collection<String> names = get(cluster.admin().listTopics().names());
        Map<String, Integer> found = new TreeMap<>();
        // values(), which release 4 has as topicNameValues(), is asked for by reflection: so are both
        Object answer = cluster.admin().describeTopics(names);
        Method values = method(answer, "topicNameValues", "values");
        for (Map.Entry<?, ?> entry : ((Map<?, ?>) values.invoke(answer)).entrySet()) {
            KafkaFuture<?> future = (KafkaFuture<?>) entry.getValue();
            found.put((String) entry.getKey(),
                    ((org.apache.kafka.clients.admin.TopicDescription) get(future)).partitions().size());
        }
        return found;
    }

    private static Method method(Object target, String... names) throws NoSuchMethodException {
        for (String name : names) {
            try {
                return target.getClass().getMethod(name);
            } catch (NoSuchMethodException other) {
                continue;
            }
        }
        throw new NoSuchMethodException(Arrays.toString(names));
    }

    private Object configs(JsonNode request) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
        Map<String, String> found = new TreeMap<>();
        get(cluster.admin().describeConfigs(list(resource)).all()).get(resource).entries()
                .forEach(entry -> found.put(entry.name(), entry.value()));
        return found;
    }

    /** incrementalAlterConfigs comes with 2.3; alterConfigs is gone from 4. */
    private Object setConfig(JsonNode request) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
        ConfigEntry entry = new ConfigEntry(request.get("name").asText(), request.get("value").asText());
        Object answer;
        try {
            Class<?> operation = Class.forName("org.apache.kafka.clients.admin.AlterConfigOp");
            Class<?> kind = Class.forName("org.apache.kafka.clients.admin.AlterConfigOp$OpType");
            Object set = operation.getConstructor(ConfigEntry.class, kind)
                    .newInstance(entry, kind.getField("SET").get(null));
            answer = AdminClient.class.getMethod("incrementalAlterConfigs", Map.class)
                    .invoke(cluster.admin(), Collections.singletonMap(resource, list(set)));
        } catch (ClassNotFoundException older) {
            answer = AdminClient.class.getMethod("alterConfigs", Map.class)
                    .invoke(cluster.admin(), Collections.singletonMap(resource, new Config(list(entry))));
        }
        return get((KafkaFuture<?>) answer.getClass().getMethod("all").invoke(answer));
    }

    private Object described() throws Exception {
        DescribeClusterResult found = cluster.admin().describeCluster();
        TreeSet<Integer> brokers = new TreeSet<>();
        get(found.nodes()).forEach(node -> brokers.add(node.id()));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", get(found.clusterId()));
        answer.put("controller", get(found.controller()).id());
        answer.put("brokers", brokers);
        return answer;
    }

    private Object describeGroup(JsonNode request) throws Exception {
        ConsumerGroupDescription found =
                get(cluster.admin().describeConsumerGroups(list(group(request))).all()).get(group(request));
        List<Object> members = new ArrayList<>();
        for (MemberDescription member : found.members()) {
            Map<String, Object> shown = new LinkedHashMap<>();
            List<List<Object>> assignment = new ArrayList<>();
            member.assignment().topicPartitions()
                    .forEach(part -> assignment.add(Arrays.asList(part.topic(), part.partition())));
            assignment.sort((a, b) -> a.toString().compareTo(b.toString()));
            shown.put("client", member.clientId());
            shown.put("host", member.host());
            shown.put("assignment", assignment);
            members.add(shown);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        Object state;
        try {
            state = method(found, "state").invoke(found); // gone from a later release 4
        } catch (NoSuchMethodException newer) {
            state = method(found, "groupState").invoke(found);
        }
        answer.put("state", state.toString());
        answer.put("assignor", found.partitionAssignor());
        answer.put("members", members);
        return answer;
    }

    private Object groupOffsets(JsonNode request) throws Exception {
        List<List<Object>> found = new ArrayList<>();
        get(cluster.admin().listConsumerGroupOffsets(group(request)).partitionsToOffsetAndMetadata()).forEach(
                (part, value) -> found.add(Arrays.asList(part.topic(), part.partition(), value.offset())));
        found.sort((a, b) -> a.toString().compareTo(b.toString()));
        return found;
    }

    private Object setGroupOffsets(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        for (JsonNode row : request.get("offsets")) {
            TopicPartition part = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
            wanted.put(part, new OffsetAndMetadata(row.get(2).asLong()));
        }
        Method alter;
        try {
            alter = AdminClient.class.getMethod("alterConsumerGroupOffsets", String.class, Map.class);
        } catch (NoSuchMethodException older) {
            throw new Driver.Unsupported("this release's admin client cannot set a group's offsets");
        }
        Object answer = alter.invoke(cluster.admin(), group(request), wanted);
        return get((KafkaFuture<?>) answer.getClass().getMethod("all").invoke(answer));
    }

    /** What each transactional id has afterwards: its producer id and epoch. From release 3.1 on. */
    private Object fenceProducers(JsonNode request) throws Exception {
        TreeSet<String> wanted = new TreeSet<>();
        request.get("transactional_ids").forEach(one -> wanted.add(one.asText()));
        Method fence;
        try {
            fence = AdminClient.class.getMethod("fenceProducers", Collection.class);
        } catch (NoSuchMethodException older) {
            throw new Driver.Unsupported("this release's admin client cannot fence producers");
        }
        Object answer = fence.invoke(cluster.admin(), wanted);
        Method producerId = answer.getClass().getMethod("producerId", String.class);
        Method epochId = answer.getClass().getMethod("epochId", String.class);
        Map<String, Object> fenced = new TreeMap<>();
        for (String one : wanted) {
            fenced.put(one, Arrays.asList(
                    get((KafkaFuture<?>) producerId.invoke(answer, one)),
                    get((KafkaFuture<?>) epochId.invoke(answer, one))));
        }
        return fenced;
    }
}
