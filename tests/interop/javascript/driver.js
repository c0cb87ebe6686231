/**
 * Driver of kafkajs: a request a line from standard input, an answer a line to standard output
 * (tests/interop/driver.py has the format). kafkajs reads in groups only, so `read` has a group of its own.
 */
'use strict'

const fs = require('node:fs')
const readline = require('node:readline')
const kafkajs = require('kafkajs')
const lz4 = require('lz4js')
const { ZstdCodec } = require('zstd-codec')

const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, Partitioners, PartitionAssigners } = kafkajs
const SHOWN_BYTES = 1000

class Unsupported extends Error {}

const zstd = new Promise(resolve => ZstdCodec.run(binding => resolve(new binding.Streaming())))
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => Buffer.from(lz4.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer)),
})

const options = {
  clientId: 'interop',
  brokers: process.argv[2].split(','),
  retry: { initialRetryTime: 50, maxRetryTime: 1000, retries: 10 },
  logLevel: kafkajs.logLevel.WARN,
  logCreator: () => ({ namespace, label, log }) => console.error(label, namespace, log.message, log.error || ''),
}
let kafka = new Kafka(options)
let admin = kafka.admin()
let connected = null
const members = new Map()

function connect({ servers, security }) {
  const { protocol, mechanism, user: username, password, ca, certificate } = security
  const pem = certificate ? fs.readFileSync(certificate) : undefined
  const store = pem ? { key: pem, cert: pem } : {}
  options.brokers = servers.split(',')
  options.ssl = { ca: fs.readFileSync(ca), ...store }
  options.sasl = protocol === 'SASL_SSL' ? { mechanism: mechanism.toLowerCase(), username, password } : undefined
  kafka = new Kafka(options)
  admin = kafka.admin()
  connected = null
}

/** The admin client, connected when it is first needed. */
async function administer() {
  if (connected === null) connected = admin.connect()
  return connected
}
let readers = 0

const textOf = bytes => (bytes === null || bytes === undefined ? null : bytes.toString())

function headersOf(record) {
  const headers = {}
  for (const [name, value] of record.headers || []) {
    headers[name] = name in headers ? [].concat(headers[name], value) : value
  }
  return headers
}

function shown(message) {
  const headers = []
  for (const [name, values] of Object.entries(message.headers || {})) {
    for (const value of Array.isArray(values) ? values : [values]) headers.push([name, textOf(value)])
  }
  const value = message.value
  return {
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: textOf(message.key),
    value: value === null || value.length > SHOWN_BYTES ? null : textOf(value),
    size: value === null ? -1 : value.length,
    headers,
  }
}

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

async function produce({ topic, records, acks = 'all', codec = 'none', idempotent = false, pace_ms: pace = 0 }) {
  const producer = kafka.producer({
    idempotent,
    maxInFlightRequests: idempotent ? 1 : undefined,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  try {
    if (records.some(record => (record.headers || []).some(([, value]) => value === null))) {
      throw new Unsupported('kafkajs sends no header without a value')
    }
    const messages = records.map(record => ({
      key: record.key === undefined ? null : record.key,
      value: record.size ? 'v'.repeat(record.size) : record.value === undefined ? null : record.value,
      headers: headersOf(record),
      partition: record.partition,
      timestamp: record.timestamp === undefined ? undefined : String(record.timestamp),
    }))
    const done = []
    for (const batch of pace ? messages.map(message => [message]) : [messages]) {
      const options = { topic, acks: acks === 'all' ? -1 : Number(acks), compression: codecs[codec], messages: batch }
      const answers = await producer.send(options)
      const base = acks === '0' ? { partition: -1, baseOffset: -1 } : answers[0]
      batch.forEach((_, index) => done.push([base.partition, Number(base.baseOffset) + index]))
      if (pace) await pause(pace)
    }
    return done
  } finally {
    await producer.disconnect()
  }
}

async function startOf(topic, partition, start) {
  if (typeof start === 'number') return start
  const wanted = typeof start === 'object' ? await admin.fetchTopicOffsetsByTimestamp(topic, start.time) : null
  const found = (wanted || (await admin.fetchTopicOffsets(topic))).find(each => each.partition === partition)
  if (wanted) return Number(found.offset)
  return Number(start === 'earliest' ? found.low : found.high)
}

async function read({ topic, partition, start, count, timeout_ms: timeout = 10000, fetch_bytes: bytes, reset, committed = false }) {
  await administer()
  const offset = await startOf(topic, partition, start)
  const consumer = kafka.consumer({
    groupId: `reader-${process.pid}-${readers++}`,
    maxWaitTimeInMs: 500,
    readUncommitted: !committed,
    ...(bytes ? { maxBytesPerPartition: bytes, maxBytes: bytes } : {}),
  })
  const found = []
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [topic], fromBeginning: reset === 'earliest' })
    await new Promise((resolve, reject) => {
      setTimeout(resolve, timeout)
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      consumer
        .run({
          autoCommit: false,
          eachMessage: async ({ partition: from, message }) => {
            if (from === partition && Number(message.offset) >= offset && found.length < count) {
              found.push(shown(message))
            } else if (from === partition && found.length < count && reset) {
              found.push(shown(message))
            }
            if (found.length >= count) resolve()
          },
        })
        .catch(reject)
      consumer.seek({ topic, partition, offset: String(offset) })
    })
    return found
  } finally {
    await consumer.disconnect()
  }
}

