import com.fasterxml.jackson.databind.JsonNode;
import java.util.Properties;
import org.apache.kafka.clients.admin.AdminClient;

/** Where the clients of all commands go, and how; the command connect replaces it. */
final class Cluster {
    private final Properties settings = new Properties();
    private AdminClient admin;

    Cluster(String servers) {
        goTo(servers);
    }

    private void goTo(String servers) {
        settings.clear();
        settings.put("bootstrap.servers", servers);
        settings.put("retry.backoff.ms", "50");
        settings.put("reconnect.backoff.ms", "20");
        settings.put("reconnect.backoff.max.ms", "200");
    }

    Properties settings() {
        Properties copy = new Properties();
        copy.putAll(settings);
        return copy;
    }

    /** Made when it is first asked for. */
    AdminClient admin() {
        if (admin == null) {
            admin = AdminClient.create(settings());
        }
        return admin;
    }

    Object connect(JsonNode request) {
        if (admin != null) {
            admin.close();
            admin = null;
        }
        goTo(request.get("servers").asText());
        JsonNode security = request.get("security");
        settings.put("security.protocol", security.get("protocol").asText());
        putStore("ssl.truststore", security, "trust_store");
        if (security.has("key_store")) {
            putStore("ssl.keystore", security, "key_store");
            settings.put("ssl.key.password", security.get("store_password").asText());
        }
        if (security.has("mechanism")) {
            String mechanism = security.get("mechanism").asText();
            String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            settings.put("sasl.mechanism", mechanism);
            settings.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\""
                    + security.get("user").asText() + "\" password=\"" + security.get("password").asText() + "\";");
        }
        return null;
    }

    private void putStore(String prefix, JsonNode security, String name) {
        settings.put(prefix + ".location", security.get(name).asText());
        settings.put(prefix + ".type", "PKCS12");
        settings.put(prefix + ".password", security.get("store_password").asText());
    }
}
