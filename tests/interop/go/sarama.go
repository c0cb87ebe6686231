package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/IBM/sarama"
)

type saramaDriver struct {
	version sarama.KafkaVersion
	cluster *Cluster
	members map[string]*saramaMember
}

func saramaName(err error) any {
	var known sarama.KError
	if errors.As(err, &known) {
		return int(known)
	}
	var sent sarama.ProducerErrors
	if errors.As(err, &sent) && len(sent) > 0 {
		return saramaName(sent[0].Err)
	}
	if errors.Is(err, sarama.ErrOutOfBrokers) {
		return "ErrOutOfBrokers"
	}
	return nil
}

func saramaCommands(version string, cluster *Cluster) map[string]Command {
	parsed, err := sarama.ParseKafkaVersion(version)
	if err != nil {
		panic(err)
	}
	driver := &saramaDriver{parsed, cluster, map[string]*saramaMember{}}
	return map[string]Command{
		"hello":             func(context.Context, *Request) (any, error) { return "sarama as " + version, nil },
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

func (driver *saramaDriver) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = driver.version
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Metadata.Retry.Max = 20
	config.Consumer.MaxWaitTime = 500 * time.Millisecond
	config.Consumer.Return.Errors = true
	driver.cluster.sarama(config)
	return config
}

func (driver *saramaDriver) needs(version sarama.KafkaVersion, what string) error {
	if driver.version.IsAtLeast(version) {
		return nil
	}
	return Unsupported(fmt.Sprintf("sarama as %s has no %s", driver.version, what))
}

func (driver *saramaDriver) produce(_ context.Context, request *Request) (any, error) {
	config := driver.config()
	config.Producer.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[request.Codec]
	acks := map[string]sarama.RequiredAcks{"all": sarama.WaitForAll, "1": sarama.WaitForLocal, "0": sarama.NoResponse}
	config.Producer.RequiredAcks = acks[request.Acks]
	config.Producer.Return.Successes = true
	config.Producer.Return.Errors = true
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Producer.Retry.Max = 100
	config.Producer.MaxMessageBytes = 1000000
	if request.Codec == "zstd" {
		if err := driver.needs(sarama.V2_1_0_0, "zstd"); err != nil {
			return nil, err
		}
	}
	if request.Codec == "lz4" {
		if err := driver.needs(sarama.V0_10_0_0, "lz4"); err != nil {
			return nil, err
		}
	}
	if request.Idempotent {
		if err := driver.needs(sarama.V0_11_0_0, "idempotent producer"); err != nil {
			return nil, err
		}
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewAsyncProducer(driver.cluster.servers, config)
	if err != nil {
		return nil, err
	}
	done := make([][2]int64, len(request.Records))
	finished := make(chan error, 1)
	go func() {
		var failure error
		for range request.Records {
			select {
			case sent := <-producer.Successes():
				done[sent.Metadata.(int)] = [2]int64{int64(sent.Partition), sent.Offset}
			case err := <-producer.Errors():
				failure = err.Err
			}
		}
		finished <- failure
	}()
	for number, record := range request.Records {
		wanted := &sarama.ProducerMessage{Topic: request.Topic, Metadata: number}
		if key := bytesOf(record.Key); key != nil {
			wanted.Key = sarama.ByteEncoder(key)
		}
		if value := record.value(); value != nil {
			wanted.Value = sarama.ByteEncoder(value)
		}
		if record.Timestamp > 0 {
			wanted.Timestamp = time.UnixMilli(record.Timestamp)
		}
		if len(record.Headers) > 0 {
			if err := driver.needs(sarama.V0_11_0_0, "headers"); err != nil {
				return nil, err
			}
		}
		for _, each := range record.Headers {
			wanted.Headers = append(wanted.Headers, sarama.RecordHeader{Key: bytesOf(each[0]), Value: bytesOf(each[1])})
		}
		producer.Input() <- wanted
		time.Sleep(time.Duration(request.PaceMs) * time.Millisecond)
	}
	failure := <-finished
	producer.AsyncClose()
	return done, failure
}

func (driver *saramaDriver) read(_ context.Context, request *Request) (any, error) {
	config := driver.config()
	if request.Committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if request.FetchBytes > 0 {
		config.Consumer.Fetch.Default = request.FetchBytes
		config.Consumer.Fetch.Max = 0
	}
	client, err := sarama.NewClient(driver.cluster.servers, config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	offset := sarama.OffsetOldest
	switch start := request.Start.(type) {
	case float64:
		offset = int64(start)
	case map[string]any:
		if offset, err = client.GetOffset(request.Topic, request.Partition, int64(start["time"].(float64))); err != nil {
			return nil, err
		}
	case string:
		if start == "latest" {
			offset = sarama.OffsetNewest
		}
	}
	partition, err := consumer.ConsumePartition(request.Topic, request.Partition, offset)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	found, deadline := []Shown{}, time.After(time.Duration(request.TimeoutMs)*time.Millisecond)
	for len(found) < request.Count {
		select {
		case record := <-partition.Messages():
			var headers []header
			for _, each := range record.Headers {
				headers = append(headers, header{string(each.Key), each.Value})
			}
			found = append(found, shown(record.Offset, record.Timestamp, record.Key, record.Value, headers))
		case failure := <-partition.Errors():
			return nil, failure.Err
		case <-deadline:
			return found, nil
		}
	}
	return found, nil
}

func (driver *saramaDriver) offsets(_ context.Context, request *Request) (any, error) {
	client, err := sarama.NewClient(driver.cluster.servers, driver.config())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found := []int64{}
	for _, time := range append([]int64{sarama.OffsetOldest, sarama.OffsetNewest}, request.Times...) {
		offset, err := client.GetOffset(request.Topic, request.Partition, time)
		if err != nil {
			return nil, err
		}
		found = append(found, offset)
	}
	return map[string]any{"earliest": found[0], "latest": found[1], "times": found[2:]}, nil
}

// saramaMember is a member of a group and the handler of its sessions.
type saramaMember struct {
	Notes
	group   sarama.ConsumerGroup
	client  sarama.Client
	name    string
	session sarama.ConsumerGroupSession
	failure chan error
	cancel  context.CancelFunc
	ended   chan struct{}
}

func (driver *saramaDriver) join(_ context.Context, request *Request) (any, error) {
	if request.Pattern != "" {
		return nil, Unsupported("sarama has no subscription by pattern")
	}
	if err := driver.needs(sarama.V0_10_2_0, "consumer groups"); err != nil {
		return nil, err
	}
	config := driver.config()
	session := time.Duration(request.SessionMs) * time.Millisecond
	config.Consumer.Group.Session.Timeout = session
	config.Consumer.Group.Heartbeat.Interval = session / 6
	config.Consumer.Group.Rebalance.Timeout = session
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Retry.Max = 0
	config.Metadata.RefreshFrequency = 500 * time.Millisecond
	if request.Client != "" {
		config.ClientID = request.Client
	}
	strategies := map[string]sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(),
		"sticky": sarama.NewBalanceStrategySticky(), "cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky(),
	}
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[request.Assignor]}
	if request.Instance != nil {
		if err := driver.needs(sarama.V2_3_0_0, "static members"); err != nil {
			return nil, err
		}
		config.Consumer.Group.InstanceId = *request.Instance
	}
	client, err := sarama.NewClient(driver.cluster.servers, config)
	if err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroupFromClient(request.Group, client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	member := &saramaMember{
		group: group, client: client, name: request.Group, cancel: cancel,
		failure: make(chan error, 100), ended: make(chan struct{}),
	}
	driver.members[request.Member] = member
	go func() {
		for failure := range group.Errors() {
			member.Notes.failed(failure)
			select {
			case member.failure <- failure:
			default:
			}
		}
	}()
	go func() {
		defer close(member.ended)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, request.Topics, member); err != nil && ctx.Err() == nil {
				member.Notes.failed(err)
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil, nil
}

// Setup is called at the start of a session.
func (member *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	member.assigned(nil)
	member.mutex.Lock()
	member.session = session
	member.mutex.Unlock()
	return nil
}

// Cleanup is called at the end of a session.
func (member *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	member.mutex.Lock()
	defer member.mutex.Unlock()
	member.session = nil
	return nil
}

// ConsumeClaim reads one partition until it is taken away.
func (member *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, open := <-claim.Messages():
			if !open {
				return nil
			}
			member.Notes.read(record.Topic, record.Partition, record.Offset, record.Value)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (driver *saramaDriver) state(_ context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	state := member.Notes.state()
	member.mutex.Lock()
	defer member.mutex.Unlock()
	if member.session != nil {
		for topic, partitions := range member.session.Claims() {
			for _, partition := range partitions {
				state.Assignment = append(state.Assignment, [2]any{topic, partition})
			}
		}
	}
	sort.Slice(state.Assignment, func(a, b int) bool {
		return fmt.Sprint(state.Assignment[a]) < fmt.Sprint(state.Assignment[b])
	})
	return state, nil
}

func (driver *saramaDriver) commit(_ context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	member.mutex.Lock()
	session := member.session
	member.mutex.Unlock()
	if session == nil {
		return nil, Refused("NO_SESSION")
	}
	for len(member.failure) > 0 {
		<-member.failure
	}
	wanted := rows(request.Offsets)
	for _, row := range wanted {
		// the first only goes back, the second only goes on
		session.ResetOffset(row.topic, row.partition, row.offset, row.metadata)
		session.MarkOffset(row.topic, row.partition, row.offset, row.metadata)
	}
	session.Commit()
	select {
	case failure := <-member.failure:
		if saramaName(failure) == nil { // of the connection, to the coordinator or to a leader: to be tried again
			fmt.Fprintf(os.Stderr, "commit: %v\n", failure)
			return nil, Refused("NO_CONNECTION")
		}
		return nil, failure
	case <-time.After(300 * time.Millisecond):
		return nil, driver.confirm(member, wanted)
	}
}

// confirm asks for the offsets, because sarama says nothing of a commit that its next one will repeat.
func (driver *saramaDriver) confirm(member *saramaMember, wanted []Row) error {
	found, err := driver.fetched(member, wanted)
	if err != nil {
		fmt.Fprintf(os.Stderr, "commit: %v\n", err)
		_ = member.client.RefreshCoordinator(member.name)
		return Refused("NO_CONNECTION")
	}
	for number, row := range wanted {
		if found[number][2] != row.offset {
			return Refused("NOT_CONFIRMED")
		}
	}
	return nil
}

func (driver *saramaDriver) committed(_ context.Context, request *Request) (any, error) {
	return driver.fetched(driver.members[request.Member], rows(pairs(request)))
}

func (driver *saramaDriver) fetched(member *saramaMember, wanted []Row) ([][4]any, error) {
	coordinator, err := member.client.Coordinator(member.name)
	if err != nil {
		return nil, err
	}
	partitions := map[string][]int32{}
	for _, row := range wanted {
		partitions[row.topic] = append(partitions[row.topic], row.partition)
	}
	found, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(driver.version, member.name, partitions))
	if err != nil {
		return nil, err
	}
	answer := [][4]any{}
	for _, row := range wanted {
		block := found.GetBlock(row.topic, row.partition)
		if block == nil {
			return nil, fmt.Errorf("the answer lacks %s-%d: %v", row.topic, row.partition, found.Err)
		}
		if block.Err != sarama.ErrNoError {
			return nil, block.Err
		}
		answer = append(answer, [4]any{row.topic, row.partition, block.Offset, block.Metadata})
	}
	return answer, nil
}

func (driver *saramaDriver) leave(_ context.Context, request *Request) (any, error) {
	member := driver.members[request.Member]
	delete(driver.members, request.Member)
	member.cancel()
	<-member.ended
	return nil, errors.Join(member.group.Close(), member.client.Close())
}

func (driver *saramaDriver) admin(ask func(sarama.ClusterAdmin) (any, error)) (any, error) {
	if err := driver.needs(sarama.V0_10_2_0, "admin client"); err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdmin(driver.cluster.servers, driver.config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	return ask(admin)
}

func (driver *saramaDriver) createTopic(_ context.Context, request *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		configs := map[string]*string{}
		for name, value := range request.Configs {
			configs[name] = &value
		}
		return nil, admin.CreateTopic(request.Topic, &sarama.TopicDetail{
			NumPartitions: int32(request.Partitions.(float64)), ReplicationFactor: request.Replicas, ConfigEntries: configs,
		}, false)
	})
}

func (driver *saramaDriver) deleteTopic(_ context.Context, request *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) { return nil, admin.DeleteTopic(request.Topic) })
}

