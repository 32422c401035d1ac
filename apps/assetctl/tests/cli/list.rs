//! Reads the inventory: `assetctl list`, `stats`, `export` and `me`.

use crate::support::scripted::{Answer, Scripted};
use crate::support::service::Service;
use crate::support::{Folder, run};
use serde_json::{Value, json};

/// Starts a service with a list of this many assets, in pages.
fn listing(total: u64, may_read_users: bool) -> Scripted {
    Scripted::start(move |request, _| {
        assert_eq!(request.route, "GET /assets");
        if !may_read_users && request.parameter("expand") == "assigned_to" {
            return Answer::problem(403, "FORBIDDEN", "The key needs the scope users:read.");
        }
        let (page, limit): (u64, u64) =
            (request.parameter("page").parse().unwrap_or(1), request.parameter("limit").parse().unwrap());
        let rows: Value = ((page - 1) * limit..total.min(page * limit))
            .map(|n| json!({"asset_tag": format!("A-{n}"), "name": "Laptop", "status": "in_use", "assigned_to": null}))
            .collect();
        Answer::json(&json!({"data": rows, "meta": {"total": total, "page": page, "limit": limit}}))
    })
}

#[test]
fn all_pages_are_read_or_as_many_as_are_wanted() {
    let service = listing(250, true);
    let all = run(&service.url, &["list", "--json", "--location", "Berlin", "--filter", "purchase_price_min=5"]);
    assert_eq!((all.code, all.json()["assets"].as_array().unwrap().len()), (0, 250), "{}", all.stderr);
    let requests = service.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!((request.parameter("location"), request.parameter("purchase_price_min")), ("Berlin", "5"));
    }
    let some = run(&service.url, &["list", "--limit", "120", "--columns", "asset_tag,name"]);
    assert!(some.stdout.starts_with("ASSET TAG  NAME\nA-0        Laptop\n"), "{}", some.stdout);
    assert_eq!((some.stdout.lines().count(), some.stderr.as_str()), (121, "120 of 250 assets\n"));
    let few = run(&service.url, &["list", "--limit", "1", "--columns", "asset_tag", "--format", "csv"]);
    assert_eq!(few.stdout, "asset_tag\r\nA-0\n");
    let unknown = run(&service.url, &["list", "--limit", "1", "--columns", "tag"]);
    unknown.tells(2, "unknown tag; known: asset_tag, ");
}

#[test]
fn a_key_without_users_lists_ids() {
    let service = listing(150, false);
    let listed = run(&service.url, &["list", "--json"]);
    assert_eq!((listed.code, service.requests().len()), (0, 3), "{}", listed.stderr);
    assert_eq!(listed.json()["total"], 150);
}

#[test]
fn groups_are_a_table_with_a_total() {
    let service = Scripted::start(|request, _| {
        assert_eq!((request.route.as_str(), request.parameter("group_by")), ("GET /stats", "location"));
        assert_eq!((request.parameter("depth"), request.parameter("custom_fields.cost_center")), ("2", "0815"));
        let group = json!({"value": "Berlin / 3rd floor", "count": 2, "purchase_price": "3698.00"});
        Answer::data(&json!({"groups": [group], "rest": {"groups": 0, "count": 0, "purchase_price": "0.00"}}))
    });
    let shown = run(&service.url, &["stats", "--by", "location", "--depth", "2", "--custom", "cost_center=0815"]);
    assert!(shown.stdout.ends_with("\nTotal                    2         3698.00\n"), "{}{}", shown.stdout, shown.stderr);
    assert_eq!(run(&service.url, &["stats", "--depth", "2"]).code, 2);
}

#[test]
fn a_missing_key_and_a_missing_address_are_told_together() {
    let mut command = crate::support::command("", &["list"]);
    let told = crate::support::Run::of(command.env_remove("ASSETCTL_API_KEY").output().unwrap());
    assert!(told.stderr.contains("no base URL: ") && told.stderr.contains("\nno API key: "), "{}", told.stderr);
    let usage = run("http://127.0.0.1:9/v1", &["stocktake"]).stderr;
    assert!(usage.contains("\nUsage: assetctl stocktake <PLACE>...\n"), "{usage}");
}

