//! Compares roles with calls, for the functions between the table's stream and webhook receivers.

use crate::deployment::{allows_partition, granted, needed, statements, texts};
use crate::support::prelude::*;
use crate::support::queue::TestQueue;
use crate::support::webhooks::*;
use axum::http::StatusCode;
use axum::routing::post;
use deliver::{Deliver, Sender};
use fanout::Fanout;
use shared::app::dynamodb::Event;
use shared::app::sqs::SqsEvent;
use shared::domain::webhooks::{AddressPolicy, DeliveryRequest, Message};

async fn stream_event(api: &Api, client: &Client) -> Event {
    let query = api.dynamo.query().table_name(&api.table).key_condition_expression("PK = :pk AND begins_with(SK, :event)");
    let query = query.expression_attribute_values(":pk", Keys::of(client.tenant).partition());
    let events = query.expression_attribute_values(":event", AttributeValue::S("EVENT#".into())).send().await.unwrap();
    stream_batch(&events.items().iter().map(|item| stream_record("INSERT", item)).collect::<Vec<_>>())
}

fn batch(message: &Message) -> SqsEvent {
    from_queue("deliveries", message)
}

fn retried(message: &Message) -> SqsEvent {
    from_queue("retries", message)
}

fn from_queue(name: &str, message: &Message) -> SqsEvent {
    let record = json!({"messageId": "m", "receiptHandle": "handle", "body": serde_json::to_string(message).unwrap(),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1772704800000", "SenderId": "AIDA",
            "ApproximateFirstReceiveTimestamp": "1772704800000"},
        "messageAttributes": {}, "md5OfBody": "0", "eventSource": "aws:sqs", "awsRegion": "us-east-1",
        "eventSourceARN": format!("arn:aws:sqs:us-east-1:123456789012:{name}")});
    serde_json::from_value(json!({"Records": [record]})).unwrap()
}