func (driver *saramaDriver) addPartitions(_ context.Context, request *Request) (any, error) {
	if err := driver.needs(sarama.V1_0_0_0, "CreatePartitions"); err != nil {
		return nil, err
	}
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		return nil, admin.CreatePartitions(request.Topic, int32(request.Total), nil, false)
	})
}

func (driver *saramaDriver) topics(context.Context, *Request) (any, error) {
	client, err := sarama.NewClient(driver.cluster.servers, driver.config())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	names, err := client.Topics()
	counts := map[string]int{}
	for _, name := range names {
		partitions, failure := client.Partitions(name)
		err = errors.Join(err, failure)
		counts[name] = len(partitions)
	}
	return counts, err
}

func (driver *saramaDriver) configs(_ context.Context, request *Request) (any, error) {
	if err := driver.needs(sarama.V0_11_0_0, "DescribeConfigs"); err != nil {
		return nil, err
	}
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		resource := []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: request.Topic}}
		found, err := admin.DescribeConfigs(resource, sarama.DescribeConfigsOptions{})
		values := map[string]string{}
		for _, each := range found {
			for _, entry := range each.Configs {
				values[entry.Name] = entry.Value
			}
		}
		return values, err
	})
}

func (driver *saramaDriver) setConfig(_ context.Context, request *Request) (any, error) {
	if err := driver.needs(sarama.V0_11_0_0, "AlterConfigs"); err != nil {
		return nil, err
	}
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		if !driver.version.IsAtLeast(sarama.V2_3_0_0) {
			values := map[string]*string{request.Name: &request.Value}
			return nil, admin.AlterConfig(sarama.TopicResource, request.Topic, values, false)
		}
		entry := sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &request.Value,
		}
		entries := map[string]sarama.IncrementalAlterConfigsEntry{request.Name: entry}
		return nil, admin.IncrementalAlterConfig(sarama.TopicResource, request.Topic, entries, false)
	})
}

