package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

type franz struct {
	cluster *Cluster
	admin   *kadm.Client
	members map[string]*franzMember
}

type franzMember struct {
	Notes
	group  string
	client *kgo.Client
	ended  chan struct{}
}

func franzName(err error) any {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return nil
}

func franzCommands(cluster *Cluster) map[string]Command {
	driver := &franz{cluster, nil, map[string]*franzMember{}}
	administer := func() {
		client, err := driver.client()
		if err != nil {
			panic(err)
		}
		driver.admin = kadm.NewClient(client)
	}
	administer() // connects to nothing before it is asked
	cluster.changed = append(cluster.changed, administer)
	return map[string]Command{
		"hello": func(context.Context, *Request) (any, error) {
			return "franz-go, up to Kafka " + kversion.Stable().VersionGuess(), nil
		},
		"produce":           driver.produce,
		"read":              driver.read,
		"offsets":           driver.offsets,
		"join":              driver.join,
		"state":             driver.state,
		"commit":            driver.commit,
		"committed":         driver.committed,
		"leave":             driver.leave,
		"create_topic":      driver.createTopic,
		"delete_topic":      driver.deleteTopic,
		"add_partitions":    driver.addPartitions,
		"topics":            driver.topics,
		"configs":           driver.configs,
		"set_config":        driver.setConfig,
		"delete_records":    driver.deleteRecords,
		"cluster":           driver.described,
		"groups":            driver.groups,
		"describe_group":    driver.describeGroup,
		"delete_group":      driver.deleteGroup,
		"group_offsets":     driver.groupOffsets,
		"set_group_offsets": driver.setGroupOffsets,
	}
}

func (driver *franz) client(options ...kgo.Opt) (*kgo.Client, error) {
	base := append(driver.cluster.franz(), kgo.MetadataMinAge(100*time.Millisecond))
	return kgo.NewClient(append(base, options...)...)
}

func (driver *franz) produce(ctx context.Context, request *Request) (any, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	acks := map[string]kgo.Acks{"all": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codecs[request.Codec]),
		kgo.RequiredAcks(acks[request.Acks]),
		kgo.ProducerLinger(5 * time.Millisecond),
		kgo.UnknownTopicRetries(3),
	}
	if !request.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := driver.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	done := make([][2]int64, len(request.Records))
	failed := make(chan error, len(request.Records))
	for number, record := range request.Records {
		wanted := &kgo.Record{Topic: request.Topic, Key: bytesOf(record.Key), Value: record.value()}
		if record.Timestamp > 0 {
			wanted.Timestamp = time.UnixMilli(record.Timestamp)
		}
		for _, each := range record.Headers {
			wanted.Headers = append(wanted.Headers, kgo.RecordHeader{Key: *each[0], Value: bytesOf(each[1])})
		}
		client.Produce(ctx, wanted, func(sent *kgo.Record, err error) {
			if err != nil {
				failed <- err
			}
			done[number] = [2]int64{int64(sent.Partition), sent.Offset}
		})
		time.Sleep(time.Duration(request.PaceMs) * time.Millisecond)
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	select {
	case err := <-failed:
		return nil, err
	default:
		return done, nil
	}
}

func (driver *franz) read(ctx context.Context, request *Request) (any, error) {
	offset := kgo.NewOffset()
	switch start := request.Start.(type) {
	case float64:
		offset = offset.At(int64(start))
	case map[string]any:
		offset = offset.AfterMilli(int64(start["time"].(float64)))
	case string:
		if start == "earliest" {
			offset = offset.AtStart()
		} else {
			offset = offset.AtEnd()
		}
	}
	reset := kgo.NoResetOffset()
	if request.Reset == "earliest" {
		reset = kgo.NewOffset().AtStart()
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: {request.Partition: offset}}),
		kgo.ConsumeResetOffset(reset),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}
	if request.Committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if request.FetchBytes > 0 {
		options = append(options, kgo.FetchMaxBytes(request.FetchBytes), kgo.FetchMaxPartitionBytes(request.FetchBytes))
	}
	client, err := driver.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(request.TimeoutMs)*time.Millisecond)
	defer cancel()
	found := []Shown{}
	for len(found) < request.Count {
		fetches := client.PollFetches(ctx)
		for _, failure := range fetches.Errors() {
			if ctx.Err() == nil {
				return nil, failure.Err
			}
		}
		if ctx.Err() != nil {
			break
		}
		fetches.EachRecord(func(record *kgo.Record) {
			var headers []header
			for _, each := range record.Headers {
				headers = append(headers, header{each.Key, each.Value})
			}
			if len(found) < request.Count {
				found = append(found, shown(record.Offset, record.Timestamp, record.Key, record.Value, headers))
			}
		})
	}
	return found, nil
}

