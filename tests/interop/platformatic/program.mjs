/**
 * Four idempotent producers write at the same time, and a consumer in a group reads what they wrote.
 *   node program.mjs SERVERS TOPIC GROUP RECORDS    (of each producer)
 * Prints {"read": [values]} when it has read as many records as were acknowledged, or none came for 15 seconds.
 */
import { Consumer, MessagesStreamModes, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const [servers, topic, groupId, records] = process.argv.slice(2)
const bootstrapBrokers = servers.split(',')
const count = Number(records)
const PRODUCERS = 4
const PATIENCE_MS = 15_000

async function write (number) {
  const producer = new Producer({
    clientId: `producer-${number}`,
    bootstrapBrokers,
    serializers: stringSerializers,
    idempotent: true
  })
  for (let nth = 0; nth < count; nth++) {
    await producer.send({ messages: [{ topic, partition: 0, value: `${number}-${nth}` }] })
  }
  await producer.close()
}

async function read (wanted) {
  const consumer = new Consumer({ clientId: 'consumer', groupId, bootstrapBrokers, deserializers: stringDeserializers })
  const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false })
  const values = []
  let waiting = setTimeout(() => stream.close(), PATIENCE_MS)
  for await (const message of stream) {
    clearTimeout(waiting)
    values.push(message.value)
    if (values.length >= wanted) break
    waiting = setTimeout(() => stream.close(), PATIENCE_MS)
  }
  await consumer.close(true)
  return values
}

await Promise.all(Array.from({ length: PRODUCERS }, (_, number) => write(number)))
console.log(JSON.stringify({ read: await read(PRODUCERS * count) }))
process.exit(0)
