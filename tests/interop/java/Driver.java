import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Driver of Kafka's Java client: a request a line from standard input, an answer a line to standard output
 * (tests/interop/driver.py has the format). Compiled once with each release; what a release lacks is found by
 * reflection and answered as unsupported.
 */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    /** The client has no such function; the text is the reason for the table. */
    static final class Unsupported extends RuntimeException {
        Unsupported(String reason) {
            super(reason);
        }
    }

    interface Command {
        Object run(JsonNode request) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        Map<String, Command> commands = new LinkedHashMap<>();
        Cluster cluster = new Cluster(arguments[0]);
        commands.put("connect", cluster::connect);
        new Records(cluster).register(commands);
        Groups groups = new Groups(cluster);
        groups.register(commands);
        new Transactions(cluster, groups).register(commands);
        new Administration(cluster).register(commands);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = JSON.readTree(line);
            answers.println(JSON.writeValueAsString(answer(commands.get(request.get("do").asText()), request)));
        }
        System.exit(0); // a consumer that is still polling ends with the runner
    }

    private static Map<String, Object> answer(Command command, JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        if (command == null) {
            answer.put("broken", "no such command: " + request.get("do").asText());
            return answer;
        }
        try {
            answer.put("ok", command.run(request));
        } catch (Unsupported reason) {
            answer.put("unsupported", reason.getMessage());
        } catch (Throwable thrown) {
            Throwable error = cause(thrown);
            error.printStackTrace();
            if (error instanceof KafkaException) {
                answer.put("error", nameOf(error));
                answer.put("message", String.valueOf(error.getMessage()));
            } else {
                answer.put("broken", error.toString());
            }
        }
        return answer;
    }

    /** What went wrong, without the wrappers of futures and reflection. */
    static Throwable cause(Throwable thrown) {
        Throwable error = thrown;
        while (error.getCause() != null
                && (error instanceof ExecutionException || error instanceof java.lang.reflect.InvocationTargetException
                    || error.getClass().getName().equals("org.apache.kafka.common.KafkaException"))) {
            error = error.getCause();
        }
        return error;
    }

    static Object nameOf(Throwable error) {
        Errors known = Errors.forException(error);
        return known == Errors.UNKNOWN_SERVER_ERROR ? error.getClass().getSimpleName() : (Object) known.name();
    }

    static String textOf(JsonNode node, String name, String otherwise) {
        JsonNode found = node.get(name);
        return found == null || found.isNull() ? otherwise : found.asText();
    }

    static int intOf(JsonNode node, String name, int otherwise) {
        JsonNode found = node.get(name);
        return found == null || found.isNull() ? otherwise : found.asInt();
    }

    static byte[] bytesOf(JsonNode node, String name) {
        String text = textOf(node, name, null);
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String textOf(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }
}