func (driver *franz) offsets(ctx context.Context, request *Request) (any, error) {
	starts, err := driver.admin.ListStartOffsets(ctx, request.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := driver.admin.ListEndOffsets(ctx, request.Topic)
	if err != nil {
		return nil, err
	}
	times := []int64{}
	for _, each := range request.Times {
		found, err := driver.admin.ListOffsetsAfterMilli(ctx, each, request.Topic)
		if err != nil {
			return nil, err
		}
		times = append(times, found[request.Topic][request.Partition].Offset)
	}
	return map[string]any{
		"earliest": starts[request.Topic][request.Partition].Offset,
		"latest":   ends[request.Topic][request.Partition].Offset,
		"times":    times,
	}, nil
}

func (driver *franz) join(_ context.Context, request *Request) (any, error) {
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	member := &franzMember{group: request.Group, ended: make(chan struct{})}
	session := time.Duration(request.SessionMs) * time.Millisecond
	options := []kgo.Opt{
		kgo.ConsumerGroup(request.Group),
		kgo.Balancers(balancers[request.Assignor]),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(session / 6),
		kgo.RebalanceTimeout(session),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.MetadataMaxAge(500 * time.Millisecond),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, each map[string][]int32) { member.assigned(each) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, each map[string][]int32) { member.revoked(each) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, each map[string][]int32) { member.revoked(each) }),
	}
	if request.Client != "" {
		options = append(options, kgo.ClientID(request.Client))
	}
	if request.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(request.Pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(request.Topics...))
	}
	if request.Instance != nil {
		options = append(options, kgo.InstanceID(*request.Instance))
	}
	client, err := driver.client(options...)
	if err != nil {
		return nil, err
	}
	member.client = client
	driver.members[request.Member] = member
	go member.run()
	return nil, nil
}

func (member *franzMember) run() {
	defer close(member.ended)
	for {
		fetches := member.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		for _, failure := range fetches.Errors() {
			member.failed(failure.Err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			member.read(record.Topic, record.Partition, record.Offset, record.Value)
		})
	}
}

func (driver *franz) state(_ context.Context, request *Request) (any, error) {
	return driver.members[request.Member].state(), nil
}

func (driver *franz) commit(ctx context.Context, request *Request) (any, error) {
	wanted := map[string]map[int32]kgo.EpochOffset{}
	metadata := ""
	for _, row := range rows(request.Offsets) {
		if wanted[row.topic] == nil {
			wanted[row.topic] = map[int32]kgo.EpochOffset{}
		}
		wanted[row.topic][row.partition] = kgo.EpochOffset{Epoch: -1, Offset: row.offset}
		metadata = row.metadata
	}
	ctx = kgo.PreCommitFnContext(ctx, func(commit *kmsg.OffsetCommitRequest) error {
		for topic := range commit.Topics {
			for partition := range commit.Topics[topic].Partitions {
				commit.Topics[topic].Partitions[partition].Metadata = &metadata
			}
		}
		return nil
	})
	var failure error
	done := func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		failure = err
		if err != nil {
			return
		}
		for _, topic := range answer.Topics {
			for _, partition := range topic.Partitions {
				failure = errors.Join(failure, kerr.ErrorForCode(partition.ErrorCode))
			}
		}
	}
	driver.members[request.Member].client.CommitOffsetsSync(ctx, wanted, done)
	return nil, failure
}

func (driver *franz) committed(ctx context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	found, err := kadm.NewClient(member.client).FetchOffsets(ctx, member.group)
	if err != nil {
		return nil, err
	}
	answer := [][4]any{}
	for _, row := range rows(pairs(request)) {
		at, there := found.Lookup(row.topic, row.partition)
		if !there {
			answer = append(answer, [4]any{row.topic, row.partition, -1, ""})
			continue
		}
		answer = append(answer, [4]any{row.topic, row.partition, at.At, at.Metadata})
	}
	return answer, nil
}

func (driver *franz) leave(_ context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	delete(driver.members, request.Member)
	member.client.Close()
	<-member.ended
	return nil, nil
}

