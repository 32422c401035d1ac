//! The queue of deliveries in Amazon SQS.

pub use aws_sdk_sqs as sdk;