#[test]
fn real_service_accepts_the_filters_and_groups() {
    let service = Service::start();
    let ada = service.user("Ada", true);
    for (name, code) in [("Laptop", "LAP"), ("Monitor", "MON")] {
        service.create("/catalog/asset-types", &json!({"name": name, "code": code, "kind": "physical"}));
    }
    let kind = &service.get("/catalog/asset-types?code=LAP")["data"][0]["id"];
    for (name, location, owner, center) in
        [("a", "Berlin / 3rd floor", Some(&ada), "0815"), ("b", "Berlin / Store", None, "0815"), ("c", "London", None, "4711")]
    {
        let body = json!({
            "name": name, "location": location, "assigned_to": owner, "status": "in_use", "asset_type_id": kind,
            "manufacturer": "Dell", "purchase_price": 10, "custom_fields": {"cost_center": center}
        });
        service.create("/assets", &body);
    }
    for (filters, expected) in [
        (&["--location", "berlin"][..], json!(["a", "b"])),
        (&["--person", "none"], json!(["b", "c"])),
        (&["--person", "ada@example.org"], json!(["a"])),
        (&["--custom", "cost_center=4711"], json!(["c"])),
        (&["--type", "LAP", "--manufacturer", "dell", "--status", "in_use", "--location", "London"], json!(["c"])),
        (&["--filter", "purchase_price_min=11"], json!([])),
    ] {
        let listed = service.run(&[&["list", "--sort", "name", "--json"], filters].concat());
        let names: Value = listed.json()["assets"].as_array().unwrap().iter().map(|asset| asset["name"].clone()).collect();
        assert_eq!(names, expected, "{filters:?}");
    }
    for (filters, note) in [
        (&["--type", "XYZ"][..], "No asset has the type code XYZ; the nearest: LAP.\n"),
        (&["--type", "MON"], "No asset has the type code MON; the nearest: LAP.\n"),
        (
            &["--location", "Berln"],
            "No asset has the location Berln; the nearest: Berlin, London, Berlin / Store, Berlin / 3rd floor.\n",
        ),
        (
            &["--location", "berlin/3RD floor/9"],
            "No asset has the location berlin / 3RD floor / 9; the nearest: Berlin / 3rd floor, ",
        ),
        (&["--manufacturer", "Del"], "No asset has the manufacturer Del; the nearest: Dell.\n"),
        (&["--custom", "cost_center=0816"], "No asset has the cost_center 0816; the nearest: 0815, 4711.\n"),
        (&["--custom", "nope=1"], "No asset has the custom field nope; the nearest: cost_center.\n"),
    ] {
        for command in ["list", "stats"] {
            let nothing = service.run(&[&[command], filters].concat());
            assert!(nothing.code == 0 && nothing.stderr.starts_with(note), "{}", nothing.stderr);
        }
    }
    assert_eq!(service.run(&["list", "--location", "London", "--person", "ada@example.org"]).stderr, "0 assets\n");
    service.create("/users", &json!({"email": "jm@example.org", "display_name": "Jürgen Müller"}));
    for name in ["Müller, Jürgen", "müller,  jürgen", "Jürgen Müller"] {
        assert_eq!(service.run(&["list", "--person", name]).stderr, "0 assets\n", "{name}");
    }
    let by_type = service.run(&["stats", "--by", "type"]);
    assert!(by_type.stdout.contains("\nLaptop           3           30.00\n"), "{}", by_type.stdout);
    assert!(service.run(&["stats", "--by", "person"]).stdout.contains("Ada <ada@example.org>"));
    assert_eq!(service.run(&["list", "--unlisted-field", "cost_center"]).stderr, "0 assets\n");
    let recent = service.run(&["list", "--filter", "status_changed_from=today", "--json"]);
    assert_eq!(recent.json()["total"], 3, "{}", recent.stderr);
    for (arguments, told) in [
        (&["list", "--type", "Lap-top"][..], "\n  --type: must be 2 to 8 characters from A-Z and 0-9\nThere are LAP, MON.\n"),
        (&["list", "--filter", "limit=2"], "limit is not a filter; --help lists the other options"),
        (&["export", "--filter", "format=csv"], "format is not a filter"),
        (&["labels", "--filter", "page=1"], "page is not a filter"),
        (&["stats", "--filter", "group_by=status"], "group_by is not a filter"),
        (&["list", "--filter", "foo=1"], "\n  --filter foo: unknown parameter"),
        (&["list", "--columns", "kind"], "--columns: unknown kind; known: asset_kind, "),
        (&["list", "--limit", "0"], "must be a positive integer"),
        (&["list", "--json", "--format", "csv"], "give --json or --format, not both"),
        (&["--json", "list", "--format", "table"], "give --json or --format, not both"),
        (&["labels", "--status", "foo"], "\n  --status: must be one of in_stock"),
        (&["export", "--status", "foo"], "\n  --status: must be one of in_stock"),
        (&["export", "--status", "lent"], "the service answered 422 VALIDATION_ERROR: "),
        (&["labels", "--filter", "colour=red"], "\n  --filter colour: unknown parameter"),
        (&["stats", "--by", "cost_center"], "\nFor the custom field cost_center: --by custom_fields.cost_center\n"),
    ] {
        let refused = service.run(arguments);
        refused.tells(2, told);
        assert!(!refused.stderr.contains("repeat"), "{}", refused.stderr);
    }
    let shown = service.run(&["list", "--location", "Berlin / 3rd floor", "--columns", "name,location,assigned_to"]);
    assert!(shown.stdout.contains("a     Berlin / 3rd floor  Ada <ada@example.org>\n"), "{}", shown.stdout);
    let id = service.create("/assets", &json!({"name": "d", "location": "Rome", "purchase_price": "0.3000"}));
    let exact = |options: &[&str]| {
        service.run(&[&["list", "--location", "Rome", "--columns", "purchase_price"], options].concat()).stdout
    };
    assert_eq!(
        (exact(&["--format", "csv"]).as_str(), exact(&[]).as_str()),
        ("purchase_price\r\n0.3000\n", "PURCHASE PRICE\n0.3000\n")
    );
    let all = service.run(&["list", "--location", "Rome", "--json"]).stdout;
    let [shown, who] = ["show", "who"].map(|command| service.run(&[command, &id, "--json"]).stdout);
    for json in [exact(&["--json"]), all, shown, who] {
        assert!(json.contains("\"purchase_price\": 0.3000"), "{json}");
    }
    let groups = service.run(&["stats", "--by", "assigned_to"]).stdout;
    assert!(groups.contains("Ada <ada@example.org>       1") && groups.contains("(none)"), "{groups}");
    let stats = service.run(&["stats", "--location", "Berlin", "--json"]).json();
    assert_eq!(stats["assets"]["total"], 2);
}