func (driver *saramaDriver) deleteRecords(_ context.Context, request *Request) (any, error) {
	if err := driver.needs(sarama.V0_11_0_0, "DeleteRecords"); err != nil {
		return nil, err
	}
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		// sarama does not hand on the low watermark of the answer
		return request.Offset, admin.DeleteRecords(request.Topic, map[int32]int64{request.Partition: request.Offset})
	})
}

func (driver *saramaDriver) described(context.Context, *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		brokers, controller, err := admin.DescribeCluster()
		ids := []int32{}
		for _, broker := range brokers {
			ids = append(ids, broker.ID())
		}
		sort.Slice(ids, func(a, b int) bool { return ids[a] < ids[b] })
		return map[string]any{"id": nil, "controller": controller, "brokers": ids}, err
	})
}

func (driver *saramaDriver) groups(context.Context, *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		found, err := admin.ListConsumerGroups()
		names := []string{}
		for name := range found {
			names = append(names, name)
		}
		sort.Strings(names)
		return names, err
	})
}

func (driver *saramaDriver) describeGroup(_ context.Context, request *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		found, err := admin.DescribeConsumerGroups([]string{request.Group})
		if err != nil {
			return nil, err
		}
		members := []map[string]any{}
		for _, member := range found[0].Members {
			assignment := [][2]any{}
			if parsed, err := member.GetMemberAssignment(); err == nil && parsed != nil {
				for topic, partitions := range parsed.Topics {
					for _, partition := range partitions {
						assignment = append(assignment, [2]any{topic, partition})
					}
				}
			}
			members = append(members, map[string]any{
				"client": member.ClientId, "host": member.ClientHost, "instance": member.GroupInstanceId,
				"assignment": assignment,
			})
		}
		answer := map[string]any{"state": found[0].State, "assignor": found[0].Protocol, "members": members}
		if found[0].Err != sarama.ErrNoError {
			return nil, found[0].Err
		}
		return answer, nil
	})
}

