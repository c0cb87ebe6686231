package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
)

type kafkaGo struct {
	cluster *Cluster
	client  *kafka.Client
	members map[string]*kafkaGoMember
}

func kafkaGoName(err error) any {
	var known kafka.Error
	if errors.As(err, &known) {
		return int(known)
	}
	var each kafka.WriteErrors
	if errors.As(err, &each) {
		for _, one := range each {
			if one != nil {
				return kafkaGoName(one)
			}
		}
	}
	return nil
}

func kafkaGoCommands(cluster *Cluster) map[string]Command {
	driver := &kafkaGo{cluster, nil, map[string]*kafkaGoMember{}}
	administer := func() {
		transport := cluster.kafkaGo()
		// kafka-go takes what its metadata lacks for led by anybody; a topic of a moment ago is in them soon
		transport.MetadataTTL = 50 * time.Millisecond
		driver.client = &kafka.Client{Addr: kafka.TCP(cluster.servers...), Timeout: timeout, Transport: transport}
	}
	administer() // connects to nothing before it is asked
	cluster.changed = append(cluster.changed, administer)
	return map[string]Command{
		"hello":          func(context.Context, *Request) (any, error) { return "kafka-go", nil },
		"produce":        driver.produce,
		"read":           driver.read,
		"offsets":        driver.offsets,
		"join":           driver.join,
		"state":          driver.state,
		"commit":         driver.commit,
		"committed":      driver.committed,
		"leave":          driver.leave,
		"create_topic":   driver.createTopic,
		"delete_topic":   driver.deleteTopic,
		"add_partitions": driver.addPartitions,
		"topics":         driver.topics,
		"configs":        driver.configs,
		"set_config":     driver.setConfig,
		"cluster":        driver.described,
		"groups":         driver.groups,
		"describe_group": driver.describeGroup,
		"delete_group":   driver.deleteGroup,
		"group_offsets":  driver.groupOffsets,
		"delete_records": func(context.Context, *Request) (any, error) {
			return nil, Unsupported("kafka-go has no DeleteRecords")
		},
		"set_group_offsets": driver.setGroupOffsets,
	}
}

func (driver *kafkaGo) produce(ctx context.Context, request *Request) (any, error) {
	if request.Idempotent {
		return nil, Unsupported("kafka-go has no idempotent producer")
	}
	codecs := map[string]kafka.Compression{
		"none": compress.None, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}
	acks := map[string]kafka.RequiredAcks{"all": kafka.RequireAll, "1": kafka.RequireOne, "0": kafka.RequireNone}
	var mutex sync.Mutex
	done := make([][2]int64, len(request.Records))
	writer := &kafka.Writer{
		Addr: kafka.TCP(driver.cluster.servers...), Transport: driver.cluster.kafkaGo(), Topic: request.Topic, RequiredAcks: acks[request.Acks],
		Compression: codecs[request.Codec], BatchTimeout: 5 * time.Millisecond, MaxAttempts: 20,
		Completion: func(sent []kafka.Message, err error) {
			mutex.Lock()
			defer mutex.Unlock()
			for _, each := range sent {
				done[each.WriterData.(int)] = [2]int64{int64(each.Partition), each.Offset}
			}
		},
	}
	defer writer.Close()
	var messages []kafka.Message
	for number, record := range request.Records {
		wanted := kafka.Message{Key: bytesOf(record.Key), Value: record.value(), WriterData: number}
		if record.Timestamp > 0 {
			wanted.Time = time.UnixMilli(record.Timestamp)
		}
		for _, each := range record.Headers {
			wanted.Headers = append(wanted.Headers, kafka.Header{Key: *each[0], Value: bytesOf(each[1])})
		}
		messages = append(messages, wanted)
		if request.PaceMs > 0 || number == len(request.Records)-1 {
			if err := writer.WriteMessages(ctx, messages...); err != nil {
				return nil, err
			}
			messages = nil
			time.Sleep(time.Duration(request.PaceMs) * time.Millisecond)
		}
	}
	return done, nil
}