/// Starts a service with an export in parts, which is busy once in the middle.
fn exporting(parts: &'static [&'static str]) -> Scripted {
    Scripted::start(move |request, number| match number {
        1 => Answer::busy("0"),
        _ => {
            let part: usize = request.parameter("after").parse().unwrap_or_default();
            let format = request.parameter("format");
            let answer = Answer::new(if format == "csv" { "text/csv" } else { "application/x-ndjson" }, parts[part].to_owned());
            let next = part + 1;
            if next == parts.len() {
                return answer;
            }
            answer.with("link", format!("</v1/assets/export?format={format}&after={next}>; rel=\"next\""))
        }
    })
}

#[test]
fn parts_become_one_table_with_the_columns_of_all() {
    let service = exporting(&[
        "id,name,custom_fields.RAM\r\n1,'=A,\"\"\"16\"\"\"\r\n",
        "id,name\r\n",
        "id,name,custom_fields.Farbe,custom_fields.RAM,custom_fields.c\r\n2,\"B, \"\"C\"\"\r\nD\",grün,,null\r\n3,\" \",\\N,-5,\r\n",
    ]);
    let folder = Folder::new();
    let path = folder.path("assets.csv");
    let run = run(&service.url, &["export", "-o", path.to_str().unwrap(), "--filter", "status=in_use", "--json"]);
    assert_eq!((run.code, &run.json()["rows"]), (0, &json!(3)), "{}", run.stderr);
    let expected = "id,name,custom_fields.Farbe,custom_fields.RAM,custom_fields.c\r\n1,'=A,,\"\"\"16\"\"\",\r\n\
                    2,\"B, \"\"C\"\"\r\nD\",grün,,null\r\n3, ,\\N,-5,\r\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(service.requests()[0].parameter("status"), "in_use");
    assert_eq!(folder.names(), ["assets.csv"]);
}