async function offsets({ topic, partition, times = [] }) {
  await administer()
  const found = []
  for (const time of times) found.push(await startOf(topic, partition, { time }))
  return {
    earliest: await startOf(topic, partition, 'earliest'),
    latest: await startOf(topic, partition, 'latest'),
    times: found,
  }
}

// Transactions

const producers = new Map()

/** kafkajs asks for its producer id with the first transaction; one without a partition sends nothing else. */
async function txnInit({ producer, transactional_id: transactionalId, timeout_ms: timeout = 60000 }) {
  const one = kafka.producer({
    transactionalId,
    transactionTimeout: timeout,
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  producers.set(producer, { producer: one })
  await one.connect()
  await (await one.transaction()).abort()
}

async function txnBegin({ producer }) {
  const one = producers.get(producer)
  one.transaction = await one.producer.transaction()
}

async function txnSend({ producer, topic, records }) {
  const done = []
  for (const { value, partition } of records) {
    const [answer] = await producers.get(producer).transaction.send({ topic, messages: [{ value, partition }] })
    done.push([answer.partition, Number(answer.baseOffset)])
  }
  return done
}

async function txnOffsets({ producer, group, offsets: wanted }) {
  const topics = wanted.map(([topic, partition, offset]) => ({ topic, partitions: [{ partition, offset: String(offset) }] }))
  await producers.get(producer).transaction.sendOffsets({ consumerGroupId: group, topics })
}

async function txnEnd({ producer, commit: commits }) {
  const { transaction } = producers.get(producer)
  await (commits ? transaction.commit() : transaction.abort())
}

async function txnClose({ producer }) {
  await producers.get(producer).producer.disconnect()
  producers.delete(producer)
}

// Groups

async function join({ member, group, topics, pattern, assignor, instance, session_ms: session = 6000, client }) {
  if (assignor && assignor !== 'roundrobin') throw new Unsupported(`kafkajs has no ${assignor} assignor`)
  if (instance) throw new Unsupported('kafkajs has no static members')
  const one = { records: [], errors: [], rebalances: 0, assignment: [], group }
  const origin = client ? new Kafka({ ...options, logLevel: kafkajs.logLevel.NOTHING, clientId: client }) : kafka
  one.consumer = origin.consumer({
    groupId: group,
    sessionTimeout: session,
    heartbeatInterval: Math.floor(session / 6),
    rebalanceTimeout: session,
    metadataMaxAge: 500,
    maxWaitTimeInMs: 500,
    partitionAssigners: [PartitionAssigners.roundRobin],
  })
  const { GROUP_JOIN, REBALANCING, CRASH } = one.consumer.events
  one.consumer.on(GROUP_JOIN, ({ payload }) => {
    one.rebalances++
    one.assignment = []
    for (const [topic, partitions] of Object.entries(payload.memberAssignment)) {
      for (const partition of partitions) one.assignment.push([topic, partition])
    }
    one.assignment.sort()
  })
  one.consumer.on(REBALANCING, () => {
    one.assignment = []
  })
  one.consumer.on(CRASH, ({ payload }) => one.errors.push(`${payload.error.type || payload.error.name}: ${payload.error.message}`))
  members.set(member, one)
  await one.consumer.connect()
  await one.consumer.subscribe({ topics: pattern ? [new RegExp(pattern)] : topics, fromBeginning: true })
  // not awaited: it returns when the member has joined
  one.consumer
    .run({
      autoCommit: false,
      partitionsConsumedConcurrently: 8,
      eachMessage: async ({ topic, partition, message }) => {
        one.records.push([topic, partition, Number(message.offset), textOf(message.value) || ''])
      },
    })
    .catch(error => one.errors.push(String(error)))
  return null
}

function state({ member }) {
  const { records, errors, rebalances, assignment } = members.get(member)
  return { records, errors, rebalances, assignment }
}

/** While it restarts after a crash kafkajs takes commits and drops them without a word: no event tells of those. */
async function commit({ member, offsets: wanted }) {
  const { consumer } = members.get(member)
  let committed = false
  const stop = consumer.on(consumer.events.COMMIT_OFFSETS, () => {
    committed = true
  })
  try {
    await consumer.commitOffsets(
      wanted.map(([topic, partition, offset, metadata]) => ({ topic, partition, offset: String(offset), metadata }))
    )
  } finally {
    stop()
  }
  if (!committed) throw new kafkajs.KafkaJSNonRetriableError('kafkajs has dropped the commit')
  return null
}

async function committed({ member, partitions }) {
  await administer()
  const topics = [...new Set(partitions.map(([topic]) => topic))]
  const found = await admin.fetchOffsets({ groupId: members.get(member).group, topics })
  return partitions.map(([topic, partition]) => {
    const one = found.find(each => each.topic === topic).partitions.find(each => each.partition === partition)
    return [topic, partition, Number(one.offset), one.metadata || '']
  })
}

async function leave({ member }) {
  await members.get(member).consumer.disconnect()
  members.delete(member)
  return null
}

// Administration

async function createTopic({ topic, partitions, replicas = 3, configs = {} }) {
  const entries = Object.entries(configs || {}).map(([name, value]) => ({ name, value }))
  const wanted = { topic, numPartitions: partitions, replicationFactor: replicas, configEntries: entries }
  if (!(await admin.createTopics({ topics: [wanted] }))) {
    throw new kafkajs.KafkaJSProtocolError({ type: 'TOPIC_ALREADY_EXISTS', message: 'createTopics answers false' })
  }
  return null
}

async function topics() {
  const found = await admin.fetchTopicMetadata()
  return Object.fromEntries(found.topics.map(each => [each.name, each.partitions.length]))
}

async function configs({ topic }) {
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const found = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
  return Object.fromEntries(found.resources[0].configEntries.map(each => [each.configName, each.configValue]))
}

async function setConfig({ topic, name, value }) {
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name, value }] }
  await admin.alterConfigs({ validateOnly: false, resources: [resource] })
  return null
}