func (driver *franz) createTopic(ctx context.Context, request *Request) (any, error) {
	configs := map[string]*string{}
	for name, value := range request.Configs {
		configs[name] = &value
	}
	partitions := int32(request.Partitions.(float64))
	found, err := driver.admin.CreateTopic(ctx, partitions, request.Replicas, configs, request.Topic)
	return nil, errors.Join(err, found.Err)
}

func (driver *franz) deleteTopic(ctx context.Context, request *Request) (any, error) {
	_, err := driver.admin.DeleteTopic(ctx, request.Topic)
	return nil, err
}

func (driver *franz) addPartitions(ctx context.Context, request *Request) (any, error) {
	found, err := driver.admin.UpdatePartitions(ctx, request.Total, request.Topic)
	if err == nil {
		err = found.Error()
	}
	return nil, err
}

func (driver *franz) topics(ctx context.Context, _ *Request) (any, error) {
	found, err := driver.admin.ListTopics(ctx)
	counts := map[string]int{}
	for name, one := range found {
		counts[name] = len(one.Partitions)
	}
	return counts, err
}

func (driver *franz) configs(ctx context.Context, request *Request) (any, error) {
	found, err := driver.admin.DescribeTopicConfigs(ctx, request.Topic)
	values := map[string]string{}
	for _, resource := range found {
		err = errors.Join(err, resource.Err)
		for _, entry := range resource.Configs {
			values[entry.Key] = entry.MaybeValue()
		}
	}
	return values, err
}

func (driver *franz) setConfig(ctx context.Context, request *Request) (any, error) {
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: request.Name, Value: &request.Value}}
	found, err := driver.admin.AlterTopicConfigs(ctx, change, request.Topic)
	for _, each := range found {
		err = errors.Join(err, each.Err)
	}
	return nil, err
}

func (driver *franz) deleteRecords(ctx context.Context, request *Request) (any, error) {
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: request.Topic, Partition: request.Partition, At: request.Offset})
	found, err := driver.admin.DeleteRecords(ctx, before)
	if err == nil {
		err = found.Error()
	}
	return found[request.Topic][request.Partition].LowWatermark, err
}

func (driver *franz) described(ctx context.Context, _ *Request) (any, error) {
	found, err := driver.admin.BrokerMetadata(ctx)
	return map[string]any{"id": found.Cluster, "controller": found.Controller, "brokers": found.Brokers.NodeIDs()}, err
}

func (driver *franz) groups(ctx context.Context, _ *Request) (any, error) {
	found, err := driver.admin.ListGroups(ctx)
	return found.Groups(), err
}

func (driver *franz) describeGroup(ctx context.Context, request *Request) (any, error) {
	found, err := driver.admin.DescribeGroups(ctx, request.Group)
	if err != nil {
		return nil, err
	}
	group := found[request.Group]
	members := []map[string]any{}
	for _, member := range group.Members {
		assignment := [][2]any{}
		if consumer, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range consumer.Topics {
				for _, partition := range topic.Partitions {
					assignment = append(assignment, [2]any{topic.Topic, partition})
				}
			}
		}
		members = append(members, map[string]any{
			"client": member.ClientID, "host": member.ClientHost, "instance": member.InstanceID, "assignment": assignment,
		})
	}
	return map[string]any{"state": group.State, "assignor": group.Protocol, "members": members}, group.Err
}

func (driver *franz) deleteGroup(ctx context.Context, request *Request) (any, error) {
	_, err := driver.admin.DeleteGroup(ctx, request.Group)
	return nil, err
}

func (driver *franz) groupOffsets(ctx context.Context, request *Request) (any, error) {
	found, err := driver.admin.FetchOffsets(ctx, request.Group)
	answer := [][3]any{}
	for _, one := range found.Sorted() {
		answer = append(answer, [3]any{one.Topic, one.Partition, one.At})
	}
	sort.SliceStable(answer, func(a, b int) bool { return fmt.Sprint(answer[a]) < fmt.Sprint(answer[b]) })
	return answer, err
}

func (driver *franz) setGroupOffsets(ctx context.Context, request *Request) (any, error) {
	var wanted kadm.Offsets
	for _, row := range rows(request.Offsets) {
		wanted.Add(kadm.Offset{Topic: row.topic, Partition: row.partition, At: row.offset, LeaderEpoch: -1})
	}
	found, err := driver.admin.CommitOffsets(ctx, request.Group, wanted)
	if err == nil {
		err = found.Error()
	}
	return nil, err
}