func (driver *kafkaGo) read(ctx context.Context, request *Request) (any, error) {
	config := kafka.ReaderConfig{
		Brokers: driver.cluster.servers, Topic: request.Topic, Partition: int(request.Partition),
		Dialer:  driver.cluster.kafkaGoDialer(""),
		MaxWait: 500 * time.Millisecond, OffsetOutOfRangeError: request.Reset == "error", MaxBytes: 1 << 20,
	}
	if request.FetchBytes > 0 {
		config.MaxBytes = int(request.FetchBytes)
	}
	reader := kafka.NewReader(config)
	defer reader.Close()
	var err error
	switch start := request.Start.(type) {
	case float64:
		err = reader.SetOffset(int64(start))
	case map[string]any:
		err = reader.SetOffsetAt(ctx, time.UnixMilli(int64(start["time"].(float64))))
	case string:
		err = reader.SetOffset(map[string]int64{"earliest": kafka.FirstOffset, "latest": kafka.LastOffset}[start])
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(request.TimeoutMs)*time.Millisecond)
	defer cancel()
	found := []Shown{}
	for len(found) < request.Count {
		record, err := reader.ReadMessage(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		var headers []header
		for _, each := range record.Headers {
			headers = append(headers, header{each.Key, each.Value})
		}
		found = append(found, shown(record.Offset, record.Time, record.Key, record.Value, headers))
	}
	return found, nil
}

func (driver *kafkaGo) offsets(ctx context.Context, request *Request) (any, error) {
	time.Sleep(200 * time.Millisecond)
	ask := func(wanted kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
		found, err := driver.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{request.Topic: {wanted}},
		})
		if err != nil {
			return kafka.PartitionOffsets{}, err
		}
		return found.Topics[request.Topic][0], found.Topics[request.Topic][0].Error
	}
	first, err := ask(kafka.FirstOffsetOf(int(request.Partition)))
	if err != nil {
		return nil, err
	}
	last, err := ask(kafka.LastOffsetOf(int(request.Partition)))
	if err != nil {
		return nil, err
	}
	times := []int64{}
	for _, each := range request.Times {
		found, err := ask(kafka.TimeOffsetOf(int(request.Partition), time.UnixMilli(each)))
		if err != nil {
			return nil, err
		}
		offset := int64(-1)
		for at := range found.Offsets {
			offset = at
		}
		times = append(times, offset)
	}
	return map[string]any{"earliest": first.FirstOffset, "latest": last.LastOffset, "times": times}, nil
}

type kafkaGoMember struct {
	Notes
	group      string
	generation *kafka.Generation
	consumer   *kafka.ConsumerGroup
	cancel     context.CancelFunc
	ended      chan struct{}
}

func (driver *kafkaGo) join(_ context.Context, request *Request) (any, error) {
	if request.Pattern != "" {
		return nil, Unsupported("kafka-go has no subscription by pattern")
	}
	if request.Instance != nil {
		return nil, Unsupported("kafka-go has no static members")
	}
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	balancer, there := balancers[request.Assignor]
	if !there {
		return nil, Unsupported("kafka-go has no " + request.Assignor + " assignor")
	}
	session := time.Duration(request.SessionMs) * time.Millisecond
	dialer := driver.cluster.kafkaGoDialer(request.Client)
	consumer, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: request.Group, Brokers: driver.cluster.servers, Topics: request.Topics, Dialer: dialer,
		GroupBalancers: []kafka.GroupBalancer{balancer}, SessionTimeout: session, HeartbeatInterval: session / 6,
		RebalanceTimeout: session, JoinGroupBackoff: 200 * time.Millisecond, StartOffset: kafka.FirstOffset,
		WatchPartitionChanges: true, PartitionWatchInterval: 500 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	member := &kafkaGoMember{group: request.Group, consumer: consumer, cancel: cancel, ended: make(chan struct{})}
	driver.members[request.Member] = member
	go func() {
		defer close(member.ended)
		for ctx.Err() == nil {
			generation, err := consumer.Next(ctx)
			if err != nil {
				if ctx.Err() == nil && !errors.Is(err, kafka.ErrGroupClosed) {
					member.failed(err)
				}
				continue
			}
			member.begin(generation, driver.cluster)
		}
	}()
	return nil, nil
}