/// Starts receivers that respond with the status in their path. Returns their URL.
async fn receivers() -> String {
    let router = Router::new()
        .route("/200", post(async || StatusCode::OK))
        .route("/410", post(async || StatusCode::GONE))
        .route("/500", post(async || StatusCode::INTERNAL_SERVER_ERROR));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Returns a client that can also create webhooks for receivers on this machine.
fn with_webhooks(api: &Api, client: &Client, store: Store, queue: &Arc<TestQueue>) -> Client {
    let app = App::new(store)
        .with_key_encryption(Some(Arc::clone(&api.key_encryption)))
        .with_queue(Some(queue.clone()))
        .with_address_policy(AddressPolicy::PublicOrLoopback);
    Client { router: shared::http::service(webhooks::routes(), app), ..client.clone() }
}

#[tokio::test]
async fn the_role_of_fanout_allows_its_calls_and_no_others() {
    let (api, client) = Api::with_tenant().await;
    let store = api.replica(0, 0).store;
    let queue = Arc::new(TestQueue::new(store.clone()));
    let owner = with_webhooks(&api, &client, store.clone(), &queue);
    let webhook = owner.post("/webhooks", json!({"url": "http://127.0.0.1:1/", "events": ["asset.*"]})).await.id();
    client.asset(json!({"name": "a"})).await;
    let event = stream_event(&api, &client).await;
    api.faults.take_requests();
    let response = Fanout::new(store, queue.clone()).handle(event).await;
    assert!(response.batch_item_failures.is_empty());
    let messages = queue.take();
    let [Message::Event(sent)] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(sent.webhook_ids.iter().map(ToString::to_string).collect::<Vec<_>>(), [webhook]);
    let (mut needed, partitions) = needed(api.faults.take_requests());
    // Calls that Lambda makes with the function's role.
    let of_stream = ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"];
    needed.extend(of_stream.map(|action| ("stream".to_owned(), action.to_owned())));
    assert_eq!(needed, granted("Fanout"));
    for partition in partitions {
        assert!(!allows_partition("Fanout", &partition).contains(&false), "{partition}");
    }
    assert!(!allows_partition("Fanout", "REGISTRY").contains(&true));
}

#[tokio::test]
async fn the_role_of_deliver_allows_its_calls_and_no_others() {
    let (api, client) = Api::with_tenant().await;
    let store = api.replica(0, 0).store;
    let queue = Arc::new(TestQueue::new(store.clone()));
    let owner = with_webhooks(&api, &client, store.clone(), &queue);
    let address = receivers().await;
    let mut webhooks = Vec::new();
    for status in [200, 410, 500] {
        let body = json!({"url": format!("{address}/{status}"), "events": ["asset.created"]});
        webhooks.push(owner.post("/webhooks", body).await.id());
    }
    // An assigned asset, so that names must be looked up.
    client.assigned_asset("a", &client.user("Ada").await).await;
    Fanout::new(store.clone(), queue.clone()).handle(stream_event(&api, &client).await).await;
    let messages = queue.take();
    let [Message::Event(sent)] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(sent.webhook_ids.len(), 3);
    let sender = Sender::new(AddressPolicy::PublicOrLoopback).unwrap();
    let deliver = Deliver::new(store, queue.clone(), Arc::clone(&api.key_encryption), sender);
    api.faults.take_requests();
    deliver.handle(batch(&messages[0])).await;
    // One receiver keeps failing until its webhook is disabled.
    let [failing @ Message::Delivery(_)] = &queue.take()[..] else { panic!("a retry") };
    api.advance_clock(60);
    deliver.handle(retried(failing)).await;
    let own = api.faults.take_requests();
    let [third @ Message::Delivery(_)] = &queue.take()[..] else { panic!("another retry") };
    owner.post(&format!("/webhooks/{}/test", webhooks[0]), json!({})).await.data();
    let tests = queue.take();
    // The other receiver fails once, then works again.
    owner.patch(&format!("/webhooks/{}", webhooks[0]), json!({"url": format!("{address}/500")})).await.data();
    let repeated = DeliveryRequest::first(client.tenant, webhooks[0].parse().unwrap(), sent.event_id, api.now());
    let replay = json!({"kind": "replay", "tenant_id": client.tenant, "webhook_id": webhooks[0],
        "after": EventId::new(Timestamp::from_millis(0), [0; 10]), "until": api.now(), "events": ["*"],
        "requested_at": api.now()});
    let replay: Message = serde_json::from_value(replay).unwrap();
    api.faults.take_requests();
    deliver.handle(batch(&Message::Delivery(repeated.clone()))).await;
    let mut requests = [own, api.faults.take_requests()].concat();
    owner.patch(&format!("/webhooks/{}", webhooks[0]), json!({"url": format!("{address}/200")})).await.data();
    api.advance_clock(60);
    api.faults.take_requests();
    deliver.handle(retried(&Message::Delivery(DeliveryRequest { number: 2, ..repeated }))).await;
    for message in &tests {
        deliver.handle(batch(message)).await;
    }
    deliver.handle(batch(&replay)).await;
    api.advance_clock(6 * 24 * 3600);
    deliver.handle(retried(third)).await;
    requests.extend(api.faults.take_requests());
    for (webhook, reason) in [(&webhooks[1], "gone"), (&webhooks[2], "failing")] {
        assert_eq!(owner.get(&format!("/webhooks/{webhook}")).await.data()["disabled_reason"], reason);
    }
    let (needed, partitions) = needed(requests);
    assert_eq!(needed, granted("Deliver"));
    for partition in partitions {
        assert!(!allows_partition("Deliver", &partition).contains(&false), "{partition}");
    }
    assert!(!allows_partition("Deliver", "REGISTRY").contains(&true));
}

/// The role's permissions on the queues, and the queues in the function's variables.
#[test]
fn only_the_functions_of_webhooks_send_and_only_deliver_receives() {
    for function in resources() {
        let expected: &[(&str, &str)] = match function {
            "Webhooks" => &[("sqs:SendMessage", "DeliveryQueue.Arn")],
            "Fanout" => &[("sqs:SendMessage", "DeliveryQueue.Arn RetryQueue.Arn"), ("sqs:SendMessage", "StreamFailures.Arn")],
            "Deliver" => &[
                ("sqs:ReceiveMessage", "DeliveryQueue.Arn RetryQueue.Arn"),
                ("sqs:DeleteMessage", "DeliveryQueue.Arn RetryQueue.Arn"),
                ("sqs:GetQueueAttributes", "DeliveryQueue.Arn RetryQueue.Arn"),
                ("sqs:SendMessage", "DeliveryQueue.Arn RetryQueue.Arn"),
            ],
            _ => &[],
        };
        let mut allowed = Vec::new();
        for statement in statements(function) {
            for action in texts(&statement["Action"]).into_iter().filter(|action| action.starts_with("sqs:")) {
                let places = texts(&statement["Resource"]);
                allowed.push((action, places.join(" ")));
            }
        }
        let expected: Vec<_> = expected.iter().map(|(action, place)| ((*action).to_owned(), (*place).to_owned())).collect();
        assert_eq!(allowed, expected, "{function}");
        let variables = &resource(&format!("{function}Function"))["Properties"]["Environment"]["Variables"];
        let knows_queue = variables.get(queue::QUEUE_URL).map(texts);
        let known: &[&str] = if function == "Webhooks" { &["DeliveryQueue", ""] } else { &["DeliveryQueue"] };
        let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        // Without webhooks, the API has no queue.
        assert_eq!(knows_queue, (!expected.is_empty()).then_some(known), "{function}");
        let knows_retries = variables.get(queue::RETRY_QUEUE_URL).map(texts);
        assert_eq!(knows_retries, ["Fanout", "Deliver"].contains(&function).then(|| vec!["RetryQueue".to_owned()]), "{function}");
    }
    // `sam local` only passes declared variables to functions.
    assert_eq!(variables_of_all()["AWS_ENDPOINT_URL_SQS"], "");
}

/// The functions don't read the stream themselves: Lambda does, with the function's role, and the pipe does, with its own.
#[test]
fn the_stream_is_read_for_fanout_and_the_bus_only() {
    for function in resources() {
        let reads = granted(function).into_iter().filter(|(place, _)| place == "stream").count();
        assert_eq!(reads, if function == "Fanout" { 4 } else { 0 }, "{function}");
    }
    let of_bus: Vec<(String, Vec<String>)> = statements("EventBus")
        .iter()
        .filter(|statement| statement["Sid"] != "Stream")
        .map(|statement| (texts(&statement["Action"]).join(" "), texts(&statement["Resource"])))
        .collect();
    let expected = [("events:PutEvents", "EventBusArn"), ("sqs:SendMessage", "StreamFailures.Arn")];
    assert_eq!(of_bus, expected.map(|(action, place)| (action.to_owned(), vec![place.to_owned()])));
    assert_eq!(granted("EventBus").len(), 4);
    assert_eq!(resource("EventBusRole")["Condition"], "HasEventBus");
}

/// If the filter matched nothing, the functions' tests wouldn't notice.
#[test]
fn the_filter_of_the_stream_lets_every_event_through_and_nothing_else() {
    let source = resource("FanoutFunction")["Properties"]["Events"]["Stream"]["Properties"].clone();
    let pattern: Value = serde_json::from_str(source["FilterCriteria"]["Filters"][0]["Pattern"].as_str().unwrap()).unwrap();
    assert_eq!(pattern["eventName"], json!(["INSERT"]));
    let prefix = pattern["dynamodb"]["Keys"]["SK"]["S"][0]["prefix"].as_str().unwrap();
    let keys = Keys::of(Id::new(Timestamp::from_millis(0), [1; 10]));
    let event = keys.event(EventId::new(Timestamp::from_millis(0), [0; 10])).item();
    assert_eq!(event["SK"].as_s().unwrap().split_inclusive('#').next(), Some(prefix));
    assert_eq!(resource("Table")["Properties"]["StreamSpecification"]["StreamViewType"], "NEW_IMAGE");
}

/// The samples for `sam local invoke`, which tests of the release binaries use, too.
#[test]
fn the_sample_events_are_what_stream_and_queue_have() {
    let stream: Value = serde_json::from_str(include_str!("../../../events/background/fanout.json")).unwrap();
    let _: Event = serde_json::from_value(stream.clone()).unwrap();
    let image = &stream["Records"][0]["dynamodb"]["NewImage"];
    let entry = image["entry"]["S"].as_str().unwrap();
    let event: shared::domain::history::event::Event = serde_json::from_str(entry).unwrap();
    assert_eq!(
        (shared::domain::history::event::canonical(&event).unwrap().as_str(), &image["hash"]["S"]),
        (entry, &json!(shared::domain::history::event::hash(entry)))
    );
    let queue: Value = serde_json::from_str(include_str!("../../../events/background/deliver.json")).unwrap();
    let _: SqsEvent = serde_json::from_value(queue.clone()).unwrap();
    let record = &queue["Records"][0];
    let message: Message = serde_json::from_str(record["body"].as_str().unwrap()).unwrap();
    assert_eq!(record["attributes"]["MessageGroupId"], message.group());
    let Message::Event(request) = message else { panic!("{message:?}") };
    assert_eq!((request.event_id, request.webhook_ids.len()), (event.id, 1));
    assert_eq!(image["PK"]["S"], Keys::of(request.tenant_id).partition().as_s().unwrap().as_str());
    assert_eq!(image["SK"]["S"], Keys::of(request.tenant_id).event(event.id).item()["SK"].as_s().unwrap().as_str());
}
