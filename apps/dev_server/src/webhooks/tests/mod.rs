//! The connector and the worker, on the real engine and the real queue, with functions that the tests control.

mod delivering;
mod dropped;
#[path = "../../../../../tests/api/support/dropping.rs"]
mod dropping;
mod reading;

use super::*;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use shared::app::system_clock;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const TABLE: &str = "test";
/// Long enough for everything, on a busy machine.
const LONG: Duration = Duration::from_secs(30);

type Respond<E, R> = Box<dyn Fn(E) -> BoxFuture<'static, R> + Send + Sync>;

struct Function<E, R> {
    events: Mutex<Vec<E>>,
    respond: Respond<E, R>,
}

impl<E: Clone, R> Function<E, R> {
    fn new(respond: impl Fn(E) -> BoxFuture<'static, R> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { events: Mutex::default(), respond: Box::new(respond) })
    }

    fn events(&self) -> Vec<E> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn invoke(&self, event: E) -> BoxFuture<'static, R> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
        (self.respond)(event)
    }
}

impl StreamHandler for Function<Event, DynamoDbEventResponse> {
    fn handle(&self, event: Event) -> BoxFuture<'_, DynamoDbEventResponse> {
        self.invoke(event)
    }
}

impl MessageHandler for Function<SqsEvent, SqsBatchResponse> {
    fn handle(&self, event: SqsEvent) -> BoxFuture<'_, SqsBatchResponse> {
        self.invoke(event)
    }
}

fn succeeding<E: Clone + Send + 'static, R: Default + Send + 'static>() -> Arc<Function<E, R>> {
    Function::new(|_| Box::pin(async { R::default() }))
}

struct Local {
    engine: Engine,
    client: Client,
    queue: SqliteQueue,
}

impl Local {
    async fn start(folder: Option<&Path>) -> Self {
        let file = |name: &str| folder.map(|folder| folder.join(name));
        let engine = Engine::start(file("table.db").as_deref(), ([127, 0, 0, 1], 0).into()).unwrap();
        let client = Client::from_conf(engine::config(&engine.url).build());
        crate::table::create(&client, TABLE).await.unwrap();
        let queue = SqliteQueue::open(file("queue.db").as_deref(), system_clock()).unwrap();
        Self { engine, client, queue }
    }

    async fn pipeline(&self, fanout: Arc<dyn StreamHandler>, deliver: Arc<dyn MessageHandler>) -> Pipeline {
        let settings = Settings { capacity: 64, ..Settings::default() };
        Pipeline::start(&self.engine, TABLE, self.queue.clone(), fanout, deliver, settings).await.unwrap()
    }

    /// Starts a pipeline that has nothing to deliver.
    async fn read(&self, fanout: Arc<dyn StreamHandler>) -> Pipeline {
        self.pipeline(fanout, succeeding::<SqsEvent, SqsBatchResponse>()).await
    }

    /// Puts an item whose attribute `n` is a number.
    async fn put(&self, sort_key: &str, number: usize) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = self.client.put_item().table_name(TABLE).item("PK", text("T#1")).item("SK", text(sort_key));
        put.item("n", AttributeValue::N(number.to_string())).send().await.unwrap();
    }

    async fn put_events(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.put(&format!("EVENT#{number:05}"), number).await;
        }
    }
}

async fn until(is_true: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_true().await {
        assert!(Instant::now() < deadline, "it never became true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn numbers(events: &[Event]) -> Vec<usize> {
    events.iter().flat_map(|event| event.records.iter().map(number)).collect()
}

fn number(record: &aws_lambda_events::event::dynamodb::EventRecord) -> usize {
    let record = serde_json::to_value(record).unwrap();
    record["dynamodb"]["NewImage"]["n"]["N"].as_str().unwrap().parse().unwrap()
}