#[test]
fn byte_order_mark_of_the_first_part_begins_the_table() {
    let service = exporting(&["\u{feff}id,custom_fields.RAM\r\n1,16\r\n", "id,custom_fields.Farbe\r\n2,grün\r\n"]);
    let exported = run(&service.url, &["export", "--bom"]);
    let expected = "\u{feff}id,custom_fields.Farbe,custom_fields.RAM\r\n1,,16\r\n2,grün,\r\n";
    assert_eq!((exported.code, exported.stdout.as_str()), (0, expected), "{}", exported.stderr);
    assert_eq!(service.requests()[0].parameter("bom"), "true");
}

#[test]
fn cells_are_separated_as_it_is_asked_for() {
    let part = "id,name,notes\r\n1,\"A, B\n\",c;d\r\n2,,\"x\"\"\"\r\n";
    let service = Scripted::start(move |request, _| {
        let mark = if request.parameter("bom") == "true" { "\u{feff}" } else { "" };
        Answer::new("text/csv", format!("{mark}{part}"))
    });
    let export = |options: &[&str]| run(&service.url, &[&["export"], options].concat());
    assert_eq!(export(&[]).stdout, part);
    assert_eq!(export(&["--bom"]).stdout, format!("\u{feff}{part}"));
    assert_eq!(export(&["--delimiter", ";"]).stdout, "id;name;notes\r\n1;\"A, B\n\";\"c;d\"\r\n2;;\"x\"\"\"\r\n");
    assert_eq!(export(&["--delimiter", "tab"]).stdout, "id\tname\tnotes\r\n1\t\"A, B\n\"\tc;d\r\n2\t\t\"x\"\"\"\r\n");
    export(&["--delimiter", "semicolon", "--format", "ndjson"]).tells(2, "--delimiter is only for CSV");
    assert_eq!(
        export(&["--bom", "--delimiter", ";"]).stdout,
        "\u{feff}id;name;notes\r\n1;\"A, B\n\";\"c;d\"\r\n2;;\"x\"\"\"\r\n"
    );
    export(&["--bom", "--format", "ndjson"]).tells(2, "--bom is only for CSV");
}

#[test]
fn standard_output_has_the_export_and_nothing_else() {
    let service = exporting(&["{\"id\":\"1\"}\n", "", "{\"id\":\"2\"}\n"]);
    let exported = run(&service.url, &["export", "--format", "ndjson"]);
    assert_eq!((exported.code, exported.stdout.as_str()), (0, "{\"id\":\"1\"}\n{\"id\":\"2\"}\n"), "{}", exported.stderr);
    assert_eq!(run(&service.url, &["export", "--json"]).code, 2);
}

#[test]
fn records_that_the_service_cannot_read_are_named() {
    let service = Scripted::start(|_, _| Answer::new("text/csv", "id,name\r\n1,A\r\n".into()).with("x-unreadable", "0197-x"));
    let run = run(&service.url, &["export"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, "id,name\r\n1,A\r\n"));
    assert!(run.stderr.contains("can't read; report this to its operator: 0197-x"), "{}", run.stderr);
}

#[test]
fn an_incomplete_export_leaves_no_file() {
    let service = Scripted::start(|_, number| match number {
        0 => Answer::new("text/csv", "id\r\n1\r\n".into()).with("link", "</v1/assets/export?after=1>; rel=\"next\""),
        _ => Answer::problem(403, "FORBIDDEN", "Not any more."),
    });
    let folder = Folder::new();
    let path = folder.path("assets.csv");
    assert_eq!(run(&service.url, &["export", "-o", path.to_str().unwrap()]).code, 1);
    assert!(folder.names().is_empty());
}

