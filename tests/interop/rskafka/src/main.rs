//! rskafka: writes values into a partition in batches, reads them back, and prints each value in a line.
//!
//!     program SERVERS TOPIC COUNT

use std::collections::BTreeMap;

use chrono::{TimeZone, Utc};
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

const BATCH: usize = 100;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let servers = arguments[1].split(',').map(str::to_owned).collect();
    let (topic, count) = (arguments[2].as_str(), arguments[3].parse::<usize>()?);
    let client = ClientBuilder::new(servers).build().await?;
    let partition = client.partition_client(topic, 0, UnknownTopicHandling::Retry).await?;

    for first in (0..count).step_by(BATCH) {
        let records = (first..count.min(first + BATCH)).map(record).collect();
        partition.produce(records, Compression::NoCompression).await?;
    }
    let (mut offset, mut read) = (0, 0);
    while read < count {
        let (found, _) = partition.fetch_records(offset, 1..1_000_000, 1_000).await?;
        for one in found {
            println!("{}", String::from_utf8(one.record.value.unwrap_or_default())?);
            offset = one.offset + 1;
            read += 1;
        }
    }
    Ok(())
}

fn record(number: usize) -> Record {
    Record {
        key: Some(format!("key-{number}").into_bytes()),
        value: Some(format!("value-{number}").into_bytes()),
        headers: BTreeMap::from([("number".to_owned(), number.to_string().into_bytes())]),
        timestamp: Utc.timestamp_millis_opt(1_700_000_000_000 + number as i64).unwrap(),
    }
}