func (driver *saramaDriver) deleteGroup(_ context.Context, request *Request) (any, error) {
	if err := driver.needs(sarama.V1_1_0_0, "DeleteGroups"); err != nil {
		return nil, err
	}
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		return nil, admin.DeleteConsumerGroup(request.Group)
	})
}

func (driver *saramaDriver) groupOffsets(_ context.Context, request *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		found, err := admin.ListConsumerGroupOffsets(request.Group, nil)
		if err != nil {
			return nil, err
		}
		answer := [][3]any{}
		for topic, partitions := range found.Blocks {
			for partition, block := range partitions {
				answer = append(answer, [3]any{topic, partition, block.Offset})
			}
		}
		sort.Slice(answer, func(a, b int) bool { return fmt.Sprint(answer[a]) < fmt.Sprint(answer[b]) })
		return answer, nil
	})
}

func (driver *saramaDriver) setGroupOffsets(_ context.Context, request *Request) (any, error) {
	return driver.admin(func(admin sarama.ClusterAdmin) (any, error) {
		wanted := map[string]map[int32]sarama.OffsetAndMetadata{}
		for _, row := range rows(request.Offsets) {
			if wanted[row.topic] == nil {
				wanted[row.topic] = map[int32]sarama.OffsetAndMetadata{}
			}
			wanted[row.topic][row.partition] = sarama.OffsetAndMetadata{Offset: row.offset, LeaderEpoch: -1}
		}
		found, err := admin.AlterConsumerGroupOffsets(request.Group, wanted, nil)
		if err != nil {
			return nil, err
		}
		for _, partitions := range found.Errors {
			for _, failure := range partitions {
				if failure != sarama.ErrNoError {
					return nil, failure
				}
			}
		}
		return nil, nil
	})
}
