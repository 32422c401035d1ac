"""The metrics that alarms and the dashboard may name."""

# The metrics that AWS publishes for each set of dimensions, as far as they are used here ("Metrics and dimensions" in the
# guides of API Gateway, Lambda, SQS and DynamoDB).
METRICS = {
    ("AWS/ApiGateway", ("ApiId",)): {"Count", "4xx", "5xx", "Latency"},
    ("AWS/Lambda", ("FunctionName",)): {"Errors", "Throttles", "Duration", "ConcurrentExecutions", "IteratorAge", "RecursiveInvocationsDropped"},
    ("AWS/SQS", ("QueueName",)): {
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesVisible",
        "NumberOfMessagesDeleted",
        "NumberOfMessagesReceived",
        "NumberOfMessagesSent",
    },
    ("AWS/DynamoDB", ("TableName",)): {
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "TransactionConflict",
        "ConditionalCheckFailedRequests",
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
    },
    ("AWS/DynamoDB", ("GlobalSecondaryIndexName", "TableName")): {
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
    },
    ("AWS/DynamoDB", ("Operation", "TableName")): {"SystemErrors", "SuccessfulRequestLatency"},
    # Our own, which metric filters of the template count.
    ("${AWS::StackName}", ()): {"UnreadableRecords", "FailedInvocations"},
}
