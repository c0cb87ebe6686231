// Drivers of Go's clients: franz-go, sarama and kafka-go. A request a line from standard input, an answer a line
// to standard output (tests/interop/driver.py has the format).
//
//	go-driver franz BOOTSTRAP_SERVERS
//	go-driver sarama 3.6.0 BOOTSTRAP_SERVERS     the release of Kafka that sarama is to speak to
//	go-driver kafka-go BOOTSTRAP_SERVERS
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

const timeout = 20 * time.Second

// Unsupported is the answer of a client that has no such function; its text is the reason for the table.
type Unsupported string

func (reason Unsupported) Error() string { return string(reason) }

// Refused is an error of the client's own, by the name that the runner knows it by.
type Refused string

func (name Refused) Error() string { return string(name) }

// Request has the fields of every command.
type Request struct {
	Do         string            `json:"do"`
	Topic      string            `json:"topic"`
	Topics     []string          `json:"topics"`
	Pattern    string            `json:"pattern"`
	Partition  int32             `json:"partition"`
	Partitions any               `json:"partitions"`
	Records    []Sent            `json:"records"`
	Acks       string            `json:"acks"`
	Codec      string            `json:"codec"`
	Idempotent bool              `json:"idempotent"`
	PaceMs     int               `json:"pace_ms"`
	Start      any               `json:"start"`
	Count      int               `json:"count"`
	TimeoutMs  int               `json:"timeout_ms"`
	FetchBytes int32             `json:"fetch_bytes"`
	Reset      string            `json:"reset"`
	Times      []int64           `json:"times"`
	Member     string            `json:"member"`
	Group      string            `json:"group"`
	Assignor   string            `json:"assignor"`
	Instance   *string           `json:"instance"`
	SessionMs  int               `json:"session_ms"`
	Client     string            `json:"client"`
	Offsets    [][]any           `json:"offsets"`
	Replicas   int16             `json:"replicas"`
	Configs    map[string]string `json:"configs"`
	Total      int               `json:"total"`
	Name       string            `json:"name"`
	Value      string            `json:"value"`
	Offset     int64             `json:"offset"`
	Committed  bool              `json:"committed"`
	Producer   string            `json:"producer"`
	ID         string            `json:"transactional_id"`
	Commit     bool              `json:"commit"`
	Servers    string            `json:"servers"`
	Security   *Security         `json:"security"`
}

// Sent is a record of a request.
type Sent struct {
	Key       *string     `json:"key"`
	Value     *string     `json:"value"`
	Size      int         `json:"size"`
	Headers   [][]*string `json:"headers"`
	Timestamp int64       `json:"timestamp"`
	Partition *int32      `json:"partition"`
}

func (record Sent) value() []byte {
	if record.Size > 0 {
		return []byte(strings.Repeat("v", record.Size))
	}
	return bytesOf(record.Value)
}

func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// Shown is a record of an answer.
type Shown struct {
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       *string  `json:"key"`
	Value     *string  `json:"value"`
	Size      int      `json:"size"`
	Headers   [][2]any `json:"headers"`
}

type header struct {
	key   string
	value []byte
}

func shown(offset int64, at time.Time, key, value []byte, headers []header) Shown {
	record := Shown{Offset: offset, Timestamp: at.UnixMilli(), Key: textOf(key), Size: -1, Headers: [][2]any{}}
	if value != nil {
		record.Size = len(value)
		if len(value) <= 1000 {
			record.Value = textOf(value)
		}
	}
	for _, each := range headers {
		record.Headers = append(record.Headers, [2]any{each.key, textOf(each.value)})
	}
	return record
}