func (member *kafkaGoMember) begin(generation *kafka.Generation, cluster *Cluster) {
	owned := map[string][]int32{}
	for topic, partitions := range generation.Assignments {
		for _, each := range partitions {
			owned[topic] = append(owned[topic], int32(each.ID))
			generation.Start(func(ctx context.Context) { member.readPartition(ctx, cluster, topic, each) })
		}
	}
	member.assigned(owned)
	member.mutex.Lock()
	member.generation = generation
	member.mutex.Unlock()
	generation.Start(func(ctx context.Context) {
		<-ctx.Done()
		member.revoked(owned)
		member.mutex.Lock()
		defer member.mutex.Unlock()
		if member.generation == generation {
			member.generation = nil
		}
	})
}

func (member *kafkaGoMember) readPartition(
	ctx context.Context, cluster *Cluster, topic string, assigned kafka.PartitionAssignment,
) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: cluster.servers, Topic: topic, Partition: assigned.ID, MaxWait: 500 * time.Millisecond,
		Dialer: cluster.kafkaGoDialer(""),
	})
	defer reader.Close()
	if err := reader.SetOffset(assigned.Offset); err != nil {
		member.failed(err)
		return
	}
	for {
		record, err := reader.ReadMessage(ctx)
		if errors.Is(err, kafka.ErrGenerationEnded) || ctx.Err() != nil || errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			member.failed(err)
			continue
		}
		member.Notes.read(topic, int32(record.Partition), record.Offset, record.Value)
	}
}

func (driver *kafkaGo) state(_ context.Context, request *Request) (any, error) {
	return driver.members[request.Member].Notes.state(), nil
}

func (driver *kafkaGo) commit(ctx context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	member.mutex.Lock()
	generation := member.generation
	member.mutex.Unlock()
	if generation == nil {
		return nil, Refused("NO_GENERATION")
	}
	return driver.commitOffsets(ctx, request, &kafka.OffsetCommitRequest{
		GroupID: member.group, GenerationID: int(generation.ID), MemberID: generation.MemberID,
	})
}

// setGroupOffsets commits from outside of any generation.
func (driver *kafkaGo) setGroupOffsets(ctx context.Context, request *Request) (any, error) {
	return driver.commitOffsets(ctx, request, &kafka.OffsetCommitRequest{GroupID: request.Group, GenerationID: -1})
}

func (driver *kafkaGo) commitOffsets(
	ctx context.Context, request *Request, commit *kafka.OffsetCommitRequest,
) (any, error) {
	commit.Topics = map[string][]kafka.OffsetCommit{}
	for _, row := range rows(request.Offsets) {
		one := kafka.OffsetCommit{Partition: int(row.partition), Offset: row.offset, Metadata: row.metadata}
		commit.Topics[row.topic] = append(commit.Topics[row.topic], one)
	}
	found, err := driver.client.OffsetCommit(ctx, commit)
	if err != nil {
		return nil, err
	}
	for _, partitions := range found.Topics {
		for _, each := range partitions {
			err = errors.Join(err, each.Error)
		}
	}
	return nil, err
}

func (driver *kafkaGo) fetchOffsets(
	ctx context.Context, group string, topics map[string][]int,
) (map[string][]kafka.OffsetFetchPartition, error) {
	found, err := driver.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: topics})
	if err != nil {
		return nil, err
	}
	return found.Topics, found.Error
}

func (driver *kafkaGo) committed(ctx context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	wanted, topics := rows(pairs(request)), map[string][]int{}
	for _, row := range wanted {
		topics[row.topic] = append(topics[row.topic], int(row.partition))
	}
	found, err := driver.fetchOffsets(ctx, member.group, topics)
	if err != nil {
		return nil, err
	}
	answer := [][4]any{}
	for _, row := range wanted {
		for _, each := range found[row.topic] {
			if each.Partition == int(row.partition) {
				answer = append(answer, [4]any{row.topic, row.partition, each.CommittedOffset, each.Metadata})
			}
		}
	}
	return answer, nil
}

