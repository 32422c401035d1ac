//! Simultaneous requests: no change is lost, nothing unique is given twice, and of contenders exactly one succeeds. [`race`]
//! explains the texts.

mod others;
mod race;

const ASSETS: &str = r#"
race: deletions of an asset
4 requests: DELETE /assets/{asset}
end: one 200, others 404 NOT_FOUND

race: changes of different fields
rounds: 10
request: PATCH /assets/{asset} {"notes": "n"}
request: PATCH /assets/{asset} {"serial_number": "s"}
end: 200, 200
then: GET /assets/{asset} -> 200 data/notes=n data/serial_number=s
end: 200, 409 CONFLICT
then: GET /assets/{asset} -> 200 data/notes=n data/serial_number=null
end: 409 CONFLICT, 200
then: GET /assets/{asset} -> 200 data/notes=null data/serial_number=s

race: an assignment and the deletion of the user
rounds: 10
request: PATCH /assets/{asset} {"assigned_to": "{user}"}
request: DELETE /users/{user}
end: 200, 409 IN_USE
then: DELETE /assets/{asset} -> 200
then: DELETE /users/{user} -> 200
end: 422 errors/0/pointer=/assigned_to, 200
then: GET /assets/{asset} -> 200 data/assigned_to=null

race: users with one address
3 requests: POST /users {"email": "ada@example.com", "display_name": "Ada"}
3 requests: POST /users {"email": "ADA@example.com", "display_name": "Ada"}
end: one 201, others 409 DUPLICATE
then: GET /users -> 200 meta/total=1

race: upserts of a new serial number
8 requests: PUT /assets/by-serial/S%2F1 {"name": "a"}
8 requests: PUT /assets/by-serial/S%2F1 {"name": "b"}
8 requests: PUT /assets/by-serial/S%2F1 {"name": "c"}
8 requests: PUT /assets/by-serial/S%2F1 {"name": "d"}
end: one 201, others 200|409 CONFLICT
then: GET /assets?serial_number=S%2F1 -> 200 meta/total=1

race: an asset of a model that changes
late: POST /assets {"name": "x", "model_id": "{model}"}
early: PATCH /catalog/models/{model} {"asset_type_id": "{screen}", "manufacturer_id": "{other}"}
end: 201 data/asset_type_id={screen} data/manufacturer=Other, 200

race: an asset that gets a model that changes
late: PATCH /assets/{asset} {"model_id": "{model}"}
early: PATCH /catalog/models/{model} {"asset_type_id": "{screen}", "manufacturer_id": "{other}"}
end: 200 data/asset_type_id={screen} data/manufacturer=Other, 200

race: a dry run and a change
late: PATCH /assets/{asset}?dry_run=true {"name": "ours"}
early: PATCH /assets/{asset} {"notes": "theirs"}
end: 200 data/name=ours data/notes=theirs, 200
then: GET /assets/{asset} -> 200 data/name=x data/notes=theirs

race: a dry run of an assignment and the deactivation of the user
late: PATCH /assets/{asset}?dry_run=true {"assigned_to": "{user}"}
early: PATCH /users/{user} {"is_active": false}
end: 422 errors/0/pointer=/assigned_to, 200"#;

const PROCESSES: &str = r#"
race: starts on one asset
steps: a
rounds: 5
3 requests: POST /processes/{process}/start {"asset_id": "{asset}"}
end: one 201, others 409 PROCESS_RUNNING instance_id={won}
then: GET /processes/instances -> 200 meta/total=1

race: a start and a change of the status
steps: a
rounds: 8
request: POST /processes/{process}/start {"asset_id": "{asset}"}
request: PATCH /assets/{asset} {"status": "scrapped"}
end: 201, 409 PROCESS_RUNNING
end: 409 WRONG_ASSET_STATUS, 200

race: submissions of a step
steps: a b
rounds: 5
3 requests: POST {instance}/advance {"step_data": {}, "current_step": 0}
end: one 200, others 409 STEP_MOVED
events: instance 2

race: submissions of the last step
steps: a
rounds: 5
3 requests: POST {instance}/advance {"step_data": {}, "current_step": 0}
end: one 200, others 409 STEP_MOVED|INSTANCE_CLOSED
then: GET /assets/{asset} -> 200 data/status=in_use
events: instance 2