func textOf(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// Read is a record that a member of a group was given: topic, partition, offset, value.
type Read [4]any

// State is what a member of a group answers about itself.
type State struct {
	Assignment [][2]any `json:"assignment"`
	Records    []Read   `json:"records"`
	Errors     []string `json:"errors"`
	Rebalances int      `json:"rebalances"`
}

// Notes are what the goroutines of a member write down about it.
type Notes struct {
	mutex      sync.Mutex
	records    []Read
	errors     []string
	rebalances int
	owned      map[[2]any]bool
}

func (notes *Notes) read(topic string, partition int32, offset int64, value []byte) {
	notes.mutex.Lock()
	defer notes.mutex.Unlock()
	notes.records = append(notes.records, Read{topic, partition, offset, string(value)})
}

func (notes *Notes) failed(err error) {
	notes.mutex.Lock()
	defer notes.mutex.Unlock()
	notes.errors = append(notes.errors, err.Error())
}

func (notes *Notes) assigned(partitions map[string][]int32) {
	notes.mutex.Lock()
	defer notes.mutex.Unlock()
	notes.rebalances++
	if notes.owned == nil {
		notes.owned = map[[2]any]bool{}
	}
	for topic, each := range partitions {
		for _, partition := range each {
			notes.owned[[2]any{topic, partition}] = true
		}
	}
}

func (notes *Notes) revoked(partitions map[string][]int32) {
	notes.mutex.Lock()
	defer notes.mutex.Unlock()
	for topic, each := range partitions {
		for _, partition := range each {
			delete(notes.owned, [2]any{topic, partition})
		}
	}
}

func (notes *Notes) state() State {
	notes.mutex.Lock()
	defer notes.mutex.Unlock()
	assignment := [][2]any{}
	for each := range notes.owned {
		assignment = append(assignment, each)
	}
	sort.Slice(assignment, func(a, b int) bool { return fmt.Sprint(assignment[a]) < fmt.Sprint(assignment[b]) })
	return State{
		Assignment: assignment,
		Records:    append([]Read{}, notes.records...),
		Errors:     append([]string{}, notes.errors...),
		Rebalances: notes.rebalances,
	}
}

// Command carries out one request.
type Command func(ctx context.Context, request *Request) (any, error)

func main() {
	arguments := os.Args[1:]
	cluster := &Cluster{servers: strings.Split(arguments[len(arguments)-1], ",")}
	var commands, transactions map[string]Command
	var named func(error) any // an error's number or name in Kafka's table; nil for any other error
	switch arguments[0] {
	case "franz":
		commands, named = franzCommands(cluster), franzName
		transactions = franzTransactions(cluster)
	case "sarama":
		commands, named = saramaCommands(arguments[1], cluster), saramaName
		transactions = saramaTransactions(arguments[1], cluster)
	case "kafka-go":
		commands, named = kafkaGoCommands(cluster), kafkaGoName
		transactions = map[string]Command{"txn_init": func(context.Context, *Request) (any, error) {
			return nil, Unsupported("kafka-go has no transactions")
		}}
	default:
		fmt.Fprintf(os.Stderr, "no such client: %s\n", arguments[0])
		os.Exit(2)
	}
	maps.Copy(commands, transactions)
	commands["connect"] = cluster.connect
	requests := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return
		}
		answer, _ := json.Marshal(carryOut(line, commands, named))
		fmt.Printf("%s\n", answer)
	}
}

func carryOut(line []byte, commands map[string]Command, named func(error) any) map[string]any {
	request := &Request{Replicas: 3, Acks: "all", Codec: "none", Assignor: "range", SessionMs: 6000, TimeoutMs: 10000}
	if err := json.Unmarshal(line, request); err != nil {
		return map[string]any{"broken": "bad request: " + err.Error()}
	}
	command, there := commands[request.Do]
	if !there {
		return map[string]any{"broken": "no such command: " + request.Do}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*timeout)
	defer cancel()
	result, err := command(ctx, request)
	var reason Unsupported
	var own Refused
	var stranger *tls.CertificateVerificationError
	switch {
	case err == nil:
		return map[string]any{"ok": result}
	case errors.As(err, &reason):
		return map[string]any{"unsupported": string(reason)}
	case errors.As(err, &own):
		return map[string]any{"error": string(own), "message": err.Error()}
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", request.Do, err)
	if name := named(err); name != nil {
		return map[string]any{"error": name, "message": err.Error()}
	}
	if errors.As(err, &stranger) {
		return map[string]any{"error": "UNKNOWN_AUTHORITY", "message": err.Error()}
	}
	return map[string]any{"broken": fmt.Sprintf("%T: %v", err, err)}
}

// Row is [topic, partition, offset, metadata] of a request; what is absent is zero.
type Row struct {
	topic     string
	partition int32
	offset    int64
	metadata  string
}

func rows(offsets [][]any) (parsed []Row) {
	for _, row := range offsets {
		var one Row
		one.topic, one.partition = row[0].(string), int32(row[1].(float64))
		if len(row) > 2 {
			one.offset = int64(row[2].(float64))
		}
		if len(row) > 3 {
			one.metadata = row[3].(string)
		}
		parsed = append(parsed, one)
	}
	return parsed
}

// pairs reads the [topic, partition] rows of a request.
func pairs(request *Request) [][]any {
	var found [][]any
	list, _ := request.Partitions.([]any)
	for _, row := range list {
		found = append(found, row.([]any))
	}
	return found
}