#[test]
fn completions_need_no_service_and_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = run("", &["completions", shell]);
        run.shows("assetctl");
        let words = ["me", "stats", "labels", "offboard", "--keep-active", "a4-65"];
        assert!(shell != "bash" || words.iter().all(|word| run.stdout.contains(word)), "{}", run.stdout);
    }
}

fn me() -> Value {
    json!({
        "key": {
            "id": "k1", "name": "ci", "prefix": "apl_0351f4Sj", "scopes": ["assets:read", "users:read"], "expires_at": null,
            "rate_limit_per_minute": 600, "created_at": "2026-03-05T10:00:00.000Z"
        },
        "tenant": {"id": "t1", "name": "東京\u{1b}[2J", "time_zone": "Asia/Tokyo", "locale": "ja"},
        "user": {"id": "u1", "email": "ada@example.com", "display_name": "Ada", "role": "technician"}
    })
}

#[test]
fn me_prints_the_owner_of_the_key() {
    let service = Scripted::start(|_, _| Answer::data(&me()));
    let text = run(&service.url, &["me"]);
    let expected = "\
Tenant      東京\u{fffd}[2J (t1)
Time zone   Asia/Tokyo
Locale      ja
User        Ada <ada@example.com>, technician
Key         ci (k1)
Prefix      apl_0351f4Sj
Scopes      assets:read, users:read
Created     2026-03-05 10:00 UTC
Expires     never
Rate limit  600 requests a minute
";
    assert_eq!((text.code, text.stdout.as_str()), (0, expected), "{}", text.stderr);
    assert_eq!(run(&service.url, &["me", "--json"]).json(), me());
    assert!(service.requests().iter().all(|request| request.route == "GET /me"));
}

#[test]
fn stats_are_tables_or_json() {
    let stats = json!({
        "assets": {
            "total": 4, "assigned": 1, "unassigned": 3, "by_status": {"in_stock": 3, "in_use": 1},
            "by_kind": {"physical": 4, "logical": 0}, "by_type": {"": 1, "ノートパソコン": 3}, "by_manufacturer": {},
            "value_by_status": {"in_stock": "3747.00", "in_use": "0"},
            "warranty": {"ended": 1, "within_30": 0, "within_60": 2, "within_90": 2}
        },
        "instances": {"by_status": {"in_progress": 2}, "by_process": {"Employee Onboarding": 2}}
    });
    let answer = stats.clone();
    // The service is busy at the first request.
    let service = Scripted::start(move |_, number| match number {
        0 => Answer::problem(503, "UNAVAILABLE", "Try again."),
        _ => Answer::data(&answer),
    });
    let text = run(&service.url, &["stats"]);
    let expected = "\
4 assets: 1 assigned, 3 not

STATUS    ASSETS    VALUE
in_stock       3  3747.00
in_use         1        0

KIND      ASSETS
physical       4
logical        0

TYPE            ASSETS
(none)               1
ノートパソコン       3

WARRANTY             ASSETS
has ended                 1
ends within 30 days       0
ends within 60 days       2
ends within 90 days       2

PROCESS INSTANCES  COUNT
in_progress            2

PROCESS              INSTANCES
Employee Onboarding          2
";
    assert_eq!((text.code, text.stdout.as_str()), (0, expected), "{}", text.stderr);
    assert_eq!(run(&service.url, &["stats", "--json"]).json(), stats);
}

#[test]
fn refusals_and_other_servers_are_explained() {
    let service = Scripted::start(|request, _| match request.route.as_str() {
        "GET /stats" => Answer::problem(403, "FORBIDDEN", "The key needs assets:read."),
        _ => Answer::new("text/html", "<html>".into()),
    });
    let refused = run(&service.url, &["stats"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("403 FORBIDDEN: The key needs assets:read."), "{}", refused.stderr);
    run(&service.url, &["me"]).tells(1, "instead of application/json; check --base-url");
}