func (driver *kafkaGo) leave(_ context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	delete(driver.members, request.Member)
	member.cancel()
	err := member.consumer.Close()
	<-member.ended
	return nil, err
}

func (driver *kafkaGo) createTopic(ctx context.Context, request *Request) (any, error) {
	wanted := kafka.TopicConfig{
		Topic: request.Topic, NumPartitions: int(request.Partitions.(float64)), ReplicationFactor: int(request.Replicas),
	}
	for name, value := range request.Configs {
		wanted.ConfigEntries = append(wanted.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	found, err := driver.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}})
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[request.Topic]
}

func (driver *kafkaGo) deleteTopic(ctx context.Context, request *Request) (any, error) {
	found, err := driver.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{request.Topic}})
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[request.Topic]
}

func (driver *kafkaGo) addPartitions(ctx context.Context, request *Request) (any, error) {
	found, err := driver.client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: request.Topic, Count: int32(request.Total)}},
	})
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[request.Topic]
}

func (driver *kafkaGo) topics(ctx context.Context, _ *Request) (any, error) {
	found, err := driver.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, topic := range found.Topics {
		counts[topic.Name] = len(topic.Partitions)
	}
	return counts, nil
}

func (driver *kafkaGo) configs(ctx context.Context, request *Request) (any, error) {
	found, err := driver.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: request.Topic},
		},
	})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, resource := range found.Resources {
		for _, entry := range resource.ConfigEntries {
			values[entry.ConfigName] = entry.ConfigValue
		}
	}
	return values, nil
}

func (driver *kafkaGo) setConfig(ctx context.Context, request *Request) (any, error) {
	_, err := driver.client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: request.Topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{
				{Name: request.Name, Value: request.Value, ConfigOperation: kafka.ConfigOperationSet},
			},
		}},
	})
	return nil, err
}

func (driver *kafkaGo) described(ctx context.Context, _ *Request) (any, error) {
	found, err := driver.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
	if err != nil {
		return nil, err
	}
	ids := []int{}
	for _, broker := range found.Brokers {
		ids = append(ids, broker.ID)
	}
	sort.Ints(ids)
	return map[string]any{"id": found.ClusterID, "controller": found.Controller.ID, "brokers": ids}, nil
}

func (driver *kafkaGo) groups(ctx context.Context, _ *Request) (any, error) {
	found, err := driver.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, group := range found.Groups {
		names = append(names, group.GroupID)
	}
	sort.Strings(names)
	return names, found.Error
}

func (driver *kafkaGo) describeGroup(ctx context.Context, request *Request) (any, error) {
	found, err := driver.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{request.Group}})
	if err != nil {
		return nil, err
	}
	group := found.Groups[0]
	members := []map[string]any{}
	for _, member := range group.Members {
		assignment := [][2]any{}
		for _, topic := range member.MemberAssignments.Topics {
			for _, partition := range topic.Partitions {
				assignment = append(assignment, [2]any{topic.Topic, partition})
			}
		}
		members = append(members, map[string]any{
			"client": member.ClientID, "host": member.ClientHost, "instance": nil, "assignment": assignment,
		})
	}
	return map[string]any{"state": group.GroupState, "assignor": nil, "members": members}, group.Error
}

func (driver *kafkaGo) deleteGroup(ctx context.Context, request *Request) (any, error) {
	found, err := driver.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{request.Group}})
	if err != nil {
		return nil, err
	}
	return nil, found.Errors[request.Group]
}

func (driver *kafkaGo) groupOffsets(ctx context.Context, request *Request) (any, error) {
	found, err := driver.fetchOffsets(ctx, request.Group, nil)
	if err != nil {
		return nil, err
	}
	answer := [][3]any{}
	for topic, partitions := range found {
		for _, each := range partitions {
			if each.CommittedOffset >= 0 {
				answer = append(answer, [3]any{topic, each.Partition, each.CommittedOffset})
			}
		}
	}
	sort.Slice(answer, func(a, b int) bool { return fmt.Sprint(answer[a]) < fmt.Sprint(answer[b]) })
	return answer, nil
}
