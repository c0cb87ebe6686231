package main

import (
	"context"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franzProducers struct {
	cluster *Cluster
	clients map[string]*kgo.Client
}

func franzTransactions(cluster *Cluster) map[string]Command {
	driver := &franzProducers{cluster, map[string]*kgo.Client{}}
	return map[string]Command{
		"txn_init": driver.init,
		"txn_begin": func(_ context.Context, request *Request) (any, error) {
			return nil, driver.clients[request.Producer].BeginTransaction()
		},
		"txn_send": driver.send,
		"txn_offsets": func(context.Context, *Request) (any, error) {
			return nil, Unsupported("franz-go sends offsets of its own group only (its own tests do)")
		},
		"txn_end": driver.end,
		"txn_close": func(_ context.Context, request *Request) (any, error) {
			driver.clients[request.Producer].Close()
			delete(driver.clients, request.Producer)
			return nil, nil
		},
	}
}

func (driver *franzProducers) init(ctx context.Context, request *Request) (any, error) {
	client, err := kgo.NewClient(append(
		driver.cluster.franz(),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.TransactionalID(request.ID),
		kgo.TransactionTimeout(time.Duration(request.TimeoutMs)*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
	if err != nil {
		return nil, err
	}
	driver.clients[request.Producer] = client
	_, _, err = client.ProducerID(ctx) // asks for it now, not with the first record
	return nil, err
}

func (driver *franzProducers) send(ctx context.Context, request *Request) (any, error) {
	wanted := []*kgo.Record{}
	for _, record := range request.Records {
		wanted = append(wanted, &kgo.Record{
			Topic: request.Topic, Partition: *record.Partition, Key: bytesOf(record.Key), Value: record.value(),
		})
	}
	done := [][2]int64{}
	for _, result := range driver.clients[request.Producer].ProduceSync(ctx, wanted...) {
		if result.Err != nil {
			return nil, result.Err
		}
		done = append(done, [2]int64{int64(result.Record.Partition), result.Record.Offset})
	}
	return done, nil
}

func (driver *franzProducers) end(ctx context.Context, request *Request) (any, error) {
	return nil, driver.clients[request.Producer].EndTransaction(ctx, kgo.TransactionEndTry(request.Commit))
}

type saramaProducers struct {
	*saramaDriver
	producers map[string]sarama.SyncProducer
}

func saramaTransactions(version string, cluster *Cluster) map[string]Command {
	parsed, err := sarama.ParseKafkaVersion(version)
	if err != nil {
		panic(err)
	}
	driver := &saramaProducers{
		&saramaDriver{parsed, cluster, map[string]*saramaMember{}}, map[string]sarama.SyncProducer{},
	}
	return map[string]Command{
		"txn_init": driver.init,
		"txn_begin": func(_ context.Context, request *Request) (any, error) {
			return nil, driver.producers[request.Producer].BeginTxn()
		},
		"txn_send":    driver.send,
		"txn_offsets": driver.offsets,
		"txn_end":     driver.end,
		"txn_close": func(_ context.Context, request *Request) (any, error) {
			_ = driver.producers[request.Producer].Close() // a producer that was fenced says so once more
			delete(driver.producers, request.Producer)
			return nil, nil
		},
	}
}

func (driver *saramaProducers) init(_ context.Context, request *Request) (any, error) {
	if err := driver.needs(sarama.V0_11_0_0, "transactions"); err != nil {
		return nil, err
	}
	config := driver.config()
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Return.Errors = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = request.ID
	config.Producer.Transaction.Timeout = time.Duration(request.TimeoutMs) * time.Millisecond
	config.Producer.Transaction.Retry.Max = 200
	if driver.cluster.security != nil {
		config.Producer.Transaction.Retry.Max = 5 // it tries what it may not do again and again
	}
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(driver.cluster.servers, config)
	if err != nil {
		return nil, err
	}
	driver.producers[request.Producer] = producer
	return nil, nil
}

func (driver *saramaProducers) send(_ context.Context, request *Request) (any, error) {
	done := [][2]int64{}
	for _, record := range request.Records {
		wanted := &sarama.ProducerMessage{
			Topic: request.Topic, Partition: *record.Partition, Value: sarama.ByteEncoder(record.value()),
		}
		partition, offset, err := driver.producers[request.Producer].SendMessage(wanted)
		if err != nil {
			return nil, err
		}
		done = append(done, [2]int64{int64(partition), offset})
	}
	return done, nil
}

func (driver *saramaProducers) offsets(_ context.Context, request *Request) (any, error) {
	wanted := map[string][]*sarama.PartitionOffsetMetadata{}
	for _, row := range rows(request.Offsets) {
		wanted[row.topic] = append(wanted[row.topic], &sarama.PartitionOffsetMetadata{
			Partition: row.partition, Offset: row.offset, LeaderEpoch: -1,
		})
	}
	return nil, driver.producers[request.Producer].AddOffsetsToTxn(wanted, request.Group)
}

func (driver *saramaProducers) end(_ context.Context, request *Request) (any, error) {
	if request.Commit {
		return nil, driver.producers[request.Producer].CommitTxn()
	}
	return nil, driver.producers[request.Producer].AbortTxn()
}
