package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	kafkaplain "github.com/segmentio/kafka-go/sasl/plain"
	kafkascram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdgscram "github.com/xdg-go/scram"
)

// Security is how a client proves who it is, and how it knows brokers.
type Security struct {
	Protocol    string `json:"protocol"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
}

// Cluster is where the clients of all commands go, and how; the command connect replaces it.
type Cluster struct {
	servers  []string
	security *Security
	changed  []func()
}

func (cluster *Cluster) connect(_ context.Context, request *Request) (any, error) {
	cluster.servers, cluster.security = strings.Split(request.Servers, ","), request.Security
	for _, tell := range cluster.changed {
		tell()
	}
	return nil, nil
}

// tls is nil for a cluster without it.
func (cluster *Cluster) tls() *tls.Config {
	if cluster.security == nil {
		return nil
	}
	authority, err := os.ReadFile(cluster.security.CA)
	if err != nil {
		panic(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if file := cluster.security.Certificate; file != "" {
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// mechanism is empty for a cluster without logins.
func (cluster *Cluster) mechanism() string {
	if cluster.security == nil {
		return ""
	}
	return cluster.security.Mechanism
}

func (cluster *Cluster) franz() []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(cluster.servers...)}
	if config := cluster.tls(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	switch cluster.mechanism() {
	case "PLAIN":
		one := plain.Auth{User: cluster.security.User, Pass: cluster.security.Password}
		options = append(options, kgo.SASL(one.AsMechanism()))
	case "SCRAM-SHA-256":
		one := scram.Auth{User: cluster.security.User, Pass: cluster.security.Password}
		options = append(options, kgo.SASL(one.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		one := scram.Auth{User: cluster.security.User, Pass: cluster.security.Password}
		options = append(options, kgo.SASL(one.AsSha512Mechanism()))
	}
	return options
}

// saramaScram is a login by SCRAM, as sarama's own examples have it: sarama leaves that to its users.
type saramaScram struct {
	hash         xdgscram.HashGeneratorFcn
	conversation *xdgscram.ClientConversation
}

func (login *saramaScram) Begin(user, password, authorization string) error {
	client, err := login.hash.NewClient(user, password, authorization)
	if err == nil {
		login.conversation = client.NewConversation()
	}
	return err
}

func (login *saramaScram) Step(challenge string) (string, error) {
	return login.conversation.Step(challenge)
}

func (login *saramaScram) Done() bool { return login.conversation.Done() }

func (cluster *Cluster) sarama(config *sarama.Config) {
	if own := cluster.tls(); own != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, own
	}
	hashes := map[string]xdgscram.HashGeneratorFcn{
		sarama.SASLTypeSCRAMSHA256: xdgscram.SHA256, sarama.SASLTypeSCRAMSHA512: xdgscram.SHA512,
	}
	if mechanism := cluster.mechanism(); mechanism != "" {
		config.Net.SASL.Enable, config.Net.SASL.Mechanism = true, sarama.SASLMechanism(mechanism)
		config.Net.SASL.User, config.Net.SASL.Password = cluster.security.User, cluster.security.Password
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
			return &saramaScram{hash: hashes[mechanism]}
		}
	}
}

// kafkaGoMechanism is nil for a cluster without logins.
func (cluster *Cluster) kafkaGoMechanism() kafkasasl.Mechanism {
	algorithms := map[string]kafkascram.Algorithm{
		"SCRAM-SHA-256": kafkascram.SHA256, "SCRAM-SHA-512": kafkascram.SHA512,
	}
	switch mechanism := cluster.mechanism(); mechanism {
	case "":
		return nil
	case "PLAIN":
		return kafkaplain.Mechanism{Username: cluster.security.User, Password: cluster.security.Password}
	default:
		login, err := kafkascram.Mechanism(algorithms[mechanism], cluster.security.User, cluster.security.Password)
		if err != nil {
			panic(err)
		}
		return login
	}
}

func (cluster *Cluster) kafkaGo() *kafka.Transport {
	return &kafka.Transport{TLS: cluster.tls(), SASL: cluster.kafkaGoMechanism()}
}

func (cluster *Cluster) kafkaGoDialer(client string) *kafka.Dialer {
	return &kafka.Dialer{
		ClientID: client, Timeout: timeout / 2, DualStack: true, TLS: cluster.tls(), SASLMechanism: cluster.kafkaGoMechanism(),
	}
}