async function deleteRecords({ topic, partition, offset }) {
  await admin.fetchTopicOffsets(topic) // without which it knows no leader
  await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
  return startOf(topic, partition, 'earliest') // kafkajs does not hand on the low watermark
}

async function cluster() {
  const found = await admin.describeCluster()
  return { id: found.clusterId, controller: found.controller, brokers: found.brokers.map(each => each.nodeId).sort() }
}

async function describeGroup({ group }) {
  const [found] = (await admin.describeGroups([group])).groups
  return {
    state: found.state,
    assignor: found.protocol,
    members: found.members.map(one => {
      const assigned = one.memberAssignment.length ? kafkajs.AssignerProtocol.MemberAssignment.decode(one.memberAssignment) : null
      const assignment = []
      for (const [topic, partitions] of Object.entries(assigned ? assigned.assignment : {})) {
        for (const partition of partitions) assignment.push([topic, partition])
      }
      return { client: one.clientId, host: one.clientHost, instance: null, assignment: assignment.sort() }
    }),
  }
}

async function deleteGroup({ group }) {
  try {
    await admin.deleteGroups([group])
  } catch (error) {
    throw error.groups ? error.groups[0].error : error
  }
  return null
}

async function groupOffsets({ group }) {
  const found = await admin.fetchOffsets({ groupId: group })
  return found
    .flatMap(({ topic, partitions }) => partitions.map(each => [topic, each.partition, Number(each.offset)]))
    .sort()
}

async function setGroupOffsets({ group, offsets: wanted }) {
  for (const [topic, partition, offset] of wanted) {
    await admin.setOffsets({ groupId: group, topic, partitions: [{ partition, offset: String(offset) }] })
  }
  return null
}

const commands = {
  hello: () => `kafkajs ${require('kafkajs/package.json').version}`,
  connect,
  produce,
  read,
  offsets,
  txn_init: txnInit,
  txn_begin: txnBegin,
  txn_send: txnSend,
  txn_offsets: txnOffsets,
  txn_end: txnEnd,
  txn_close: txnClose,
  join,
  state,
  commit,
  committed,
  leave,
  create_topic: createTopic,
  delete_topic: async ({ topic }) => (await admin.deleteTopics({ topics: [topic] }), null),
  add_partitions: async ({ topic, total }) =>
    (await admin.createPartitions({ topicPartitions: [{ topic, count: total }] }), null),
  topics,
  configs,
  set_config: setConfig,
  delete_records: deleteRecords,
  cluster,
  groups: async () => (await admin.listGroups()).groups.map(each => each.groupId).sort(),
  describe_group: describeGroup,
  delete_group: deleteGroup,
  group_offsets: groupOffsets,
  set_group_offsets: setGroupOffsets,
}

function nameOf(error) {
  const cause = error.type ? error : error.cause || error.originalError || error
  return cause.type || (cause.errors && cause.errors[0] && cause.errors[0].type) || cause.name || 'Error'
}

async function answer(line) {
  const { do: name, ...request } = JSON.parse(line)
  try {
    if (!(name in commands)) return { broken: `no such command: ${name}` }
    if (name !== 'connect') await administer()
    const result = await commands[name](request)
    return { ok: result === undefined ? null : result }
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message }
    console.error(error)
    const family = [kafkajs.KafkaJSError, kafkajs.KafkaJSAggregateError]
    if (!family.some(one => error instanceof one)) return { broken: String(error) }
    return { error: nameOf(error), message: String(error.message) }
  }
}

async function main() {
  process.on('unhandledRejection', error => console.error('unhandled', error))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(line)) + '\n')
  }
  process.exit(0) // a member that is still polling ends with the runner
}

main()