race: the last step and a cancellation
steps: a
rounds: 8
request: POST {instance}/advance {"step_data": {}}
request: POST {instance}/cancel {}
end: 200, 409
then: GET /assets/{asset} -> 200 data/status=in_use
end: 409, 200
then: GET /assets/{asset} -> 200 data/status=in_stock
events: asset 3

race: submissions of a movement's last step
steps: a
late: POST /movements/{movement}/advance {"step_data": {"a": "2"}}
early: POST /movements/{movement}/advance {"step_data": {"a": "1"}}
end: 409 STEP_MOVED current_step=0, 200"#;

const LINKS: &str = r#"
race: tabs that submit a step of a link
steps: note sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"note": "n"}, "current_step": 0}
end: one 200, others 409 STEP_MOVED
then: GET {instance} -> 200 data/current_step=1
events: instance 2

race: tabs that submit any step of a link, of which a late one lacks the value of the next step
steps: note sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"note": "n"}}
end: one 200, others 409|422 STEP_MOVED|VALIDATION_ERROR
then: GET {instance} -> 200 data/current_step=1
events: instance 2

race: tabs that submit the last step of a link, after which another stays open
steps: sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"sign": "{signature}"}, "current_step": 0}
end: one 200, others 401|409 STEP_MOVED|UNAUTHORIZED
then: GET {instance} -> 200 data/current_step=1
then: GET {link} -> 200 data/status=used
events: instance 2

race: tabs that submit any step of a link that has one
steps: sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"sign": "{signature}"}}
end: one 200, others 401|409|422 STEP_MOVED|VALIDATION_ERROR|UNAUTHORIZED
then: GET {instance} -> 200 data/current_step=1
then: GET {link} -> 200 data/status=used
events: instance 2

race: a link and a key that submit one step
steps: note sign
rounds: 6
request: POST /sign/advance {"step_data": {"note": "n", "sign": "{signature}"}, "through": "sign", "current_step": 0}
request: POST {instance}/advance {"step_data": {"note": "n", "sign": "{signature}"}, "through": "sign", "current_step": 0}
end: 200, 409
then: GET {link} -> 200 data/status=used
end: 401 UNAUTHORIZED link_status=ended, 200
then: GET {link} -> 200 data/status=ended
end: 409, 200
then: GET {link} -> 200 data/status=ended data/used_at=null
events: instance 3

race: a link's last step and a cancellation
steps: sign
rounds: 8
request: POST /sign/advance {"step_data": {"sign": "{signature}"}}
request: POST {instance}/cancel {}
end: 200, 409
then: GET {link} -> 200 data/status=used
end: 401 UNAUTHORIZED link_status=ended, 200
then: GET {link} -> 200 data/status=ended
end: 409 INSTANCE_CLOSED, 200
then: GET {link} -> 200 data/status=ended
events: instance 2

race: a submission and the link's revocation, which is final
steps: note sign
rounds: 2
late: POST /sign/advance {"step_data": {"note": "n"}, "through": "note"}
early: DELETE {link}
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data={data} data/used_at=null
then: GET {instance} -> 200 data/current_step=0
events: instance 1

race: a submission of the link's last step and the link's revocation
steps: note sign
rounds: 2
late: POST /sign/advance {"step_data": {"note": "n", "sign": "{signature}"}, "through": "sign"}
early: DELETE {link}
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data={data} data/used_at=null
then: GET {instance} -> 200 data/current_step=0
events: instance 1

race: a session and the link's revocation
steps: sign
late: GET /sign/session
early: DELETE {link}
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data/status=revoked
events: link 2

race: sessions in 12 tabs, which open the link once
steps: sign
rounds: 4
12 requests: GET /sign/session
end: all 200 data/status=open
then: GET {link} -> 200 data/opened_at=*
events: link 2

race: revocations of a link
steps: sign
8 requests: DELETE {link}
end: all 200 data={data}
events: link 2"#;

#[tokio::test(start_paused = true)]
async fn of_assets() {
    race::run(ASSETS).await;
}

#[tokio::test(start_paused = true)]
async fn of_processes() {
    race::run(PROCESSES).await;
}

#[tokio::test(start_paused = true)]
async fn of_links() {
    race::run(LINKS).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "two deletions must not end with")]
async fn that_end_otherwise_are_told() {
    race::run("race: two deletions\n2 requests: DELETE /assets/{asset}\nend: 200, 200").await;
}
